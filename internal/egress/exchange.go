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
)

// exchange follows one request through its transport: which connection it got,
// and how often it was sent.
type exchange struct {
	ctx  context.Context
	sent bool    // its head was written to a connection
	h1   *h1Conn // nil with HTTP/2
	sock *socket // nil before there is a connection
}

var identity = []string{"identity"} //nolint:gochecknoglobals // shared by all requests, never changed

// request makes a request that the transport may send again, once, when the
// connection that it reused turns out to be closed.
func (x *exchange) request(ctx context.Context, to *url.URL, header http.Header, body []byte) *http.Request {
	x.ctx = ctx
	if header == nil {
		header = http.Header{}
	}
	header["Accept-Encoding"] = identity
	if _, ok := header[idempotencyKey]; !ok {
		header[idempotencyKey] = nil // tells net/http that a POST may be repeated, and is not sent
	}
	r := &http.Request{Method: http.MethodPost, URL: to, Host: to.Host, Header: header, Body: http.NoBody}
	if len(body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.GetBody = again(body)
	}
	return r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: x.gotConn, WroteHeaders: func() { x.sent = true },
	}))
}

const idempotencyKey = "Idempotency-Key"

// again returns the body for a second try, and for no third.
func again(body []byte) func() (io.ReadCloser, error) {
	used := false
	return func() (io.ReadCloser, error) {
		if used {
			return nil, &Error{Reset, errors.New("the connection ended twice before an answer")}
		}
		used = true
		return io.NopCloser(bytes.NewReader(body)), nil
	}
}

// gotConn runs before the request is written to a connection. It closes one that
// may not be used, upon which the transport takes another: a reused HTTP/1
// connection on which the host has sent something unasked, and every reused one
// when the request was already sent on a connection that ended.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.end()
	switch c := info.Conn.(type) {
	case *h1Conn:
		x.h1, x.sock = c, c.sock
		if info.Reused && (x.sent || !c.sock.quiet(x.ctx)) {
			_ = c.Close() // the transport sees that it is closed
		}
	case *tls.Conn:
		x.h1 = nil
		x.sock, _ = c.NetConn().(*socket)
	}
	if x.sock != nil {
		x.sock.begin()
	}
}

// end tells the connection that the exchange is over.
func (x *exchange) end() {
	if x.sock != nil {
		x.sock.end()
		x.sock = nil
	}
}
