package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// exchange is the state of one request in a transport: the connection that it uses,
// and whether it was sent.
type exchange struct {
	ctx  context.Context
	sent atomic.Int32 // how often the request's head was written to a connection that was open
	h1   *h1Conn      // nil with HTTP/2
	sock *socket      // nil before the request has a connection
	open atomic.Bool  // the connection was open when the transport chose it
}

var identity = []string{"identity"} //nolint:gochecknoglobals // shared by all requests, never changed

// request makes a request that the transport may send a second time if a reused
// connection turns out to be closed.
func (x *exchange) request(ctx context.Context, to *url.URL, header http.Header, body []byte) *http.Request {
	x.ctx = ctx
	if header == nil {
		header = http.Header{}
	}
	header["Accept-Encoding"] = identity
	if _, ok := header[idempotencyKey]; !ok {
		header[idempotencyKey] = nil // allows net/http to repeat a POST; an empty field is not sent
	}
	r := &http.Request{Method: http.MethodPost, URL: to, Host: to.Host, Header: header, Body: http.NoBody}
	if len(body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.GetBody = func() (io.ReadCloser, error) { return x.again(body) }
	}
	return r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: x.gotConn, WroteHeaders: x.wroteHeaders,
	}))
}

const idempotencyKey = "Idempotency-Key"

// maxSent is how often a request may be sent: a kept connection may end as soon as the request is written.
const maxSent = 2

// again returns the body for another connection. Connections that were closed before the request was
// written to them do not count: there are no more of them than the transport keeps.
func (x *exchange) again(body []byte) (io.ReadCloser, error) {
	if x.sent.Load() >= maxSent {
		return nil, &Error{Reset, errors.New("the connection ended twice before an answer")}
	}
	return io.NopCloser(bytes.NewReader(body)), nil
}

// gotConn is called before the request is written to a connection. It closes a
// reused HTTP/1 connection that must not be used, and the transport then takes
// another one. That is a connection on which the host has sent unrequested bytes,
// and every reused one if the request was already sent on a connection that ended.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.end()
	switch c := info.Conn.(type) {
	case *h1Conn:
		x.h1, x.sock = c, c.sock
		if info.Reused && (x.sent.Load() > 0 || !c.sock.quiet(x.ctx)) {
			_ = c.Close() // the transport sees that it is closed
		}
	case *tls.Conn:
		x.h1 = nil
		x.sock, _ = c.NetConn().(*socket)
	}
	if x.sock != nil {
		x.begin()
	}
}

// begin tells the socket that the exchange begins. Another exchange may just be about
// to close it.
func (x *exchange) begin() {
	open := x.sock.conns.begin(x.sock)
	x.open.Store(open)
	if !open {
		_ = x.sock.Close() // before the request is written
	}
}

func (x *exchange) wroteHeaders() {
	if x.open.Load() {
		x.sent.Add(1)
	}
}

// missed reports whether the exchange failed because the chosen connection was closed
// between two exchanges. With HTTP/1 the transport itself then takes another one.
func (x *exchange) missed() bool { return x.sock != nil && !x.open.Load() && x.sent.Load() == 0 }

// end tells the socket that the exchange is over.
func (x *exchange) end() {
	if x.sock != nil {
		x.sock.conns.end(x.sock)
		x.sock = nil
	}
}
