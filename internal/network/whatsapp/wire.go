package whatsapp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"postern/internal/egress"

	"golang.org/x/time/rate"
)

// target is the address of the vendor.
type target struct {
	url       *url.URL // nil is the vendor's own
	transport *http.Transport
	// dial connects to a number space of a vendor in this process; nil if it is elsewhere.
	dial func(ctx context.Context, space string) (net.Conn, error)
}

// newTarget returns the target with the transport that all clients of a Driver
// share.
func newTarget(n Network) (target, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	t := target{transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: n.CA, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: dialTimeout,
		IdleConnTimeout:       idleTimeout,
	}}
	if n.Dial != nil {
		t.transport.Proxy, t.dial = nil, n.Dial
		return t, nil
	}
	if n.URL == "" {
		return t, nil
	}
	u, err := url.Parse(n.URL)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return target{}, errors.New("network URL: want wss://host:port/path")
	}
	u.Scheme = map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
	t.url = u
	return t, nil
}

// in returns the target as it is dialled in a number space. A vendor elsewhere has only
// one. A space has its own transport, because the connections of a transport are shared.
func (t target) in(space string) target {
	if t.dial == nil {
		return t
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return t.dial(ctx, space) }
	t.transport = t.transport.Clone()
	t.transport.DialContext, t.transport.DialTLSContext = dial, dial
	return t
}

// release closes the connections to hosts of files that nobody uses, unless other clients
// share them.
func (t target) release() {
	if t.dial != nil {
		t.transport.CloseIdleConnections()
	}
}

// through returns the target as it is dialled through a proxy. For "", and for a
// vendor in this process, it is t itself. If the proxy may not be used, every dial
// fails.
func (t target) through(proxies *egress.Client, proxy string) target {
	if proxy == "" || t.dial != nil {
		return t
	}
	transport, err := proxies.Through(t.transport, proxy)
	if err != nil {
		transport = t.transport.Clone()
		transport.Proxy = func(*http.Request) (*url.URL, error) { return nil, err }
	}
	t.transport = transport
	return t
}

// wire is the transport of one connection. It sends the upgrade request to the
// target, and can end the connection at any time.
//
// whatsmeow's handshake waits 20 s for its first frame and does not notice that
// the socket was closed. So until the handshake is over, a wire turns the end of
// the stream into one empty frame, which makes the handshake fail at once.
type wire struct {
	target target
	saw    func(p []byte) // what whatsmeow reads next
	// turn waits until whatsmeow has finished the write that it has begun, if any: it writes one frame after another.
	turn func()

	mu      sync.Mutex // guards the fields below
	aborted bool
	settled bool // the handshake is over
	badTLS  bool // the handshake of TLS failed
	cancel  context.CancelFunc
	stream  *stream // nil until the vendor has accepted the upgrade
}

// emptyFrame is an unmasked binary WebSocket message of three bytes: an empty
// frame of the vendor's protocol, which begins with its length.
const emptyFrame = "\x82\x03\x00\x00\x00"

var errAborted = errors.New("connection ended by its owner")

// RoundTrip sends the upgrade request and remembers the connection.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { w.noteTLS(err) },
	}))
	if !w.hold(nil, cancel) {
		cancel()
		return nil, errAborted
	}
	req = req.Clone(ctx)
	if u := w.target.url; u != nil {
		req.URL, req.Host = u, u.Host
	}
	resp, err := w.target.transport.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("reach the vendor: %w", err)
	}
	rwc, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return resp, nil // not upgraded; whatsmeow's dialler returns an error
	}
	s := newStream(rwc, w)
	resp.Body = s
	if !w.hold(s, cancel) {
		return nil, errors.Join(errAborted, s.Close())
	}
	return resp, nil
}

// noteTLS remembers that the handshake of TLS failed.
func (w *wire) noteTLS(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.badTLS = err != nil
}

// failedTLS reports whether the connection failed in the handshake of TLS.
func (w *wire) failedTLS() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.badTLS
}

// hold remembers how to end the connection. It reports false if the connection
// was ended already.
func (w *wire) hold(s *stream, cancel context.CancelFunc) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream, w.cancel = s, cancel
	return !w.aborted
}

// settle records that the handshake is over.
func (w *wire) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = true
}

// waiting reports whether whatsmeow may still be waiting in its handshake.
func (w *wire) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.settled
}

// abort ends the connection, whether it is being dialled, in the handshake, or
// established. Nothing is sent on it afterwards.
func (w *wire) abort() {
	w.mu.Lock()
	s, cancel := w.stream, w.cancel
	w.aborted = true
	w.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if s != nil {
		s.cut()
	}
}

// released returns a channel that is closed once whatsmeow has stopped reading
// from the aborted connection. If the rest of whatsmeow were stopped first, its
// reader would wait forever.
func (w *wire) released() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream == nil {
		none := make(chan struct{})
		close(none)
		return none
	}
	return w.stream.gone
}

// stream is the upgraded connection that whatsmeow reads.
//
// It reads at most readBurst bytes at once and readRate bytes per second after that. Handling a
// long text takes the processor 10 ms, so an account that is sent many of them would delay all
// others. What waits stays with the vendor, and nothing is lost.
type stream struct {
	io.ReadWriteCloser
	wire  *wire
	limit *rate.Limiter
	begun bool          // the vendor has sent something
	last  *bytes.Reader // the empty frame, once it is needed

	over atomic.Bool // nothing is written any more

	cutOnce, closeOnce sync.Once
	isCut              chan struct{} // closed by cut
	gone               chan struct{} // closed by Close
}

func newStream(rwc io.ReadWriteCloser, w *wire) *stream {
	return &stream{
		ReadWriteCloser: rwc, wire: w, limit: rate.NewLimiter(readRate, readBurst),
		isCut: make(chan struct{}), gone: make(chan struct{}),
	}
}

// cut ends the connection below. A Read that waits returns at once.
func (s *stream) cut() {
	s.cutOnce.Do(func() { close(s.isCut) })
	_ = s.ReadWriteCloser.Close() // an error changes nothing
}

// Close is called by whatsmeow's WebSocket after it has stopped reading.
func (s *stream) Close() error {
	s.closeOnce.Do(func() { close(s.gone) })
	return s.ReadWriteCloser.Close()
}

func (s *stream) closed() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// Write sends what whatsmeow has written.
func (s *stream) Write(p []byte) (int, error) {
	if s.over.Load() {
		return 0, errAborted
	}
	n, err := s.ReadWriteCloser.Write(p)
	if err == nil {
		err = s.wire.left()
	}
	return n, err
}

// finish ends the connection in the other direction, and waits until whatsmeow knows that its last frame was written,
// or has closed its end. If it learned first that nothing can be read any more, it would take the frame for lost, and
// forget a query whose response it is just handling: that can end the program (decision 0003).
func (s *stream) finish() {
	s.over.Store(true)
	_ = s.ReadWriteCloser.Close() // a write that waits for the vendor returns
	if s.wire.waiting() {
		return // queries follow the handshake
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.wire.turn()
	}()
	select {
	case <-done:
	case <-s.gone:
	}
}

// pace waits until n more bytes may be handed over, or the connection is cut.
func (s *stream) pace(n int) {
	delay := s.limit.ReserveN(time.Now(), n).Delay()
	if delay <= 0 {
		return
	}
	wait := time.NewTimer(delay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-s.isCut:
	}
}

// Read returns what the vendor sends.
func (s *stream) Read(p []byte) (int, error) {
	if s.last != nil {
		return s.last.Read(p)
	}
	n, err := s.ReadWriteCloser.Read(p[:min(len(p), readBurst)])
	if err != nil {
		s.finish()
	}
	s.pace(n)
	closing := n > 0 && p[0] == 0x88 && !s.begun // a WebSocket close instead of an answer
	if (err != nil && n == 0 || closing) && s.wire.waiting() && !s.closed() {
		s.last = bytes.NewReader([]byte(emptyFrame))
		return s.last.Read(p)
	}
	s.begun = s.begun || n > 0
	s.wire.saw(p[:n])
	return n, err
}
