package vendorsim

import (
	"context"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
)

const classCall = "call"

// Call is a call to an account.
type Call struct {
	Video bool `json:"video"`
	Group bool `json:"group"` // others are called too
}

// Call lets the phone of a number call a linked account, whose phone and companions ring, and
// returns the id of the call. Nobody ever answers it.
func (v *Vendor) Call(_ context.Context, account, from string, c Call) (callID string, err error) {
	id := newMessageID()
	return id, v.ring(account, from, c.offer(id))
}

// HangUp ends a call before it was answered.
func (v *Vendor) HangUp(_ context.Context, account, from, callID string) error {
	return v.ring(account, from, waBinary.Node{
		Tag: "terminate", Attrs: waBinary.Attrs{"call-id": callID, "reason": "timeout"},
	})
}

// ring queues what concerns a call of a number for the companions of an account.
func (v *Vendor) ring(account, from string, about waBinary.Node) error {
	called, err := v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	caller, err := knownNumber(from)
	if err != nil {
		return err
	}
	about.Attrs["call-creator"] = caller.lid()
	if !v.people.hides(caller) {
		about.Attrs["caller_pn"] = caller.pn()
	}
	id := newRef()
	node := encodeNode(waBinary.Node{
		Tag: classCall,
		Attrs: waBinary.Attrs{
			"from": caller.lid(), "id": id, "t": time.Now().Unix(), "platform": "android", "version": "2.26.40",
			"notify": caller.name(),
		},
		Content: []waBinary.Node{about},
	})
	v.mu.Lock()
	for _, cp := range v.devices.companionsOf(called) {
		v.queues.deliver(cp, &delivery{Class: classCall, ID: id, From: caller, Node: node})
	}
	v.mu.Unlock()
	return v.flush()
}

// offer returns the node that makes a phone ring. Of a call to several people there is only a
// notice.
func (c Call) offer(id string) waBinary.Node {
	if c.Group {
		media := "audio"
		if c.Video {
			media = "video"
		}
		return waBinary.Node{Tag: "offer_notice", Attrs: waBinary.Attrs{"call-id": id, "media": media, "type": "group"}}
	}
	offer := waBinary.Node{Tag: "offer", Attrs: waBinary.Attrs{"call-id": id}}
	streams := []waBinary.Node{{Tag: "audio", Attrs: waBinary.Attrs{"enc": "opus", "rate": "16000"}}}
	if c.Video {
		streams = append(streams, waBinary.Node{Tag: "video", Attrs: waBinary.Attrs{"enc": "h264"}})
	}
	offer.Content = streams
	return offer
}
