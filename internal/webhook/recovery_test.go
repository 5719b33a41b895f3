package webhook

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"

	"github.com/prometheus/client_golang/prometheus"
)

// mostAtOnce counts the posts under way.
type mostAtOnce struct {
	mu        sync.Mutex
	now, most int
}

func (m *mostAtOnce) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now += n
	m.most = max(m.most, m.now)
}

// count returns how many deliveries of an endpoint have a status.
func (w *world) count(e postern.Endpoint, status postern.DeliveryStatus) (n int) {
	w.t.Helper()
	for _, d := range w.deliveries(e) {
		if d.Status == status {
			n++
		}
	}
	return n
}

// In this file all times and sleeps are those of synctest's clock, which moves only when every goroutine
// of the test waits: a sleep takes no time, and a slow machine changes nothing.

func TestBacklogOfAnOutageIsDeliveredWhenItEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events                int
		every, outage, within time.Duration
	}{
		"one event":            {1, 0, time.Minute, 10 * time.Second},
		"a minute":             {100, 500 * time.Millisecond, time.Minute, 10 * time.Second},
		"a minute, at once":    {100, 0, time.Minute, 10 * time.Second},
		"ten minutes":          {300, 2 * time.Second, 10 * time.Minute, 30 * time.Second},
		"ten minutes, at once": {1000, 0, 10 * time.Minute, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				e := w.active("https://example.com", func(e *postern.Endpoint) { e.MaxInFlight = 8 })
				var up atomic.Bool
				var posts mostAtOnce
				f := &fakePost{answer: func(ctx context.Context, n int) (egress.Answer, error) {
					posts.add(1)
					defer posts.add(-1)
					time.Sleep(20 * time.Millisecond)
					if up.Load() {
						return egress.Answer{Status: 200}, nil
					}
					return refuse(ctx, n)
				}}
				d := w.dispatcher(Options{})
				d.post = f.post
				w.start(d)
				began := time.Now()
				if c.every == 0 {
					w.fill(c.events)
				} else {
					for range c.events {
						w.receive("waits")
						time.Sleep(c.every)
					}
				}
				time.Sleep(c.outage - time.Since(began))
				up.Store(true)
				back := time.Now()
				f.restart()
				time.Sleep(c.within)
				synctest.Wait()
				times := f.times()
				arrived := w.count(e, postern.DeliverySucceeded)
				if arrived != c.events || len(times) == 0 {
					t.Fatalf("%d of %d events arrived within %s", arrived, c.events, c.within)
				}
				if posts.most > 8 {
					t.Errorf("%d posts at once", posts.most)
				}
				t.Logf("the first post after %s, the last %s after it", f.began.Sub(back), times[len(times)-1])
				w.stop()
			})
		})
	}
}

// An endpoint refuses some events and accepts the others: what it refuses is posted at most twice as
// often as the schedule says.
func TestRefusedEventsAreNotHastenedAgainAndAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", func(e *postern.Endpoint) { e.MaxInFlight = 8 })
		d := w.dispatcher(Options{})
		var refused atomic.Int64
		d.post = func(ctx context.Context, _, _ string, _ http.Header, body []byte) (egress.Answer, error) {
			if bytes.Contains(body, []byte("refused")) {
				refused.Add(1)
				return refuse(ctx, 0)
			}
			return egress.Answer{Status: 200}, nil
		}
		w.start(d)
		const events = 20
		for range events {
			w.receive("refused")
		}
		const attempts = 8 // that the schedule makes in six hours
		for range 6 * 60 {
			time.Sleep(time.Minute)
			w.receive("accepted")
		}
		synctest.Wait()
		if n := refused.Load(); n > 2*attempts*events {
			t.Errorf("%d attempts of %d events that are refused", n, events)
		}
		if n := w.count(e, postern.DeliveryExhausted); n > 0 {
			t.Errorf("%d deliveries are exhausted", n)
		}
		w.stop()
	})
}

func TestRefusedEventsDoNotHoldUpARecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", func(e *postern.Endpoint) { e.MaxInFlight = 8 })
		d := w.dispatcher(Options{})
		var up atomic.Bool
		var posts atomic.Int64
		d.post = func(ctx context.Context, _, _ string, _ http.Header, body []byte) (egress.Answer, error) {
			time.Sleep(20 * time.Millisecond)
			if !up.Load() {
				return refuse(ctx, 0)
			}
			posts.Add(1)
			if bytes.Contains(body, []byte("refused")) {
				return refuse(ctx, 0)
			}
			return egress.Answer{Status: 200}, nil
		}
		w.start(d)
		const refused, accepted = 3, 300
		for range refused {
			w.receive("refused")
		}
		time.Sleep(40 * time.Minute)
		w.fill(accepted)
		time.Sleep(15 * time.Minute)
		up.Store(true)
		time.Sleep((refused + 1) * maxProbe) // each of the refused may be the next probe
		synctest.Wait()
		waiting := w.count(e, postern.DeliveryPending)
		if n := posts.Load(); waiting != refused || n > accepted+5*refused {
			t.Errorf("%d deliveries wait after %d posts", waiting, n)
		}
		w.stop()
	})
}

func TestReceiverThatAskedForAPauseIsNotProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.active("https://example.com", nil)
		f := &fakePost{answer: func(context.Context, int) (egress.Answer, error) {
			return egress.Answer{Status: 503, RetryAfter: time.Hour}, failure("status")
		}}
		d := w.dispatcher(Options{})
		d.post = f.post
		w.start(d)
		for range 4 {
			w.receive("waits")
			time.Sleep(5 * time.Second)
		}
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if n := len(f.times()); n != 4 {
			t.Errorf("%d posts of 4 events, whose receiver asked for an hour", n)
		}
		w.stop()
	})
}

// verify verifies an active endpoint again.
func (w *world) verify(e postern.Endpoint) {
	w.t.Helper()
	_, err := w.db.Endpoints.Change(w.t.Context(), e.WorkspaceID, e.ID, nil, func(e *postern.Endpoint) error {
		e.Status, e.DueAt = postern.EndpointPending, now().Add(time.Hour)
		return nil
	})
	w.must(err)
	w.must(w.db.Endpoints.Activate(w.t.Context(), e.ID, now()))
	got, err := w.db.Endpoints.Get(w.t.Context(), e.WorkspaceID, e.ID)
	if w.must(err); got.Status != postern.EndpointActive {
		w.t.Fatalf("the endpoint is %+v", got)
	}
}

// An endpoint that was verified and still fails is not posted to without a pause.
func TestVerifiedEndpointThatStillFailsIsSpared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		f := &fakePost{answer: refuse}
		d := w.dispatcher(Options{})
		d.post = f.post
		w.start(d)
		w.fill(10)
		time.Sleep(10 * time.Hour)
		w.verify(e)
		f.restart()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := len(f.times()); n == 0 || n > 200 {
			t.Errorf("%d posts within ten minutes", n)
		}
		w.stop()
	})
}

// An endpoint that was verified and for which nothing waits needs no worker.
func TestVerifiedEndpointWithoutABacklogRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		reg := prometheus.NewRegistry()
		d := w.dispatcher(Options{Registerer: reg})
		d.post = (&fakePost{answer: refuse}).post
		w.start(d)
		w.fill(10)
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		if n := w.count(e, postern.DeliveryExhausted); n != 10 {
			t.Fatalf("%d of 10 deliveries are exhausted", n)
		}
		w.verify(e)
		time.Sleep(4 * linger)
		synctest.Wait()
		if n := gathered(t, reg)["postern_webhook_lanes"]; n != 0 {
			t.Errorf("%v endpoints are worked for", n)
		}
		w.stop()
	})
}

// An endpoint that was down for hours is verified again: what waits for it arrives then, and not hours later.
func TestVerifiedEndpointRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		var up atomic.Bool
		d := w.dispatcher(Options{})
		d.post = (&fakePost{answer: whileUp(&up)}).post
		w.start(d)
		w.fill(100)
		time.Sleep(10 * time.Hour)
		up.Store(true)
		w.verify(e)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := w.count(e, postern.DeliverySucceeded); n != 100 {
			t.Errorf("%d of 100 events arrived", n)
		}
		w.stop()
	})
}

// Somebody asks for attempts again and again: they are not those of the schedule, so the delivery is not given up.
func TestRetriesByHandDoNotUseUpTheSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		d := w.dispatcher(Options{})
		d.post = (&fakePost{answer: refuse}).post
		w.start(d)
		w.receive("to no one")
		for range 2 * maxAttempts {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			one := w.deliveries(e)[0]
			if one.Status != postern.DeliveryPending {
				t.Fatalf("after %d attempts, the delivery is %s", one.Attempts, one.Status)
			}
			_, err := w.db.Deliveries.Retry(t.Context(), e.WorkspaceID, one.ID, now(), nil)
			w.must(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := w.deliveries(e)[0]; got.Status != postern.DeliveryPending || got.Attempts <= 2*maxAttempts {
			t.Errorf("the delivery is %+v", got)
		}
		w.stop()
	})
}
