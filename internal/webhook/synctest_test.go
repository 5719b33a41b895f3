package webhook

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
)

// fakePost answers in place of the network, which a bubble cannot have.
type fakePost struct {
	mu     sync.Mutex
	began  time.Time
	at     []time.Duration // of each POST, since the first
	answer func(ctx context.Context, n int) (egress.Answer, error)
}

func (f *fakePost) post(ctx context.Context, _, _ string, h http.Header, body []byte) (egress.Answer, error) {
	f.mu.Lock()
	if f.began.IsZero() {
		f.began = time.Now()
	}
	f.at = append(f.at, time.Since(f.began))
	n := len(f.at)
	f.mu.Unlock()
	return f.answer(ctx, n)
}

// restart counts and times from the next POST on.
func (f *fakePost) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began, f.at = time.Time{}, nil
}

func (f *fakePost) times() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.at)
}

func refuse(context.Context, int) (egress.Answer, error) {
	return egress.Answer{Status: 500}, failure("status")
}

// whileUp accepts what is posted while up is set, and refuses it otherwise.
func whileUp(up *atomic.Bool) func(context.Context, int) (egress.Answer, error) {
	return func(ctx context.Context, n int) (egress.Answer, error) {
		if up.Load() {
			return egress.Answer{Status: 200}, nil
		}
		return refuse(ctx, n)
	}
}

func TestDeadReceiverIsTriedForThreeDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		f := &fakePost{answer: refuse}
		d := w.dispatcher(Options{})
		d.post, d.jitter = f.post, func() float64 { return .5 }
		w.start(d)
		w.receive("to no one")
		time.Sleep(100 * time.Hour) // the bubble's clock
		synctest.Wait()
		made := followsSchedule(t, f.times())
		got := w.deliveries(e)[0]
		if got.Status != postern.DeliveryExhausted || got.Attempts != made || got.LastReason != "status" ||
			got.CompletedAt == 0 {
			t.Errorf("delivery = %+v", got)
		}
		w.stop()
	})
}

func TestRetryByHandFollowsTheScheduleAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		var up atomic.Bool
		f := &fakePost{answer: whileUp(&up)}
		d := w.dispatcher(Options{})
		d.post, d.jitter = f.post, func() float64 { return .5 }
		w.start(d)
		w.receive("to no one")
		time.Sleep(100 * time.Hour) // the bubble's clock
		synctest.Wait()
		made := followsSchedule(t, f.times())
		first := w.deliveries(e)[0]
		if first.Status != postern.DeliveryExhausted || first.Attempts != made {
			t.Fatalf("delivery = %+v", first)
		}
		up.Store(true)
		w.receive("to someone") // the endpoint is not failing for five days at a stretch
		time.Sleep(time.Second)
		synctest.Wait()
		up.Store(false)
		f.restart()
		_, err := w.db.Deliveries.Retry(t.Context(), e.WorkspaceID, first.ID, now(), nil)
		w.must(err)
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		made += followsSchedule(t, f.times())
		if got := w.deliveries(e)[0]; got.Status != postern.DeliveryExhausted || got.Attempts != made {
			t.Errorf("delivery = %+v, want it exhausted after %d", got, made)
		}
		log, err := w.db.Deliveries.Attempts(t.Context(), e.WorkspaceID, first.ID)
		if err != nil || len(log) == 0 || log[0].Number != made {
			t.Errorf("the log has %d attempts (%v)", len(log), err)
		}
		w.stop()
	})
}

// followsSchedule checks the times of attempts of an event that never arrives, without jitter, and
// returns how many there are. In the first hour, there are probes between those of the schedule.
func followsSchedule(t *testing.T, times []time.Duration) int {
	t.Helper()
	n := slices.IndexFunc(times, func(at time.Duration) bool { return at > time.Hour+time.Minute })
	if n < 4 || !closeTo(t, times[:3], []string{"0s", "5s", "35s"}) {
		t.Fatalf("attempts at %v", times)
	}
	for i := 3; i < n; i++ {
		if gap := times[i] - times[i-1]; gap < minProbe || gap > maxProbe+time.Second {
			t.Errorf("a probe at %s, %s after the attempt before", times[i], gap)
		}
	}
	var gaps []time.Duration
	for i := n; i < len(times); i++ {
		gaps = append(gaps, times[i]-times[i-1])
	}
	if !closeTo(t, gaps, []string{"2m", "10m", "30m", "1h", "3h", "6h", "12h", "24h", "24h"}) {
		t.Errorf("after the probes, the gaps are %v", gaps)
	}
	return len(times)
}

// closeTo allows for times being cut to milliseconds.
func closeTo(t *testing.T, got []time.Duration, want []string) bool {
	t.Helper()
	if len(got) != len(want) {
		return false
	}
	for i, text := range want {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := got[i] - d; diff < -50*time.Millisecond || diff > 50*time.Millisecond {
			return false
		}
	}
	return true
}

func TestEndpointThatFailsForFiveDaysIsDisabled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		f := &fakePost{answer: refuse}
		d := w.dispatcher(Options{})
		d.post = f.post
		w.start(d)
		for range 6 {
			w.receive("a day's event")
			time.Sleep(24 * time.Hour)
		}
		synctest.Wait()
		got, err := w.db.Endpoints.ForDelivery(t.Context(), e.ID)
		if err != nil || got.Status != postern.EndpointDisabled || got.StatusReason != "failing" {
			t.Errorf("endpoint is %s (%q, %v)", got.Status, got.StatusReason, err)
		}
		w.stop()
	})
}

func TestHandshakeTriesKeepTheirTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.endpoint("https://example.com", nil)
		f := &fakePost{answer: func(ctx context.Context, _ int) (egress.Answer, error) {
			<-ctx.Done() // it hangs, to the handshake's own time-out
			return egress.Answer{}, failure("timeout")
		}}
		d := w.dispatcher(Options{})
		d.post = f.post
		w.start(d)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got, want := f.times(), []string{"0s", "10s", "20s", "1m", "10m"}; len(got) != postern.HandshakeTries ||
			!closeTo(t, got, want) {
			t.Errorf("tries at %v, want %v", got, want)
		}
		got, err := w.db.Endpoints.ForDelivery(t.Context(), e.ID)
		if err != nil || got.Status != postern.EndpointFailed || got.StatusReason != "timeout" {
			t.Errorf("endpoint is %s (%q, %v)", got.Status, got.StatusReason, err)
		}
		w.stop()
	})
}

func TestIdleLaneEndsAndATimerBringsItBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.active("https://example.com", nil)
		f := &fakePost{answer: func(_ context.Context, n int) (egress.Answer, error) {
			if n == 1 {
				return egress.Answer{Status: 503, RetryAfter: time.Hour}, failure("status")
			}
			return egress.Answer{Status: 200}, nil
		}}
		d := w.dispatcher(Options{})
		d.post = f.post
		r := d.newRun()
		defer r.close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.receive("one")
		r.once(ctx, ctx) // the timer of handshakes, or the delivery
		r.once(ctx, ctx)
		if len(r.lanes) != 1 {
			t.Fatalf("%d lanes, want 1", len(r.lanes))
		}
		r.once(ctx, ctx) // the end of the lane
		if len(r.lanes) != 0 || len(r.sleepers) != 1 {
			t.Fatalf("%d lanes and %d timers, want 0 and 1", len(r.lanes), len(r.sleepers))
		}
		r.once(ctx, ctx) // the timer, an hour later
		r.once(ctx, ctx)
		if got := f.times(); len(got) != 2 || !closeTo(t, got, []string{"0s", "1h"}) {
			t.Errorf("attempts at %v", got)
		}
		if len(r.lanes) != 0 || len(r.sleepers) != 0 {
			t.Errorf("%d lanes and %d timers, want none", len(r.lanes), len(r.sleepers))
		}
		cancel()
	})
}

func TestHangingEndpointLeavesTheSharedSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var ids []postern.EndpointID
		for range 20 {
			ids = append(ids, w.active("https://example.com", nil).ID)
		}
		f := &fakePost{answer: func(context.Context, int) (egress.Answer, error) {
			time.Sleep(15 * time.Second)
			return egress.Answer{}, failure("timeout")
		}}
		d := w.dispatcher(Options{})
		d.post = f.post
		w.start(d)
		for i := range 50 {
			w.receive(fmt.Sprint(i))
		}
		synctest.Wait()
		if n := d.slots.inUse(); n != 20*7 {
			t.Errorf("%d shared slots are taken at first, want %d", n, 20*7)
		}
		time.Sleep(70 * time.Second)
		synctest.Wait()
		if n := d.slots.inUse(); n != 0 {
			t.Errorf("%d shared slots are taken by %d hanging endpoints after a minute, want 0", n, len(ids))
		}
		w.stop()
	})
}

// A retry that is asked for while the last attempt is under way opens a round.
func TestRetryByHandDuringAnAttemptIsMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		var mu sync.Mutex
		n := 0
		var up bool
		d := w.dispatcher(Options{})
		d.jitter = func() float64 { return .5 }
		d.post = func(context.Context, string, string, http.Header, []byte) (egress.Answer, error) {
			mu.Lock()
			n++
			ok := up
			mu.Unlock()
			if ok {
				return egress.Answer{Status: 200}, nil
			}
			time.Sleep(10 * time.Second)
			return egress.Answer{Status: 500}, failure("status")
		}
		w.start(d)
		w.receive("one")
		for { // until the 12th attempt is under way
			time.Sleep(time.Second)
			mu.Lock()
			k := n
			mu.Unlock()
			if k == 12 {
				break
			}
		}
		_, err := w.db.Deliveries.Retry(t.Context(), e.WorkspaceID, w.deliveries(e)[0].ID, now(), nil)
		w.must(err)
		mu.Lock()
		up = true
		mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.deliveries(e)[0]; got.Status != postern.DeliverySucceeded {
			t.Errorf("the retry that was accepted ended as %s after %d attempts", got.Status, got.Attempts)
		}
		w.stop()
	})
}
