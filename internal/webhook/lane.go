package webhook

import (
	"context"
	"errors"
	"math"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
)

// never is a time that is never reached.
const never = postern.Time(math.MaxInt64)

// lane makes the attempts of one endpoint. Only its own goroutine uses its fields,
// except for the channels fresh, wake and fits, which any goroutine may nudge.
type lane struct {
	*Dispatcher
	id      postern.EndpointID
	fresh   chan struct{} // nudged when there is a new event
	wake    chan struct{} // nudged when there is other work
	fits    chan struct{} // nudged when there may be room for a body
	done    chan report   // reports of attempts; its buffer holds those of all attempts in flight
	changed *store.Listener

	stale    bool              // the endpoint must be read again
	read     time.Time         // when the endpoint and its plan were read
	perMin   int               // first attempts per minute that the plan allows
	endpoint *postern.Endpoint // replaced as a whole, never modified: attempts share it
	signer   *signer

	held    map[postern.DeliveryID]struct{} // deliveries that were read or are in flight
	firsts  []store.DueDelivery             // deliveries to attempt for the first time
	retries []store.DueDelivery             // deliveries to attempt again
	more    bool                            // the store may have more firsts
	from    postern.Time                    // the next read of firsts starts at this due time
	behind  store.Place                     // in a backlog: the last first that was read; otherwise zero
	pages   int                             // full reads of firsts so far
	chats   []string                        // ordered endpoints: chats whose next delivery may be due
	due     postern.Time                    // when to read retries again
	early   bool                            // the last read found due retries, but all of them are still held
	lineAt  postern.Time                    // ordered endpoints: when the next chat stops waiting for a failing delivery
	notYet  postern.Time                    // fair use: the time of the next allowed first attempt

	flying    int  // POSTs without an answer yet
	recording int  // attempts with an answer that is not durable yet
	width     int  // POSTs allowed at once, from 1 to the endpoint's bound
	bytes     int  // of bodies in flight, and of those in firsts and retries
	own       bool // the lane's own slot is taken
	shared    bool // the slot taken last is a shared one
	halted    bool // no POST starts until all answers are durable

	outage   outage
	recovery recovery
	seen     postern.Time // the latest reading of the clock
}

func (d *Dispatcher) newLane(id postern.EndpointID) *lane {
	return &lane{
		Dispatcher: d, id: id,
		fresh: make(chan struct{}, 1), wake: make(chan struct{}, 1), fits: make(chan struct{}, 1),
		done: make(chan report, (2+unrecorded)*maxInFlight), endpoint: &postern.Endpoint{},
		stale: true, more: true, lineAt: never, width: maxInFlight,
		held: map[postern.DeliveryID]struct{}{}, recovery: newRecovery(),
	}
}

// nudge makes a lane look for work again. It never blocks.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// nudged reports whether there is a nudge that the lane has not handled.
func (l *lane) nudged() bool { return len(l.fresh)+len(l.wake) > 0 }

// run makes attempts until nothing is due. On return, l.due is the time of the
// next work, or never.
func (l *lane) run(ctx, work context.Context) {
	// The lane has its own listener so that the first attempt after a change of
	// the endpoint already uses the new settings.
	l.changed = l.db.Listen(store.EndpointChanged, string(l.id))
	defer l.changed.Close()
	err := l.serve(ctx, work)
	for l.flying+l.recording > 0 {
		l.land(<-l.done)
	}
	if l.recovery.busy {
		l.hastened(<-l.recovery.made)
	}
	l.unload()
	l.bodies.forget(l.fits)
	if err == nil || ctx.Err() != nil {
		return
	}
	l.log.ErrorContext(ctx, "webhook lane stopped", "endpoint", l.id, "error", err)
	_ = postern.Sleep(ctx, rest)
	l.due = l.now()
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
			l.due = never // a change of the status starts a new lane
			return nil
		}
		l.hasten(work)
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case <-l.changed.C():
			l.stale = true
		case <-l.fresh:
			l.more = true
			if l.endpoint.Ordered { // the event may wait for others of its chat
				l.due = 0
			}
		case <-l.wake:
			l.more, l.due = true, 0
		case r := <-l.done:
			l.land(r)
			for len(l.done) > 0 {
				l.land(<-l.done)
			}
		case made := <-l.recovery.made:
			l.hastened(made)
		case <-l.fits:
		case <-timer.C:
			if wait >= linger {
				l.unload()
			}
			if l.flying+l.recording+len(l.firsts)+len(l.retries) > 0 || l.recovery.busy || l.due <= l.now() {
				continue
			}
			if last {
				return nil
			}
			last = true
			l.lookAgain() // finds deliveries that were committed after their due time
			l.due = 0     // reads the time of the next retry
			continue
		}
		last = false
	}
}

// step starts as many attempts as the limits allow. It returns how long the lane
// may wait if nothing wakes it earlier.
func (l *lane) step(ctx, work context.Context) (wait time.Duration, err error) {
	l.watchClock()
	for {
		if err := l.refresh(ctx); err != nil || l.endpoint.Status != postern.EndpointActive {
			return 0, err
		}
		if l.halted || l.flying >= l.width || l.flying+l.recording >= (1+unrecorded)*l.bound() {
			return linger, nil
		}
		d, ok, err := l.take(ctx)
		if err != nil || !ok {
			return l.idle(), err
		}
		if !l.slot() {
			return linger, nil
		}
		switch {
		case l.outdated():
			l.freeSlot(l.shared)
		case !l.room(d):
			l.freeSlot(l.shared)
			return linger, nil
		case l.wait(ctx, d):
			l.freeSlot(l.shared)
			l.withdraw(d)
		default:
			l.launch(work, d)
		}
	}
}

// idle returns how long there is nothing to start, at most linger.
func (l *lane) idle() time.Duration {
	wait := min(linger, l.until(l.due))
	if len(l.firsts) > 0 {
		wait = min(wait, l.until(l.notYet))
	}
	return wait
}

// wait reports whether a first attempt must wait because its workspace has used
// up its rate. Retries are never delayed.
func (l *lane) wait(ctx context.Context, d store.DueDelivery) bool {
	if !d.IsFirst() || l.fair == nil {
		return false
	}
	wait, err := l.fair.take(ctx, l.endpoint.WorkspaceID, l.perMin)
	if err != nil {
		l.log.ErrorContext(ctx, "cannot count the attempt for fair use", "endpoint", l.id, "error", err)
	}
	if wait == 0 {
		return false
	}
	l.metrics.fairWaits.Inc()
	l.notYet = l.now().Add(wait) + 1
	return true
}

// outdated reports whether the endpoint has changed since it was read.
func (l *lane) outdated() bool {
	select {
	case <-l.changed.C():
		l.stale = true
	default:
	}
	return l.stale
}

// refresh reads the endpoint and its plan if the endpoint has changed or the last
// read is older than planLook.
func (l *lane) refresh(ctx context.Context) error {
	if !l.outdated() && time.Since(l.read) < planLook {
		return nil
	}
	l.changed.Take()
	l.read = time.Now()
	l.lookAgain() // also finds deliveries that were committed long after their due time
	endpoint, err := l.db.Endpoints.ForDelivery(ctx, l.id)
	if postern.ReasonOf(err) == postern.NotFound { // deleted; the workspace is kept to release its slots
		l.endpoint = &postern.Endpoint{WorkspaceID: l.endpoint.WorkspaceID}
		return nil
	}
	if err != nil {
		return err
	}
	if l.endpoint.ID == "" {
		if l.outage, err = l.readOutage(ctx); err != nil {
			return err
		}
		l.seen = max(l.seen, l.outage.last)
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

// bound returns how many attempts the endpoint allows in flight.
func (l *lane) bound() int { return min(max(l.endpoint.MaxInFlight, 1), maxInFlight) }

// batch returns how many deliveries one read returns: the endpoint's bound, but at
// least the constant batch.
func (l *lane) batch() int { return max(l.bound(), batch) }

// take returns the next delivery to attempt, first attempts before retries. It
// does not remove the delivery from its list; launch does. ok is false if nothing
// is due.
func (l *lane) take(ctx context.Context) (d store.DueDelivery, ok bool, err error) {
	if err := l.readChats(ctx); err != nil {
		return d, false, err
	}
	if l.lineAt <= l.now() {
		l.lineAt = never
		l.lookAgain()
	}
	for len(l.firsts) == 0 && l.more {
		if err := l.readFirsts(ctx); err != nil {
			return d, false, err
		}
	}
	if len(l.firsts) > 0 && l.notYet <= l.now() {
		return l.firsts[0], true, nil
	}
	if len(l.retries) == 0 && l.due <= l.now() {
		if err := l.readRetries(ctx); err != nil {
			return d, false, err
		}
	}
	if len(l.retries) > 0 {
		return l.retries[0], true, nil
	}
	return d, false, nil
}

// readFirsts reads the next page of first attempts. As long as pages are full it
// continues behind the last one. After a backlog it reads once more from l.from,
// because transactions may commit in another order than that of their due times.
func (l *lane) readFirsts(ctx context.Context) error {
	at, behind, limit := l.now(), l.behind, l.batch()
	if behind.Row == 0 {
		behind, limit = store.Place{DueAt: l.from}, limit+len(l.held) // this read may return held deliveries again
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
		l.from = max(l.from, min(l.behind.DueAt, at).Add(-clockSlack))
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

// lookAgain makes the next read of first attempts start at the oldest one.
func (l *lane) lookAgain() {
	l.more, l.from, l.behind = true, 0, store.Place{}
}

// readChats reads the next delivery of each chat in l.chats. Deliveries of a chat
// are attempted one after the other.
func (l *lane) readChats(ctx context.Context) error {
	for ; len(l.chats) > 0; l.chats = l.chats[1:] {
		d, ok, err := l.db.Deliveries.NextOfChat(ctx, l.id, l.chats[0], l.now())
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		for _, d := range l.hold([]store.DueDelivery{d}) {
			if d.IsFirst() {
				l.firsts = append(l.firsts, d)
			} else {
				l.retries = append(l.retries, d)
			}
		}
	}
	return nil
}

// readRetries reads the retries that are due. If there are none, it sets l.due and
// l.lineAt to the times when to look again.
func (l *lane) readRetries(ctx context.Context) error {
	at := l.now()
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
	if l.lineAt <= at { // take has not handled it yet
		l.due = l.lineAt
		return nil
	}
	if l.lineAt, ok, err = l.db.Deliveries.NextInLine(ctx, l.id, at); !ok {
		l.lineAt = never
	}
	l.due = min(l.due, l.lineAt, l.nextProbe())
	return err
}

// hold returns the deliveries of list that the lane does not hold yet, and marks
// them as held. It reuses the array of list.
func (l *lane) hold(list []store.DueDelivery) []store.DueDelivery {
	fresh := list[:0]
	for _, d := range list {
		if _, ok := l.held[d.ID]; !ok {
			l.held[d.ID] = struct{}{}
			fresh = append(fresh, l.keep(d))
		}
	}
	clear(list[len(fresh):]) // they may have bodies
	return fresh
}

// slot takes a slot and sets l.shared. It returns false if no slot is free. Each
// lane has one slot of its own, so that other endpoints can never block it.
func (l *lane) slot() bool {
	if l.shared = l.own; l.shared {
		return l.slots.take(l.endpoint.WorkspaceID, 1)
	}
	l.own = true
	return true
}

// freeSlot releases a shared slot or the lane's own one.
func (l *lane) freeSlot(shared bool) {
	if shared {
		l.slots.give(l.endpoint.WorkspaceID, 1)
	} else {
		l.own = false
	}
}

// launch starts the attempt of a delivery that take returned, in the slot and the room
// that were taken last.
func (l *lane) launch(work context.Context, d store.DueDelivery) {
	shared := l.shared
	l.flying++
	l.remove(d.ID)
	a := &attempt{Dispatcher: l.Dispatcher, endpoint: l.endpoint, signer: l.signer, delivery: d}
	id, chat, size, first := d.ID, d.Chat, d.Size, d.FirstAttemptAt
	l.workers.do(func() {
		var got verdict
		a.run(work,
			func(v verdict, quiet postern.Time) {
				got = v
				l.done <- report{
					id: id, verdict: v, first: first, quiet: quiet, shared: shared, size: size, answered: true,
				}
			},
			func(f fate) { l.done <- report{id: id, verdict: got, chat: chat, fate: f} })
	})
}

// remove removes the delivery that take returned from its list.
func (l *lane) remove(id postern.DeliveryID) {
	list := &l.retries
	if len(l.firsts) > 0 && l.firsts[0].ID == id {
		list = &l.firsts
	}
	(*list)[0].Body = nil // the array stays while others of the list wait
	*list = (*list)[1:]
}

// land handles a report. Each attempt sends two: one when it was answered, which
// frees its slot, and one when the outcome is durable. The next POST does not wait
// for the second one.
func (l *lane) land(r report) {
	if !r.answered {
		delete(l.held, r.id)
		l.recording--
		if r.verdict.failed() {
			l.recorded()
		}
		l.halted = l.halted && l.recording > 0
		if r.fate != fateEnded || l.early { // the delivery has a new due time, or a replay was requested meanwhile
			l.due, l.early = 0, false
		}
		if r.fate == fateNotMade {
			l.lookAgain()
		}
		if r.chat != "" { // the next delivery of the chat waited for this one
			l.chats = append(l.chats, r.chat)
		}
		return
	}
	l.flying--
	l.recording++
	l.freeSlot(r.shared)
	l.release(r.size)
	l.heed(r)
	l.adapt(r.verdict)
}

// adapt halves the lane's width when the endpoint is slow and increases it by one
// with each success. An endpoint that hangs therefore takes few shared slots.
func (l *lane) adapt(v verdict) {
	switch v {
	case well:
		l.width = min(l.width+1, l.bound())
	case slow:
		l.width = max(l.width/2, 1)
		l.unload()
	case gone:
		l.halted = true
	case unwell, unmade: // the answer was quick, so that the slot was not blocked
	}
}
