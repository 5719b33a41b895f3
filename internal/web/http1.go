package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"postern/internal/postern"
)

// Listen returns a listener for the server of the door. Requests that net/http refuses
// before a handler sees them, such as one without a Host, get a problem document instead
// of a line of text.
func (d *Door) Listen(l net.Listener) net.Listener { return &doorListener{l, d} }

type doorListener struct {
	net.Listener
	door *Door
}

// Accept returns the next connection. One that speaks HTTP/2 is left as it is, which is
// how net/http recognizes it.
func (l *doorListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	secure, ok := c.(*tls.Conn)
	if !ok {
		return &textConn{Conn: c, door: l.door}, nil
	}
	if secure.ConnectionState().NegotiatedProtocol == "h2" {
		return c, nil
	}
	return &secureTextConn{textConn{Conn: c, door: l.door}, secure}, nil
}

// textConn is a connection that speaks HTTP/1.
type textConn struct {
	net.Conn
	door    *Door
	serving atomic.Bool // from the handler of a request to the end of its response
}

// secureTextConn is a textConn by TLS. net/http asks it for what goes into Request.TLS.
type secureTextConn struct {
	textConn
	secure *tls.Conn
}

// ConnectionState returns what was agreed on in the handshake.
func (c *secureTextConn) ConnectionState() tls.ConnectionState { return c.secure.ConnectionState() }

// CloseWrite ends what we send, and leaves the other direction open.
func (c *textConn) CloseWrite() error { return closeWrite(c.Conn) }

// ownHeaders is how net/http continues after the status line when it refuses a request
// itself. No answer of a handler begins so.
const ownHeaders = "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// Write writes, and replaces the text of a refusal that is net/http's own. It writes that
// in one piece, and never while a request is served.
func (c *textConn) Write(b []byte) (int, error) {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	if c.serving.Load() || !bytes.HasPrefix(rest, []byte(ownHeaders)) {
		return c.Conn.Write(b)
	}
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout)) // that of an earlier response may have passed
	if _, err := c.Conn.Write(c.door.refusal(line, c.RemoteAddr())); err != nil {
		return 0, err
	}
	return len(b), nil
}

// refusal returns the whole answer to a request that net/http answers with a status line.
func (d *Door) refusal(line []byte, remote net.Addr) []byte {
	status := 0
	if fields := bytes.Fields(line); len(fields) > 1 {
		status, _ = strconv.Atoi(string(fields[1]))
	}
	return d.wholeRefusal(refused(status), addrOf(remote.String()))
}

// refused explains a status with which net/http refuses a request.
func refused(status int) error {
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		return headersTooLarge()
	case http.StatusNotImplemented:
		return postern.Errorf(postern.MalformedRequest,
			"the Transfer-Encoding is not supported; use chunked, or send a Content-Length")
	case http.StatusHTTPVersionNotSupported:
		return postern.Errorf(postern.MalformedRequest, "the version of HTTP is not supported; use HTTP/1.1 or HTTP/2")
	}
	return postern.Errorf(postern.MalformedRequest,
		"the request is not valid HTTP; check the escapes in its path, its headers, and that it has one Host header")
}

// connKey is the place of a connection in the context of its requests.
type connKey struct{}

// withConn lets a request find its connection.
func withConn(ctx context.Context, c net.Conn) context.Context {
	switch c := c.(type) {
	case *textConn:
		return context.WithValue(ctx, connKey{}, c)
	case *secureTextConn:
		return context.WithValue(ctx, connKey{}, &c.textConn)
	}
	return ctx
}

// served notes that a request has reached its handler.
func served(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*textConn); ok {
		c.serving.Store(true)
	}
}

// connState notes that a connection waits for its next request.
func connState(c net.Conn, state http.ConnState) {
	if state != http.StateIdle {
		return
	}
	switch c := c.(type) {
	case *textConn:
		c.serving.Store(false)
	case *secureTextConn:
		c.serving.Store(false)
	}
}
