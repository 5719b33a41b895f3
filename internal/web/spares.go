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
	late  map[string]struct{} // the other ends of the connections that use one
}

// NewSpares opens the files. The caller calls Close.
func NewSpares() *Spares {
	s := &Spares{late: map[string]struct{}{}}
	s.fill()
	return s
}

// fill opens as many files as are missing, and as can be opened.
func (s *Spares) fill() {
	for len(s.files)+len(s.late) < spareFiles {
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

// Accept returns the next connection. If there is no file for it, it takes a spare one.
func (l *spareListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) || !l.spares.give() {
		return c, err
	}
	if c, err = l.Listener.Accept(); err != nil {
		l.spares.take("")
		return nil, err
	}
	return l.spares.lend(c), nil
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
	late := &lateConn{Conn: c, leave: sync.OnceFunc(func() { s.take(remote) })}
	late.limit = time.AfterFunc(spareTime, func() { _ = late.Close() })
	return late
}

// take opens files again after a connection has ended.
func (s *Spares) take(remote string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.late, remote)
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
