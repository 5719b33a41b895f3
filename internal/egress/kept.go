package egress

import (
	"container/list"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// kept holds connections between exchanges, the one used last on top. When there
// are too many, those that have lain longest go. None is closed, which may take
// time, while others wait.
type kept struct {
	perHost int

	mu    sync.Mutex
	idle  map[string][]*wire // by host, the oldest first
	all   list.List          // of *wire, the oldest first
	sweep *time.Timer        // runs while there are any
}

// take gives a connection to a host, nil when there is none. One that the host has
// ended, or on which it has said something that nobody asked for, is none.
func (k *kept) take(host string) *wire {
	for {
		c := k.pop(host)
		if c == nil || c.quiet() {
			return c
		}
		c.drop()
	}
}

func (k *kept) pop(host string) *wire {
	k.mu.Lock()
	defer k.mu.Unlock()
	conns := k.idle[host]
	if len(conns) == 0 {
		return nil
	}
	return k.remove(conns[len(conns)-1])
}

// remove forgets a connection.
func (k *kept) remove(c *wire) *wire {
	k.all.Remove(c.place)
	conns := k.idle[c.host]
	i := slices.Index(conns, c)
	if conns = slices.Delete(conns, i, i+1); len(conns) == 0 {
		delete(k.idle, c.host)
	} else {
		k.idle[c.host] = conns
	}
	return c
}

// put keeps a connection, in place of the oldest one when there are enough.
func (k *kept) put(c *wire) {
	if old := k.add(c); old != nil {
		old.drop()
	}
}

func (k *kept) add(c *wire) (old *wire) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if conns := k.idle[c.host]; len(conns) >= k.perHost {
		old = k.remove(conns[0])
	} else if k.all.Len() >= maxIdle {
		old = k.remove(k.oldest())
	}
	c.at = time.Now()
	c.place = k.all.PushBack(c)
	k.idle[c.host] = append(k.idle[c.host], c)
	if k.sweep == nil {
		k.sweep = time.AfterFunc(idleTimeout, k.old)
	}
	return old
}

// oldest is the connection that has lain longest, nil when there is none.
func (k *kept) oldest() *wire {
	if first := k.all.Front(); first != nil {
		return first.Value.(*wire) //nolint:errcheck,forcetypeassert // add puts in no others
	}
	return nil
}

// old closes what has lain too long.
func (k *kept) old() {
	for _, c := range k.removeUntil(time.Now().Add(-idleTimeout)) {
		c.drop()
	}
}

func (k *kept) removeUntil(at time.Time) (conns []*wire) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := k.oldest(); c != nil && !c.at.After(at); c = k.oldest() {
		conns = append(conns, k.remove(c))
	}
	if k.all.Len() > 0 {
		k.sweep.Reset(idleTimeout / 2)
	} else if k.sweep != nil {
		k.sweep.Stop()
		k.sweep = nil
	}
	return conns
}

// close closes all that are kept.
func (k *kept) close() {
	for _, c := range k.removeUntil(time.Now()) {
		c.drop()
	}
}

// drop closes a connection without the farewell of TLS: a host that reads nothing
// would have it waited for.
func (c *wire) drop() { _ = c.under().Close() } // it is closed whatever it says

// under is the connection, or the one that lies under TLS.
func (c *wire) under() net.Conn {
	if t, is := c.Conn.(*tls.Conn); is {
		return t.NetConn()
	}
	return c.Conn
}

// quiet tells whether a connection is open and nothing has come on it.
func (c *wire) quiet() bool {
	s, ok := c.under().(syscall.Conn)
	return ok && c.r.Buffered() == 0 && silent(s) && c.holdsNothing()
}

// holdsNothing tells whether TLS has read no more than it has given. A read whose
// time is over gives what is there and takes nothing from the socket.
func (c *wire) holdsNothing() bool {
	if _, is := c.Conn.(*tls.Conn); !is {
		return true
	}
	if c.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	_, err := c.r.Peek(1)
	c.failed = nil
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// silent looks at a socket without waiting and without taking anything.
func silent(s syscall.Conn) bool {
	raw, err := s.SyscallConn()
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
