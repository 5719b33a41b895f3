package egress

import (
	"bufio"
	"bytes"
	"container/list"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"
)

// transport makes one exchange at a time on a connection, in the goroutine that
// asks for it, and keeps the connection. Requests are written and answers read by
// net/http; its own Transport has two more goroutines for each connection, which
// hand an exchange to each other: a quarter of what a POST costs (decision 0011).
type transport struct {
	dialer dialer
	kept   kept
}

func newTransport(d dialer, idle int) *transport {
	return &transport{dialer: d, kept: kept{perHost: idle, idle: map[string][]*wire{}}}
}

// wire is a connection with its buffers, that remembers what came on it.
type wire struct {
	net.Conn

	host   string // it leads to
	r      *bufio.Reader
	w      *bufio.Writer
	head   io.LimitedReader // r reads from it
	heard  bool             // anything, in this exchange
	failed error            // what ended the reading
	at     time.Time        // it was kept at
	place  *list.Element    // among those that are kept
}

func newWire(conn net.Conn, host string) *wire {
	c := &wire{Conn: conn, host: host, w: bufio.NewWriter(conn)}
	c.head = io.LimitedReader{R: c, N: math.MaxInt64}
	c.r = bufio.NewReader(&c.head)
	return c
}

// Read reads from the connection, and notes what came.
func (c *wire) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.heard = c.heard || n > 0
	if err != nil {
		c.failed = err
	}
	return n, err
}

// post is a request that can be sent again.
type post struct {
	url      *url.URL
	header   http.Header
	body     []byte
	deadline time.Time // for all of it, the answer's body included
}

func (p post) request() *http.Request {
	r := &http.Request{Method: http.MethodPost, URL: p.url, Host: p.url.Host, Header: p.header, Body: http.NoBody, ContentLength: int64(len(p.body))}
	if len(p.body) > 0 { // otherwise net/http would take a length of 0 for one that is not known
		r.Body = io.NopCloser(bytes.NewReader(p.body))
	}
	return r
}

// post sends a request and reads the head of the answer. A kept connection that
// the host has ended meanwhile is replaced, once.
func (t *transport) post(ctx context.Context, p post) (*http.Response, error) {
	host := hostOf(p.url)
	if c := t.kept.take(host); c != nil {
		res, err := t.exchange(ctx, c, p)
		if err == nil || c.heard || !isReset(err) || ctx.Err() != nil {
			return res, err
		}
	}
	c, err := t.dial(ctx, p, host)
	if err != nil {
		return nil, err
	}
	return t.exchange(ctx, c, p)
}

// hostOf names where a connection leads to: scheme, name and port.
func hostOf(u *url.URL) string {
	if u.Port() != "" {
		return u.Scheme + " " + u.Host
	}
	port := "443"
	if u.Scheme == "http" {
		port = "80"
	}
	return u.Scheme + " " + net.JoinHostPort(u.Hostname(), port)
}

func (t *transport) dial(ctx context.Context, p post, host string) (*wire, error) {
	ctx, cancel := context.WithDeadline(ctx, p.deadline)
	defer cancel()
	dial := t.dialer.dialTLS
	if p.url.Scheme == "http" {
		dial = t.dialer.dial
	}
	conn, err := dial(ctx, "tcp", host[len(p.url.Scheme)+1:])
	if err != nil {
		return nil, err
	}
	return newWire(conn, host), nil
}

// exchange sends a request on a connection and reads the head of the answer. The
// connection is the answer's until its body is closed.
func (t *transport) exchange(ctx context.Context, c *wire, p post) (*http.Response, error) {
	if err := c.SetDeadline(p.deadline); err != nil {
		c.drop()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // it can only be closed already
	res, err := c.send(p.request())
	if err != nil {
		stop()
		c.drop()
		return nil, err
	}
	res.Body = &answerBody{ReadCloser: res.Body, read: res.Body == http.NoBody, done: func(read bool) {
		if !stop() || !read || res.Close || res.StatusCode == http.StatusSwitchingProtocols {
			c.drop()
			return
		}
		t.kept.put(c)
	}}
	return res, nil
}

// send writes a request and reads the head of its answer. A host may answer
// before it has read all of the request, and close.
func (c *wire) send(req *http.Request) (*http.Response, error) {
	c.heard = false
	wrote := req.Write(c.w)
	if wrote == nil {
		wrote = c.w.Flush()
	}
	c.head.N = maxHeader
	defer func() { c.head.N = math.MaxInt64 }()
	for {
		res, err := http.ReadResponse(c.r, req)
		if err != nil {
			return nil, c.why(err, wrote)
		}
		if informs := res.StatusCode >= 100 && res.StatusCode < 200; !informs || res.StatusCode == http.StatusSwitchingProtocols {
			res.Close = res.Close || wrote != nil
			return res, nil
		}
	}
}

// why there is no answer. ReadResponse takes half a line of a head for a
// malformed one, and a head that is too long for one that ends.
func (c *wire) why(err, wrote error) error {
	switch {
	case c.head.N <= 0:
		return &Error{Body, errors.New("the head of the answer is too long")}
	case c.failed != nil:
		return c.failed
	}
	return errors.Join(err, wrote)
}

// answerBody gives its connection back when it is closed.
type answerBody struct {
	io.ReadCloser

	read bool // to its end
	done func(read bool)
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read = b.read || errors.Is(err, io.EOF)
	return n, err
}

func (b *answerBody) Close() error {
	b.done(b.read)
	return nil
}
