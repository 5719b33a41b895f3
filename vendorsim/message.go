package vendorsim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
)

var errBadMessage = errors.New("malformed message")

// outbound is a message as a companion sent it.
type outbound struct {
	id, kind string
	chat     types.JID // as addressed
	to       number
	peer     bool            // for the companion's own phone only, not part of any chat
	retry    bool            // a new copy for a phone that could not decrypt the first one
	group    string          // id of the group to which it is addressed, in place of to
	channel  string          // id of the channel in which it is posted, in place of to
	plain    waBinary.Node   // the content of a post
	edit     string          // of a post
	handle   string          // of the file of a post
	answer   waBinary.Attrs  // what the acknowledgement says besides
	sealed   []waBinary.Node // the copy that is the same for all members of a group
	parts    []part
	identity []waBinary.Node // sent with the first messages of a session
	granted  []byte          // the token that the recipient has granted
	salted   []byte          // the token that is made from the salt
}

// part is the copy for one device.
type part struct {
	number number
	device uint16
	enc    waBinary.Node
}

func parseOutbound(n *waBinary.Node) (outbound, error) {
	m := outbound{id: attr(n, "id"), kind: attr(n, "type"), peer: attr(n, "category") == "peer"}
	chat, ok := attrJID(n, "to")
	if !ok || m.id == "" {
		return m, fmt.Errorf("%w: no id or recipient", errBadMessage)
	}
	m.chat = chat.ToNonAD()
	switch chat.Server {
	case types.GroupServer:
		return m.inGroup(n)
	case types.NewsletterServer:
		return m.ofChannel(n)
	case types.BroadcastServer:
		if m.chat != types.StatusBroadcastJID {
			return m, fmt.Errorf("%w: a broadcast list", errBadMessage)
		}
		return m.inGroup(n)
	}
	if m.to, ok = numberOf(chat); !ok || !m.to.exists() {
		return m, fmt.Errorf("%w: unknown recipient", errBadMessage)
	}
	if id, ok := n.GetOptionalChildByTag("device-identity"); ok {
		m.identity = []waBinary.Node{id}
	}
	m.granted, m.salted = content(n.GetChildByTag("tctoken")), content(n.GetChildByTag("cstoken"))
	if enc, ok := n.GetOptionalChildByTag("enc"); ok { // to one device
		m.retry = !m.peer
		m.parts = []part{{number: m.to, device: chat.Device, enc: enc}}
		return m, nil
	}
	m.parts = partsOf(n)
	return m, nil
}

func partsOf(n *waBinary.Node) (parts []part) {
	list := n.GetChildByTag("participants")
	for _, child := range list.GetChildren() {
		if p, ok := parsePart(&child); ok {
			parts = append(parts, p)
		}
	}
	return parts
}

func parsePart(n *waBinary.Node) (part, bool) {
	jid, ok := attrJID(n, "jid")
	if !ok {
		return part{}, false
	}
	num, ok := numberOf(jid)
	if !ok || !num.exists() {
		return part{}, false
	}
	enc, ok := n.GetOptionalChildByTag("enc")
	return part{number: num, device: jid.Device, enc: enc}, ok
}

// handleMessage handles a message of a companion: it records the message as the recipient's phone
// reads it, acknowledges it and forwards it.
func (v messages) handleMessage(ctx context.Context, c *conn, n *waBinary.Node) {
	cp := c.companion
	if v.faults.dropsUnread(c) {
		return
	}
	m, err := parseOutbound(n)
	if err != nil {
		v.log.DebugContext(ctx, "message refused", "error", err)
		c.ack(n, waBinary.Attrs{"error": 400})
		return
	}
	switch {
	case m.group != "":
		v.groupChats.take(ctx, c, n, m)
	case m.channel != "":
		v.channels.take(ctx, c, n, m)
	case m.peer:
		v.readPeer(ctx, cp, m)
		c.ack(n, nil)
	case m.retry && m.parts[0].device != 0:
		v.forward(cp, m, m.parts[0])
		c.ack(n, nil)
	case v.isLimited(cp.account, m):
		c.ack(n, waBinary.Attrs{"error": statusLimited})
	default:
		v.take(ctx, c, n, m)
	}
}

// readPeer decrypts a request of a companion to its own phone. The phone answers requests for keys of
// the app state, and for older messages.
func (v messages) readPeer(ctx context.Context, cp *companion, m outbound) {
	if m.to != cp.account.number {
		return
	}
	msg, err := v.readOn(ctx, m.to, cp, m.parts[0].enc)
	if err != nil {
		v.log.DebugContext(ctx, "peer message", "error", err)
		return
	}
	v.states.asked(ctx, cp, msg)
	v.histories.asked(ctx, cp, m.id, msg)
}

// readOn decrypts a companion's message on the phone of a number.
func (v messages) readOn(ctx context.Context, n number, cp *companion, enc waBinary.Node) (*waE2E.Message, error) {
	p, err := v.phoneOf(n)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.decrypt(ctx, cp.lid(), enc)
}

// take records a message of a chat and forwards it, unless an earlier copy was readable.
func (v messages) take(ctx context.Context, c *conn, n *waBinary.Node, m outbound) {
	cp := c.companion
	known := v.records.known(cp.account.number, m.id)
	if known == copyReadable {
		v.records.countCopy(cp.account.number, m.id)
		v.ackMessage(c, n, m)
		return
	}
	e := v.readMessage(ctx, cp, m)
	fresh := v.records.bookOutbound(e)
	if fresh && known == copyNew {
		v.passOn(cp, m)
	}
	v.ackMessage(c, n, m)
	switch {
	case !fresh: // another connection of the account has sent the same message meanwhile
	case e.Type == TypeUnreadable:
		v.retries.askAgain(cp, m)
	default:
		v.react(ctx, cp, m, e)
	}
}

// readMessage decrypts the copies for the sender's and the recipient's phones. It returns the
// content that the recipient's phone decrypted, as an entry of the ledger.
func (v messages) readMessage(ctx context.Context, cp *companion, m outbound) Entry {
	account := cp.account.number
	e := Entry{
		Account: account.String(), Peer: m.to.String(), Direction: Outbound, NetworkID: m.id,
		Content: Content{Type: TypeUnreadable},
	}
	for _, p := range m.parts {
		if p.device != 0 || p.number != m.to && p.number != account {
			continue
		}
		if p.number == m.to && !m.retry && v.faults.fault(cp, FaultRetry) {
			continue
		}
		msg, err := v.readOn(ctx, p.number, cp, p.enc)
		if err != nil {
			v.log.InfoContext(ctx, "phone cannot read message", "account", account, "network_id", m.id, "error", err)
			continue
		}
		if p.number == m.to && e.Type == TypeUnreadable {
			e.Content = v.opened(m.to, account, msg, contentOf(msg, m.kind))
		}
	}
	return e
}

// passOn forwards the copies for other companions.
func (v messages) passOn(cp *companion, m outbound) {
	for _, p := range m.parts {
		if p.device != 0 && (p.number == m.to || p.number == cp.account.number) {
			v.forward(cp, m, p)
		}
	}
}

// forward queues one copy, still sealed, for its companion.
func (v messages) forward(from *companion, m outbound, p part) {
	v.mu.Lock()
	defer v.mu.Unlock()
	to := v.devices.companion(p.number, p.device)
	if to == nil || to == from {
		return
	}
	attrs := waBinary.Attrs{
		"from": from.lid(), "id": m.id, "t": time.Now().Unix(), "type": m.kind, "notify": v.people.nameOf(from.account.number),
	}
	if p.number == from.account.number {
		attrs["recipient"] = m.to.lid()
		attrs["peer_recipient_pn"] = m.to.pn()
	} else {
		attrs["sender_pn"] = from.pn()
	}
	enc := p.enc
	if v.faults.takeFault(to.account, FaultGarble) {
		enc.Content = garbled(content(enc))
	}
	v.queues.deliver(to, &delivery{
		Class: classMessage, ID: m.id, From: from.account.number,
		Node: encodeNode(waBinary.Node{
			Tag: "message", Attrs: attrs,
			Content: append([]waBinary.Node{enc},
				m.identity...),
		}),
	})
}

// ackMessage acknowledges a recorded message after it is on the disk, unless a fault prevents it.
func (v messages) ackMessage(c *conn, n *waBinary.Node, m outbound) {
	v.mu.Lock()
	defer v.mu.Unlock()
	account := c.companion.account
	if v.faults.takeFault(account, FaultDropBeforeAck) {
		v.faults.hangUpDurably(c)
		return
	}
	if v.faults.takeFault(account, FaultNoAck) {
		return
	}
	if e := v.records.entry(account.number, Outbound, m.id); e != nil && e.AckedAt == nil {
		e.AckedAt = stamp()
		v.records.saveEntry(e)
	}
	c.ack(n, m.answer)
}

// ack acknowledges a message of a companion.
func (c *conn) ack(n *waBinary.Node, extra waBinary.Attrs) {
	attrs := waBinary.Attrs{"class": classMessage, "id": attr(n, "id"), "t": time.Now().Unix()}
	if to, ok := attrJID(n, "to"); ok {
		attrs["from"] = to
	}
	maps.Copy(attrs, extra)
	c.sendDurable(waBinary.Node{Tag: "ack", Attrs: attrs})
}

// react simulates the reaction of a message's recipient, which depends on the number.
func (v messages) react(ctx context.Context, cp *companion, m outbound, e Entry) {
	account := cp.account.number
	if m.to == account {
		return
	}
	does := m.to.manners()
	v.mu.Lock()
	if does.confirms {
		v.receipts.confirm(account, m.to, m.id, Delivered)
	}
	if does.reads {
		v.receipts.confirm(account, m.to, m.id, Read)
	}
	v.mu.Unlock()
	if does.echoes && e.Type == TypeText {
		v.echo(ctx, m.to, account, e.Content)
	}
	if does.reports {
		v.mu.Lock()
		v.faults.restrict(cp.account, defaultRestriction)
		v.mu.Unlock()
	}
}

// echo answers a text of an account with the same text, unless it is one of many answers in a row.
func (v messages) echo(ctx context.Context, from, account number, c Content) {
	v.mu.Lock()
	known := v.echoed[account]
	if known == nil {
		known = &echoes{}
		v.echoed[account] = known
	}
	again := known.again(c)
	if again {
		known.last = c.Body
	}
	v.mu.Unlock()
	if !again {
		return
	}
	id, err := v.write(ctx, from, account, c)
	if err != nil {
		v.log.WarnContext(ctx, "echo", "account", account, "error", err)
		return
	}
	v.mu.Lock()
	known.id = id
	v.mu.Unlock()
}
