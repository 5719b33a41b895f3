package webhook

import (
	"context"
	"time"

	"postern/internal/postern"
)

// outage is what a lane knows of the failures of its endpoint since its last success.
type outage struct {
	since    postern.Time // when the first of them was seen
	failures int
}

// fail adds a failure.
func (o *outage) fail(at postern.Time) {
	if o.failures == 0 {
		o.since = at
	}
	o.failures++
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
	busy       bool     // the store makes deliveries due
	made       chan int // how many it has made due
}

func newRecovery() recovery { return recovery{made: make(chan int, 1)} }

// heed follows the verdicts of the endpoint.
func (l *lane) heed(v verdict) {
	if v != well {
		l.outage.fail(now())
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
	l.outage = outage{}
}

// hasten makes more deliveries due, if there is a recovery. It does not wait for the store.
func (l *lane) hasten(ctx context.Context) {
	if l.recovery.patience == 0 || l.recovery.credit == 0 || l.recovery.busy {
		return
	}
	n := min(l.recovery.credit, mostHastened)
	l.recovery.credit -= n
	l.recovery.busy = true
	l.workers.do(func() {
		made, err := l.db.Deliveries.Hasten(ctx, l.id, now(), n)
		if err != nil && ctx.Err() == nil {
			l.log.ErrorContext(ctx, "cannot hasten deliveries after an outage", "endpoint", l.id, "error", err)
		}
		l.recovery.made <- made
	})
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
)
