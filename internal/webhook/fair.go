package webhook

import (
	"context"
	"time"

	"postern/internal/postern"
	"postern/internal/ratelimit"
)

// fairUse bounds the first attempts of each workspace, so that a flood in one does
// not take what all share. What is too much waits; nothing is dropped.
//
// In no minute there are more than the number that the plan allows. A sixth of it
// may come at once, so that the burst of a small workspace is not spread out; the
// rest comes evenly.
type fairUse struct{ first *ratelimit.Limiter }

const burstShare = 6 // of a minute's number

func newFairUse() *fairUse { return &fairUse{ratelimit.New(fairWorkspaces)} }

// take counts a first attempt, or returns how long the workspace has to wait before
// the next.
func (f *fairUse) take(ctx context.Context, ws postern.WorkspaceID, perMinute int) (wait time.Duration, err error) {
	atOnce := max(perMinute/burstShare, 1)
	rate := ratelimit.AtMost(max(perMinute, atOnce+1), time.Minute, atOnce)
	state, err := f.first.Take(ctx, string(ws), rate)
	if err != nil || !state.Refused {
		return 0, err
	}
	return max(state.RetryAfter, time.Millisecond), nil
}
