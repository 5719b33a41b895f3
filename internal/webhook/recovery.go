package webhook

import (
	"context"
	"time"

	"postern/internal/postern"
)

const (
	outageFailures = 3                // failures in a row that make an outage,
	outageTime     = 10 * time.Second // from the first of them to the success that ends it
	mostHastened   = 1024             // deliveries that one write makes due

	probeTime = time.Hour        // from the beginning of an outage; then the schedule alone decides
	probePart = 8                // the gap between probes is this part of the outage so far,
	minProbe  = 5 * time.Second  // at least this
	maxProbe  = 25 * time.Second // and at most this
)

// outage is what a lane knows of the failures of its endpoint since its last success. Failures of
// deliveries that had failed before that do not count: the endpoint may refuse them and accept others.
type outage struct {
	after    postern.Time // of the last success, or earlier
	since    postern.Time // when the first failure was seen; 0 if the endpoint was verified after the last one
	last     postern.Time // when the last one was seen
	quiet    postern.Time // the receiver asked not to be tried before this time
	failures int
}

// readOutage returns what is stored of the endpoint's failures: a lane ends when it has no work, and
// another one begins when there is some.
func (l *lane) readOutage(ctx context.Context) (outage, error) {
	o, err := l.db.Endpoints.Outage(ctx, l.id)
	switch {
	case o.Failing == 0 && o.Failures > 0:
		return outage{failures: o.Failures}, err // verified since: whatever fails now counts
	case o.Failing == 0:
		return outage{after: l.now()}, err
	}
	return outage{after: o.Failing, since: o.Since, last: o.Last, quiet: o.NotBefore, failures: o.Failures}, err
}

// fail adds a failure.
func (o *outage) fail(at postern.Time) {
	if o.failures == 0 || o.since == 0 {
		o.since = at
	}
	o.last = at
	o.failures++
}

// probe returns when a delivery must be attempted, even if none is due, to learn whether the endpoint
// works again; never if the schedule alone decides. Probes are the rarer the longer the outage.
func (o *outage) probe(at postern.Time) postern.Time {
	switch {
	case o.failures < outageFailures:
		return never
	case o.since == 0:
		return at // that the endpoint was verified may mean that it works again
	case at >= o.since.Add(probeTime):
		return never
	}
	failing := time.Duration(o.last-o.since) * time.Millisecond
	return max(o.quiet, o.last.Add(min(max(failing/probePart, minProbe), maxProbe)))
}

// isLong reports whether a success now ends an outage, and not only a delivery's bad luck.
func (o *outage) isLong(at postern.Time) bool {
	return o.failures >= outageFailures && at >= o.since.Add(outageTime)
}

// recovery makes the deliveries due that wait for another attempt, oldest first, after an outage: a
// backlog does not wait out its own gaps. It begins with as many as the endpoint takes at once, and
// each success adds two more. Each delivery is made due once. Failures end it.
type recovery struct {
	patience   int          // how many more failures end the recovery; 0 while none is under way
	credit     int          // deliveries that may be made due
	began      postern.Time // what was attempted later is not made due
	after      int64        // the row that was made due last
	due        int          // deliveries that were made due and are not attempted yet
	unrecorded int          // failures that the store has not recorded yet
	probe      bool         // one delivery must be made due, recovery or not
	busy       bool         // the store makes deliveries due
	made       chan made
}

// made is what the store has made due.
type made struct {
	probe    bool
	asked, n int
	last     int64 // row
	err      error
}

func newRecovery() recovery { return recovery{made: make(chan made, 1)} }

// heed follows what the endpoint answers.
func (l *lane) heed(answer report) {
	r := &l.recovery
	if answer.first != 0 {
		r.due = max(r.due-1, 0)
	}
	switch {
	case answer.verdict.failed():
		l.heedFailure(answer)
		return
	case answer.verdict == unmade:
		return
	case l.outage.isLong(l.now()):
		l.log.Info("webhook endpoint works again", "workspace", l.endpoint.WorkspaceID, "endpoint", l.id,
			"failing_since", l.outage.since, "failures", l.outage.failures)
		l.beginRecovery(l.now())
	case r.patience > 0:
		r.credit += 2
		r.patience = min(r.patience+1, 2*l.bound())
	}
	l.outage = outage{after: l.now()}
}

// beginRecovery begins a recovery of what was attempted before a time.
func (l *lane) beginRecovery(before postern.Time) {
	r := &l.recovery
	r.patience, r.credit, r.began, r.after = 2*l.bound(), l.bound(), before, 0
}

func (l *lane) heedFailure(answer report) {
	if answer.first == 0 || answer.first >= l.outage.after {
		l.outage.fail(l.now())
	}
	l.outage.last = l.now() // also of a probe that does not count
	l.outage.quiet = max(l.outage.quiet, answer.quiet)
	l.recovery.unrecorded++
	l.recovery.patience = max(l.recovery.patience-1, 0)
}

// hasten makes deliveries due for a recovery or a probe. It does not wait for the store. Few are due
// at a time, so that little is posted in vain if the endpoint fails again.
func (l *lane) hasten(ctx context.Context) {
	r := &l.recovery
	n := min(r.credit, mostHastened, 4*l.bound()-r.due)
	if r.busy || !r.probe && (r.patience == 0 || n <= 0) {
		return
	}
	r.busy = true
	m := made{probe: r.probe, asked: n}
	if r.probe = false; !m.probe {
		r.credit -= n
	}
	began, after := r.began, r.after
	l.workers.do(func() {
		l.makeDue(ctx, &m, began, after)
		r.made <- m
	})
}

// makeDue makes one delivery due for a probe, and as many as were asked for a recovery.
func (l *lane) makeDue(ctx context.Context, m *made, began postern.Time, after int64) {
	if m.probe {
		m.n, m.err = l.db.Deliveries.Probe(ctx, l.id, l.now())
	} else {
		m.n, m.last, m.err = l.db.Deliveries.Hasten(ctx, l.id, l.now(), began, after, m.asked)
	}
	if m.err != nil && ctx.Err() == nil {
		l.log.ErrorContext(ctx, "cannot make deliveries due", "endpoint", l.id, "error", m.err)
		_ = postern.Sleep(ctx, rest)
	}
}

// hastened handles what the store has made due. When that is nothing, the recovery looks once more
// from the beginning for what failed meanwhile, and ends.
func (l *lane) hastened(m made) {
	r := &l.recovery
	r.busy = false
	switch {
	case m.probe && m.n > 0:
		l.due = 0
	case m.probe && m.err == nil && l.outage.since == 0:
		l.outage = outage{after: l.now()} // nothing waits: there is nothing to recover
	case m.probe:
	case m.err != nil:
		r.credit += m.asked
	case m.n > 0:
		l.due = 0
		r.due += m.n
		r.after = m.last
	case r.after > 0 || r.unrecorded > 0:
		r.after, r.credit = 0, max(r.credit, 1)
	default:
		r.patience = 0
	}
}

// recorded notes that a failure is recorded, so that its delivery can be made due.
func (l *lane) recorded() { l.recovery.unrecorded-- }

// nextProbe returns when to probe the endpoint. If that is now, it notes it, and hasten does it.
// Nothing is probed while an attempt is under way.
func (l *lane) nextProbe() postern.Time {
	if l.flying > 0 || l.recovery.busy || l.recovery.patience > 0 {
		return never
	}
	next := l.outage.probe(l.now())
	if next <= l.now() {
		l.recovery.probe, next = true, never
	}
	return next
}
