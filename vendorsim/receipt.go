package vendorsim

import (
	"context"
	"errors"
	"fmt"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// ReceiptKind is what the recipient of a message confirms.
type ReceiptKind string

// The kinds of receipts.
const (
	Delivered ReceiptKind = "delivered"
	Read      ReceiptKind = "read"
	Played    ReceiptKind = "played" // of a voice message, or of media that can be seen once
)

var (
	// ErrUnknownMessage is returned for a message that is not in the ledger.
	ErrUnknownMessage = errors.New("no such message")
	// ErrUnknownReceipt is returned for a kind of receipt that does not exist.
	ErrUnknownReceipt = errors.New("no such kind of receipt")
)

// Receipt makes the recipient confirm a message that a companion of account sent. Most numbers
// confirm delivery by themselves; see [NumberSilent] and the other special numbers.
func (v *Vendor) Receipt(_ context.Context, account, networkID string, kind ReceiptKind) error {
	if kind != Delivered && kind != Read && kind != Played {
		return fmt.Errorf("%w: %q", ErrUnknownReceipt, kind)
	}
	n, err := v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	if err := v.receipts.confirmEntry(n, networkID, kind); err != nil {
		return err
	}
	return v.flush()
}

func (v receipts) confirmEntry(account number, id string, kind ReceiptKind) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.records.entry(account, Outbound, id)
	if e == nil || e.Channel != "" { // nobody confirms a post
		return fmt.Errorf("%w: %s of %s", ErrUnknownMessage, id, account)
	}
	if e.Group == "" {
		v.confirm(account, number(e.Peer[1:]), id, kind)
		return nil
	}
	for _, member := range v.readersOf(e) {
		if member != account {
			v.confirmInGroup(account, member, id, kind)
		}
	}
	return nil
}

// readersOf returns the members of the group of a message, or those to whom a status post went. The caller holds v.mu.
func (v receipts) readersOf(e *Entry) (list []number) {
	if g := v.groups[e.Group]; g != nil {
		return g.saved.Members
	}
	if shown := v.records.shown(number(e.Account[1:]), e.NetworkID); shown != nil {
		for _, who := range shown.Viewers {
			list = append(list, number(who[1:]))
		}
	}
	return list
}

// GroupReceipt makes a member of a group confirm a message that a companion of account sent to the group.
func (v *Vendor) GroupReceipt(account, member, networkID string, kind ReceiptKind) error {
	n, err := v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	by, err := knownNumber(member)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.records.entry(n, Outbound, networkID)
	if e == nil || e.Group == "" {
		return fmt.Errorf("%w: %s of %s to a group", ErrUnknownMessage, networkID, n)
	}
	if _, err := v.groupChats.member(e.Group, by); err != nil {
		return err
	}
	v.receipts.confirmInGroup(n, by, networkID, kind)
	return nil
}

// PhoneRead lets the owner of an account read received messages of a chat on the phone. Their senders are told, and
// so are the account's companions, except with read receipts that stay private.
func (v *Vendor) PhoneRead(account string, private bool, networkIDs ...string) error {
	n, err := v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	v.mu.Lock()
	var writer number
	for _, id := range networkIDs {
		e := v.records.entry(n, Inbound, id)
		if e == nil || e.Channel != "" {
			v.mu.Unlock()
			return fmt.Errorf("%w: %s to %s", ErrUnknownMessage, id, n)
		}
		writer = number(e.Peer[1:])
	}
	v.mu.Unlock()
	if len(networkIDs) == 0 {
		return nil
	}
	v.receipts.read(n, nil, writer, networkIDs, Read, private)
	return v.flush()
}

// confirmInGroup records the receipt of a member, and queues it for the companions of the sender. The ledger has the
// times of the first member. The caller holds v.mu.
func (v receipts) confirmInGroup(account, by number, id string, kind ReceiptKind) {
	e := v.records.entry(account, Outbound, id)
	e.confirmed(kind)
	v.records.saveEntry(e)
	attrs := waBinary.Attrs{
		"from": groupAddress(e.Group), "participant": by.lid(), "id": id, "t": time.Now().Unix(),
	}
	if kind != Delivered {
		attrs["type"] = string(kind)
	}
	v.deliverReceipt(account, by, waBinary.Node{Tag: classReceipt, Attrs: attrs})
}

// confirm records a receipt and queues it for the companions of the sender. The caller holds v.mu.
func (v receipts) confirm(account, by number, id string, kind ReceiptKind) {
	if e := v.records.entry(account, Outbound, id); e != nil {
		e.confirmed(kind)
		v.records.saveEntry(e)
	}
	attrs := waBinary.Attrs{"from": by.lid(), "id": id, "t": time.Now().Unix()}
	if kind != Delivered {
		attrs["type"] = string(kind)
	}
	v.deliverReceipt(account, by, waBinary.Node{Tag: classReceipt, Attrs: attrs})
}

func (v receipts) deliverReceipt(account, by number, n waBinary.Node) {
	raw := encodeNode(n)
	for _, cp := range v.devices.companionsOf(account) {
		v.queues.deliver(cp, &delivery{
			Class: classReceipt, ID: attr(&n, "id"), Kind: attr(&n, "type"), From: by,
			Node: raw,
		})
	}
}

// handleReceipt handles a receipt of a companion. Most receipts acknowledge a message.
func (v receipts) handleReceipt(ctx context.Context, c *conn, n *waBinary.Node) {
	cp := c.companion
	kind := types.ReceiptType(attr(n, "type"))
	to, ok := attrJID(n, "to")
	from := writerOf(n)
	num, known := numberOf(from)
	if isChannel(n) && kind == types.ReceiptTypeReadSelf {
		v.channels.read(cp.account.number, receiptIDs(n))
	}
	if ok && known {
		switch kind {
		case types.ReceiptTypeRetry:
			v.retries.handleRetry(ctx, cp, from, num, n)
		case types.ReceiptTypeRead, types.ReceiptTypePlayed:
			v.read(cp.account.number, cp, num, receiptIDs(n), ReceiptKind(kind), false)
		case types.ReceiptTypeServerError:
			v.reuploads.handle(cp, n)
		case types.ReceiptTypeReadSelf:
			v.read(cp.account.number, cp, num, receiptIDs(n), Read, true)
		case types.ReceiptTypePlayedSelf:
			// this receipt does not confirm that a message arrived
		default:
			v.messageArrived(cp, num, attr(n, "id"), 0)
		}
	}
	attrs := waBinary.Attrs{"class": classReceipt, "id": attr(n, "id"), "type": string(kind), "t": time.Now().Unix()}
	if ok {
		attrs["from"] = to
	}
	c.send(waBinary.Node{Tag: "ack", Attrs: attrs})
}

// writerOf returns who wrote the message that a receipt or an acknowledgement is about: the other end of a direct
// chat, a member of a group, or the author of a status post.
func writerOf(n *waBinary.Node) types.JID {
	to, _ := attrJID(n, "to")
	if to.Server == types.GroupServer || to.Server == types.BroadcastServer {
		to, _ = attrJID(n, "participant")
	}
	return to
}

// receiptIDs returns the ids of the messages that a receipt confirms.
func receiptIDs(n *waBinary.Node) []string {
	ids := []string{attr(n, "id")}
	list := n.GetChildByTag("list")
	for _, item := range list.GetChildren() {
		ids = append(ids, attr(&item, "id"))
	}
	return ids
}

// handleAck handles an acknowledgement of a companion. One for a message counts only if it carries an
// error; without an error, whatsmeow could not read the message and asks for another copy.
func (v receipts) handleAck(c *conn, n *waBinary.Node) {
	id, class, kind := attr(n, "id"), attr(n, "class"), attr(n, "type")
	if class == classMessage {
		num, _ := numberOf(writerOf(n))
		if code := attrInt(n, "error"); code != 0 || isChannel(n) {
			v.messageArrived(c.companion, num, id, code)
			return
		}
		v.retries.park(c.companion, num, id)
		return
	}
	from, _ := numberOf(writerOf(n))
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queues.acknowledged(c.companion, func(d *delivery) bool {
		return d.Class == class && d.ID == id && d.Kind == kind && (class != classReceipt || d.From == from)
	})
}

// messageArrived records that a companion has received a message, or has refused it for good.
func (v receipts) messageArrived(cp *companion, from number, id string, refused int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queues.acknowledged(cp, func(d *delivery) bool {
		return d.Class == classMessage && d.ID == id && d.From == from
	})
	if e := v.records.entry(cp.account.number, Inbound, id); e != nil && e.AckedAt == nil {
		e.AckedAt, e.Refused = stamp(), refused
		v.records.saveEntry(e)
	}
}

// read records that the owner of an account has read or played messages of a writer: with a companion, or with the
// phone if by is nil. It tells the other companions, and unless it is private the writer if that is a linked account.
func (v receipts) read(own number, by *companion, writer number, ids []string, kind ReceiptKind, private bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	group := ""
	for _, id := range ids {
		if e := v.records.entry(own, Inbound, id); e != nil {
			group = e.Group
			e.read(kind)
			v.records.saveEntry(e)
		}
		switch e := v.records.entry(writer, Outbound, id); {
		case e == nil || private:
		case e.Group == "":
			v.confirm(writer, own, id, kind)
		default:
			v.confirmInGroup(writer, own, id, kind)
		}
	}
	v.tellRead(own, by, writer, group, ids, kind, private)
}

// tellRead tells the companions of an account, except the one that did it, what was read. The caller holds v.mu.
func (v receipts) tellRead(
	own number, by *companion, writer number, group string, ids []string, kind ReceiptKind, private bool,
) {
	attrs := waBinary.Attrs{"id": ids[0], "type": string(kind), "t": time.Now().Unix()}
	if private {
		attrs["type"] = string(types.ReceiptTypeReadSelf)
	}
	attrs["from"], attrs["recipient"] = own.lid(), writer.lid()
	if group != "" {
		attrs["from"], attrs["participant"] = groupAddress(group), own.lid()
	}
	n := waBinary.Node{Tag: classReceipt, Attrs: attrs}
	if len(ids) > 1 {
		list := waBinary.Node{Tag: "list"}
		items := make([]waBinary.Node, len(ids)-1)
		for i, id := range ids[1:] {
			items[i] = waBinary.Node{Tag: "item", Attrs: waBinary.Attrs{"id": id}}
		}
		list.Content = items
		n.Content = []waBinary.Node{list}
	}
	raw := encodeNode(n)
	for _, cp := range v.devices.companionsOf(own) {
		if cp != by {
			v.queues.deliver(cp, &delivery{
				Class: classReceipt, ID: ids[0], Kind: attr(&n, "type"), From: own, Node: raw,
			})
		}
	}
}

// confirmed records a receipt of an outbound message. Each kind includes those before it.
func (e *Entry) confirmed(kind ReceiptKind) {
	first(&e.DeliveredAt)
	if kind != Delivered {
		e.read(kind)
	}
}

// read records that a message was read or played.
func (e *Entry) read(kind ReceiptKind) {
	first(&e.ReadAt)
	if kind == Played {
		first(&e.PlayedAt)
	}
}

// first sets a time that is not set yet.
func first(at **time.Time) {
	if *at == nil {
		*at = stamp()
	}
}
