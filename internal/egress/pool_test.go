package egress

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// host is a server that counts its connections.
type host struct {
	*httptest.Server
	opened, closed atomic.Int32
	changed        chan struct{} // a connection was closed
}

func newHost(t *testing.T, answer http.HandlerFunc) *host {
	t.Helper()
	h := &host{Server: httptest.NewUnstartedServer(answer), changed: make(chan struct{}, 1000)}
	h.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			h.opened.Add(1)
		case http.StateClosed:
			h.closed.Add(1)
			h.changed <- struct{}{}
		}
	}
	t.Cleanup(h.Close)
	return h
}

func ok(http.ResponseWriter, *http.Request) {}

func (c *Client) mustPost(t *testing.T, tenant, url string) Answer {
	t.Helper()
	a, err := c.Post(t.Context(), tenant, url, nil, []byte("{}"))
	if err != nil {
		t.Fatalf("post of %s: %v", tenant, err)
	}
	return a
}

func TestTenantsShareNoConnection(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*host){
		"http":   func(h *host) { h.Start() },
		"https":  func(h *host) { h.StartTLS() },
		"HTTP/2": func(h *host) { h.EnableHTTP2 = true; h.StartTLS() },
	} {
		var mu sync.Mutex
		from := map[string]string{} // the address of a connection → who came on it
		h := newHost(t, func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			tenant := r.Header.Get("X-Tenant")
			if other := from[r.RemoteAddr]; other != "" && other != tenant {
				t.Errorf("%s: %s came on a connection of %s", name, tenant, other)
			}
			from[r.RemoteAddr] = tenant
		})
		start(h)
		opts := Options{}
		if h.TLS != nil {
			opts.RootCAs = trusted(h.Server)
		}
		c := newTestClient(t, opts)
		for range 5 {
			for _, tenant := range []string{"a", "b", "c"} {
				header := http.Header{"X-Tenant": {tenant}}
				if _, err := c.Post(t.Context(), tenant, h.URL, header, []byte("{}")); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := h.opened.Load(); n != 3 {
			t.Errorf("%s: 5 posts each of 3 tenants opened %d connections, want 3", name, n)
		}
	}
}

func TestUnusedTransportsAreClosed(t *testing.T) {
	t.Parallel()
	h := newHost(t, ok)
	h.Start()
	c := newTestClient(t, Options{})
	c.mustPost(t, "ws", h.URL)
	c.pools.expire()
	c.mustPost(t, "ws", h.URL)
	if n := h.opened.Load(); n != 1 {
		t.Fatalf("%d connections were opened: one that was just used was closed", n)
	}
	c.age()
	c.pools.expire()
	<-h.changed
	if n := len(c.pools.all); n != 0 || c.pools.idle.Len() != 0 || c.pools.open.Load() != 0 || c.pools.sweep != nil {
		t.Errorf("%d transports are left, with %d connections", n, c.pools.open.Load())
	}
}

// age makes all transports look as if they had not been used for long.
func (c *Client) age() {
	c.pools.mu.Lock()
	defer c.pools.mu.Unlock()
	for _, p := range c.pools.all {
		p.used = p.used.Add(-idleTimeout)
	}
}

// Of too many transports, or too many connections, those go that were used least
// recently.
func TestLeastRecentlyUsedTransportGoes(t *testing.T) {
	t.Parallel()
	for name, bound := range map[string]func(*pools){
		"transports":  func(p *pools) { p.maxPools = 2 },
		"connections": func(p *pools) { p.maxIdle = 2 },
	} {
		h := newHost(t, ok)
		h.Start()
		c := newTestClient(t, Options{})
		bound(c.pools)
		for _, tenant := range []string{"a", "b", "a", "c"} {
			c.mustPost(t, tenant, h.URL)
		}
		<-h.changed
		if c.pools.all["a"] == nil || c.pools.all["b"] != nil || c.pools.all["c"] == nil || c.pools.open.Load() != 2 {
			t.Errorf("too many %s: %v are left with %d connections", name, c.pools.all, c.pools.open.Load())
		}
	}
}

// A transport whose connections are all closed is not what makes room for others.
func TestTransportWithoutConnectionsStaysWhenThereAreTooManyConnections(t *testing.T) {
	t.Parallel()
	closing := newHost(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	closing.Start()
	h := newHost(t, ok)
	h.Start()
	c := newTestClient(t, Options{})
	c.pools.maxIdle = 1
	c.mustPost(t, "none", closing.URL)
	<-closing.changed
	c.mustPost(t, "a", h.URL)
	c.mustPost(t, "b", h.URL)
	<-h.changed
	if c.pools.all["none"] == nil || c.pools.all["a"] != nil || c.pools.all["b"] == nil {
		t.Errorf("%v are left", c.pools.all)
	}
}

func TestTransportInUseIsNotClosed(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	h := newHost(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(arrived)
			<-release
		}
	})
	h.Start()
	c := newTestClient(t, Options{})
	c.pools.maxIdle, c.pools.maxPools = 0, 0
	ended := make(chan error)
	go func() {
		_, err := c.Post(t.Context(), "slow", h.URL+"/slow", nil, []byte("{}"))
		ended <- err
	}()
	<-arrived
	c.mustPost(t, "other", h.URL)
	c.Close()
	if c.pools.all["slow"] == nil {
		t.Error("a transport that is in use was forgotten")
	}
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("an exchange was cut off: %v", err)
	}
	if n := len(c.pools.all); n != 0 {
		t.Errorf("%d transports are left, want none", n)
	}
}

func TestClientIsClosedDuringTheFirstExchange(t *testing.T) {
	t.Parallel()
	var c *Client
	h := newHost(t, func(http.ResponseWriter, *http.Request) { c.Close() })
	h.Start()
	c = newTestClient(t, Options{})
	c.mustPost(t, "ws", h.URL)
}

// A host may take requests on connections that it has answered before, and close
// them. Such a request is sent once more, on a new connection.
func TestRequestIsSentOnceMoreOnANewConnection(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		all  bool // connections are closed, not only those that were answered before
		want Reason
	}{"those answered before": {false, ""}, "all": {true, Reset}} {
		h := &closer{all: tt.all, together: make(chan struct{}, 4), answer: make(chan struct{})}
		srv := newHost(t, h.ServeHTTP)
		srv.Start()
		c := newTestClient(t, Options{})
		var posts sync.WaitGroup
		for range cap(h.together) {
			posts.Go(func() { c.Post(t.Context(), "ws", srv.URL, nil, []byte("{}")) })
		}
		for range cap(h.together) {
			<-h.together
		}
		close(h.answer)
		posts.Wait()
		h.closing.Store(true)
		_, err := c.Post(t.Context(), "ws", srv.URL, nil, []byte("{}"))
		if n := h.later.Load(); reasonOf(err) != tt.want || n != 2 {
			t.Errorf("%s are closed: the request was sent %d times, error %v, want 2 and %q", name, n, err, tt.want)
		}
	}
}

// closer answers requests once there are some together. From a moment on, it
// closes the connections on which they came, or all.
type closer struct {
	together chan struct{}
	answer   chan struct{}
	closing  atomic.Bool
	all      bool
	known    sync.Map     // addresses of connections
	later    atomic.Int32 // requests since it closes
}

func (h *closer) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	if !h.closing.Load() {
		h.known.Store(r.RemoteAddr, true)
		h.together <- struct{}{}
		<-h.answer
		return
	}
	h.later.Add(1)
	if _, known := h.known.Load(r.RemoteAddr); known || h.all {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
}
