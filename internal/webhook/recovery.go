package webhook

import (
	"context"
	"time"

	"postern/internal/postern"
)

// outage is what a lane knows of the failures of its endpoint since its last success. Failures of
// deliveries that had failed before that do not count: the endpoint may refuse them and accept others.
type outage struct {
	after    postern.Time // of the last success, or earlier
	since    postern.Time // when the first of them was seen
	last     postern.Time // when the last of them was seen; 0 if that was before the lane began
	failures int
}

// fail adds a failure.
func (o *outage) fail(at postern.Time) {
	if o.failures == 0 {
		o.since = at
	}
	o.last = at
	o.failures++
}

// probe returns when a delivery must be attempted, even if none is due, to learn whether the endpoint
// works again; never if the schedule alone decides. Probes are the rarer the longer the outage.
func (o *outage) probe(at postern.Time) postern.Time {
	if o.failures < outageFailures || at >= o.since.Add(probeTime) {
		return never
	}
	failing := time.Duration(at-o.since) * time.Millisecond
	return o.last.Add(min(max(failing/probePart, minProbe), maxProbe))
}

// isLong reports whether a success now ends an outage, and not only a delivery's bad luck.
func (o *outage) isLong(at postern.Time) bool {
	return o.failures >= outageFailures && at >= o.since.Add(outageTime)
}

// recovery makes the deliveries due that wait for another attempt, oldest first, after an outage: a
// backlog does not wait out its own gaps. It begins with as many as the endpoint takes at once, and
// each success adds two more. Failures end it: what an endpoint keeps refusing while it accepts
// other events must not be posted to it again and again.
type recovery struct {
	patience   int      // failures until it ends; 0 when there is none
	credit     int      // deliveries that may be made due
	unrecorded int      // failures that the store has not recorded yet
	probe      bool     // one delivery must be made due, recovery or not
	busy       bool     // the store makes deliveries due
	made       chan int // how many it has made due
}

func newRecovery() recovery { return recovery{made: make(chan int, 1)} }

// heed follows the verdicts of the endpoint. firstAttempt is when the delivery had been attempted
// first; 0 if it was now.
func (l *lane) heed(v verdict, firstAttempt postern.Time) {
	if v != well {
		if firstAttempt == 0 || firstAttempt >= l.outage.after {
			l.outage.fail(now())
		}
		l.recovery.unrecorded++
		l.recovery.patience = max(l.recovery.patience-1, 0)
		return
	}
	switch {
	case l.outage.isLong(now()):
		l.log.Info("webhook endpoint works again", "workspace", l.endpoint.WorkspaceID, "endpoint", l.id,
			"failing_since", l.outage.since, "failures", l.outage.failures)
		l.recovery.patience, l.recovery.credit = 2*l.bound(), l.bound()
	case l.recovery.patience > 0:
		l.recovery.credit += 2
	}
	l.outage = outage{after: now()}
}

// hasten makes deliveries due for a recovery or a probe. It does not wait for the store.
func (l *lane) hasten(ctx context.Context) {
	r := &l.recovery
	if r.busy || !r.probe && (r.patience == 0 || r.credit == 0) {
		return
	}
	r.busy = true
	probe, n := r.probe, min(r.credit, mostHastened)
	if r.probe = false; !probe {
		r.credit -= n
	}
	l.workers.do(func() {
		made, err := l.makeDue(ctx, probe, n)
		if err != nil && ctx.Err() == nil {
			l.log.ErrorContext(ctx, "cannot make deliveries due", "endpoint", l.id, "error", err)
		}
		r.made <- made
	})
}

// makeDue makes one delivery due for a probe, and up to n for a recovery.
func (l *lane) makeDue(ctx context.Context, probe bool, n int) (made int, err error) {
	if !probe {
		return l.db.Deliveries.Hasten(ctx, l.id, now(), n)
	}
	ok, err := l.db.Deliveries.Probe(ctx, l.id, now())
	if ok {
		made = 1
	}
	return made, err
}

// nextProbe returns when to probe the endpoint. If that is now, it notes it, and hasten does it.
// Nothing is probed while an attempt is under way.
func (l *lane) nextProbe() postern.Time {
	next := l.outage.probe(now())
	if l.flying > 0 || l.recovery.busy || l.recovery.patience > 0 {
		return never
	}
	if next <= now() {
		l.recovery.probe, next = true, never
	}
	return next
}

// hastened handles what the store has made due. When that is nothing, the recovery is over, unless
// failures are not recorded yet.
func (l *lane) hastened(made int) {
	l.recovery.busy = false
	switch {
	case made > 0:
		l.due = 0
	case l.recovery.unrecorded == 0:
		l.recovery.patience = 0
	}
}

// recorded notes that a failure is recorded, so that its delivery can be made due.
func (l *lane) recorded() {
	if l.recovery.unrecorded--; l.recovery.patience > 0 {
		l.recovery.credit++
	}
}

const (
	outageFailures = 3                // failures in a row, of any deliveries
	outageTime     = 10 * time.Second // from the first of them to the success that ends the outage
	mostHastened   = 1024             // deliveries that one write makes due

	probeTime = time.Hour        // from the beginning of an outage; then the schedule alone decides
	probePart = 8                // the gap between probes is this part of the outage so far,
	minProbe  = 5 * time.Second  // at least this
	maxProbe  = 25 * time.Second // and at most this
)
