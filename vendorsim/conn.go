package vendorsim

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/coder/websocket"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

const (
	handshakeTimeout = 20 * time.Second
	// writeTimeout is how long a client may take to read the nodes that wait for it.
	writeTimeout = 30 * time.Second
	// maxOutgoing bounds the nodes that wait for one client.
	maxOutgoing = 16 << 10
	// linger is how long a connection stays open after its last node. A client that sees the end
	// of the connection too early may ignore that node.
	linger = 200 * time.Millisecond
	// pairedLinger is the same after a pairing, when the client closes the connection by itself.
	pairedLinger = 5 * time.Second
)

// outgoing is an encoded node on its way to a client.
type outgoing struct {
	data    []byte
	durable bool // written only after all records before it are on the disk
}

// conn is one client's connection. It has one goroutine that reads, and a second one only while
// there is something to write.
type conn struct {
	core      *core
	wire      *wire
	mediaHost string // where the client finds the vendor's media

	// Set by the reading goroutine with core.mu held, before the first node is handled.
	companion *companion // once logged in
	pairing   *pairing   // while it shows QR codes
	backlog   int        // items to send before the companion is told that it is up to date
	missed    backlogSize
	held      *delivery // delayed by a fault until the next message

	mu      sync.Mutex // guards the fields below
	out     []outgoing
	writing bool          // a goroutine works on out
	final   bool          // nothing may be added to out
	linger  time.Duration // wait before closing, once final and written
	silent  bool          // half-open: nothing is read or written any more
}

// run reads from the client until the connection ends.
func (c *conn) run() {
	defer c.core.sockets.forget(c)
	defer func() {
		if r := recover(); r != nil {
			c.core.log.Error("connection panicked", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	ctx := c.core.ctx
	if err := c.greet(ctx); err != nil {
		c.core.log.Debug("handshake", "error", err)
		return
	}
	for {
		n, err := c.wire.readNode(ctx)
		if err != nil {
			c.core.log.Debug("connection ended", "error", err)
			return
		}
		c.core.sockets.handle(ctx, c, n)
	}
}

// greet runs the handshake and starts a pairing or a login.
func (c *conn) greet(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	g, err := c.wire.handshake(limited, c.core.keys, c.core.certs)
	if err != nil {
		return err
	}
	if reg := g.payload.GetDevicePairingData(); reg != nil {
		return c.core.links.offerPairing(c, g.static, reg)
	}
	c.core.logins.login(ctx, c, g)
	return nil
}

// forget removes a connection that has ended from the Vendor's state.
func (v sockets) forget(c *conn) {
	c.close()
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.conns, c)
	if p := c.pairing; p != nil {
		delete(v.pairings, p.key())
		p.settle(ErrPairingLost)
	}
	if cp := c.companion; cp != nil && cp.conn == c {
		cp.conn = nil
		v.notify()
	}
}

// handle handles one node of a client.
func (v sockets) handle(ctx context.Context, c *conn, n *waBinary.Node) {
	if c.deaf() {
		return
	}
	if n.Tag == "iq" {
		v.queries.handleIQ(c, n)
		return
	}
	if !v.live(c) {
		return
	}
	switch n.Tag {
	case "message":
		v.messages.handleMessage(ctx, c, n)
	case "receipt":
		v.receipts.handleReceipt(ctx, c, n)
	case "ack":
		v.receipts.handleAck(c, n)
	case "presence":
		v.Online().sawPresence(c, n)
	case "chatstate":
		v.sawTyping(c, n)
	case "call":
		v.sawCall(c, n)
	}
}

// live reports whether the companion is logged in with this connection.
func (v sockets) live(c *conn) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return c.companion != nil && c.companion.conn == c
}

// send queues a node for the client.
func (c *conn) send(n waBinary.Node) { c.push(outgoing{data: encodeNode(n)}) }

// sendDurable queues a node that is written after all records so far are on the disk.
func (c *conn) sendDurable(n waBinary.Node) { c.push(outgoing{data: encodeNode(n), durable: true}) }

// sendLast queues a node after which the connection is closed.
func (c *conn) sendLast(n waBinary.Node, after time.Duration) {
	data := encodeNode(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.final {
		return
	}
	c.enqueue(outgoing{data: data})
	c.final, c.linger = true, after
}

func (c *conn) push(o outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.final {
		c.enqueue(o)
	}
}

// finish closes the connection after the queued nodes are written.
func (c *conn) finish(after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.final {
		return
	}
	c.final, c.linger = true, after
	c.startWriting()
}

// enqueue adds to the queue. The caller holds c.mu.
func (c *conn) enqueue(o outgoing) {
	if c.silent {
		return
	}
	if len(c.out) >= maxOutgoing {
		c.core.log.Warn("client does not read, dropping it")
		c.final = true
		c.close()
		return
	}
	c.out = append(c.out, o)
	c.startWriting()
}

func (c *conn) startWriting() {
	if c.writing {
		return
	}
	c.writing = true
	c.core.wg.Go(c.drain) // the caller keeps the reading goroutine running, so the count is not 0
}

// drain writes the queue until it is empty.
func (c *conn) drain() {
	for {
		c.mu.Lock()
		batch := c.out
		c.out = nil
		if len(batch) == 0 {
			c.writing = false
			final, after := c.final, c.linger
			c.mu.Unlock()
			if final {
				c.hangUp(after)
			}
			return
		}
		c.mu.Unlock()
		if err := c.write(batch); err != nil {
			c.core.log.Debug("write to client", "error", err)
			c.close()
			return // writing stays set: nothing more can be written
		}
	}
}

// write sends a batch after the state that it reports is in the journal.
func (c *conn) write(batch []outgoing) error {
	durable := false
	for _, o := range batch {
		durable = durable || o.durable
	}
	settle := c.core.flush
	if durable {
		settle = c.core.sync
	}
	if err := settle(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.core.ctx, writeTimeout)
	defer cancel()
	return c.wire.writeNodes(ctx, batch)
}

// hangUp closes the connection with a closing handshake after a while. Close does not wait for it.
func (c *conn) hangUp(after time.Duration) {
	time.AfterFunc(after, func() {
		c.core.start(func() {
			_ = c.wire.ws.Close(websocket.StatusNormalClosure, "") // the client may have disconnected already
		})
	})
}

// close cuts the connection.
func (c *conn) close() {
	if c.wire != nil {
		_ = c.wire.ws.CloseNow() // it may be closed already
	}
}

// silence makes the connection half-open: it stays open, but nothing is read or written.
func (c *conn) silence() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent, c.out = true, nil
}

func (c *conn) deaf() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent
}

// encodeNode encodes a node; whatsmeow's codec works in both directions.
func encodeNode(n waBinary.Node) []byte {
	data, err := waBinary.Marshal(n)
	if err != nil { // the present codec never returns an error
		return nil
	}
	return data
}

// reply answers an iq with a result.
func (c *conn) reply(to *waBinary.Node, children ...waBinary.Node) { c.send(result(to, children...)) }

// replyDurably is reply after all records so far are on the disk.
func (c *conn) replyDurably(to *waBinary.Node, children ...waBinary.Node) {
	c.sendDurable(result(to, children...))
}

func result(to *waBinary.Node, children ...waBinary.Node) waBinary.Node {
	out := waBinary.Node{Tag: "iq", Attrs: waBinary.Attrs{
		"from": types.ServerJID, "type": "result", "id": attr(to, "id"),
	}}
	if len(children) > 0 {
		out.Content = children
	}
	return out
}
