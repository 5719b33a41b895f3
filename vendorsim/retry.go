package vendorsim

import (
	"context"
	"encoding/binary"
	"strconv"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// maxRetries is how often a message is encrypted again for one companion. whatsmeow gives up
// earlier.
const maxRetries = 10

// handleRetry sends another copy of a message, in a new session, to a companion that could not
// decrypt it. If another companion sent the message, handleRetry asks that one for the copy.
func (v retries) handleRetry(ctx context.Context, cp *companion, from types.JID, writer number, n *waBinary.Node) {
	retry := n.GetChildByTag("retry")
	id := attr(&retry, "id")
	v.records.askedFor(cp.account.number, id)
	if from.Device != 0 {
		v.relayRetry(cp, writer, from.Device, n)
		return
	}
	p, err := v.phoneOf(writer)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old, fresh := v.unreadable(cp, writer, id, n)
	if old == nil || old.Text == nil || old.Retries >= maxRetries {
		return
	}
	again, err := p.address(ctx, cp, *old.Text, &fresh, old.Retries+1)
	if err != nil {
		v.log.WarnContext(ctx, "encrypt again", "account", cp.account.number, "network_id", id, "error", err)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queues.deliver(cp, again)
}

// unreadable removes the message that a companion could not decrypt from its queue. It returns the
// message and the keys for a new session: those in the receipt or, if there are none, the
// companion's prekeys.
func (v retries) unreadable(cp *companion, writer number, id string, n *waBinary.Node) (*delivery, bundle) {
	v.mu.Lock()
	defer v.mu.Unlock()
	match := func(d *delivery) bool { return d.Class == classMessage && d.ID == id && d.From == writer }
	old := v.queues.acknowledged(cp, match)
	if old == nil {
		old = cp.unpark(match)
	}
	if old == nil {
		return nil, bundle{}
	}
	if fresh, ok := bundleIn(n, cp); ok {
		return old, fresh
	}
	return old, v.prekeys.takeBundle(cp)
}

// bundleIn reads the keys that a retry receipt may contain.
func bundleIn(n *waBinary.Node, cp *companion) (bundle, bool) {
	keys, ok := n.GetOptionalChildByTag("keys")
	reg := content(n.GetChildByTag("registration"))
	id := content(keys.GetChildByTag("identity"))
	if !ok || len(reg) != 4 || len(id) != 32 {
		return bundle{}, false
	}
	signed, err := parseKey(keys.GetChildByTag("skey"))
	if err != nil || signed.Signature == nil {
		return bundle{}, false
	}
	once, err := parseKey(keys.GetChildByTag("key"))
	if err != nil {
		once = nil
	}
	return bundle{
		regID: binary.BigEndian.Uint32(reg), device: cp.saved.Device, identity: [32]byte(id), signed: signed,
		once: once,
	}, true
}

// relayRetry asks the companion that wrote a message for another copy.
func (v retries) relayRetry(cp *companion, writer number, device uint16, n *waBinary.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	to := v.devices.companion(writer, device)
	if to == nil {
		return
	}
	attrs := waBinary.Attrs{"from": cp.lid(), "id": attr(n, "id"), "type": attr(n, "type"), "t": time.Now().Unix()}
	if chat, _ := attrJID(n, "to"); chat.Server == types.GroupServer {
		attrs["from"], attrs["participant"] = chat, cp.lid()
	}
	v.queues.deliver(to, &delivery{
		Class: classReceipt, ID: attr(n, "id"), Kind: attr(n, "type"), From: cp.account.number,
		Node: encodeNode(waBinary.Node{Tag: classReceipt, Attrs: attrs, Content: n.Content}),
	})
}

// park sets aside a message that a companion acknowledged without having read it, until the companion
// asks for another copy. If it has already asked, the new copy stays in the queue.
func (v retries) park(cp *companion, writer number, id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d := v.queues.acknowledged(cp, func(d *delivery) bool {
		return d.Class == classMessage && d.ID == id && d.From == writer && d.Retries == 0
	})
	if d == nil {
		return
	}
	if cp.parked = append(cp.parked, d); len(cp.parked) > maxParked {
		cp.parked = cp.parked[1:]
	}
}

func (cp *companion) unpark(match func(*delivery) bool) *delivery {
	for i, d := range cp.parked {
		if match(d) {
			cp.parked = append(cp.parked[:i:i], cp.parked[i+1:]...)
			return d
		}
	}
	return nil
}

// askAgain makes a recipient's phone ask the companion for another copy of a message that it could
// not decrypt. The request contains the keys for a new session.
func (v retries) askAgain(cp *companion, m outbound) {
	p, err := v.phoneOf(m.to)
	if err != nil || m.asked() >= mostAsked {
		return
	}
	receipt := retryReceipt(p, m)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queues.deliver(cp, &delivery{Class: classReceipt, ID: m.id, Kind: "retry", From: m.to, Node: encodeNode(receipt)})
}

// retryReceipt is the request of a phone for another copy of a message.
func retryReceipt(p *phone, m outbound) waBinary.Node {
	keys := p.bundle()
	nodes := keys.nodes()
	return waBinary.Node{
		Tag:   classReceipt,
		Attrs: waBinary.Attrs{"from": m.to.lid(), "id": m.id, "type": "retry", "t": time.Now().Unix()},
		Content: []waBinary.Node{
			{Tag: "retry", Attrs: waBinary.Attrs{"id": m.id, "count": m.asked() + 1, "t": time.Now().Unix(), "v": 1}},
			nodes[0], // the registration
			{Tag: "keys", Content: nodes[1:]},
		},
	}
}

// attrInt returns the value of a number attribute, or 0 if there is none.
func attrInt(n *waBinary.Node, key string) int {
	i, err := strconv.Atoi(attr(n, key))
	if err != nil {
		return 0
	}
	return i
}
