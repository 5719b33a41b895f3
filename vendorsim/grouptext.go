package vendorsim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.mau.fi/libsignal/groups"
	"go.mau.fi/libsignal/protocol"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// write sends content from the phone of a member to the companions of all members. The phones of the others show it
// immediately.
func (v groupChats) write(ctx context.Context, from number, id string, c Content) (string, error) {
	v.mu.Lock()
	g, err := v.member(id, from)
	v.mu.Unlock()
	if err != nil {
		return "", err
	}
	return v.writeTo(ctx, from, g, c)
}

// writeTo sends content from the phone of a member to a group that is known.
func (v groupChats) writeTo(ctx context.Context, from number, g *group, c Content) (string, error) {
	p, err := v.phoneOf(from)
	if err != nil {
		return "", err
	}
	if c, err = v.compose(from, g, c); err != nil {
		return "", err
	}
	v.mu.Lock()
	t := text{ID: newMessageID(), From: from, Group: g.saved.ID, Content: c, At: now()}
	v.people.introduce(&t)
	v.mu.Unlock()
	if err := v.fanOut(ctx, p, g, t); err != nil {
		return "", fmt.Errorf("send to a group: %w", err)
	}
	return t.ID, v.flush()
}

// compose returns content as a member's phone writes it to a group.
func (v groupChats) compose(from number, g *group, c Content) (Content, error) {
	if c.Raw != nil {
		return c, proto.Unmarshal(c.Raw, &waE2E.Message{})
	}
	if err := c.check(); err != nil {
		return c, err
	}
	if isAction(c.Type) {
		msg, err := v.action(from, g, c)
		if err != nil {
			return c, err
		}
		return c.written(msg)
	}
	c, err := v.mediaHost.uploaded(v.linkedMember(g, from), c)
	if err != nil {
		return c, err
	}
	author := from
	if quoted, err := v.messages.targetOf(from, c.ReplyTo); err == nil {
		author = number(quoted.From[1:])
	}
	return c.written(c.forGroup(author.lid().String()))
}

// linkedMember returns a member of a group that has companions, or other if none has.
func (v groupChats) linkedMember(g *group, other number) number {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range g.saved.Members {
		if _, err := v.devices.linkedAccount(n); err == nil {
			return n
		}
	}
	return other
}

// fanOut seals a text once for the group, and the key for each companion that does not have it yet.
func (v groupChats) fanOut(ctx context.Context, p *phone, g *group, t text) error {
	p.mu.Lock() // held until return, so that texts are queued in the order in which they are encrypted
	defer p.mu.Unlock()
	key, sealed, err := p.encryptForGroup(ctx, g.jid(), t.message())
	if err != nil {
		return err
	}
	v.mu.Lock()
	var targets []*companion
	for _, n := range g.saved.Members {
		targets = append(targets, v.devices.companionsOf(n)...)
	}
	holders := slices.Clone(g.saved.Holders[t.From])
	v.mu.Unlock()
	copies, damaged := make([]*delivery, len(targets)), map[number]bool{}
	for i, cp := range targets {
		var own []waBinary.Node
		if name := cp.name(); !slices.Contains(holders, name) {
			s, err := p.encrypt(ctx, cp, key, nil)
			if err != nil {
				return err
			}
			own, holders = append(own, s.node(0)), append(holders, name)
		}
		whole := sealed
		if p.suffers(t, cp, FaultGarble) {
			whole.Content, damaged[cp.account.number] = garbled(content(sealed)), true
		}
		copies[i] = t.inGroup(cp, append(own, whole))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if g.saved.ID != StatusID {
		g.saved.Holders[t.From] = holders
		v.put(groupKey(g.saved.ID), g.saved)
	}
	v.records.bookInGroup(g, t.shown())
	for n := range damaged {
		v.records.disturbed(n, t.ID)
	}
	for i, cp := range targets {
		v.queues.deliver(cp, copies[i])
	}
	return nil
}

// shown is the text as phones show it.
func (t text) shown() Shown {
	return Shown{ID: t.ID, From: t.From.String(), Group: t.Group, Content: t.Content, At: t.At}
}

// inGroup returns the node that transmits a text of a group to a companion.
func (t text) inGroup(cp *companion, encs []waBinary.Node) *delivery {
	attrs := waBinary.Attrs{
		"from": groupAddress(t.Group), "participant": t.From.lid(),
		"addressing_mode": "lid", "id": t.ID, "t": t.At.Unix(), "notify": cmp.Or(t.Name, t.From.name()),
	}
	if !t.Hidden {
		attrs["participant_pn"] = t.claimed().pn()
	}
	last := len(encs) - 1
	children := append(stanzaOf(t.message()).mark(attrs, withOwnAttrs(encs[last])), t.verified(attrs)...)
	node := waBinary.Node{Tag: "message", Attrs: attrs, Content: append(slices.Clone(encs[:last]), children...)}
	return &delivery{Class: classMessage, ID: t.ID, From: t.From, Text: &t, Node: encodeNode(node)}
}

// withOwnAttrs returns a node whose attributes can be changed without those of n.
func withOwnAttrs(n waBinary.Node) waBinary.Node {
	attrs := waBinary.Attrs{}
	for k, v := range n.Attrs {
		attrs[k] = v
	}
	n.Attrs = attrs
	return n
}

// encryptForGroup seals a message with the key of the phone in a group. key is the encoded message that hands out this
// key. The caller holds p.mu.
func (p *phone) encryptForGroup(
	ctx context.Context, group types.JID, msg *waE2E.Message,
) (key []byte, sealed waBinary.Node, err error) {
	plain, err := proto.Marshal(msg)
	if err != nil {
		return nil, sealed, err
	}
	builder, name := p.groupKey(group, p.number.lid())
	handed, err := builder.Create(ctx, name)
	if err != nil {
		return nil, sealed, fmt.Errorf("create the key of a group: %w", err)
	}
	out, err := groups.NewGroupCipher(builder, name, p.device).Encrypt(ctx, pad(plain))
	if err != nil {
		return nil, sealed, fmt.Errorf("encrypt for a group: %w", err)
	}
	key, err = proto.Marshal(&waE2E.Message{SenderKeyDistributionMessage: &waE2E.SenderKeyDistributionMessage{
		GroupID: new(group.String()), AxolotlSenderKeyDistributionMessage: handed.Serialize(),
	}})
	sealed = waBinary.Node{
		Tag: "enc", Attrs: waBinary.Attrs{"v": "2", "type": "skmsg"}, Content: out.SignedSerialize(),
	}
	return key, sealed, err
}

func (p *phone) groupKey(group, sender types.JID) (*groups.SessionBuilder, *protocol.SenderKeyName) {
	return groups.NewGroupSessionBuilder(p.device, store.SignalProtobufSerializer),
		protocol.NewSenderKeyName(group.String(), sender.SignalAddress())
}

// learnKey stores the key with which a companion encrypts for a group. The caller holds p.mu.
func (p *phone) learnKey(ctx context.Context, group, sender types.JID, raw []byte) error {
	builder, name := p.groupKey(group, sender)
	handed, err := protocol.NewSenderKeyDistributionMessageFromBytes(
		raw, store.SignalProtobufSerializer.SenderKeyDistributionMessage)
	if err != nil {
		return err
	}
	return builder.Process(ctx, name, handed)
}

// openForGroup decrypts what a companion has sealed for a group. The caller holds p.mu.
func (p *phone) openForGroup(ctx context.Context, group, sender types.JID, raw []byte) (msg *waE2E.Message, err error) {
	defer func() {
		if r := recover(); r != nil { // libsignal trusts the shape of what it parses
			msg, err = nil, fmt.Errorf("%w: %v", errUnreadable, r)
		}
	}()
	builder, name := p.groupKey(group, sender)
	in, err := protocol.NewSenderKeyMessageFromBytes(raw, store.SignalProtobufSerializer.SenderKeyMessage)
	if err != nil {
		return nil, err
	}
	plain, err := groups.NewGroupCipher(builder, name, p.device).Decrypt(ctx, in)
	if err == nil {
		plain, err = unpad(plain)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	msg = new(waE2E.Message)
	return msg, proto.Unmarshal(plain, msg)
}

// PutSenderKey implements whatsmeow's SenderKeyStore.
func (s signalStore) PutSenderKey(ctx context.Context, group, user string, raw []byte) error {
	return s.PutSession(ctx, group+"|"+user, raw)
}

// GetSenderKey implements whatsmeow's SenderKeyStore.
func (s signalStore) GetSenderKey(ctx context.Context, group, user string) ([]byte, error) {
	return s.GetSession(ctx, group+"|"+user)
}
