package ratelimit

import (
	"context"
	"time"

	"github.com/throttled/throttled/v2"
)

// StopClock lets the clock of the limiter stand still: what is used up does not
// come back. It is for tests, and must come before the first Take and Look.
func (l *Limiter) StopClock() { l.counts = stopped{l.counts, time.Now()} }

// stopped is a store of counters whose clock stands still.
type stopped struct {
	throttled.GCRAStoreCtx

	now time.Time
}

// GetWithTime returns a counter and always the same time.
func (s stopped) GetWithTime(ctx context.Context, name string) (int64, time.Time, error) {
	n, _, err := s.GCRAStoreCtx.GetWithTime(ctx, name)
	return n, s.now, err
}
