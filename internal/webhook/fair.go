package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	"postern/internal/postern"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// fairUse bounds the first attempts of each workspace: a flood in one must not
// take what all share. What is too much waits; nothing is dropped.
//
// In no minute there are more than the plan's number. A sixth of it may come at
// once, so that the burst of a small workspace is not spread out; the rest comes
// evenly (the generic cell rate algorithm).
type fairUse struct {
	store throttled.GCRAStoreCtx
	rates sync.Map // first attempts a minute → *throttled.GCRARateLimiterCtx
}

const burstShare = 6 // of a minute's number

func newFairUse() *fairUse {
	store, err := memstore.NewCtx(fairWorkspaces)
	if err != nil {
		panic(err) // its size is constant
	}
	return &fairUse{store: store}
}

// take counts a first attempt, or says how long the workspace has to wait
// before the next.
func (f *fairUse) take(ctx context.Context, ws postern.WorkspaceID, perMinute int) (wait time.Duration, err error) {
	limiter, err := f.rate(perMinute)
	if err != nil {
		return 0, err
	}
	limited, state, err := limiter.RateLimitCtx(ctx, string(ws), 1)
	if err != nil {
		return 0, fmt.Errorf("count a first attempt: %w", err)
	}
	if !limited {
		return 0, nil
	}
	return max(state.RetryAfter, time.Millisecond), nil
}

func (f *fairUse) rate(perMinute int) (*throttled.GCRARateLimiterCtx, error) {
	if l, ok := f.rates.Load(perMinute); ok {
		return l.(*throttled.GCRARateLimiterCtx), nil //nolint:errcheck // only limiters are ever put in
	}
	burst := max(perMinute/burstShare, 1)
	l, err := throttled.NewGCRARateLimiterCtx(f.store, throttled.RateQuota{MaxRate: throttled.PerMin(max(perMinute-burst, 1)), MaxBurst: burst - 1})
	if err != nil {
		return nil, fmt.Errorf("make a rate: %w", err)
	}
	l.SetMaxCASAttemptsLimit(casAttempts)
	f.rates.Store(perMinute, l)
	return l, nil
}
