package balance

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// backend is a server that counts its requests, and is ready or not.
type backend struct {
	*httptest.Server

	hits  atomic.Int64
	ready atomic.Bool
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{}
	b.ready.Store(true)
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			if !b.ready.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return
		}
		b.hits.Add(1)
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(b.Close)
	return b
}

func TestRequestsGoToServersThatAreReady(t *testing.T) {
	t.Parallel()
	first, second := newBackend(t), newBackend(t)
	b := New(func() []Server {
		return []Server{{first.URL, first.URL + "/readyz"}, {second.URL, second.URL + "/readyz"}}
	})
	ask := func() int {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
		return w.Code
	}
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("before it knows any server, it responds with %d", got)
	}
	b.look(t.Context())
	for range 10 {
		if got := ask(); got != http.StatusOK {
			t.Errorf("it responds with %d", got)
		}
	}
	if a, b := first.hits.Load(), second.hits.Load(); a != 5 || b != 5 {
		t.Errorf("the servers got %d and %d of 10 requests", a, b)
	}
	second.ready.Store(false)
	b.look(t.Context())
	for range 10 {
		ask()
	}
	if n := second.hits.Load(); n != 5 || b.Uses(second.URL) || !b.Uses(first.URL) {
		t.Errorf("a server that is not ready got %d further requests", n-5)
	}
	first.Close()
	if got := ask(); got != http.StatusBadGateway {
		t.Errorf("for a server that is gone, it responds with %d", got)
	}
	b.look(t.Context())
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("without servers, it responds with %d", got)
	}
}
