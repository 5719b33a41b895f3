package webhook

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
	"postern/internal/store"
)

func accept(context.Context, int) (egress.Answer, error) { return egress.Answer{Status: 200}, nil }

// A clock of the database may be ahead of ours, or ours is set back: the event is
// due later than the lane thinks when it hears of it.
func TestEventThatIsDueLaterIsDeliveredThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.active("https://example.com", nil)
		f := &fakePost{answer: accept}
		d := w.dispatcher(Options{})
		d.post = f.post
		w.start(d)
		w.receive("now")
		time.Sleep(time.Second)
		o := w.inbound("by a clock that is ahead")
		o.Now = o.Now.Add(clockSlack + 5*time.Second)
		w.must(w.db.Messages.RecordInbound(t.Context(), o))
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(f.times()); n != 2 {
			t.Errorf("%d of 2 events were posted", n)
		}
		w.stop()
	})
}

// An event that was committed long after the time it bears, as when a disk
// stalls, does not wait for a pause of those behind it.
func TestEventThatIsWrittenVeryLateIsDeliveredAmongOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		f := &fakePost{answer: accept}
		d := w.dispatcher(Options{})
		d.post = f.post
		w.start(d)
		w.receive("first")
		time.Sleep(time.Second)
		late := w.inbound("late")
		late.Now = late.Now.Add(-clockSlack - 2*time.Second)
		w.must(w.db.Messages.RecordInbound(t.Context(), late))
		for range 8 {
			w.receive("more")
			time.Sleep(2 * time.Second)
		}
		synctest.Wait()
		if left := w.dueNow(e); len(left) > 0 {
			t.Errorf("the event is still due; %d others overtook it", len(f.times()))
		}
		w.stop()
	})
}

// A retry that somebody asks for in the moment in which the attempt before it is
// recorded.
func TestRetryIsNotForgottenWhileItsDeliveryIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		f := &fakePost{answer: accept}
		disp := w.dispatcher(Options{})
		disp.post = f.post
		l := disp.newLane(e.ID)
		l.changed = w.db.Listen(store.EndpointChanged, string(e.ID))
		defer l.changed.Close()
		w.receive("x")
		w.must(l.refresh(t.Context()))
		d, ok, err := l.take(t.Context())
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		l.firsts = l.firsts[1:] // it is posted and answered
		l.recording++
		w.must(w.db.Deliveries.FinishAttempt(t.Context(), store.Attempt{
			DeliveryID: d.ID, Row: d.Row, EndpointID: e.ID, URL: e.URL, Claimed: d.DueAt, Number: 1, At: now(),
			Ended: now(), HTTPStatus: 200,
			Status: postern.DeliverySucceeded,
		}))
		_, err = w.db.Deliveries.Retry(t.Context(), e.WorkspaceID, d.ID, now(), nil)
		w.must(err)
		l.more, l.due = true, 0 // the lane hears of the retry first,
		_, ok, err = l.take(t.Context())
		if err != nil || ok {
			t.Fatalf("a delivery that is held was taken: %v, %v", ok, err)
		}
		l.land(report{id: d.ID}) // and then of the record
		if _, ok, err = l.take(t.Context()); err != nil || !ok {
			t.Errorf("the retry is not taken (%v), the next look is at %d", err, l.due)
		}
	})
}

// A workspace whose endpoints come and go keeps its share of the slots.
func TestDeletedEndpointGivesItsSlotsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://slow.example.com", nil) // 8 in flight
		d := w.dispatcher(Options{})
		d.post = func(context.Context, string, string, http.Header, []byte) (egress.Answer, error) {
			time.Sleep(14 * time.Second)
			return egress.Answer{Status: 200}, nil
		}
		w.start(d)
		w.receive(numbered(8)...)
		time.Sleep(time.Second)
		if n := d.slots.inUse(); n != 7 {
			t.Fatalf("%d shared slots are taken, want 7", n)
		}
		w.must(w.db.Endpoints.Delete(t.Context(), e.WorkspaceID, e.ID))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(d.slots.taken) != 0 {
			t.Errorf("nothing is in flight, and the slots are taken by %v", d.slots.taken)
		}
		w.stop()
	})
}
