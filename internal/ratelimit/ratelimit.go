// Package ratelimit bounds how often something may happen for each of many names,
// by the generic cell rate algorithm: some may happen at once, and the rest comes
// back evenly. The algorithm is that of github.com/throttled/throttled.
package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// casAttempts is how often a counter is tried again while other callers change it
// at the same moment. Each round lets one of them through.
const casAttempts = 10_000

// Rate is how often something may happen. All fields are at least 1.
type Rate struct {
	Count int // that come back in each Per, evenly
	Per   time.Duration
	Burst int // that may happen at once
}

// AtMost is the rate of at most n in any period: atOnce of them at once, and the
// others evenly. n is at least 2, and atOnce is from 1 to n-1.
func AtMost(n int, per time.Duration, atOnce int) Rate { return Rate{n - atOnce, per, atOnce} }

// State is what a name has left.
type State struct {
	Refused    bool
	Remaining  int           // that may happen at once now
	RetryAfter time.Duration // until the next is allowed; 0 or less when this one is
	ResetAfter time.Duration // until the whole burst is there again
}

// Limiter counts by name, in memory. It is safe for concurrent use.
type Limiter struct {
	counts throttled.GCRAStoreCtx

	mu    sync.RWMutex
	rates map[Rate]*throttled.GCRARateLimiterCtx // a few: those of plans and limits
}

// New makes a limiter that remembers the names that were counted last, at most so
// many. It panics when that is not a positive number.
func New(names int) *Limiter {
	if names <= 0 { // for the library: without a bound
		panic("ratelimit: the number of names must be positive")
	}
	return &Limiter{counts: clocked{newCounts(names), steady()}, rates: map[Rate]*throttled.GCRARateLimiterCtx{}}
}

func newCounts(names int) throttled.GCRAStoreCtx {
	counts, err := memstore.NewCtx(names)
	if err != nil {
		panic(err) // it refuses only negative numbers
	}
	return counts
}

// Take counts one for a name, unless it is refused. When a name is asked with
// another rate than before, as after a change of plan, what was counted stays.
func (l *Limiter) Take(ctx context.Context, name string, r Rate) (State, error) {
	return l.count(ctx, name, r, 1)
}

// Look returns the state of a name, and counts nothing. It may make the limiter
// forget another name.
func (l *Limiter) Look(ctx context.Context, name string, r Rate) (State, error) {
	return l.count(ctx, name, r, 0)
}

func (l *Limiter) count(ctx context.Context, name string, r Rate, n int) (State, error) {
	rate, err := l.rate(r)
	if err != nil {
		return State{}, err
	}
	refused, s, err := rate.RateLimitCtx(ctx, name, n)
	if err != nil {
		return State{}, fmt.Errorf("count against a limit: %w", err)
	}
	return State{refused, s.Remaining, s.RetryAfter, s.ResetAfter}, nil
}

func (l *Limiter) rate(r Rate) (*throttled.GCRARateLimiterCtx, error) {
	l.mu.RLock()
	known := l.rates[r]
	l.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	made, err := l.newRate(r)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rates[r] = made
	return made, nil
}

func (l *Limiter) newRate(r Rate) (*throttled.GCRARateLimiterCtx, error) {
	if r.Count < 1 || r.Per <= 0 || r.Burst < 1 {
		return nil, fmt.Errorf("a rate of %d in %s, %d at once, is not possible", r.Count, r.Per, r.Burst)
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(r.Count, r.Per), MaxBurst: r.Burst - 1}
	made, err := throttled.NewGCRARateLimiterCtx(l.counts, quota)
	if err != nil {
		return nil, fmt.Errorf("make a rate: %w", err)
	}
	made.SetMaxCASAttemptsLimit(casAttempts)
	return made, nil
}
