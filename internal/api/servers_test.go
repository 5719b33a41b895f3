package api_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"postern/internal/gateway"
	"postern/internal/store"
	"postern/internal/store/migrated"
)

// starter starts what a suite makes its requests to.
type starter func(testing.TB, gateway.Sandbox) *server

// servings are a server with the embedded database, one with PostgreSQL, and three that share a PostgreSQL
// database and get the requests in turn.
func servings() map[string]starter {
	return map[string]starter{
		"sqlite":        newServerWith,
		"postgres":      func(tb testing.TB, box gateway.Sandbox) *server { return newServerOn(tb, migrated.URL(tb), box) },
		"three servers": newServers,
	}
}

// onEach runs a suite against servings.
func onEach(t *testing.T, list map[string]starter, test func(t *testing.T, start starter)) {
	t.Helper()
	t.Parallel()
	for name, start := range list {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start)
		})
	}
}

const manyServers = 3

// newServers makes servers that share a PostgreSQL database. The requests to the one that is returned go to
// each of them in turn.
func newServers(tb testing.TB, sandbox gateway.Sandbox) *server {
	tb.Helper()
	opts := store.Options{URL: migrated.URL(tb), Nodes: true}
	first := openServer(tb, opts, sandbox, nil)
	first.all = []*server{first}
	for len(first.all) < manyServers {
		first.all = append(first.all, openServer(tb, opts, sandbox, first.blobs))
	}
	first.handler = &spread{servers: first.all}
	return first
}

// spread gives requests to servers in turn, as a load balancer does.
type spread struct {
	servers []*server
	turn    atomic.Uint64
}

func (s *spread) next() *server { return s.servers[s.turn.Add(1)%uint64(len(s.servers))] }

func (s *spread) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.next().door.ServeHTTP(w, r) }

// next is the server whose turn it is, for what an engine does.
func (s *server) next() *server {
	if many, ok := s.handler.(*spread); ok {
		return many.next()
	}
	return s
}

// each does something with all servers.
func (s *server) each(do func(*server)) {
	if s.all == nil {
		do(s)
	}
	for _, one := range s.all {
		do(one)
	}
}
