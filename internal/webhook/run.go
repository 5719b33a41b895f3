package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
)

// run is the state of Dispatcher.Run. Only the goroutine of Run uses it.
type run struct {
	*Dispatcher
	fresh   *store.Listener // endpoints with a new first attempt
	again   *store.Listener // endpoints with a new retry or replay
	changed *store.Listener // endpoints whose settings or status changed

	lanes map[postern.EndpointID]*lane
	ended chan *lane

	sleepers map[postern.EndpointID]*time.Timer // timers of endpoints whose next delivery is due later
	armed    sync.WaitGroup                     // counts the timers that run
	roused   chan postern.EndpointID            // endpoints whose timer has fired

	greeting map[postern.EndpointID]struct{} // handshakes in flight
	greeted  chan postern.EndpointID         // handshakes that have ended
	greetAt  *time.Timer                     // fires when the next handshake is due
}

// Run delivers events and makes handshakes until ctx is done. It then starts no
// new attempt, waits for those in flight at most as long as Options.Drain, and
// cancels the rest. Canceled deliveries stay due and are attempted after the next
// start. Run returns an error only if it cannot read the endpoints at its start.
// It must be called only once.
func (d *Dispatcher) Run(ctx context.Context) error {
	work, abandon := context.WithCancel(context.WithoutCancel(ctx)) // attempts outlive ctx by the drain time
	defer abandon()
	defer d.startReplays(ctx)()
	r := d.newRun()
	defer r.close()
	t := d.newTerm(ctx, work)
	// A lease that is lost ends the term, and the next one looks again.
	if err := r.start(t.ctx, t.work); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrLeaseLost) {
		t.end()
		return err
	}
	for ctx.Err() == nil {
		if r.once(t.ctx, t.work); t.isOver() {
			r.awaitLanes()
			r.leases.DeliveriesStopped()
			t.end()
			t = r.newTerm(ctx, work)
			r.look(t.ctx, t.work)
		}
	}
	r.finish(abandon)
	t.end()
	return nil
}

// term is the time for which this server has its lease. When it is over, all lanes end, and
// attempts in flight are canceled: others will make them.
type term struct {
	ctx, work context.Context //nolint:containedctx // they are derived from those of Run
	over      chan struct{}   // closed when the lease has ended
	end       func()
}

// newTerm begins a term. It ends with the lease, whatever the dispatcher is waiting for.
func (d *Dispatcher) newTerm(ctx, work context.Context) term {
	ctx, stop := context.WithCancel(ctx)
	work, cancel := context.WithCancel(work)
	t := term{ctx: ctx, work: work, over: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-d.leases.Ended.C():
			d.leases.Ended.Take()
			close(t.over)
			stop()
			cancel()
		case <-ctx.Done():
		}
	}()
	t.end = func() { stop(); cancel(); <-ended }
	return t
}

func (t term) isOver() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

func (d *Dispatcher) newRun() *run {
	return &run{
		Dispatcher: d,
		fresh:      d.db.Listen(store.DeliveryDue, ""),
		again:      d.db.Listen(store.RetryDue, ""),
		changed:    d.db.Listen(store.EndpointChanged, ""),
		lanes:      map[postern.EndpointID]*lane{},
		ended:      make(chan *lane),
		sleepers:   map[postern.EndpointID]*time.Timer{},
		roused:     make(chan postern.EndpointID),
		greeting:   map[postern.EndpointID]struct{}{},
		greeted:    make(chan postern.EndpointID),
		greetAt:    time.NewTimer(0),
	}
}

func (r *run) close() {
	r.fresh.Close()
	r.again.Close()
	r.changed.Close()
	r.greetAt.Stop()
	r.workers.close() // all lanes have ended
}

// start starts lanes for the endpoints that have deliveries, such as those of the last process.
func (r *run) start(ctx, work context.Context) error {
	ids, err := r.db.Endpoints.WithWork(ctx)
	if err != nil {
		return fmt.Errorf("list the endpoints with work: %w", err)
	}
	mine, err := r.leases.Endpoints(ctx, ids...)
	for _, id := range mine {
		r.rouse(ctx, work, id)
	}
	return err
}

// once waits for one event and handles it.
func (r *run) once(ctx, work context.Context) {
	select {
	case <-ctx.Done():
	case <-r.leases.Changed.C():
		r.leases.Changed.Take()
		r.look(ctx, work)
		r.greet(ctx, work)
	case <-r.fresh.C():
		for _, id := range r.fresh.Take() {
			if id == store.Anything {
				r.look(ctx, work)
				continue
			}
			r.announce(ctx, work, postern.EndpointID(id))
		}
	case <-r.again.C():
		r.rouseAll(ctx, work, r.again.Take())
	case <-r.changed.C():
		r.rouseAll(ctx, work, r.changed.Take())
		r.greet(ctx, work)
	case id := <-r.roused:
		r.rouse(ctx, work, id)
	case l := <-r.ended:
		r.laneEnded(ctx, work, l)
	case <-r.greetAt.C:
		r.greet(ctx, work)
	case id := <-r.greeted:
		delete(r.greeting, id)
		r.greet(ctx, work)
	}
}

// announce tells an endpoint's lane that there is a new event. It starts a lane if
// there is none.
func (r *run) announce(ctx, work context.Context, id postern.EndpointID) {
	if l := r.lanes[id]; l != nil {
		nudge(l.fresh)
		return
	}
	r.rouse(ctx, work, id)
}

func (r *run) rouseAll(ctx, work context.Context, ids []string) {
	for _, id := range ids {
		if id == store.Anything {
			r.look(ctx, work)
			continue
		}
		r.rouse(ctx, work, postern.EndpointID(id))
	}
}

// look rouses all endpoints with work.
func (r *run) look(ctx, work context.Context) {
	if err := r.start(ctx, work); err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "look for deliveries", "error", err)
	}
}

// rouse tells an endpoint's lane to look for work. If there is no lane, it starts one, provided
// that this server owns the endpoint.
func (r *run) rouse(ctx, work context.Context, id postern.EndpointID) {
	if l := r.lanes[id]; l != nil {
		nudge(l.wake)
		return
	}
	r.disarm(id)
	if mine, err := r.leases.Endpoints(ctx, id); err != nil || len(mine) == 0 {
		if err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "take an endpoint", "endpoint", id, "error", err)
		}
		return
	}
	l := r.newLane(id)
	r.lanes[id] = l
	r.metrics.lanes.Inc()
	go func() {
		l.run(ctx, work)
		r.ended <- l
	}()
}

func (r *run) laneEnded(ctx, work context.Context, l *lane) {
	delete(r.lanes, l.id)
	r.metrics.lanes.Dec()
	switch {
	case l.nudged(): // after the lane looked for the last time
		r.rouse(ctx, work, l.id)
	case l.due != never:
		r.arm(work, l.id, l.due)
	}
}

// arm sets a timer that rouses an endpoint. A timer costs much less memory than a
// lane.
func (r *run) arm(work context.Context, id postern.EndpointID, at postern.Time) {
	r.armed.Add(1)
	r.sleepers[id] = time.AfterFunc(r.until(at), func() {
		defer r.armed.Done()
		select {
		case r.roused <- id:
		case <-work.Done():
		}
	})
}

func (r *run) disarm(id postern.EndpointID) {
	if t := r.sleepers[id]; t != nil && t.Stop() {
		r.armed.Done()
	}
	delete(r.sleepers, id)
}

// awaitLanes waits for the end of all lanes, whose term is over.
func (r *run) awaitLanes() {
	for len(r.lanes) > 0 {
		l := <-r.ended
		delete(r.lanes, l.id)
		r.metrics.lanes.Dec()
	}
}

// finish waits for the attempts and handshakes in flight, and cancels them when the
// drain time is over.
func (r *run) finish(abandon func()) {
	for id := range r.sleepers {
		r.disarm(id)
	}
	limit := time.AfterFunc(r.drain, abandon)
	defer limit.Stop()
	for len(r.lanes)+len(r.greeting) > 0 {
		select {
		case l := <-r.ended:
			delete(r.lanes, l.id)
			r.metrics.lanes.Dec()
		case id := <-r.greeted:
			delete(r.greeting, id)
		}
	}
	abandon()
	r.armed.Wait()
}
