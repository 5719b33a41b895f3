package webhook

import (
	"context"
	"time"

	"postern/internal/postern"
	"postern/internal/ratelimit"
)

// fairUse limits the rate of first attempts of each workspace, so that a flood in one
// workspace does not use up the shared resources. Attempts above the rate wait; none
// is dropped.
//
// A workspace makes at most as many first attempts in any minute as its plan allows.
// It may make a sixth of them at once, so that small bursts are not delayed; the rest
// is spread evenly.
type fairUse struct{ first *ratelimit.Limiter }

const burstShare = 6 // the burst is this fraction of the attempts of a minute

func newFairUse() *fairUse { return &fairUse{ratelimit.New(fairWorkspaces)} }

// take counts a first attempt and returns 0, or returns how long the workspace must
// wait before the next one.
func (f *fairUse) take(ctx context.Context, ws postern.WorkspaceID, perMinute int) (wait time.Duration, err error) {
	atOnce := max(perMinute/burstShare, 1)
	rate := ratelimit.AtMost(max(perMinute, atOnce+1), time.Minute, atOnce)
	state, err := f.first.Take(ctx, string(ws), rate)
	if err != nil || !state.Refused {
		return 0, err
	}
	return max(state.RetryAfter, time.Millisecond), nil
}
