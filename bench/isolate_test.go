package bench

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

const (
	tenants   = 100
	hanging   = 10
	perTick   = 200 // events per second over all endpoints
	watched   = 20 * time.Second
	flooding  = 50_000 // events, recorded as fast as possible while the others are measured
	floodedBy = 50     // devices, each of which delivers the next event when the last is on disk, as a session does
)

// isolate measures what a misbehaving endpoint or workspace costs the others.
func isolate(t *testing.T) []figure {
	hang := figure{
		name: "p99 of 90 healthy endpoints beside 10 that hang", unit: "µs", ceiling: 1.5,
		extra: "commit to receipt, 200 events/s over 100 workspaces; bare: none hangs",
	}
	flood := figure{
		name: "p99 beside a workspace that floods 50,000 events", unit: "µs", ceiling: 1.5,
		extra: "commit to receipt, 200 events/s over 99 workspaces; 50 devices flood as fast as they can; bare: nobody floods",
	}
	for range rounds {
		hang.bare = append(hang.bare, neighbours(t, nil, false))
		hang.ours = append(hang.ours, neighbours(t, hangs, false))
		flood.bare = append(flood.bare, hang.bare[len(hang.bare)-1])
		flood.ours = append(flood.ours, neighbours(t, nil, true))
	}
	return []figure{hang, flood}
}

// hangs reports whether an endpoint never answers.
func hangs(n int) bool { return n < hanging }

// town is a store with many workspaces, each with one endpoint, and a receiver
// for all of them.
type town struct {
	db      *store.Store
	homes   []*backlog
	arrived chan receipt
	release chan struct{}
}

func newTown(t *testing.T, sick func(int) bool) *town {
	t.Helper()
	w := &town{arrived: make(chan receipt, 100_000), release: make(chan struct{})}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			<-w.release
			return
		}
		got := receipt{at: time.Now()}
		var e struct{ Message struct{ ID string } }
		if err := json.NewDecoder(r.Body).Decode(&e); err == nil {
			got.id = e.Message.ID
		}
		if r.URL.Path == "/watched" {
			w.arrived <- got
		}
	}))
	var err error
	if w.db, err = store.Open(t.Context(), store.Options{Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close(); w.db.Close() })
	box, err := seal.NewBox(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	for n := range tenants {
		path := "/watched"
		if sick != nil && sick(n) {
			path = "/hang"
		}
		w.homes = append(w.homes, settle(t, w.db, box, srv.URL+path, 8))
	}
	return w
}

// neighbours returns the 99th percentile of the time from the start of the commit to the
// receipt, in microseconds, for the healthy endpoints.
func neighbours(t *testing.T, sick func(int) bool, flood bool) float64 {
	t.Helper()
	w := newTown(t, sick)
	stop := w.homes[0].dispatch(t, false)
	defer stop()
	defer close(w.release)
	ctx, cancel := context.WithCancel(t.Context())
	var flooder sync.WaitGroup
	defer flooder.Wait()
	defer cancel()
	first := 0 // of the homes that are measured
	if flood {
		first = 1 // the first home floods
		flooder.Go(func() { w.flood(ctx, t) })
	}
	begun, healthy := w.pace(t, first, sick)
	var waits []float64
	for len(waits) < healthy {
		got := <-w.arrived
		at, ok := begun.Load(got.id)
		if !ok {
			continue // part of the flood
		}
		waits = append(waits, float64(got.at.Sub(at.(time.Time)).Microseconds()))
	}
	slices.Sort(waits)
	return waits[len(waits)*99/100]
}

// flood records events of one workspace, and returns how many.
func (w *town) flood(ctx context.Context, t *testing.T) {
	var taken atomic.Int64
	var group sync.WaitGroup
	for range floodedBy {
		group.Go(func() {
			for ctx.Err() == nil && taken.Add(1) <= flooding {
				if _, err := w.homes[0].receive(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("flood: %v", err)
				}
			}
		})
	}
	group.Wait()
	t.Logf("of the flood %d were taken", min(taken.Load(), flooding))
}

// pace records events at fixed times, in turn over the homes, and stores when it began
// each one that will arrive.
func (w *town) pace(t *testing.T, first int, sick func(int) bool) (begun *sync.Map, healthy int) {
	begun = &sync.Map{}
	tick := time.NewTicker(time.Second / perTick)
	defer tick.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	for i := range int(watched.Seconds() * perTick) {
		<-tick.C
		n := first + i%(tenants-first)
		if sick == nil || !sick(n) {
			healthy++
		}
		group.Go(func() {
			at := time.Now()
			id, err := w.homes[n].receiveAs(t.Context(), func(id postern.MessageID) { begun.Store(string(id), at) })
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	return begun, healthy
}
