package webhook

import (
	"time"

	"postern/internal/postern"
)

// try is a failed attempt, as the schedule sees it.
type try struct {
	number int           // 1 for the first attempt
	first  postern.Time  // when the first attempt began
	ended  postern.Time  // when this attempt ended
	pause  time.Duration // the Retry-After of the answer; 0 if it has none
	jitter float64       // a random number from 0 to 1
}

// next returns the time of the next attempt. ok is false if there is none: the
// attempts or the window are used up. A gap that would end after the window is cut
// to its end, so that the last attempt is made there.
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

// notBefore returns when the receiver may be tried again by what it said; 0 if it did not say.
func notBefore(ended postern.Time, pause time.Duration) postern.Time {
	if pause < minPause {
		return 0
	}
	return ended.Add(min(pause, maxPause))
}
