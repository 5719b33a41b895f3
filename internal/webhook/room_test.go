package webhook

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
)

const largeText = 64 << 10 // characters

func liveBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// It counts the bytes of the process, so that no other test may run beside it.
func TestHangingEndpointsHoldFewBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 40 {
			w.active("https://example.com", func(e *postern.Endpoint) { e.MaxInFlight = 64 })
		}
		d := w.dispatcher(Options{Unfair: true, Drain: time.Millisecond})
		d.post = func(ctx context.Context, _, _ string, _ http.Header, _ []byte) (egress.Answer, error) {
			<-ctx.Done()
			return egress.Answer{}, ctx.Err()
		}
		for range 80 {
			w.receive(strings.Repeat("😀", largeText))
		}
		before := liveBytes()
		w.start(d)
		synctest.Wait()
		if n := (liveBytes() - before) >> 20; n > 48 {
			t.Errorf("40 endpoints that hang hold %d MiB, want at most 48", n)
		}
		time.Sleep(2 * linger)
		synctest.Wait()
		if n := (liveBytes() - before) >> 20; n > 48 {
			t.Errorf("40 endpoints that hang hold %d MiB after a while, want at most 48", n)
		}
		w.stop()
	})
}

// A workspace whose receivers hang with large events delays no other one, and nothing is
// lost when they answer again.
func TestLargeBodiesOfAWorkspaceLeaveRoomToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var hung []postern.Endpoint
		for range 20 {
			hung = append(hung, w.active("https://slow.example.com", nil))
		}
		for range 4 {
			w.receive(strings.Repeat("x", largeText))
		}
		w.newTenant()
		quick := w.active("https://quick.example.com", nil)
		var up atomic.Bool
		d := w.dispatcher(Options{Unfair: true})
		d.bodies = newShares(1 << 20)
		d.post = func(_ context.Context, _, url string, _ http.Header, body []byte) (egress.Answer, error) {
			if len(body) < largeText {
				t.Errorf("a body of %d bytes was posted", len(body))
			}
			if url == quick.URL || up.Load() {
				return egress.Answer{Status: 200}, nil
			}
			time.Sleep(15 * time.Second)
			return egress.Answer{}, failure("timeout")
		}
		w.start(d)
		synctest.Wait()
		if n := d.bodies.inUse(); n > 1<<19+largeText || n < 1<<18 {
			t.Errorf("a workspace holds %d bytes of %d", n, 1<<20)
		}
		w.receive(strings.Repeat("x", largeText))
		synctest.Wait()
		w.awaitSucceeded(quick, 1)
		up.Store(true)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		for _, e := range hung {
			w.awaitSucceeded(e, 4)
		}
		if n := d.bodies.inUse(); n != 0 {
			t.Errorf("%d bytes are held when nothing is left to do", n)
		}
		w.stop()
	})
}

// A delivery that was deleted before its body was read ends quietly.
func TestDeletedDeliveryIsNotPosted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.active("http://127.0.0.1:1", nil)
	w.receive(strings.Repeat("x", largeText))
	d := w.dueNow(e)[0]
	w.must(w.db.Endpoints.Delete(t.Context(), e.WorkspaceID, e.ID))
	a := attempt{Dispatcher: w.dispatcher(Options{}), endpoint: &e, delivery: d}
	var got []fate
	a.run(t.Context(), func(verdict, postern.Time) {}, func(f fate) { got = append(got, f) })
	if len(got) != 1 || got[0] != fateEnded {
		t.Errorf("fate %v, want one end", got)
	}
}

// However a lane ends, it gives back the bytes of the bodies that it held.
func TestLaneThatEndsGivesItsBytesBack(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world, postern.Endpoint){
		"paused": func(w *world, e postern.Endpoint) {
			w.change(e, func(e *postern.Endpoint) { e.Status = postern.EndpointPaused })
		},
		"deleted": func(w *world, e postern.Endpoint) {
			w.must(w.db.Endpoints.Delete(w.t.Context(), e.WorkspaceID, e.ID))
		},
		"stopped": func(w *world, _ postern.Endpoint) { w.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				e := w.active("https://example.com", nil)
				d := w.dispatcher(Options{Unfair: true})
				d.post = answerLate
				w.receive(numbered(100)...)
				w.receive(strings.Repeat("x", largeText), strings.Repeat("x", largeText))
				w.start(d)
				synctest.Wait()
				if d.bodies.inUse() == 0 {
					t.Error("no body is held")
				}
				end(w, e)
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := d.bodies.inUse(); n != 0 || len(d.bodies.waiting) != 0 {
					t.Errorf("%d bytes are held, and %d lanes wait", n, len(d.bodies.waiting))
				}
				w.stop()
			})
		})
	}
}

// answerLate posts to a receiver that takes its time. After a time-out the lane would hold no bodies.
func answerLate(ctx context.Context, _, _ string, _ http.Header, _ []byte) (egress.Answer, error) {
	return egress.Answer{Status: 200}, postern.Sleep(ctx, 10*time.Second)
}

// A delivery that waits for fair use gives back the room that was made for it.
func TestDeliveryThatWaitsForFairUseHoldsNoBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		starter, _ := postern.PlanByName("starter")
		w.must(w.db.Workspaces.SetPlan(t.Context(), w.device.WorkspaceID, starter, now()))
		e := w.active("https://example.com", nil)
		d := w.dispatcher(Options{})
		d.post = func(context.Context, string, string, http.Header, []byte) (egress.Answer, error) {
			return egress.Answer{Status: 200}, nil
		}
		n := starter.FirstAttempts + 10
		for range n {
			w.receive(strings.Repeat("x", 10_000)) // too large to be read with its delivery
		}
		w.start(d)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		w.awaitSucceeded(e, n)
		if n := d.bodies.inUse(); n != 0 {
			t.Errorf("%d bytes are held when nothing is left to do", n)
		}
		w.stop()
	})
}

// A body that is larger than what a lane may hold is posted while the lane holds no other.
func TestBodyLargerThanALaneIsPostedAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		d := w.dispatcher(Options{Unfair: true})
		var flying, most atomic.Int32
		d.post = func(_ context.Context, _, _ string, _ http.Header, _ []byte) (egress.Answer, error) {
			most.Store(max(most.Load(), flying.Add(1)))
			defer flying.Add(-1)
			time.Sleep(time.Second)
			return egress.Answer{Status: 200}, nil
		}
		w.receive(strings.Repeat("x", laneBytes+1), strings.Repeat("x", laneBytes+1))
		w.start(d)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.awaitSucceeded(e, 2)
		if n := most.Load(); n != 1 {
			t.Errorf("%d large bodies were posted at once", n)
		}
		if n := d.bodies.inUse(); n != 0 {
			t.Errorf("%d bytes are held", n)
		}
		w.stop()
	})
}
