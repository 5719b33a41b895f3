package web

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	spareFiles = 8               // of a listener
	spareTime  = 5 * time.Second // that a connection may use one
)

// Spares are files that are kept open for connections that come when the process cannot open more files. Without
// them, such connections would get no answer at all.
type Spares struct {
	mu    sync.Mutex
	files []*os.File
	lent  int                 // connections that use one
	late  map[string]struct{} // the other ends of these connections
}

// NewSpares opens the files. The caller calls Close.
func NewSpares() *Spares {
	s := &Spares{late: map[string]struct{}{}}
	s.fill()
	return s
}

// fill opens as many files as are missing, and as can be opened.
func (s *Spares) fill() {
	for len(s.files)+s.lent < spareFiles {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		s.files = append(s.files, f)
	}
}

// Close closes the files.
func (s *Spares) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	s.files = nil
	return errors.Join(errs...)
}

// Late tells whether a connection from an address uses a spare file. It should be answered soon and closed.
func (s *Spares) Late(remote string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.late[remote]
	return is
}

// Listen returns a listener that accepts a few connections even if the process cannot open more files. They are
// closed after some seconds.
func (s *Spares) Listen(l net.Listener) net.Listener { return &spareListener{l, s} }

type spareListener struct {
	net.Listener

	spares *Spares
}

// Accept returns the next connection. If there is no file for it, it takes a spare one; others in the process may
// be faster and take that.
func (l *spareListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	for isNoFiles(err) && l.spares.give() {
		if c, err = l.Listener.Accept(); err == nil {
			return l.spares.lend(c), nil
		}
	}
	if err != nil {
		l.spares.refill()
	}
	return c, err
}

func isNoFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// give closes a spare file, if there is one.
func (s *Spares) give() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files) == 0 {
		return false
	}
	last := len(s.files) - 1
	_ = s.files[last].Close() // nothing was written to it
	s.files = s.files[:last]
	return true
}

// lend notes that a connection uses a spare file.
func (s *Spares) lend(c net.Conn) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	remote := c.RemoteAddr().String()
	s.late[remote] = struct{}{}
	s.lent++
	late := &lateConn{Conn: c, leave: sync.OnceFunc(func() { s.take(remote) })}
	late.limit = time.AfterFunc(spareTime, func() { _ = late.Close() })
	return late
}

// take opens files again after a connection has ended.
func (s *Spares) take(remote string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.late, remote)
	s.lent--
	s.fill()
}

// refill opens files again that others took.
func (s *Spares) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fill()
}

// lateConn is a connection that uses a spare file.
type lateConn struct {
	net.Conn

	leave func()
	limit *time.Timer
}

// Close closes the connection.
func (c *lateConn) Close() error {
	c.limit.Stop()
	err := c.Conn.Close()
	c.leave()
	return err
}

// CloseWrite ends what we send, and leaves the other direction open.
func (c *lateConn) CloseWrite() error { return closeWrite(c.Conn) }
