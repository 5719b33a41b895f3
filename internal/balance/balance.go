// Package balance is a small load balancer for several servers on one machine: for the demo, and for
// tests. It shows what Postern needs of a real one: it asks each server whether it is ready, and never
// tries a request again.
package balance

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Server is a server behind the balancer.
type Server struct {
	URL   string // where requests go
	Ready string // responds with 200 while the server accepts requests
}

// interval is how often servers are asked whether they are ready.
const interval = 100 * time.Millisecond

// idleConnections is how many connections to each server are kept.
const idleConnections = 200

// Balancer passes each request to the next of the servers that are ready.
type Balancer struct {
	servers func() []Server
	proxy   *httputil.ReverseProxy
	client  *http.Client
	turn    atomic.Uint64

	mu    sync.Mutex
	ready []string // addresses
}

// New returns a balancer for servers, which may change. It uses none until Run has asked them.
func New(servers func() []Server) *Balancer {
	b := &Balancer{servers: servers, client: &http.Client{Timeout: time.Second, Transport: &http.Transport{}}}
	b.proxy = &httputil.ReverseProxy{
		Transport:     &http.Transport{MaxIdleConnsPerHost: idleConnections},
		FlushInterval: -1, // streams
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(r.In.Context().Value(target{}).(*url.URL)) //nolint:errcheck,forcetypeassert // see ServeHTTP
			r.SetXForwarded()
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	return b
}

// target is the key of the server's address in the context of a request.
type target struct{}

// ServeHTTP passes a request on. It responds with 503 if no server is ready, and with 502 if the server
// does not respond.
func (b *Balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, err := url.Parse(b.next())
	if err != nil || to.Host == "" {
		http.Error(w, "no server is ready", http.StatusServiceUnavailable)
		return
	}
	b.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), target{}, to)))
}

// next returns the address of the next server; "" if none is ready.
func (b *Balancer) next() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return ""
	}
	return b.ready[b.turn.Add(1)%uint64(len(b.ready))]
}

// Uses reports whether requests are passed to the server with an address.
func (b *Balancer) Uses(address string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.ready {
		if r == address {
			return true
		}
	}
	return false
}

// Run asks the servers whether they are ready, again and again until ctx is done.
func (b *Balancer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		b.look(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

func (b *Balancer) look(ctx context.Context) {
	var ready []string
	for _, s := range b.servers() {
		if b.isReady(ctx, s) {
			ready = append(ready, s.URL)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = ready
}

func (b *Balancer) isReady(ctx context.Context, s Server) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Ready, http.NoBody)
	if err != nil {
		return false
	}
	res, err := b.client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}
