package vendorsim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// requestTimeout is how long a client may take for the HTTP request that opens its WebSocket.
const requestTimeout = 20 * time.Second

// pipeListener accepts the in-process connections that DialContext makes.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "vendorsim" }

// serve starts the HTTP server that all listeners share, and serves the in-process connections.
func (v sockets) serve() {
	v.server = &http.Server{
		Handler:           v.mediaHost.handler(),
		ReadHeaderTimeout: requestTimeout,
		ErrorLog:          slog.NewLogLogger(v.log.Handler(), slog.LevelDebug),
	}
	v.serveOn(v.pipes)
}

func (v sockets) serveOn(l net.Listener) bool {
	return v.start(func() {
		if err := v.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			v.log.Error("serve", "error", err)
		}
	})
}

func (v sockets) stopServing() {
	_ = v.server.Close() // and its listeners; their errors do not matter
	_ = v.pipes.Close()
	v.client.CloseIdleConnections()
}

// Handler returns the vendor for a server of the caller: the WebSocket endpoint, which accepts any
// path, and the host of media. whatsmeow connects to wss://web.whatsapp.com/ws/chat and needs HTTPS
// for media, so the server needs TLS and a certificate that the client trusts. Clients are sent for
// media to the host and port to which they connected.
func (v *Vendor) Handler() http.Handler { return v.server.Handler }

// accept turns a request into a connection.
func (v sockets) accept(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the Origin is the real vendor's, for any host that the simulator replaces
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		v.log.DebugContext(r.Context(), "websocket refused", "error", err)
		return
	}
	v.adopt(ws, hostFor(r))
}

// adopt starts a goroutine for a WebSocket. The goroutine of the HTTP server can then end and
// release its request and buffers.
func (v sockets) adopt(ws *websocket.Conn, media string) {
	c := &conn{core: v.core, wire: newWire(ws), mediaHost: media}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		_ = ws.CloseNow()
		return
	}
	v.conns[c] = struct{}{}
	v.wg.Go(c.run)
}

// DialContext connects to the Handler inside the process, without a port and without TLS.
func (v *Vendor) DialContext(ctx context.Context) (net.Conn, error) { return v.sockets.dial(ctx) }

func (v sockets) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case v.pipes.conns <- server:
		return client, nil
	case <-v.pipes.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// HTTPClient returns a client whose connections, to any host, go to the Vendor through DialContext.
// Pass it to whatsmeow's Client.SetWebsocketHTTPClient, SetPreLoginHTTPClient and
// SetMediaHTTPClient. All clients of a process may share it.
func (v *Vendor) HTTPClient() *http.Client { return v.client }

func (v sockets) pipeClient() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return v.dial(ctx) }
	return &http.Client{Transport: &http.Transport{DialContext: dial, DialTLSContext: dial}}
}

// Listen serves the Handler on a TCP address without TLS, and so without media for whatsmeow.
// "127.0.0.1:0" chooses a free port. Close closes the listener.
func (v *Vendor) Listen(addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(v.ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if !v.sockets.serveOn(l) {
		_ = l.Close()
		return nil, ErrClosed
	}
	return l, nil
}
