package egress

import (
	"container/list"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// conns are the open connections of one tenant. There are at most as many as running
// exchanges, and perHost more for each host and perTenant more for all of them. Beyond
// that, connections without an exchange are closed, the least recently used first.
// net/http has such limits only for HTTP/1.
type conns struct {
	perHost, perTenant int
	unlimited          bool          // neither connections nor the bytes that hosts send are limited
	total              *atomic.Int64 // open connections of all tenants

	mu        sync.Mutex
	hosts     map[string]*usage    // by address; only those with an exchange or a connection
	all       usage                // of all hosts
	sockets   map[*socket]struct{} // open connections, without dials in progress
	order     list.List            // *socket: those that exchanges may use, by when the last one ended, oldest first
	abandoned bool                 // the tenant's transport is no longer used
	moved     chan struct{}        // closed when a dial or an exchange ends; nil if nobody waits for that
}

// usage counts what a host or a tenant uses.
type usage struct {
	exchanges int // running exchanges
	open      int // open connections and dials in progress
}

var errTooMany = errors.New("too many connections to the host are still being made")

func newConns(perHost, perTenant int, total *atomic.Int64) *conns {
	return &conns{
		perHost: perHost, perTenant: perTenant, total: total,
		hosts: map[string]*usage{}, sockets: map[*socket]struct{}{},
	}
}

// enter counts an exchange with a host. The caller must leave afterwards.
func (c *conns) enter(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.host(address).exchanges++
	c.all.exchanges++
}

// leave ends an exchange and closes connections while a limit is exceeded.
func (c *conns) leave(address string) {
	c.mu.Lock()
	c.host(address).exchanges--
	c.all.exchanges--
	c.tidy(address)
	c.mu.Unlock()
	c.trim(address)
}

// reserve counts a dial. Beyond a limit it closes a connection, or returns an error if
// all other connections are in use or still being made.
func (c *conns) reserve(address string) error {
	c.count(address, 1)
	if c.trim(address) {
		return nil
	}
	c.count(address, -1)
	return &Error{Connect, errTooMany}
}

// wait returns a channel that is closed when the next dial or exchange ends.
func (c *conns) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moved == nil {
		c.moved = make(chan struct{})
	}
	return c.moved
}

// move wakes those who wait. The caller holds the lock.
func (c *conns) move() {
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
}

// count adds n dials or connections.
func (c *conns) count(address string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(address, n)
}

// add is count for a caller that holds the lock.
func (c *conns) add(address string, n int) {
	c.host(address).open += n
	c.all.open += n
	c.total.Add(int64(n))
	c.tidy(address)
	if n < 0 {
		c.move()
	}
}

// host returns the usage of a host. The caller holds the lock.
func (c *conns) host(address string) *usage {
	h := c.hosts[address]
	if h == nil {
		h = &usage{}
		c.hosts[address] = h
	}
	return h
}

// tidy forgets a host that is not used. The caller holds the lock.
func (c *conns) tidy(address string) {
	if h := c.hosts[address]; h != nil && *h == (usage{}) {
		delete(c.hosts, address)
	}
}

// trim closes connections while a limit is exceeded. It reports whether all limits are
// kept.
func (c *conns) trim(address string) bool {
	for {
		over, s := c.excess(address)
		if s == nil {
			return !over
		}
		_ = s.Close() // the socket is closed even if this fails
	}
}

// excess reports whether a limit is exceeded, and removes and returns the next
// connection to close.
func (c *conns) excess(address string) (over bool, s *socket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.host(address)
	defer c.tidy(address)
	host := h.open > h.exchanges+c.perHost
	if c.unlimited || !host && c.all.open <= c.all.exchanges+c.perTenant {
		return false, nil
	}
	for e := c.order.Front(); e != nil; e = e.Next() {
		if s := socketOf(e); s.exchanges == 0 && (!host || s.address == address) {
			c.forget(s)
			return true, s
		}
	}
	return true, nil
}

func socketOf(e *list.Element) *socket {
	return e.Value.(*socket) //nolint:errcheck,forcetypeassert // the list holds only this type
}

// connected stores the connection that a dial made. It returns false if the
// connection must be closed because the tenant's transport is no longer used.
func (c *conns) connected(s *socket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sockets[s] = struct{}{}
	return !c.abandoned
}

// ready marks a connection as usable for exchanges.
func (c *conns) ready(s *socket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.sockets[s]; open {
		s.place = c.order.PushBack(s)
		c.move()
	}
}

// begin counts an exchange that uses a connection. It returns false if the connection
// is already closed.
func (c *conns) begin(s *socket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.exchanges++
	s.allow(s.exchanges)
	_, open := c.sockets[s]
	return open
}

// end ends an exchange that began.
func (c *conns) end(s *socket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.exchanges--
	s.allow(s.exchanges)
	if s.place != nil {
		c.order.MoveToBack(s.place)
	}
	c.move()
}

// closed removes a connection that was closed.
func (c *conns) closed(s *socket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(s)
}

// forget removes a connection. The caller holds the lock.
func (c *conns) forget(s *socket) {
	if _, open := c.sockets[s]; !open {
		return
	}
	delete(c.sockets, s)
	if s.place != nil {
		c.order.Remove(s.place)
		s.place = nil
	}
	c.add(s.address, -1)
}

func (c *conns) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sockets)
}

// abandon closes all connections, and those whose dials are in progress as soon as
// they are made.
func (c *conns) abandon() {
	c.mu.Lock()
	c.abandoned = true
	open := slices.Collect(maps.Keys(c.sockets))
	c.mu.Unlock()
	for _, s := range open {
		_ = s.Close() // the socket is closed even if this fails
	}
}
