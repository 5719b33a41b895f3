package webhook

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
)

// What was recorded while the clock was an hour ahead is delivered when the clock is put right, and not an hour
// later. The sleeps take no time: they are those of synctest's clock, which moves when every goroutine waits.
func TestDeliveriesDoNotWaitForAClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*postern.Endpoint){
		"in any order": nil,
		"in order":     func(e *postern.Endpoint) { e.Ordered = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				e := w.active("https://example.com", edit)
				var ahead atomic.Int64
				var up atomic.Bool
				d := w.dispatcher(Options{})
				d.now = func() postern.Time { return now().Add(time.Duration(ahead.Load())) }
				f := &fakePost{answer: func(ctx context.Context, n int) (egress.Answer, error) {
					if up.Load() {
						return egress.Answer{Status: 200}, nil
					}
					return refuse(ctx, n)
				}}
				d.post = f.post
				w.start(d)
				ahead.Store(int64(time.Hour))
				w.receiveAt(d.now(), "one", "two")
				time.Sleep(time.Minute)
				late := d.now()
				ahead.Store(0)
				up.Store(true)
				w.receiveAt(late, "three")
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := w.count(e, postern.DeliverySucceeded); n != 3 {
					t.Errorf("%d of 3 events arrived in a minute", n)
				}
				w.stop()
			})
		})
	}
}

func (w *world) receiveAt(at postern.Time, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		in := w.inbound(text)
		in.Now, in.Message.CreatedAt = at, at
		w.must(w.db.Messages.RecordInbound(w.t.Context(), in))
	}
}
