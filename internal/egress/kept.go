package egress

import (
	"crypto/tls"
	"errors"
	"sync"
	"syscall"
	"time"
)

// kept holds connections between exchanges, the one used last on top.
type kept struct {
	perHost int

	mu    sync.Mutex
	idle  map[string][]*wire
	count int
	sweep *time.Timer // runs while there are any
}

// lookAfter is how long a connection may lie before it is looked at: a host that
// has ended it, or said something unasked, has had the time.
const lookAfter = time.Second

// take gives a connection to a host, nil when there is none.
func (k *kept) take(host string) *wire {
	for {
		c := k.pop(host)
		if c == nil || time.Since(c.at) < lookAfter && c.r.Buffered() == 0 || c.quiet() {
			return c
		}
		_ = c.Close() // the host has left
	}
}

func (k *kept) pop(host string) *wire {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.idle[host]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	k.set(host, list[:len(list)-1])
	return c
}

// set replaces the connections to a host.
func (k *kept) set(host string, list []*wire) {
	k.count += len(list) - len(k.idle[host])
	if len(list) == 0 {
		delete(k.idle, host)
		return
	}
	k.idle[host] = list
}

// put keeps a connection, or closes it when there are enough.
func (k *kept) put(c *wire) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.count >= maxIdle || len(k.idle[c.host]) >= k.perHost {
		return c.Close()
	}
	c.at = time.Now()
	k.set(c.host, append(k.idle[c.host], c))
	if k.sweep == nil {
		k.sweep = time.AfterFunc(idleTimeout, k.old)
	}
	return nil
}

// old closes what has lain too long.
func (k *kept) old() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for host, list := range k.idle {
		n := 0
		for n < len(list) && time.Since(list[n].at) >= idleTimeout {
			_ = list[n].Close() // nobody uses it
			n++
		}
		k.set(host, list[n:])
	}
	if k.count == 0 {
		k.sweep = nil
		return
	}
	k.sweep.Reset(idleTimeout / 2)
}

// close closes all that are kept.
func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for host, list := range k.idle {
		for _, c := range list {
			_ = c.Close() // nobody uses it
		}
		k.set(host, nil)
	}
	if k.sweep != nil {
		k.sweep.Stop()
		k.sweep = nil
	}
}

// quiet tells whether a connection is open and nothing has come on it.
func (c *wire) quiet() bool {
	s, ok := c.socket()
	return ok && c.r.Buffered() == 0 && silent(s)
}

// socket is what lies under the connection, and under TLS.
func (c *wire) socket() (s syscall.Conn, ok bool) {
	conn := c.Conn
	if t, is := conn.(*tls.Conn); is {
		conn = t.NetConn()
	}
	s, ok = conn.(syscall.Conn)
	return s, ok
}

// silent looks at a socket without waiting and without taking anything.
func silent(s syscall.Conn) bool {
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	var peeked error
	err = raw.Read(func(fd uintptr) bool {
		_, _, peeked = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	return err == nil && (errors.Is(peeked, syscall.EAGAIN) || errors.Is(peeked, syscall.EWOULDBLOCK))
}
