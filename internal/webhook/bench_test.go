package webhook

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
)

// BenchmarkBacklog delivers what waits to receivers that answer at once, in the
// same process.
func BenchmarkBacklog(b *testing.B) {
	for _, tt := range []struct{ endpoints, inFlight int }{{1, 1}, {1, 8}, {1, 64}, {16, 8}} {
		b.Run(fmt.Sprintf("endpoints=%d/inFlight=%d", tt.endpoints, tt.inFlight), func(b *testing.B) {
			w := newWorld(b)
			var left atomic.Int64
			all := make(chan struct{})
			srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if left.Add(-1) == 0 {
					close(all)
				}
			}))
			defer srv.Close()
			for range tt.endpoints {
				w.active(srv.URL, func(e *postern.Endpoint) { e.MaxInFlight = tt.inFlight })
			}
			left.Store(int64(b.N))
			w.fill((b.N + tt.endpoints - 1) / tt.endpoints)
			b.ResetTimer()
			w.start(w.dispatcher(Options{}))
			<-all
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
			w.stop()
		})
	}
}

// fill records n events from many callers at once.
func (w *world) fill(n int) {
	var callers sync.WaitGroup
	var next atomic.Int64
	for range 64 {
		callers.Go(func() {
			for next.Add(1) <= int64(n) {
				if err := w.db.RecordInbound(w.t.Context(), w.inbound("hello")); err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	callers.Wait()
}

// BenchmarkLatency is the time from an event to its arrival, one at a time.
func BenchmarkLatency(b *testing.B) {
	w := newWorld(b)
	got := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got <- struct{}{} }))
	defer srv.Close()
	w.active(srv.URL, nil)
	w.start(w.dispatcher(Options{}))
	for b.Loop() {
		w.receive("hello")
		<-got
	}
	w.stop()
}

// BenchmarkOverdueRetries is the first look of a lane at an endpoint with a backlog of
// retries that are due.
func BenchmarkOverdueRetries(b *testing.B) {
	const backlog = 20_000
	w := newWorld(b)
	e := w.active("http://127.0.0.1:1", nil)
	w.fill(backlog)
	past := now().Add(-time.Hour)
	var callers sync.WaitGroup
	ids := make(chan postern.DeliveryID)
	for range 64 {
		callers.Go(func() {
			for id := range ids {
				w.must(w.db.FinishAttempt(b.Context(), store.Attempt{
					DeliveryID: id, EndpointID: e.ID, Number: 1, At: past, Ended: past, Reason: "connect", Status: postern.DeliveryPending, DueAt: past,
				}))
			}
		})
	}
	for _, d := range w.deliveries(e) {
		ids <- d.ID
	}
	close(ids)
	callers.Wait()
	for _, from := range []postern.Time{0, now().Add(-clockSlack)} {
		b.Run(fmt.Sprintf("from=%d", from), func(b *testing.B) {
			for b.Loop() {
				if list, err := w.db.FirstDeliveries(b.Context(), e.ID, from, now(), batch); err != nil || len(list) != 0 {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}
