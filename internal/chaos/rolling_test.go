package chaos_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/balance"
)

var (
	rolls = flag.Int("rolls", 1, "how often all servers are restarted, one after the other")
	rate  = flag.Int("rate", 100, "how many requests per second there are meanwhile")
)

// TestRollingRestartFailsNoRequest restarts the servers that share a database, one after the other, under
// load through a balancer. No request fails, and no message that was accepted stays behind.
func TestRollingRestartFailsNoRequest(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{
		Bin: bin, Devices: 6, Calm: true, Database: "postgres", Nodes: 3, Flags: []string{"--shutdown-delay", "2s"},
	})
	b := newBalancer(w)
	l := startStream(w, b.URL)
	for range *rolls {
		for _, n := range w.nodes {
			w.restart(n, b)
		}
	}
	l.end()
	t.Logf("%d requests while each of %d servers was restarted %d times", l.answered.Load(), len(w.nodes), *rolls)
	if l.answered.Load() == 0 {
		t.Error("there were no requests")
	}
	w.nothingFailed(l)
}

// restart stops a server, starts it again, and waits until the balancer uses it.
func (w *world) restart(n node, b *balancer) {
	w.t.Helper()
	if err := n.running().stop(patience(w.t)); err != nil {
		w.t.Errorf("a server's stop: %v", err)
	}
	n.serve("")
	w.bootNode(n.gateway)
	at, _ := n.where()
	w.await("the balancer to use the server", func() bool { return b.Uses(at) })
}

// balancer is a load balancer in front of all servers.
type balancer struct {
	*httptest.Server
	*balance.Balancer
}

func newBalancer(w *world) *balancer {
	b := balance.New(func() (list []balance.Server) {
		for _, g := range w.servers() {
			if at, _ := g.where(); at != "" {
				list = append(list, balance.Server{URL: at, Ready: g.readiness()})
			}
		}
		return list
	})
	ctx, stop := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	srv := httptest.NewServer(b)
	w.t.Cleanup(func() { stop(); running.Wait(); srv.Close() })
	for _, g := range w.servers() {
		at, _ := g.where()
		w.await("the balancer to use all servers", func() bool { return b.Uses(at) })
	}
	return &balancer{srv, b}
}

const requestsAtOnce = 200

// stream is a steady load of requests that must all be answered with 2xx.
type stream struct {
	w   *world
	at  string
	end func()

	answered atomic.Int64

	mu       sync.Mutex // guards what follows
	failed   []string
	accepted map[string]string // texts of messages, by id
	under    *sync.WaitGroup   // requests under way since the last lap
}

func startStream(w *world, at string) *stream {
	ctx, stop := context.WithCancel(w.t.Context())
	s := &stream{w: w, at: at, accepted: map[string]string{}, under: &sync.WaitGroup{}}
	var load sync.WaitGroup
	s.end = func() { stop(); load.Wait() }
	client := &http.Client{
		Timeout: patience(w.t), Transport: &http.Transport{MaxIdleConnsPerHost: requestsAtOnce},
	}
	places := make(room, requestsAtOnce)
	load.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(*rate))
		defer tick.Stop()
		for n := 0; places.enter(ctx); n++ {
			done := s.enter()
			load.Go(func() {
				defer places.leave()
				defer done()
				s.request(client, n)
			})
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return s
}

// request makes the request with a number: every third one sends a message.
func (s *stream) request(client *http.Client, n int) {
	d := s.w.devices[n%len(s.w.devices)]
	method, path, body := http.MethodGet, "/v1/messages?limit=5", ""
	switch n % 3 {
	case 0:
		method, path = http.MethodPost, "/v1/messages"
		text, _ := json.Marshal(map[string]string{
			"deviceId": d.id, "to": silent, "body": fmt.Sprint("message ", n), "whenDisconnected": "queue",
		})
		body = string(text)
	case 1:
		path = "/v1/devices/" + d.id
	}
	req, err := http.NewRequest(method, s.at+path, strings.NewReader(body))
	if err != nil {
		s.fail("%s %s: %v", method, path, err)
		return
	}
	req.Header = s.w.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		s.fail("%s %s: %v", method, path, err)
		return
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 {
		s.fail("%s %s: %s %s (%v)", method, path, res.Status, text, err)
		return
	}
	s.answered.Add(1)
	if n%3 == 0 {
		s.accept(text)
	}
}

// accept notes a message by the answer to its request.
func (s *stream) accept(answer []byte) {
	var m struct{ ID, Body string }
	if err := json.Unmarshal(answer, &m); err != nil || m.ID == "" {
		s.fail("the answer to a message: %s", answer)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted[m.ID] = m.Body
}

// enter counts a request that is under way until done is called.
func (s *stream) enter() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under.Add(1)
	return s.under.Done
}

// lap waits until all requests that have begun are answered, while others go on.
func (s *stream) lap() {
	s.mu.Lock()
	under := s.under
	s.under = &sync.WaitGroup{}
	s.mu.Unlock()
	under.Wait()
}

// more waits for a second's requests, and returns how many have been answered.
func (s *stream) more(w *world) int64 {
	w.t.Helper()
	enough := s.answered.Load() + int64(*rate)
	w.await("requests", func() bool { return s.answered.Load() >= enough })
	return s.answered.Load()
}

func (s *stream) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, fmt.Sprintf(format, args...))
}
