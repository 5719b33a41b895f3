package whatsapp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/keys"
	"postern/internal/network/whatsapp/live"
	"postern/internal/network/whatsapp/retries"
	"postern/internal/network/whatsapp/state"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types/events"
)

// conn is one connection of one whatsmeow client. It is used once.
type conn struct {
	cli     *whatsmeow.Client
	wire    *wire
	calls   *gate // calls from whatsmeow to the host and to the key store, and sends
	host    network.Host
	log     *slog.Logger
	out     outgoing
	keys    *keys.Ring // nil while linking
	answers *retries.Answers
	state   *state.State // nil while linking

	audience *live.Audience // nil while linking

	flight *flight

	hostsRefused atomic.Bool // what is known of the hosts of files must be asked again

	onSent     func(*waBinary.Node) // of a link attempt; nil for a session
	onReceived func(*waBinary.Node)

	// The functions below are of a session; nil for a link attempt.
	unread   func(message *waBinary.Node, why postern.FailureCode) bool // see reportUnread
	setAside func(id string) bool                                       // see lastTry

	updates sync.Mutex // held during an update: the host gets one at a time

	mu     sync.Mutex // guards the fields below
	stop   context.CancelFunc
	reason *network.Ended
	failed int            // frames in a row that could not be decoded
	seen   []postern.Seen // see identified
	told   bool           // a goroutine tells the host of them
}

// connect returns a client for the device, ready to run.
func (d *Driver) connect(device *store.Device, host network.Host) *conn {
	to := d.target.in(host.Space()).through(d.proxies, host.Proxy())
	c := &conn{calls: &gate{}, host: host, log: d.log, flight: newFlight(host.Processing)}
	c.wire = &wire{target: to, saw: c.flight.read, turn: c.turn}
	c.out.own = func() string { return c.cli.Store.GetLID().User }
	if ring, ok := keys.RingOf(device); ok {
		ring.Attach(c.calls, func() { c.end(disconnected("store-unavailable")) })
		ring.OnIdentified(c.identified)
		c.keys = ring
	}
	log := newTap(d.log)
	log.received, log.sent = c.sawReceived, func(node *waBinary.Node) {
		c.acknowledging(node)
		c.sawSent(node)
		if c.onSent != nil {
			c.onSent(node)
		}
	}
	log.undecoded, log.panicked = c.undecoded, c.panicked
	hooked(device)
	c.cli = newClient(device, log, &http.Client{Transport: c.wire}, &http.Client{Transport: to.transport})
	c.answers = retries.Use(c.cli, d.log, func() { c.end(disconnected("store-unavailable")) })
	return c
}

// newClient returns a client that never acknowledges, reconnects or downloads on
// its own.
func newClient(device *store.Device, log *tap, dial, media *http.Client) *whatsmeow.Client {
	cli := whatsmeow.NewClient(device, log)
	shrink(cli)
	cli.SetPreLoginHTTPClient(dial)
	cli.SetWebsocketHTTPClient(dial)
	cli.SetMediaHTTPClient(media)
	cli.EnableAutoReconnect = false
	cli.InitialAutoReconnect = false
	cli.DisableLoginAutoReconnect = true
	cli.SynchronousAck = true
	cli.EnableDecryptedEventBuffer = true
	cli.ManualHistorySyncDownload = true
	cli.AutomaticMessageRerequestFromPhone = true
	cli.UseRetryMessageStore = false
	return cli
}

// handler handles one event of whatsmeow. It reports false if the event was not
// stored.
type handler func(ctx context.Context, evt any) bool

// run connects, and calls watch until the connection ends or ctx is done. After
// all calls to the host and to the key store have returned, it returns why the
// connection ended, or nil if ctx was done.
func (c *conn) run(ctx context.Context, handle handler, watch func(context.Context)) *network.Ended {
	life, stop := context.WithCancel(ctx)
	defer stop()
	c.mu.Lock()
	c.stop = stop
	c.mu.Unlock()
	// whatsmeow's own context lives until hangUp has ended the handshake: if it were
	// canceled, the socket would be closed first, and nothing could end the handshake.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	c.cli.BackgroundEventCtx = inner
	c.cli.AddEventHandlerWithSuccessStatus(func(evt any) bool { return c.guarded(life, evt, handle) })

	dialled := make(chan struct{})
	go func() {
		defer close(dialled)
		c.dial(inner)
	}()
	watch(life)
	<-life.Done()
	c.hangUp(dialled)
	cancel()
	if !c.calls.wait(drainTimeout) {
		c.log.WarnContext(ctx, "a call outlives its connection")
	}
	if c.keys != nil {
		c.keys.Close(context.WithoutCancel(ctx))
	}
	c.flight.land()
	c.wire.target.release()
	if ctx.Err() != nil {
		return nil
	}
	return c.ended()
}

// hangUp closes the socket, which whatsmeow notices. This is the only way to end
// a connection without a data race in whatsmeow: Client.Disconnect writes to a
// field that the socket's reader reads if the vendor closes at the same moment.
func (c *conn) hangUp(dialled <-chan struct{}) {
	c.calls.shut()
	c.flight.unsettle()
	//nolint:staticcheck // nothing else tells sends in progress not to wait 5 s for a reconnect
	c.cli.DangerousInternals().ExpectDisconnect()
	c.wire.abort()
	<-dialled
	<-c.wire.released()
}

func (c *conn) dial(ctx context.Context) {
	err := c.cli.ConnectContext(ctx)
	c.wire.settle()
	switch {
	case err == nil:
		c.flight.decodedOne(nil) // the vendor's part of the handshake
	case errors.Is(err, socket.ErrDialFailed):
		c.end(disconnected(dialFailure(err, c.wire.failedTLS())))
	default:
		c.end(disconnected("handshake"))
	}
}

// end ends the connection for a reason; only the first reason counts. When end
// returns, the socket is closed, so nothing is acknowledged afterwards.
func (c *conn) end(reason *network.Ended) {
	c.mu.Lock()
	if c.reason == nil {
		c.reason = reason
	}
	stop := c.stop
	c.mu.Unlock()
	c.wire.abort()
	if stop != nil {
		stop()
	}
}

func (c *conn) ended() *network.Ended {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// guarded calls handle, and turns a panic, which whatsmeow would count as
// success, into a refusal. After a refusal the connection ends, because the vendor
// delivers messages again only at the next login.
func (c *conn) guarded(ctx context.Context, evt any, handle handler) (stored bool) {
	if !c.calls.Enter() {
		return false
	}
	defer c.calls.Leave()
	defer func() {
		if p := recover(); p != nil {
			c.log.ErrorContext(ctx, "panic while handling an event", "stack", string(debug.Stack()))
			message, ok := evt.(*events.Message)
			stored = ok && c.setAside != nil && c.setAside(message.Info.ID)
		}
		if !stored {
			c.refuse()
		}
	}()
	return handle(ctx, evt)
}

// refuse ends the connection because an update was not stored.
func (c *conn) refuse() {
	if c.keys != nil {
		c.keys.Refuse()
	}
	c.end(disconnected("store-unavailable"))
}

// update gives one update to the host, which has updateTimeout to store it.
func (c *conn) update(ctx context.Context, u network.Update) error {
	c.updates.Lock()
	defer c.updates.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	return c.host.Update(ctx, u)
}

// stores gives u to the host and reports whether it was stored.
func (c *conn) stores(ctx context.Context, u network.Update) bool {
	err := c.update(ctx, u)
	if err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "the host did not store an update; ending the connection", "error", err)
	}
	return err == nil
}

// turn returns once whatsmeow has finished the frame that it is writing. It queues an empty stanza behind that frame; the
// stream must already refuse writes, so the stanza is not sent, and the error says only that.
func (c *conn) turn() {
	//nolint:staticcheck // nothing else waits for the turn
	_ = c.cli.DangerousInternals().SendNode(c.cli.BackgroundEventCtx, waBinary.Node{Tag: "iq"})
}

// undecoded sees that whatsmeow could not read a frame, and skips it. A frame that cannot be
// decrypted is the last one that can: both sides number their frames. Others may be of a new
// kind, but several in a row are not.
func (c *conn) undecoded(decrypted bool) {
	c.flight.decodedOne(nil)
	c.mu.Lock()
	c.failed++
	over := !decrypted || c.failed >= maxUndecoded
	c.mu.Unlock()
	if over {
		c.end(disconnected("undecodable"))
	}
}

// sawReceived ends the connection if a stanza of the vendor says so.
func (c *conn) sawReceived(node *waBinary.Node) {
	c.flight.decodedOne(node)
	c.answers.Saw(node)
	c.mu.Lock()
	c.failed = 0
	c.mu.Unlock()
	if c.onReceived != nil {
		c.onReceived(node)
	}
	if reason := endedBy(node, time.Now()); reason != nil {
		c.end(reason)
	}
}

// lost ends the connection after its socket was closed, unless an earlier stanza
// says why.
func (c *conn) lost() {
	time.AfterFunc(reasonWait, func() { c.end(disconnected("socket-closed")) })
}

func disconnected(reason string) *network.Ended {
	return &network.Ended{Status: postern.Disconnected, Reason: reason}
}
