package vendorsim

import (
	"context"
	"fmt"
	"slices"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"
)

// inGroup completes a message to a group: either to all members, or a new copy for one device.
func (m outbound) inGroup(n *waBinary.Node) (outbound, error) {
	m.group = m.chat.User
	if id, ok := n.GetOptionalChildByTag("device-identity"); ok {
		m.identity = []waBinary.Node{id}
	}
	enc, ok := n.GetOptionalChildByTag("enc")
	if !ok {
		return m, fmt.Errorf("%w: nothing is encrypted for the group", errBadMessage)
	}
	if attr(&enc, "type") == "skmsg" {
		m.sealed, m.parts = []waBinary.Node{enc}, partsOf(n)
		return m, nil
	}
	member, ok := attrJID(n, "participant")
	num, known := numberOf(member)
	if !ok || !known {
		return m, fmt.Errorf("%w: unknown member", errBadMessage)
	}
	m.retry, m.parts = true, []part{{number: num, device: member.Device, enc: enc}}
	return m, nil
}

// take handles a message of a companion to a group: all members' phones read it, and all other companions get it.
func (v groupChats) take(ctx context.Context, c *conn, n *waBinary.Node, m outbound) {
	cp := c.companion
	account := cp.account.number
	v.mu.Lock()
	g, err := v.audience(m, account)
	var members []number
	if err == nil {
		members = slices.Clone(g.saved.Members)
	}
	v.mu.Unlock()
	if err != nil {
		c.ack(n, waBinary.Attrs{"error": 403})
		return
	}
	known := v.records.known(account, m.id)
	if known == copyReadable && !m.retry {
		v.records.countCopy(account, m.id)
		v.messages.ackMessage(c, n, m)
		return
	}
	content, readers := v.read(ctx, cp, members, m)
	v.mu.Lock()
	e := v.book(g, account, m, content, readers)
	if !m.retry {
		e.Strangers = m.strangers(members)
	}
	v.missed(e, members, m, readers)
	for _, p := range m.parts {
		if p.device != 0 {
			v.forward(cp, m, p)
		}
	}
	v.mu.Unlock()
	v.messages.ackMessage(c, n, m)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, reader := range readers {
		v.confirm(account, reader, m.id)
	}
}

// audience returns the group to which a message goes, if an account may write in it. A status post is like a message to a
// group of those for whom it is sealed. The caller holds v.mu.
func (v groupChats) audience(m outbound, account number) (*group, error) {
	if m.group == StatusID {
		return statusFor(account, m.parts), nil
	}
	g, err := v.member(m.group, account)
	if err == nil && g.saved.AnnounceOnly && !g.isAdmin(account) {
		err = ErrNotAllowed
	}
	return g, err
}

// asked returns how often a phone has asked for a message when this copy of it was made.
func (m outbound) asked() int {
	if !m.retry {
		return 0
	}
	return max(attrInt(&m.parts[0].enc, "count"), 1)
}

// read decrypts a message on the phones of all members, and returns who could read it.
func (v groupChats) read(
	ctx context.Context, cp *companion, members []number, m outbound,
) (c Content, readers []number) {
	c = Content{Type: TypeUnreadable}
	for _, n := range members {
		i := slices.IndexFunc(m.parts, func(p part) bool { return p.number == n && p.device == 0 })
		if m.retry && i < 0 {
			continue
		}
		msg, err := v.readOn(ctx, n, cp, m, i)
		if n != cp.account.number && !m.retry && v.faults.fault(cp, FaultRetry) {
			err = errUnreadable
		}
		if err != nil {
			v.log.InfoContext(ctx, "phone cannot read message", "account", cp.account.number, "network_id", m.id, "error", err)
			v.retries.askAgainInGroup(cp, n, m)
			continue
		}
		readers = append(readers, n)
		if c.Type == TypeUnreadable {
			c = v.messages.opened(n, cp.account.number, msg, contentOf(msg, m.kind)).inGroup(msg)
		}
	}
	return c, readers
}

// readOn decrypts a message on the phone of a member. m.parts[i] is the phone's own copy, which contains the key to
// the copy for the whole group; i is -1 if the phone has no copy of its own.
func (v groupChats) readOn(ctx context.Context, n number, cp *companion, m outbound, i int) (*waE2E.Message, error) {
	p, err := v.phoneOf(n)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var own *waE2E.Message
	if i >= 0 {
		if own, err = p.decrypt(ctx, cp.lid(), m.parts[i].enc); err != nil {
			return nil, err
		}
		if key := own.GetSenderKeyDistributionMessage().GetAxolotlSenderKeyDistributionMessage(); key != nil {
			if err := p.learnKey(ctx, m.chat, cp.lid(), key); err != nil {
				return nil, err
			}
		}
	}
	if m.retry {
		return own, nil
	}
	return p.openForGroup(ctx, m.chat, cp.lid(), content(m.sealed[0]))
}

// book adds a message of a companion to the ledger, and shows it on the phones that could read it. The caller holds
// v.mu.
func (v groupChats) book(g *group, account number, m outbound, c Content, readers []number) *Entry {
	entry, _ := v.records.enter(Entry{
		Account: account.String(), Group: g.saved.ID, Direction: Outbound, NetworkID: m.id, Content: c,
	})
	s := Shown{ID: m.id, From: account.String(), Group: g.saved.ID, Content: c, At: entry.ArrivedAt}
	for _, n := range readers {
		if isAction(c.Type) || v.records.shown(n, m.id) == nil {
			v.records.show(n, g.shownTo(n, s))
		}
		if _, err := v.devices.linkedAccount(n); err == nil && n != account && v.records.entry(n, Inbound, m.id) == nil {
			v.records.record(Entry{
				Account: n.String(), Peer: account.String(), Group: g.saved.ID, Direction: Inbound, NetworkID: m.id, Content: c,
			})
		}
	}
	return entry
}

// missed records which members could not read a message to a group; of a new copy, who still could not. The caller
// holds v.mu.
func (v groupChats) missed(e *Entry, members []number, m outbound, readers []number) {
	missing := numbersOf(members)
	if m.retry {
		missing = slices.Clone(e.Missing)
	}
	e.Missing = slices.DeleteFunc(missing, func(who string) bool { return slices.Contains(readers, number(who[1:])) })
	v.records.saveEntry(e)
}

// strangers returns for whom a message is encrypted who are not among the members.
func (m outbound) strangers(members []number) (list []string) {
	for _, p := range m.parts {
		if s := p.number.String(); !slices.Contains(members, p.number) && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// confirm lets a member confirm a message, as its manners are. The caller holds v.mu.
func (v groupChats) confirm(account, member number, id string) {
	does := member.manners()
	if member == account || !does.confirms {
		return
	}
	v.receipts.confirmInGroup(account, member, id, Delivered)
	if does.reads {
		v.receipts.confirmInGroup(account, member, id, Read)
	}
}

// forward queues the copies for a companion, still sealed. The caller holds v.mu.
func (v groupChats) forward(from *companion, m outbound, p part) {
	to := v.devices.companion(p.number, p.device)
	if to == nil || to == from {
		return
	}
	attrs := waBinary.Attrs{
		"from": m.chat, "participant": from.lid(), "participant_pn": from.pn(), "addressing_mode": "lid",
		"id": m.id, "t": time.Now().Unix(), "type": m.kind, "notify": v.people.nameOf(from.account.number),
	}
	v.queues.deliver(to, &delivery{
		Class: classMessage, ID: m.id, From: from.account.number, Node: encodeNode(waBinary.Node{
			Tag: "message", Attrs: attrs, Content: slices.Concat([]waBinary.Node{p.enc}, m.sealed, m.identity),
		}),
	})
}

// addressInGroup seals a text of a group for one companion that could not read it, together with the phone's key. The
// caller holds p.mu.
func (p *phone) addressInGroup(
	ctx context.Context, cp *companion, t text, fresh *bundle, retries int,
) (*delivery, error) {
	msg := t.message()
	builder, name := p.groupKey(groupAddress(t.Group), p.number.lid())
	key, err := builder.Create(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("create the key of a group: %w", err)
	}
	msg.SenderKeyDistributionMessage = &waE2E.SenderKeyDistributionMessage{
		GroupID: new(name.GroupID()), AxolotlSenderKeyDistributionMessage: key.Serialize(),
	}
	plain, err := proto.Marshal(msg)
	if err != nil {
		return nil, err
	}
	s, err := p.encrypt(ctx, cp, plain, fresh)
	if err != nil {
		return nil, err
	}
	d := t.inGroup(cp, []waBinary.Node{s.node(retries)})
	d.Retries = retries
	return d, nil
}

// mostAsked is how often a phone asks for a message that it cannot decrypt.
const mostAsked = 5

// askAgainInGroup makes a member's phone ask the companion for another copy of a message that it could not decrypt.
func (v retries) askAgainInGroup(cp *companion, member number, m outbound) {
	p, err := v.phoneOf(member)
	if err != nil || m.asked() >= mostAsked {
		return
	}
	receipt := retryReceipt(p, m)
	receipt.Attrs["from"], receipt.Attrs["participant"] = m.chat, member.lid()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queues.deliver(cp, &delivery{
		Class: classReceipt, ID: m.id, Kind: "retry", From: member, Node: encodeNode(receipt),
	})
}

// action returns the network's form of an action of a member on a message of the group.
func (v groupChats) action(from number, g *group, c Content) (*waE2E.Message, error) {
	target, err := v.messages.targetOf(from, c.Target)
	if err != nil {
		return nil, err
	}
	if target.Group != g.saved.ID {
		return nil, fmt.Errorf("%w: %s in the group %s", ErrUnknownMessage, c.Target, g.saved.ID)
	}
	if !target.writtenBy(from) && (c.Type == TypeEdit || c.Type == TypeRevoke && !v.administers(from, g)) {
		return nil, fmt.Errorf("%w: %s", ErrNotAuthor, c.Target)
	}
	author := number(target.From[1:]).lid()
	return action{Content: c, by: from.lid(), author: author, target: target, key: &waCommon.MessageKey{
		RemoteJID: new(g.jid().String()), FromMe: new(target.writtenBy(from)), ID: &c.Target,
		Participant: new(author.String()),
	}}.message()
}

// administers reports whether a number is an administrator of a group.
func (v groupChats) administers(n number, g *group) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return g.isAdmin(n)
}
