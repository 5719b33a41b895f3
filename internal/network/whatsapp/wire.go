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
	"net/url"
	"sync"

	"postern/internal/egress"
)

// target is where the vendor is.
type target struct {
	url       *url.URL // nil: the vendor's own
	transport *http.Transport
	inProcess bool // there is no network between us
}

// newTarget makes the transport that all clients of a Driver share.
func newTarget(n Network) (target, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	t := target{transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: n.CA, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: dialTimeout,
	}}
	if n.Dial != nil {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return n.Dial(ctx) }
		t.transport.DialContext, t.transport.DialTLSContext, t.transport.Proxy, t.inProcess = dial, dial, nil, true
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

// through gives the target as it is dialled through a proxy; "" changes
// nothing, nor does a vendor that needs no network. Through a proxy that may not
// be used nothing is dialled.
func (t target) through(proxies *egress.Client, proxy string) target {
	if proxy == "" || t.inProcess {
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

// wire is the transport of one connection: it sends the upgrade request to the
// target, and can end the connection at any moment of its life.
//
// whatsmeow's handshake waits 20 s for its first frame and does not notice that
// the socket was closed. So until the handshake is over, a wire turns the end of
// the stream into one empty frame, which fails the handshake at once.
type wire struct {
	target target

	mu      sync.Mutex // guards what follows
	aborted bool
	settled bool // the handshake is over
	cancel  context.CancelFunc
	stream  *stream // nil until the vendor took the upgrade
}

// emptyFrame is an unmasked binary WebSocket message of three bytes: the length
// of a frame of whatsmeow's that holds nothing.
const emptyFrame = "\x82\x03\x00\x00\x00"

var errAborted = errors.New("connection ended by its owner")

// RoundTrip sends the upgrade request and keeps hold of the connection.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
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
		return resp, nil // not upgraded; whatsmeow's dialler says so
	}
	s := &stream{ReadWriteCloser: rwc, wire: w, gone: make(chan struct{})}
	resp.Body = s
	if !w.hold(s, cancel) {
		return nil, errors.Join(errAborted, s.Close())
	}
	return resp, nil
}

// hold remembers how to end the connection; false means that it has ended.
func (w *wire) hold(s *stream, cancel context.CancelFunc) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream, w.cancel = s, cancel
	return !w.aborted
}

// settle says that the handshake is over.
func (w *wire) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = true
}

// waiting tells whether whatsmeow may still wait in its handshake.
func (w *wire) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.settled
}

// abort ends the connection, whether it is being dialled, in the handshake or
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
		_ = s.ReadWriteCloser.Close() // closed is closed
	}
}

// released is closed once whatsmeow reads no more from the aborted connection.
// Its reader would wait for ever if the rest of whatsmeow were stopped before it.
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

// stream is the upgraded connection as whatsmeow reads it.
type stream struct {
	io.ReadWriteCloser
	wire  *wire
	begun bool          // the vendor has sent something
	last  *bytes.Reader // the empty frame, once it was needed
	once  sync.Once
	gone  chan struct{} // closed by Close
}

// Close is called by whatsmeow's WebSocket when it has stopped reading.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.gone) })
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

// Read passes on what the vendor sends.
func (s *stream) Read(p []byte) (int, error) {
	if s.last != nil {
		return s.last.Read(p)
	}
	n, err := s.ReadWriteCloser.Read(p)
	closing := n > 0 && p[0] == 0x88 && !s.begun // a WebSocket close instead of an answer
	if (err != nil && n == 0 || closing) && s.wire.waiting() && !s.closed() {
		s.last = bytes.NewReader([]byte(emptyFrame))
		return s.last.Read(p)
	}
	s.begun = s.begun || n > 0
	return n, err
}
