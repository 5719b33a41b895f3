package whatsapp

import (
	"context"
	"errors"
	"sync"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

var (
	// errNoCopy means that a message was stopped because nothing in it was
	// encrypted for the recipient's phone.
	errNoCopy = errors.New("no copy for the recipient's phone")
	// errUnchecked means that whatsmeow sent a message that was not seen here.
	errUnchecked = errors.New("send: the message could not be checked")
)

// outgoing looks at the message that is being sent before it leaves.
//
// whatsmeow treats a failed encryption as a warning: it leaves the copy out,
// sends the rest, and reports success for a message that nobody can read. So the
// stanza is looked at where whatsmeow logs it, right before it is written; when
// it holds no copy for the recipient's phone the context of the send is
// canceled, and whatsmeow does not write it.
type outgoing struct {
	mu     sync.Mutex // guards what follows
	id     string     // of the message that is being sent; "" for none
	fate   fate
	cancel context.CancelFunc
}

// fate is what became of a message that is being sent.
type fate uint8

const (
	unseen  fate = iota // it did not leave
	left                // it was about to be written, with a copy for the recipient
	refused             // it was stopped
)

// expect begins to watch for a message; cancel stops it.
func (o *outgoing) expect(id string, cancel context.CancelFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.id, o.fate, o.cancel = id, unseen, cancel
}

// done says what became of the message.
func (o *outgoing) done() fate {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.id, o.cancel = "", nil
	return o.fate
}

// saw looks at a stanza that is about to be written. Answers to retry requests
// carry the same id but go to one device, outside of a list of participants.
func (o *outgoing) saw(node *waBinary.Node) {
	if node.Tag != "message" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	id, _ := node.Attrs["id"].(string)
	participants, ok := node.GetOptionalChildByTag("participants")
	if !ok || id == "" || id != o.id {
		return
	}
	if !hasCopy(node, participants) {
		o.fate = refused
		o.cancel()
		return
	}
	o.fate = left
}

// hasCopy tells whether the recipient's phone, device 0, gets an <enc>.
func hasCopy(node *waBinary.Node, participants waBinary.Node) bool {
	recipient, ok := node.Attrs["to"].(types.JID)
	if !ok {
		return false
	}
	for _, to := range participants.GetChildrenByTag("to") {
		jid, ok := to.Attrs["jid"].(types.JID)
		if ok && jid.User == recipient.User && jid.Device == 0 && len(to.GetChildrenByTag("enc")) > 0 {
			return true
		}
	}
	return false
}
