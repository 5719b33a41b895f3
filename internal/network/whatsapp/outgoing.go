package whatsapp

import (
	"context"
	"errors"
	"sync"

	"postern/internal/network"

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
	own func() string // the user part of the account's LID

	mu      sync.Mutex // guards the fields below
	id      string     // of the message that is being sent; "" between messages
	message network.Outbound
	cancel  context.CancelFunc
	fate    fate
	why     error // the error of MayLeave
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
func (o *outgoing) expect(m network.Outbound, cancel context.CancelFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.id, o.message, o.cancel, o.fate, o.why = m.NetworkID, m, cancel, unseen, nil
}

// done returns the outcome for the message. why is the reason for which it was withheld.
func (o *outgoing) done() (f fate, why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.id, o.message, o.cancel = "", network.Outbound{}, nil
	return o.fate, o.why
}

// saw inspects a stanza that is about to be written. Answers to retry requests
// have the same id, but are sent to one device: they have neither a list of participants nor a group's copy. A post in a
// channel is not encrypted, and has one content for all.
func (o *outgoing) saw(node *waBinary.Node) {
	if node.Tag != "message" {
		return
	}
	id, _ := node.Attrs["id"].(string)
	participants, listed := node.GetOptionalChildByTag("participants")
	m, ok := o.expected(id)
	grouped, posted := hasGroupCopy(node), isPost(node)
	if !ok || !listed && !grouped && !posted {
		return
	}
	f, why := left, error(nil)
	if !grouped && !posted && !hasCopy(node, participants) {
		f = refused
	} else if why = m.MayLeave(); why != nil {
		f = withheld
	}
	if grouped && m.Reach != nil {
		m.Reach(o.people(participants))
	}
	o.settle(id, f, why)
}

// expected returns the message that is being sent, if it has an id.
func (o *outgoing) expected(id string) (m network.Outbound, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.message, id != "" && id == o.id
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

// hasGroupCopy reports whether a message has a copy that all members of a group can decrypt.
func hasGroupCopy(node *waBinary.Node) bool {
	for _, enc := range node.GetChildrenByTag("enc") {
		if kind, _ := enc.Attrs["type"].(string); kind == "skmsg" {
			return true
		}
	}
	return false
}

// isPost reports whether a message is a post in a channel.
func isPost(node *waBinary.Node) bool {
	to, _ := node.Attrs["to"].(types.JID)
	_, plain := node.GetOptionalChildByTag("plaintext")
	return plain && to.Server == types.NewsletterServer
}

// people returns how many others are among those who get the key of a group's copy.
func (o *outgoing) people(participants waBinary.Node) int {
	self, users := o.own(), map[string]bool{}
	for _, to := range participants.GetChildrenByTag("to") {
		if jid, ok := to.Attrs["jid"].(types.JID); ok && jid.User != self {
			users[jid.User] = true
		}
	}
	return len(users)
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
