package egress

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// dialed is a connection to a host that no exchange uses.
func (c *conns) dialed(t *testing.T, address string) *socket {
	t.Helper()
	if err := c.reserve(address); err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	s := newSocket(near, c, address)
	t.Cleanup(func() { s.Close(); far.Close() })
	c.connected(s)
	c.ready(s)
	return s
}

func TestLeastRecentlyUsedConnectionGoes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ perHost, perTenant int }{"host": {2, 9}, "tenant": {9, 3}} {
		c := newConns(tt.perHost, tt.perTenant, new(atomic.Int64))
		other, first, second := c.dialed(t, "b:1"), c.dialed(t, "a:1"), c.dialed(t, "a:1")
		c.begin(other)
		c.begin(first)
		c.end(first)
		third := c.dialed(t, "a:1")
		if !other.isOpen() || !first.isOpen() || second.isOpen() || !third.isOpen() {
			t.Errorf("%s: open are %v, %v, %v, %v", name, other.isOpen(), first.isOpen(), second.isOpen(),
				third.isOpen())
		}
		if c.begin(second) || c.total.Load() != 3 {
			t.Errorf("%s: an exchange began on a closed connection, or %d are open", name, c.total.Load())
		}
	}
}

func (s *socket) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.ended
}

// A connection for each exchange is allowed, and closed only when its exchange ends.
func TestConnectionsInUseAreNotClosed(t *testing.T) {
	t.Parallel()
	c := newConns(0, 0, new(atomic.Int64))
	var used []*socket
	for range 3 {
		c.enter("a:1")
		used = append(used, c.dialed(t, "a:1"))
	}
	for i, s := range used {
		c.begin(s)
		if !s.isOpen() {
			t.Errorf("connection %d was closed before its exchange", i)
		}
	}
	for i, s := range used {
		c.end(s)
		c.leave("a:1")
		if s.isOpen() {
			t.Errorf("connection %d was not closed after its exchange", i)
		}
	}
	if len(c.hosts) != 0 || c.all != (usage{}) || c.total.Load() != 0 {
		t.Errorf("%v is left", c.hosts)
	}
}

// A host that accepts connections and leaves them unfinished gets no more of them.
func TestDialsInProgressAreBounded(t *testing.T) {
	t.Parallel()
	c := newConns(2, 9, new(atomic.Int64))
	for range 2 {
		if err := c.reserve("a:1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.reserve("a:1"); reasonOf(err) != Connect {
		t.Errorf("a third dial: error %v, want connect", err)
	}
	if err := c.reserve("b:1"); err != nil {
		t.Errorf("another host: %v", err)
	}
	if n := c.total.Load(); n != 3 {
		t.Errorf("%d dials are counted, want 3", n)
	}
}

func TestAbandonedTransportMakesNoConnections(t *testing.T) {
	t.Parallel()
	h := newHost(t, ok)
	h.Start()
	c := newTestClient(t, Options{})
	p := c.pools.newPool("ws")
	p.close()
	if conn, err := p.dial(t.Context(), "tcp", h.Listener.Addr().String()); err == nil {
		t.Errorf("%v was made", conn)
	}
	if n := c.pools.open.Load(); n != 0 {
		t.Errorf("%d connections are counted, want none", n)
	}
}

// A connection that is closed because there are too many may have been chosen for an
// exchange at the same moment.
func TestExchangeOnAConnectionThatWasJustClosedIsRepeated(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*host){
		"http": func(h *host) { h.Start() }, "HTTP/2": func(h *host) { h.EnableHTTP2 = true; h.StartTLS() },
	} {
		var requests atomic.Int32
		h := newHost(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
		start(h)
		opts := Options{}
		if h.TLS != nil {
			opts.RootCAs = trusted(h.Server)
		}
		c := newTestClient(t, opts)
		var posts sync.WaitGroup
		for range 200 {
			c.mustPost(t, "ws", h.URL)
			posts.Go(c.pools.all["ws"].conns.closeIdle)
			posts.Go(func() { c.mustPost(t, "ws", h.URL) })
			posts.Wait()
		}
		if n := requests.Load(); n != 400 {
			t.Errorf("%s: 400 posts made %d requests", name, n)
		}
	}
}

// closeIdle closes all connections without an exchange.
func (c *conns) closeIdle() {
	c.mu.Lock()
	var list []*socket
	for s := range c.sockets {
		if s.exchanges == 0 && s.place != nil {
			c.forget(s)
			list = append(list, s)
		}
	}
	c.mu.Unlock()
	for _, s := range list {
		s.Close()
	}
}

// net/http may have more dials in progress than there are exchanges. An exchange that needs one
// more waits for the end of another instead of failing.
func TestDialsInProgressAreWaitedFor(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	c := NewClient(Options{AllowPrivate: true, MaxIdlePerHost: 1})
	t.Cleanup(c.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := c.pools.acquire("a")
	defer c.pools.release(p)
	const dials = 2 // one exchange and one more connection are allowed
	p.conns.count(addressOf(u), dials)
	done := make(chan error, 1)
	go func() {
		_, err := c.Post(t.Context(), "a", srv.URL, http.Header{}, nil)
		done <- err
	}()
	for !p.conns.hasWaiters() {
		select {
		case err := <-done:
			t.Fatalf("the exchange ended with %v, want it to wait", err)
		default:
			runtime.Gosched()
		}
	}
	p.conns.count(addressOf(u), -1)
	if err := <-done; err != nil {
		t.Errorf("after the end of a dial: %v", err)
	}
}

func (c *conns) hasWaiters() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved != nil
}
