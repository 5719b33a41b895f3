package web

import (
	"net"
	"net/netip"
	"sync"

	"postern/internal/ratelimit"
)

// Bound returns a listener that has at most so many connections at a time, in total
// and from one network, and closes those beyond. Connections of this machine and of
// trusted proxies are counted in total only: many callers share them.
func Bound(l net.Listener, t Transport) net.Listener {
	return &boundListener{Listener: l, transport: t, total: maxConns, each: maxConnsFrom, from: map[string]int{}}
}

// boundListener counts the connections that are open.
type boundListener struct {
	net.Listener
	transport   Transport
	total, each int // at most

	mu   sync.Mutex
	open int
	from map[string]int // by network
}

// Accept returns the next connection that is not beyond the bounds.
func (l *boundListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		network := l.network(c)
		if !l.add(network) {
			_ = c.Close()
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(sendBuffer) // what is not read takes no more memory of the kernel
		}
		return &countedConn{Conn: c, leave: sync.OnceFunc(func() { l.remove(network) })}, nil
	}
}

// network names the network of a connection; "" is one that is not counted by itself.
func (l *boundListener) network(c net.Conn) string {
	var a netip.Addr
	if remote := c.RemoteAddr(); remote != nil {
		a = addrOf(remote.String())
	}
	if !a.IsValid() || a.IsLoopback() || l.transport.trusts(a) {
		return ""
	}
	return ratelimit.Network(a)
}

// add counts one more connection, unless it is one too many.
func (l *boundListener) add(network string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.total || network != "" && l.from[network] >= l.each {
		return false
	}
	l.open++
	if network != "" {
		l.from[network]++
	}
	return true
}

func (l *boundListener) remove(network string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if network == "" {
		return
	}
	if l.from[network]--; l.from[network] == 0 {
		delete(l.from, network)
	}
}

// countedConn is a connection that counts until it is closed.
type countedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// CloseWrite ends what we send, and leaves the other direction open.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
