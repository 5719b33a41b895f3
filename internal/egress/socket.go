package egress

import (
	"container/list"
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// socket is a TCP connection to a host. It limits how many bytes the host may send,
// and knows whether all received bytes were read.
type socket struct {
	net.Conn
	conns     *conns
	address   string        // of the host
	exchanges int           // running exchanges; guarded by conns.mu
	place     *list.Element // its place in conns.order, or nil; guarded by conns.mu

	mu      sync.Mutex
	peek    *peek
	changed sync.Cond // signals changes of waiting and ended
	waiting bool      // the reader waits for more bytes
	ended   bool      // Close was called
	left    int       // bytes that the host may still send
	failed  error     // why reading ended; nil if Close ended it
}

var errFlood = errors.New("the host sends more than an answer may have")

func newSocket(conn net.Conn, of *conns, address string) *socket {
	s := &socket{Conn: conn, conns: of, address: address, peek: newPeek(conn), left: exchangeBytes}
	s.changed.L = &s.mu
	return s
}

// Read reads from the host. It returns errFlood once the host has sent too much.
func (s *socket) Read(b []byte) (int, error) {
	s.setWaiting()
	n, err := s.Conn.Read(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = false
	if s.left -= n; s.left < 0 && !s.conns.unlimited && err == nil {
		n, err = 0, errFlood
	}
	if err != nil && !s.ended {
		s.failed = err
	}
	return n, err
}

func (s *socket) setWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = true
	s.changed.Broadcast()
}

// Close closes the connection. It may be called more than once.
func (s *socket) Close() error {
	if s.setEnded() {
		s.conns.closed(s)
	}
	return s.Conn.Close()
}

func (s *socket) setEnded() (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = !s.ended
	s.ended = true
	s.changed.Broadcast()
	return first
}

// allow limits what the host may still send, by the number of running exchanges.
func (s *socket) allow(exchanges int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = max(idleBytes, exchanges*exchangeBytes)
}

// failure returns why reading ended. It returns nil if reading has not ended or was
// ended by Close.
func (s *socket) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// quiet reports whether the connection is open and has no unread bytes. The reader
// may still process the last bytes, so quiet waits until it reads again or closes
// the socket.
func (s *socket) quiet(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waiting && !s.ended {
		s.await(ctx)
	}
	return s.waiting && !s.ended && s.peek.silent()
}

// await waits until the reader reads again, the socket is closed, or ctx is done. The
// caller holds the lock.
func (s *socket) await(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.wake)
	defer stop()
	for !s.waiting && !s.ended && ctx.Err() == nil {
		s.changed.Wait()
	}
}

func (s *socket) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

// peek looks for bytes to read without waiting or consuming them. It allocates nothing
// for a look, of which there is one before each exchange.
type peek struct {
	raw  syscall.RawConn // nil if the connection cannot be looked at
	look func(fd uintptr)
	err  error // of the last look
}

func newPeek(conn net.Conn) *peek {
	p := &peek{}
	if c, ok := conn.(syscall.Conn); ok {
		p.raw, _ = c.SyscallConn() // nil on failure
	}
	p.look = func(fd uintptr) {
		var b [1]byte
		_, _, p.err = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	}
	return p
}

// silent reports whether the connection is open and has nothing to read.
func (p *peek) silent() bool {
	if p.raw == nil || p.raw.Control(p.look) != nil {
		return false
	}
	return errors.Is(p.err, syscall.EAGAIN) || errors.Is(p.err, syscall.EWOULDBLOCK)
}

// h1Conn is a connection for HTTP/1: a socket, or TLS over a socket.
type h1Conn struct {
	net.Conn
	sock *socket

	mu     sync.Mutex
	failed error // why reading ended
}

// Read reads and stores the error that ended reading. net/http reports a head that
// ends in the middle of a line as malformed, so its error does not tell the cause.
func (c *h1Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = err
	}
	return n, err
}

func (c *h1Conn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Close closes the connection without the closing alert of TLS. Sending it would
// wait up to five seconds for a host that does not read.
func (c *h1Conn) Close() error { return c.sock.Close() }
