package vendorsim

import (
	"fmt"
	"slices"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// maxParked is how many unreadable messages are kept for each companion, in case it asks for
// another copy.
const maxParked = 64

// The classes of nodes that a companion acknowledges.
const (
	classMessage      = "message"
	classReceipt      = "receipt"
	classNotification = "notification"
)

// delivery is a node that a companion has to acknowledge. The companion gets the same bytes again
// at each login until it does.
type delivery struct {
	Position int64  `json:"position"`
	Class    string `json:"class"`
	ID       string `json:"id"`
	Kind     string `json:"kind,omitempty"` // the node's type, which the acknowledgement of a receipt repeats
	From     number `json:"from,omitempty"` // the sender
	Text     *text  `json:"text,omitempty"` // the text of a phone, to encrypt it again
	Retries  int    `json:"retries,omitempty"`
	Node     []byte `json:"node"`
}

func queueKey(cp *companion, d *delivery) string {
	return fmt.Sprintf("queue/%s/%016d", cp.name(), d.Position)
}

// deliver queues a node for a companion and sends it if it is online. The caller holds v.mu.
func (v queues) deliver(cp *companion, d *delivery) {
	if len(cp.queue) >= maxQueue {
		v.log.Warn("queue of companion is full, dropping its oldest", "account", cp.account.number)
		v.dropDelivery(cp, 0)
	}
	d.Position = cp.nextPosition
	cp.nextPosition++
	cp.queue = append(cp.queue, d)
	v.put(queueKey(cp, d), d)
	v.pump(cp)
}

// deliverNotice queues a notification for a companion. The caller holds v.mu.
func (v queues) deliverNotice(cp *companion, kind string, from types.JID, child waBinary.Node) {
	id := newRef()
	v.deliver(cp, &delivery{Class: classNotification, ID: id, Kind: kind, Node: encodeNode(waBinary.Node{
		Tag:     classNotification,
		Attrs:   waBinary.Attrs{"from": from, "type": kind, "id": id, "t": time.Now().Unix()},
		Content: []waBinary.Node{child},
	})})
}

// pump sends queued nodes until the window is full. The caller holds v.mu.
func (v queues) pump(cp *companion) {
	c := cp.conn
	if c == nil {
		return
	}
	for cp.sent < len(cp.queue) && cp.sent < window {
		d := cp.queue[cp.sent]
		cp.sent++
		v.transmit(c, d)
		c.caughtUp()
	}
}

// caughtUp counts one missed item as sent. After the last one, it tells the client that it is up to
// date.
func (c *conn) caughtUp() {
	if c.backlog == 0 {
		return
	}
	if c.backlog--; c.backlog == 0 {
		c.send(upToDate(c.missed))
	}
}

// transmit sends one delivery, with the armed faults applied.
func (v queues) transmit(c *conn, d *delivery) {
	if d.Class != classMessage || d.Text != nil && d.Text.Peer {
		c.push(outgoing{data: d.Node})
		return
	}
	a := c.companion.account
	if c.held == nil && v.faults.takeFault(a, FaultReorder) {
		c.held = d
		return
	}
	if c.held != nil {
		v.records.disturbed(a.number, d.ID)
		v.records.disturbed(a.number, c.held.ID)
	}
	c.push(outgoing{data: d.Node})
	if v.faults.takeFault(a, FaultDuplicate) {
		c.push(outgoing{data: d.Node})
	}
	if c.held != nil {
		c.push(outgoing{data: c.held.Node})
		c.held = nil
	}
}

// acknowledged removes the oldest delivery that matches, and returns it. The caller holds v.mu.
func (v queues) acknowledged(cp *companion, match func(*delivery) bool) *delivery {
	i := slices.IndexFunc(cp.queue, match)
	if i < 0 {
		return nil
	}
	d := cp.queue[i]
	v.dropDelivery(cp, i)
	v.pump(cp)
	if len(cp.queue) == 0 {
		v.notify()
	}
	return d
}

func (v queues) dropDelivery(cp *companion, i int) {
	v.remove(queueKey(cp, cp.queue[i]))
	cp.queue = slices.Delete(cp.queue, i, i+1)
	if i < cp.sent {
		cp.sent--
	} else if cp.conn != nil {
		cp.conn.caughtUp() // the item was sent on an earlier connection
	}
}

// backlogSize returns how many items wait for a companion at its login.
type backlogSize struct{ messages, receipts, notifications int }

func (b backlogSize) total() int { return b.messages + b.receipts + b.notifications }

func (cp *companion) backlog() backlogSize {
	var b backlogSize
	for _, d := range cp.queue {
		switch d.Class {
		case classMessage:
			b.messages++
		case classReceipt:
			b.receipts++
		default:
			b.notifications++
		}
	}
	return b
}

// resume sends a companion the nodes that it missed, and then tells it that it is up to date. The
// caller holds v.mu.
func (v queues) resume(cp *companion) {
	c := cp.conn
	cp.sent = 0
	c.missed = cp.backlog()
	c.backlog = c.missed.total()
	if c.backlog == 0 {
		c.send(upToDate(c.missed))
		return
	}
	c.send(serverInfo(waBinary.Node{Tag: "offline_preview", Attrs: waBinary.Attrs{
		"count":        c.missed.total(),
		"appdata":      0,
		"message":      c.missed.messages,
		"notification": c.missed.notifications,
		"receipt":      c.missed.receipts,
	}}))
	v.pump(cp)
}

func upToDate(b backlogSize) waBinary.Node {
	return serverInfo(waBinary.Node{Tag: "offline", Attrs: waBinary.Attrs{"count": b.total()}})
}

func serverInfo(n waBinary.Node) waBinary.Node {
	return waBinary.Node{Tag: "ib", Attrs: waBinary.Attrs{"from": types.ServerJID}, Content: []waBinary.Node{n}}
}
