package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
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
	ids := make(chan store.DueDelivery)
	for range 64 {
		callers.Go(func() {
			for d := range ids {
				w.must(w.db.Deliveries.FinishAttempt(b.Context(), store.Attempt{
					DeliveryID: d.ID, Row: d.Row, EndpointID: e.ID, Number: 1, At: past, Ended: past, Reason: "connect",
					Status: postern.DeliveryPending,
					DueAt:  past,
				}))
			}
		})
	}
	for _, d := range w.dueNow(e) {
		ids <- d
	}
	close(ids)
	callers.Wait()
	for _, from := range []postern.Time{0, now().Add(-clockSlack)} {
		b.Run(fmt.Sprintf("from=%d", from), func(b *testing.B) {
			for b.Loop() {
				if list, err := w.db.Deliveries.First(b.Context(), e.ID, store.Place{DueAt: from}, now(),
					batch); err != nil ||
					len(list) != 0 {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}

// BenchmarkIsolation is the time from an event to its arrival, 200 events a
// second to 100 tenants, of whom some have a receiver that hangs. Run it with
// -benchtime 6000x.
func BenchmarkIsolation(b *testing.B) {
	const tenants, pace = 100, 5 * time.Millisecond
	for _, hanging := range []int{0, 10, 50} {
		b.Run(fmt.Sprintf("hanging=%d", hanging), func(b *testing.B) {
			if b.N < tenants {
				return // the framework's trial run
			}
			w := newWorld(b)
			took := make(chan time.Duration, b.N)
			release := make(chan struct{})
			good := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				var e got
				json.NewDecoder(r.Body).Decode(&e.event)
				sent, _ := strconv.ParseInt(e.text(), 10, 64)
				took <- time.Duration(time.Now().UnixNano() - sent)
			}))
			defer good.Close()
			bad := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
			defer bad.Close()
			devices := make([]postern.Device, tenants)
			for i := range devices {
				w.newTenant()
				devices[i] = w.device
				url := good.URL
				if i < hanging {
					url = bad.URL
				}
				w.active(url, nil)
			}
			w.start(w.dispatcher(Options{Drain: time.Millisecond}))
			var all sync.WaitGroup
			healthy := 0
			for i := range b.N {
				w.device = devices[i%tenants]
				if i%tenants >= hanging {
					healthy++
				}
				in := w.inbound(strconv.FormatInt(time.Now().UnixNano(), 10))
				all.Go(func() { w.db.Messages.RecordInbound(context.Background(), in) })
				time.Sleep(pace)
			}
			all.Wait()
			list := make([]time.Duration, healthy)
			for i := range list {
				list[i] = <-took
			}
			slices.Sort(list)
			b.ReportMetric(float64(list[healthy/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(list[healthy*99/100].Microseconds())/1000, "p99-ms")
			close(release)
			w.stop()
		})
	}
}
