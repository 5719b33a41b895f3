package db

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// request is a write on its way through the writer.
type request struct {
	write   Write
	about   About
	done    chan error  // nil when nobody waits
	then    func(error) // called instead of done, from the writer; must not block
	outcome error       // of the write itself, however its group ends
}

func newRequest(w Write) request { return request{write: w, about: w.about()} }

func (r *request) pending() pending { return pending{r.write, &r.outcome} }

// hurried tells a write on which something depends.
func (r *request) hurried() bool { return r.done != nil && r.about.Urgency != Patient }

// writer is the one goroutine that writes. It owns one connection with its prepared
// statements, and replaces it when PostgreSQL's is lost.
type writer struct {
	connection

	in        chan request
	stir      chan struct{} // readable when a group that gathers should wait no longer
	quit      chan struct{}
	ended     chan struct{}
	ledgers   ledgers
	wake      func([]Wake)
	written   func(writes int, several bool)       // after each group that is on disk; may be nil
	committed func(writes int, took time.Duration) // see [Options.Committed]
	trace     func(query string, args []any)       // see [Options.Trace]
	fence     func(*Tx) error                      // see [Options.Fence]
	log       *slog.Logger
	scheduler scheduler
	group     []request // being written
	crowded   bool      // the last group waited for its turn among the servers

	carried []request // of Later, from groups whose connection was lost
	owed    []Wake    // of groups whose commit got no response
}

func newWriter(c connection, l []Ledger, wake func([]Wake), log *slog.Logger) *writer {
	return &writer{
		connection: c, ledgers: l, wake: wake, log: log, scheduler: newScheduler(c.dialect.sharing),
		in: make(chan request, queueLength), stir: make(chan struct{}, 1), quit: make(chan struct{}),
		ended: make(chan struct{}),
	}
}

// do hands a write over and waits until it is durable or refused.
func (w *writer) do(ctx context.Context, one Write) error {
	wait, err := w.start(ctx, one)
	if err != nil {
		return err
	}
	return wait()
}

func (w *writer) start(ctx context.Context, one Write) (wait func() error, err error) {
	r := newRequest(one)
	r.done = make(chan error, 1)
	select {
	case w.in <- r:
		w.stirFor(&r)
		return func() error { return w.outcome(r) }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.quit:
		return nil, errClosed()
	}
}

func (w *writer) outcome(r request) error {
	select {
	case err := <-r.done:
		return err
	case <-w.ended:
	}
	select {
	case err := <-r.done: // it was written in the last group
		return err
	default:
		return errClosed()
	}
}

// hand gives the writer a request that nobody waits for.
func (w *writer) hand(r request) {
	select {
	case w.in <- r:
		w.stirFor(&r)
	case <-w.quit:
		w.answer(r, errClosed())
		return
	}
	select {
	case <-w.ended: // perhaps before it had the request
		w.refuse()
	default: // it takes the request, or refuses it at its end
	}
}

// refuse answers what was handed over after the last group was taken.
func (w *writer) refuse() {
	for {
		select {
		case r := <-w.in:
			w.answer(r, errClosed())
		default:
			return
		}
	}
}

func errClosed() error { return &UnavailableError{Detail: "the server is stopping"} }

// run commits groups until close, then what is still waiting.
func (w *writer) run() {
	defer w.refuse()
	defer close(w.ended)
	defer w.drop()
	var tick <-chan time.Time
	if w.dialect.remote {
		ticker := time.NewTicker(writerTick)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		w.commitWaiting()
		select {
		case r := <-w.in:
			w.scheduler.add(r)
		case <-tick:
			w.revive()
		case <-w.quit:
			w.finish()
			return
		}
	}
}

func (w *writer) commitWaiting() {
	for len(w.scheduler.waiting) > 0 {
		if group := w.collect(); len(group) > 0 {
			w.commit(group)
		}
		if time.Since(w.looked) >= writerTick {
			w.ping() // under load, run does not come to its ticks
		}
	}
}

// finish commits what was handed over before the end.
func (w *writer) finish() {
	for {
		select {
		case r := <-w.in:
			w.scheduler.add(r)
			w.commitWaiting()
		default:
			w.revive()
			for _, r := range w.carried {
				w.answer(r, errors.New("the connection was lost"))
			}
			return
		}
	}
}

// revive checks the connection while there is nothing to write. A lost one is replaced,
// and what was left undone is written.
func (w *writer) revive() {
	if !w.dialect.remote {
		return
	}
	w.ping()
	if err := w.ready(); err != nil {
		return // tried again at the next tick
	}
	if len(w.carried)+len(w.owed) > 0 {
		w.commit(nil)
	}
}

// close ends run once everything that was handed over is written.
func (w *writer) close() {
	close(w.quit)
	<-w.ended
}

// stirFor ends the gathering of a group if somebody waits for a request, or if there is enough of it.
// Other requests do not wake the writer.
func (w *writer) stirFor(r *request) {
	if !r.hurried() && len(w.in) < gatherGroup {
		return
	}
	select {
	case w.stir <- struct{}{}:
	default:
	}
}

// collect takes what waits, so that it shares one fsync. It does not linger while a
// caller waits: a group gathers during the fsync of the one before. A group for which
// nobody waits gathers a little longer.
func (w *writer) collect() []request {
	w.takeIn()
	ready, hurry, rested := w.scheduler.look(time.Now())
	if !hurry && ready == 0 {
		ready, hurry = w.rest(rested)
	}
	if !hurry {
		w.gather(ready)
	}
	return w.scheduler.next(time.Now())
}

// takeIn lets the scheduler have what was handed over.
func (w *writer) takeIn() {
	for len(w.in) > 0 && w.scheduler.room() > 0 {
		w.scheduler.add(<-w.in)
	}
}

// rest waits until a pausing workspace may write again, or until there is something else to write.
func (w *writer) rest(until time.Time) (ready int, hurry bool) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		in := w.in
		if w.scheduler.room() == 0 {
			in = nil // only time helps
		}
		select {
		case <-timer.C:
		case r := <-in:
			w.scheduler.add(r)
			if !w.scheduler.rests(r, time.Now()).IsZero() {
				continue
			}
		}
		ready, hurry, _ = w.scheduler.look(time.Now())
		return ready, hurry
	}
}

// gather waits for more writes that nobody waits for.
func (w *writer) gather(ready int) {
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	for hurry := false; ready < gatherGroup && !hurry; ready, hurry, _ = w.scheduler.look(time.Now()) {
		select {
		case <-timer.C:
			w.takeIn()
			return
		case <-w.stir:
			w.takeIn()
		}
	}
}
