package vendorsim

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// text is a message that was written on a simulated phone.
type text struct {
	ID   string `json:"id"`
	From number `json:"from"`
	To   number `json:"to"`
	// Group is the group to which it was written, in place of To.
	Group string `json:"group,omitempty"`
	Content
	At       time.Time `json:"at"`
	Name     string    `json:"name,omitempty"`     // the sender's push name; "" means the default of the number
	Hidden   bool      `json:"hidden,omitempty"`   // the network does not tell the sender's number
	Business string    `json:"business,omitempty"` // the sender's verified name
	Claims   number    `json:"claims,omitempty"`   // the number by which the network names the sender, if it is another
	Peer     bool      `json:"peer,omitempty"`     // from the phone to a companion of its account, in no chat
}

// newMessageID returns a new id in the format of phones.
func newMessageID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return strings.ToUpper(hex.EncodeToString(b))
}

// Send sends a text from the phone of the number from to a linked account, and returns its id on
// the network. Every companion of the account gets the text as soon as it is online.
func (v *Vendor) Send(ctx context.Context, account, from, body string) (networkID string, err error) {
	return v.SendContent(ctx, account, from, Content{Type: TypeText, Body: body})
}

// SendContent is like Send, for any kind of content that phones can send.
func (v *Vendor) SendContent(ctx context.Context, account, from string, c Content) (networkID string, err error) {
	to, err := v.devices.linkedNumber(account)
	if err != nil {
		return "", err
	}
	writer, err := knownNumber(from)
	if err != nil {
		return "", err
	}
	return v.messages.write(ctx, writer, to, c)
}

// Type sends a text from the phone of a linked account. The recipient gets it, and every companion
// of the account gets a copy that is marked as sent by the phone. The ledger has no entry for the
// text, because no companion sent it, unless the recipient is a linked account too.
func (v *Vendor) Type(ctx context.Context, account, to, body string) (networkID string, err error) {
	return v.TypeContent(ctx, account, to, Content{Type: TypeText, Body: body})
}

// TypeContent is like Type, for any kind of content that phones can send.
func (v *Vendor) TypeContent(ctx context.Context, account, to string, c Content) (networkID string, err error) {
	writer, err := v.devices.linkedNumber(account)
	if err != nil {
		return "", err
	}
	reader, err := knownNumber(to)
	if err != nil {
		return "", err
	}
	return v.messages.write(ctx, writer, reader, c)
}

// write sends content from one phone to the companions of both ends. The recipient's phone shows it
// immediately; nothing is sent over the network to a phone.
func (v messages) write(ctx context.Context, from, to number, c Content) (string, error) {
	p, err := v.phoneOf(from)
	if err != nil {
		return "", err
	}
	if c, err = v.compose(from, to, c); err != nil {
		return "", err
	}
	v.mu.Lock()
	t := text{ID: newMessageID(), From: from, To: to, Content: c, At: now()}
	v.people.introduce(&t)
	v.mu.Unlock()
	if err := v.fanOut(ctx, p, t); err != nil {
		return "", fmt.Errorf("send message: %w", err)
	}
	return t.ID, v.flush()
}

// compose returns content as one phone writes it to another, with its network form and with its file
// stored.
func (v messages) compose(from, to number, c Content) (Content, error) {
	if c.Raw != nil {
		return c, proto.Unmarshal(c.Raw, &waE2E.Message{})
	}
	if err := c.check(); err != nil {
		return c, err
	}
	if isAction(c.Type) {
		msg, err := v.action(from, to, c)
		if err != nil {
			return c, err
		}
		return c.written(msg)
	}
	c, err := v.mediaHost.uploaded(v.accountOf(from, to), c)
	if err != nil {
		return c, err
	}
	return c.written(c.wire(c.context(v.author(from, to, c.ReplyTo).lid().String())))
}

// accountOf returns which of two numbers has companions: the recipient if both have.
func (v messages) accountOf(from, to number) number {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, err := v.devices.linkedAccount(to); err == nil {
		return to
	}
	return from
}

// author returns who of two numbers wrote a message that they exchanged.
func (v messages) author(from, to number, id string) number {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.records.entry(to, Outbound, id) != nil {
		return to
	}
	return from
}

// fanOut seals a text for each companion of both ends, records it and queues the copies.
func (v messages) fanOut(ctx context.Context, p *phone, t text) error {
	p.mu.Lock() // held until return, so that texts are queued in the order in which they are encrypted
	defer p.mu.Unlock()
	v.mu.Lock()
	targets, unheard := v.devices.companionsOf(t.To), v.people.blocks(t.To, t.From)
	if unheard {
		targets = nil
	}
	if t.From != t.To {
		targets = append(targets, v.devices.companionsOf(t.From)...)
	}
	v.mu.Unlock()
	copies := make([]*delivery, len(targets))
	for i, cp := range targets {
		var err error
		if copies[i], err = p.address(ctx, cp, t, nil, 0); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !unheard {
		v.records.book(t)
	}
	for i, cp := range targets {
		v.queues.deliver(cp, copies[i])
	}
	return nil
}

// address seals a text for a companion: the message itself, or a copy of its owner's own message.
// The caller holds p.mu.
func (p *phone) address(ctx context.Context, cp *companion, t text, fresh *bundle, retries int) (*delivery, error) {
	msg := t.message()
	marks := stanzaOf(msg)
	if t.Group != "" {
		return p.addressInGroup(ctx, cp, t, fresh, retries)
	}
	if t.From == cp.account.number && !t.Peer {
		msg = &waE2E.Message{MessageContextInfo: msg.MessageContextInfo, DeviceSentMessage: &waE2E.DeviceSentMessage{
			DestinationJID: new(t.To.lid().String()), Message: msg,
		}}
	}
	plain, err := proto.Marshal(msg)
	if err != nil {
		return nil, err
	}
	if p.suffers(t, cp, FaultBadProtobuf) {
		plain = notProtobuf()
	}
	s, err := p.encrypt(ctx, cp, plain, fresh)
	if err != nil {
		return nil, err
	}
	if p.suffers(t, cp, FaultGarble) {
		s.data = garbled(s.data)
	}
	if p.suffers(t, cp, FaultPoison) {
		s = sealed{kind: "msg", data: poisoned()}
	}
	node := t.node(cp, s.node(retries), marks)
	if p.suffers(t, cp, FaultBadTime) {
		node.Attrs["t"] = "soon"
	}
	return &delivery{
		Class: classMessage, ID: t.ID, From: t.From, Text: &t, Retries: retries, Node: encodeNode(node),
	}, nil
}

// suffers takes a fault that is armed for the next inbound message of a companion's account. What the
// phone tells its companion is no such message.
func (p *phone) suffers(t text, cp *companion, f Fault) bool {
	return !t.Peer && p.core.faults.fault(cp, f)
}

// throughList names the broadcast list through which the text was sent, as the network does.
func (t text) throughList(attrs waBinary.Attrs) {
	attrs["from"] = types.NewJID(t.List, types.BroadcastServer)
	attrs["participant"], attrs["addressing_mode"] = t.From.lid(), "lid"
	if !t.Hidden {
		attrs["participant_pn"] = t.claimed().pn()
	}
}

// node returns the node that transmits the text to a companion.
func (t text) node(cp *companion, enc waBinary.Node, marks stanza) waBinary.Node {
	attrs := waBinary.Attrs{
		"from": t.From.lid(), "id": t.ID, "t": t.At.Unix(),
	}
	if !t.Peer {
		attrs["notify"] = cmp.Or(t.Name, t.From.name())
	}
	switch {
	case t.Peer:
		attrs["category"] = "peer"
	case t.From == cp.account.number:
		attrs["recipient"] = t.To.lid()
		attrs["peer_recipient_pn"] = t.To.pn()
	case t.List != "":
		t.throughList(attrs)
	case !t.Hidden:
		attrs["sender_pn"] = t.claimed().pn()
	}
	return waBinary.Node{Tag: "message", Attrs: attrs, Content: append(marks.mark(attrs, enc), t.verified(attrs)...)}
}
