package webhook

import "postern/internal/postern"

// setBack is by how many milliseconds the clock goes back before a lane treats it as set back. Servers
// that correct their reading of the database's clock differ by less.
const setBack = 1000

// watchClock notices that the clock was set back. Everything that the lane scheduled before that would
// otherwise wait until the clock has caught up.
func (l *lane) watchClock() {
	now := l.now()
	if by := l.seen - now; by >= setBack {
		l.followClock(by)
	}
	l.seen = now
}

// followClock moves what the lane knows of the endpoint's failures to the new time, and makes the deliveries
// due that wait for another attempt, as after an outage.
func (l *lane) followClock(by postern.Time) {
	l.clockSaid.Do(func() { l.log.Warn("the clock was set back", "milliseconds", int64(by)) })
	l.lookAgain()
	l.due, l.notYet = 0, 0
	l.outage.move(-by)
	l.beginRecovery(l.seen)
}

// move adds to all times of an outage.
func (o *outage) move(by postern.Time) {
	for _, at := range []*postern.Time{&o.after, &o.since, &o.last, &o.quiet} {
		if *at > 0 {
			*at += by
		}
	}
}
