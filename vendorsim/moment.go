package vendorsim

import (
	"slices"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
)

// MomentKind is what a companion lets others see or hear at once.
type MomentKind string

// The kinds.
const (
	MomentTyping    MomentKind = "typing"
	MomentRecording MomentKind = "recording"
	MomentPaused    MomentKind = "paused"
	MomentRejected  MomentKind = "rejected" // a call

	MomentAvailable   MomentKind = "available"
	MomentUnavailable MomentKind = "unavailable"
	MomentSubscribed  MomentKind = "subscribed" // to whether the peer is online
)

// Moment is something that nobody keeps: what a companion did, and for whom.
type Moment struct {
	Account string     `json:"account"`
	Kind    MomentKind `json:"kind"`
	Peer    string     `json:"peer"` // a number, or the id of a group
	CallID  string     `json:"callId,omitempty"`
	At      time.Time  `json:"at"`
}

// maxMoments is how many are remembered, until the vendor ends.
const maxMoments = 1000

// Moments returns what the companions of an account did lately, the oldest first.
func (v *Vendor) Moments(account string) []Moment {
	n, err := parseNumber(account)
	if err != nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	list := []Moment{}
	for _, m := range v.moments {
		if m.Account == n.String() {
			list = append(list, m)
		}
	}
	return list
}

// sawTyping notes that a companion types, or no longer does.
func (v sockets) sawTyping(c *conn, n *waBinary.Node) {
	for _, child := range n.GetChildren() {
		kind := MomentPaused
		switch {
		case child.Tag == "composing" && attr(&child, "media") == "audio":
			kind = MomentRecording
		case child.Tag == "composing":
			kind = MomentTyping
		}
		v.note(c, n, Moment{Kind: kind})
	}
}

// sawCall notes that a companion rejects a call. Only who calls is told.
func (v sockets) sawCall(c *conn, n *waBinary.Node) {
	reject, ok := n.GetOptionalChildByTag("reject")
	if !ok {
		return
	}
	creator, _ := attrJID(&reject, "call-creator")
	if to, _ := attrJID(n, "to"); to == creator { // otherwise, the phones go on ringing
		v.note(c, n, Moment{Kind: MomentRejected, CallID: attr(&reject, "call-id")})
	}
}

func (v sockets) note(c *conn, n *waBinary.Node, m Moment) {
	to, _ := attrJID(n, "to")
	m.Peer = to.User
	if peer, ok := numberOf(to); ok {
		m.Peer = peer.String()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	m.Account, m.At = c.companion.account.number.String(), now()
	if len(v.moments) == maxMoments {
		v.moments = slices.Delete(v.moments, 0, 1)
	}
	v.moments = append(v.moments, m)
	v.notify()
}
