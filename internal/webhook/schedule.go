package webhook

import (
	"time"

	"postern/internal/postern"
)

// try is what the schedule looks at: an attempt that failed.
type try struct {
	number int          // 1 for the first
	first  postern.Time // when the first attempt began
	ended  postern.Time
	pause  time.Duration // what the receiver asked for by Retry-After; 0 for nothing
	jitter float64       // from 0 to 1, chosen by chance
}

// next says when a delivery is tried again; ok is false when it is not. A gap
// that would end after the window is cut to its end, where the last attempt is
// made.
func (t try) next() (at postern.Time, ok bool) {
	end := t.first.Add(window)
	if t.number >= maxAttempts || t.ended >= end {
		return 0, false
	}
	gap := time.Duration(float64(gaps()[t.number-1]) * (1 - jitterRange + 2*jitterRange*t.jitter))
	if t.pause >= minPause {
		gap = max(gap, min(t.pause, maxPause))
	}
	return min(t.ended.Add(gap), end), true
}
