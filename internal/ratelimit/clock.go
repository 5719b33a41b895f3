package ratelimit

import (
	"context"
	"time"

	"github.com/throttled/throttled/v2"
)

// StopClock lets the clock of the limiter stand still: what is used up does not
// come back. Like SetClock, it is for tests.
func (l *Limiter) StopClock() {
	now := time.Now()
	l.SetClock(func() time.Time { return now })
}

// SetClock replaces the clock of the limiter. It is for tests, and must come before the
// first Take and Look.
func (l *Limiter) SetClock(now func() time.Time) { l.counts = clocked{l.counts, now} }

// clocked is a store of counters with another clock.
type clocked struct {
	throttled.GCRAStoreCtx

	now func() time.Time
}

// GetWithTime returns a counter and the time.
func (c clocked) GetWithTime(ctx context.Context, name string) (int64, time.Time, error) {
	n, _, err := c.GCRAStoreCtx.GetWithTime(ctx, name)
	return n, c.now(), err
}

// steady returns a clock that nobody sets: when the clock of the machine is put back, a count would otherwise refuse
// everything until that has caught up.
func steady() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began)) } // what Since returns is monotonic
}
