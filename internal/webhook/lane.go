package webhook

import (
	"context"
	"errors"
	"math"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
)

// never is the time of what does not happen.
const never = postern.Time(math.MaxInt64)

// lane works for one endpoint. Only its goroutine touches it, but for the nudges.
type lane struct {
	*Dispatcher
	id      postern.EndpointID
	fresh   chan struct{} // a nudge: there is a new event
	wake    chan struct{} // a nudge: there is anything to do
	done    chan report   // of attempts; it has room for all that can be in flight
	changed *store.Listener

	stale    bool // the endpoint must be read
	read     time.Time
	perMin   int               // first attempts a minute that its workspace may make
	endpoint *postern.Endpoint // replaced, never changed
	signer   *signer

	held    map[postern.DeliveryID]struct{} // read or in flight
	firsts  []store.DueDelivery             // read: not attempted yet
	retries []store.DueDelivery             // read: attempted before
	more    bool                            // there may be further firsts in the store
	from    postern.Time                    // firsts are due from here on
	behind  store.Place                     // while there are many: those up to here were read
	pages   int                             // full reads so far
	chats   []string                        // in order: the next of each may have its turn
	due     postern.Time                    // when to look for retries
	early   bool                            // some were due already, whose attempt had not landed
	lineAt  postern.Time                    // when a chat has waited long enough for its first
	notYet  postern.Time                    // fair use: no first before

	flying    int  // POSTs that are open
	recording int  // attempts that were answered and are not on disk yet
	width     int  // POSTs at once, from 1 to the endpoint's bound
	own       bool // the lane's own slot is taken
	shared    bool // the slot taken last is one of all lanes
	halted    bool // nothing more is posted before what was answered is on disk
}

func (d *Dispatcher) newLane(id postern.EndpointID) *lane {
	return &lane{
		Dispatcher: d, id: id, fresh: make(chan struct{}, 1), wake: make(chan struct{}, 1), done: make(chan report, 3*maxInFlight),
		endpoint: &postern.Endpoint{}, stale: true, more: true, lineAt: never, width: maxInFlight, held: map[postern.DeliveryID]struct{}{},
	}
}

// nudge makes a lane look once more.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// nudged tells whether a nudge was not seen.
func (l *lane) nudged() bool { return len(l.fresh)+len(l.wake) > 0 }

// run works until nothing is left to do now. Then due says when there will be.
func (l *lane) run(ctx, work context.Context) {
	// A listener of its own: when a change has been answered, the very next
	// attempt already follows it.
	l.changed = l.db.Listen(store.EndpointChanged, string(l.id))
	defer l.changed.Close()
	err := l.serve(ctx, work)
	for l.flying+l.recording > 0 {
		l.land(<-l.done)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	l.log.ErrorContext(ctx, "webhook lane stopped", "endpoint", l.id, "error", err)
	_ = postern.Sleep(ctx, rest)
	l.due = now()
}

func (l *lane) serve(ctx, work context.Context) error {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for last := false; ; {
		wait, err := l.step(ctx, work)
		if err != nil {
			return err
		}
		if l.endpoint.Status != postern.EndpointActive {
			l.due = never // until its state changes
			return nil
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case <-l.changed.C():
			l.stale = true
		case <-l.fresh:
			l.more = true
			if l.endpoint.Ordered { // it may wait in a line
				l.due = 0
			}
		case <-l.wake:
			l.more, l.due = true, 0
		case r := <-l.done:
			l.land(r)
			for len(l.done) > 0 {
				l.land(<-l.done)
			}
		case <-timer.C:
			if l.flying+l.recording+len(l.firsts) > 0 || l.due <= now() {
				continue
			}
			if last {
				return nil
			}
			last = true
			l.lookAgain() // for what was written later than anybody thought,
			l.due = 0     // and for what is due later
			continue
		}
		last = false
	}
}

// step starts as many attempts as may be in flight, and says how long to wait
// when nothing else happens.
func (l *lane) step(ctx, work context.Context) (wait time.Duration, err error) {
	for {
		if err := l.refresh(ctx); err != nil || l.endpoint.Status != postern.EndpointActive {
			return 0, err
		}
		if l.halted || l.flying >= l.width || l.flying+l.recording >= 2*l.bound() {
			return linger, nil
		}
		d, ok, err := l.take(ctx)
		if err != nil || !ok {
			return l.idle(), err
		}
		if !l.slot() {
			return linger, nil
		}
		if l.outdated() {
			l.freeSlot(l.shared)
			continue
		}
		if l.wait(ctx, d) {
			continue
		}
		l.launch(work, d)
	}
}

// idle is how long there is nothing to start.
func (l *lane) idle() time.Duration {
	wait := min(linger, until(l.due))
	if len(l.firsts) > 0 {
		wait = min(wait, until(l.notYet))
	}
	return wait
}

// wait gives the slot back when the workspace has used up its first attempts.
// The retries may go on.
func (l *lane) wait(ctx context.Context, d store.DueDelivery) bool {
	if !isFirst(d) || l.fair == nil {
		return false
	}
	wait, err := l.fair.take(ctx, l.endpoint.WorkspaceID, l.perMin)
	if err != nil {
		l.log.ErrorContext(ctx, "fair use not counted", "endpoint", l.id, "error", err)
	}
	if wait == 0 {
		return false
	}
	l.metrics.fairWaits.Inc()
	l.notYet = now().Add(wait) + 1
	l.freeSlot(l.shared)
	return true
}

// isFirst tells a first attempt of an event from retries and replays.
func isFirst(d store.DueDelivery) bool { return d.Attempts == 0 && d.Replay == "" }

// outdated tells whether the endpoint has changed since it was read.
func (l *lane) outdated() bool {
	select {
	case <-l.changed.C():
		l.stale = true
	default:
	}
	return l.stale
}

// refresh reads the endpoint if it has changed.
func (l *lane) refresh(ctx context.Context) error {
	if !l.outdated() && time.Since(l.read) < planLook {
		return nil
	}
	l.changed.Take()
	l.read = time.Now()
	l.lookAgain() // now and then, for what was committed long after its time
	endpoint, err := l.db.Endpoints.ForDelivery(ctx, l.id)
	if postern.ReasonOf(err) == postern.NotFound { // deleted; what is in flight gives its slots back
		l.endpoint = &postern.Endpoint{WorkspaceID: l.endpoint.WorkspaceID}
		return nil
	}
	if err != nil {
		return err
	}
	l.endpoint = &endpoint
	l.width = min(l.width, l.bound())
	signer, err := newSigner(l.box, endpoint)
	l.signer = &signer
	l.stale = err != nil
	return errors.Join(err, l.readPlan(ctx))
}

func (l *lane) readPlan(ctx context.Context) error {
	ws, err := l.db.Workspaces.Get(ctx, l.endpoint.WorkspaceID)
	if err != nil {
		return err
	}
	plan, _ := ws.Entitlement()
	l.perMin = plan.FirstAttempts
	return nil
}

// bound is what the endpoint allows in flight.
func (l *lane) bound() int { return min(max(l.endpoint.MaxInFlight, 1), maxInFlight) }

// batch is how many deliveries are read at once: as many as may be posted at once,
// or a few more.
func (l *lane) batch() int { return max(l.bound(), batch) }

// take gives the next delivery to attempt: first attempts before retries.
func (l *lane) take(ctx context.Context) (d store.DueDelivery, ok bool, err error) {
	if err := l.readChats(ctx); err != nil {
		return d, false, err
	}
	if l.lineAt <= now() {
		l.lineAt = never
		l.lookAgain()
	}
	for len(l.firsts) == 0 && l.more {
		if err := l.readFirsts(ctx); err != nil {
			return d, false, err
		}
	}
	if len(l.firsts) > 0 && l.notYet <= now() {
		return l.firsts[0], true, nil
	}
	if len(l.retries) == 0 && l.due <= now() {
		if err := l.readRetries(ctx); err != nil {
			return d, false, err
		}
	}
	if len(l.retries) > 0 {
		return l.retries[0], true, nil
	}
	return d, false, nil
}

// readFirsts reads on behind what it read, as long as there is much. It looks
// once more from the start after that, for what was written late.
func (l *lane) readFirsts(ctx context.Context) error {
	at, behind, limit := now(), l.behind, l.batch()
	if behind.Row == 0 {
		behind, limit = store.Place{DueAt: l.from}, limit+len(l.held) // what is in flight is met once more
	}
	list, err := l.db.Deliveries.First(ctx, l.id, behind, at, limit)
	if err != nil {
		return err
	}
	full := len(list) == limit
	l.more = full || l.behind.Row != 0
	switch {
	case full:
		l.behind = list[limit-1].Place()
		l.from = max(l.from, l.behind.DueAt.Add(-clockSlack))
		if l.pages++; l.pages%pagesOn == 0 {
			l.lookAgain()
		}
	case l.more:
		l.behind = store.Place{}
	default:
		l.from = at.Add(-clockSlack)
	}
	l.firsts = l.hold(list)
	return nil
}

// lookAgain has the firsts be read from their start.
func (l *lane) lookAgain() {
	l.more, l.from, l.behind = true, 0, store.Place{}
}

// readChats reads whose turn it is in the chats of which one has landed.
func (l *lane) readChats(ctx context.Context) error {
	for ; len(l.chats) > 0; l.chats = l.chats[1:] {
		d, ok, err := l.db.Deliveries.NextOfChat(ctx, l.id, l.chats[0], now())
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		for _, d := range l.hold([]store.DueDelivery{d}) {
			if isFirst(d) {
				l.firsts = append(l.firsts, d)
			} else {
				l.retries = append(l.retries, d)
			}
		}
	}
	return nil
}

func (l *lane) readRetries(ctx context.Context) error {
	at := now()
	list, err := l.db.Deliveries.Due(ctx, l.id, at, false, l.batch()+len(l.held))
	if err != nil {
		return err
	}
	if l.retries = l.hold(list); len(l.retries) > 0 {
		return nil
	}
	l.early = len(list) > 0
	next, ok, err := l.db.Deliveries.NextDue(ctx, l.id, at)
	if l.due = next; !ok {
		l.due = never
	}
	if err != nil {
		return err
	}
	if l.lineAt <= at { // take has not seen to it yet
		l.due = l.lineAt
		return nil
	}
	if l.lineAt, ok, err = l.db.Deliveries.NextInLine(ctx, l.id, at); !ok {
		l.lineAt = never
	}
	l.due = min(l.due, l.lineAt)
	return err
}

// hold drops what the lane holds already, and holds the others.
func (l *lane) hold(list []store.DueDelivery) []store.DueDelivery {
	fresh := list[:0]
	for _, d := range list {
		if _, ok := l.held[d.ID]; !ok {
			l.held[d.ID] = struct{}{}
			fresh = append(fresh, d)
		}
	}
	return fresh
}

// slot takes a slot; false when there is none. One is the lane's own, so that it
// always gets on.
func (l *lane) slot() bool {
	if l.shared = l.own; l.shared {
		return l.slots.take(l.endpoint.WorkspaceID)
	}
	l.own = true
	return true
}

func (l *lane) freeSlot(shared bool) {
	if shared {
		l.slots.give(l.endpoint.WorkspaceID)
	} else {
		l.own = false
	}
}

// launch starts the attempt that take gave, in the slot that was taken.
func (l *lane) launch(work context.Context, d store.DueDelivery) {
	shared := l.shared
	l.flying++
	if len(l.firsts) > 0 && l.firsts[0].ID == d.ID {
		l.firsts = l.firsts[1:]
	} else {
		l.retries = l.retries[1:]
	}
	a := attempt{Dispatcher: l.Dispatcher, endpoint: l.endpoint, signer: l.signer, delivery: d}
	id, chat := d.ID, d.Chat
	l.workers.do(func() {
		a.run(work, func(v verdict) { l.done <- report{id: id, verdict: v, shared: shared, answered: true} },
			func(failed bool) { l.done <- report{id: id, chat: chat, failed: failed} })
	})
}

// land hears of an attempt: that it was answered, and later that it is on disk.
// The next POST need not wait for the disk.
func (l *lane) land(r report) {
	if !r.answered {
		delete(l.held, r.id)
		l.recording--
		l.halted = l.halted && l.recording > 0
		if r.failed || l.early { // it has a time, or one that somebody asked for meanwhile
			l.due, l.early = 0, false
		}
		if r.chat != "" { // whoever waited for this one may go on
			l.chats = append(l.chats, r.chat)
		}
		return
	}
	l.flying--
	l.recording++
	l.freeSlot(r.shared)
	l.adapt(r.verdict)
}

// adapt halves the lane's width when the endpoint cannot keep up, and each
// success widens it again: one that hangs keeps few of the slots that all share.
func (l *lane) adapt(v verdict) {
	switch v {
	case well:
		l.width = min(l.width+1, l.bound())
	case slow:
		l.width = max(l.width/2, 1)
	case gone:
		l.halted = true
	case unwell: // it was quick: no slot is wasted on it
	}
}
