package webhook

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
)

func TestSharesLeaveSomeToTheNextWorkspace(t *testing.T) {
	t.Parallel()
	s, wake := newShares(100), make(chan struct{}, 1)
	for _, tt := range []struct {
		ws   postern.WorkspaceID
		n    int
		want bool
	}{{"a", 40, true}, {"a", 20, true}, {"a", 1, false}, {"b", 41, false}, {"b", 20, true}, {"c", 10, true}} {
		if got := s.take(tt.ws, tt.n); got != tt.want {
			t.Errorf("%s takes %d: %v, want %v", tt.ws, tt.n, got, tt.want)
		}
	}
	if s.takeOrWait("a", 1, wake) || len(wake) != 0 {
		t.Error("what is not free was taken")
	}
	s.force("a", 50)
	if n := s.inUse(); n != 140 {
		t.Errorf("%d are taken, want 140", n)
	}
	s.give("a", 110)
	if len(wake) != 1 || !s.takeOrWait("a", 1, wake) {
		t.Error("one that waited was not woken")
	}
}

// A workspace whose receivers answer well but slowly leaves slots to others.
func TestSlowWorkspaceLeavesSlotsToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t) // growth
		for range 20 {
			w.active("https://slow.example.com", func(e *postern.Endpoint) { e.MaxInFlight = 64 })
		}
		slow := w.device
		w.newTenant()
		quick := w.device
		e := w.active("https://quick.example.com", nil)
		d := w.dispatcher(Options{})
		d.post = func(_ context.Context, _, url string, _ http.Header, _ []byte) (egress.Answer, error) {
			if url == e.URL {
				time.Sleep(100 * time.Millisecond)
			} else {
				time.Sleep(14 * time.Second)
			}
			return egress.Answer{Status: 200}, nil
		}
		w.start(d)
		measure := func() time.Duration {
			w.device = quick
			began := time.Now()
			w.receive(numbered(200)...)
			for {
				time.Sleep(50 * time.Millisecond)
				list, err := w.db.Deliveries.Due(t.Context(), e.ID, now(), true, 1)
				w.must(err)
				if len(list) == 0 {
					return time.Since(began)
				}
			}
		}
		alone := measure()
		w.device = slow
		w.receive(numbered(150)...)
		time.Sleep(5 * time.Second)
		if n := d.slots.inUse(); n != sharedSlots/2 {
			t.Errorf("%d of %d shared slots are taken, want half", n, sharedSlots)
		}
		beside := measure()
		if beside > 2*alone {
			t.Errorf("one workspace delays another: %v instead of %v", beside, alone)
		}
		w.stop()
	})
}
