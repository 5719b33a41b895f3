package whatsapp

import (
	"context"
	"errors"
	"sync"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

var (
	// errNoCopy means that a message was stopped because it contained nothing
	// encrypted for the recipient's phone.
	errNoCopy = errors.New("no copy for the recipient's phone")
	// errUnchecked means that whatsmeow sent a message without passing it to saw.
	errUnchecked = errors.New("send: the message could not be checked")
)

// outgoing inspects the message that is being sent before it is written.
//
// whatsmeow treats a failed encryption as a warning: it omits the copy, sends the
// rest, and reports success for a message that the recipient cannot read. So the
// stanza is inspected where whatsmeow logs it, right before writing it. If it
// holds no copy for the recipient's phone, the context of the send is canceled,
// and whatsmeow does not write it. The same happens if the message may not leave.
type outgoing struct {
	mu       sync.Mutex // guards the fields below
	id       string     // of the message that is being sent; "" between messages
	mayLeave func() error
	cancel   context.CancelFunc
	fate     fate
	why      error // the error of mayLeave
}

// fate is the outcome of the inspection.
type fate uint8

const (
	unseen   fate = iota // the message was not written
	left                 // it was about to be written, with a copy for the recipient
	refused              // it was stopped, because it held no copy
	withheld             // it was stopped, because it may not leave
)

// expect begins to wait for a message; cancel stops its sending.
func (o *outgoing) expect(id string, mayLeave func() error, cancel context.CancelFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.id, o.mayLeave, o.cancel, o.fate, o.why = id, mayLeave, cancel, unseen, nil
}

// done returns the outcome for the message. why is the reason for which it was withheld.
func (o *outgoing) done() (f fate, why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.id, o.mayLeave, o.cancel = "", nil, nil
	return o.fate, o.why
}

// saw inspects a stanza that is about to be written. Answers to retry requests
// have the same id, but are sent to one device, without a list of participants.
func (o *outgoing) saw(node *waBinary.Node) {
	if node.Tag != "message" {
		return
	}
	id, _ := node.Attrs["id"].(string)
	participants, ok := node.GetOptionalChildByTag("participants")
	mayLeave := o.expected(id)
	if !ok || mayLeave == nil {
		return
	}
	f, why := left, error(nil)
	if !hasCopy(node, participants) {
		f = refused
	} else if why = mayLeave(); why != nil {
		f = withheld
	}
	o.settle(id, f, why)
}

// expected returns the mayLeave of the message that is being sent, if it has an id.
func (o *outgoing) expected(id string) (mayLeave func() error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if id == "" || id != o.id {
		return nil
	}
	return o.mayLeave
}

// settle notes the outcome for a message, and stops it unless it leaves.
func (o *outgoing) settle(id string, f fate, why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if id != o.id { // its sending has ended meanwhile
		return
	}
	if o.fate, o.why = f, why; f != left {
		o.cancel()
	}
}

// hasCopy reports whether the recipient's phone, device 0, gets an <enc>.
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
