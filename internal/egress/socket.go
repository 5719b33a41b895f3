package egress

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
)

// socket is a TCP connection to a host. It bounds what the host may send, and
// knows whether everything that came was read.
type socket struct {
	net.Conn
	closed func(*socket) // called once

	mu        sync.Mutex
	changed   sync.Cond // of what follows
	waiting   bool      // its reader has used up what came, and waits for more
	ended     bool      // it is closed
	exchanges int       // under way
	left      int       // bytes that the host may send
	failed    error     // why reading ended, unless it was closed here
}

var errFlood = errors.New("the host sends more than an answer may have")

func newSocket(conn net.Conn, closed func(*socket)) *socket {
	s := &socket{Conn: conn, closed: closed, left: exchangeBytes}
	s.changed.L = &s.mu
	return s
}

// Read reads from the host. It fails once the host has sent too much.
func (s *socket) Read(b []byte) (int, error) {
	s.setWaiting()
	n, err := s.Conn.Read(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = false
	if s.left -= n; s.left < 0 && err == nil {
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

// Close closes the connection.
func (s *socket) Close() error {
	if s.setEnded() {
		s.closed(s)
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

// begin and end count the exchanges under way. Each lets the host send more.
func (s *socket) begin() { s.count(1) }
func (s *socket) end()   { s.count(-1) }

func (s *socket) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges += n
	s.left = max(idleBytes, s.exchanges*exchangeBytes)
}

// failure is why reading ended: nil when it did not, or ended by Close.
func (s *socket) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// quiet tells whether the connection is open and nothing has come that is not
// read. Whoever reads it may still be busy with what came last: quiet waits until
// its reader asks for more or closes it.
func (s *socket) quiet(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waiting && !s.ended {
		s.await(ctx)
	}
	return s.waiting && !s.ended && silent(s.Conn)
}

// await waits until the reader asks for more, or closes the socket.
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

// silent looks whether a connection holds something to read, without waiting and
// without taking anything.
func silent(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var peeked error
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, peeked = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err == nil && (errors.Is(peeked, syscall.EAGAIN) || errors.Is(peeked, syscall.EWOULDBLOCK))
}

// sockets is a set of them.
type sockets struct {
	mu  sync.Mutex
	set map[*socket]struct{}
}

func (a *sockets) add(s *socket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.set == nil {
		a.set = map[*socket]struct{}{}
	}
	a.set[s] = struct{}{}
}

func (a *sockets) remove(s *socket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.set, s)
}

func (a *sockets) len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.set)
}

func (a *sockets) list() []*socket {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.set))
}

// h1Conn is what HTTP/1 reads from and writes to: a socket, or TLS above it.
type h1Conn struct {
	net.Conn
	sock *socket

	mu     sync.Mutex
	failed error // why reading ended
}

// Read reads, and remembers why reading ended: net/http takes a head that ends in
// the middle of a line for a malformed one.
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

// Close closes the connection without the closing alert of TLS, which would wait
// up to five seconds for a host that does not read.
func (c *h1Conn) Close() error { return c.sock.Close() }
