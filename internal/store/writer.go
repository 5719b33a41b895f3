package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"postern/internal/postern"
)

// op is one write: it runs its statements in the transaction it is given and
// may be run again after a rollback.
type op interface {
	apply(t *tx) error
}

// opFunc is an op for what happens rarely.
type opFunc func(t *tx) error

func (f opFunc) apply(t *tx) error { return f(t) }

// request is an op on its way through the writer.
type request struct {
	op      op
	done    chan error  // nil when nobody waits
	then    func(error) // called in place of done, from the writer; must not block
	outcome error       // of the op itself, whatever becomes of its group
}

// writer is the one goroutine that writes. It owns one connection with its
// prepared statements, and with PostgreSQL makes a new one when that is lost.
type writer struct {
	session

	in      chan request
	quit    chan struct{}
	ended   chan struct{}
	wake    func([]Wake)
	written func(several bool) // a group is on disk; may be nil
	log     *slog.Logger
	turns   turns
	group   []request // that is being written

	kept []request // of Later, from groups whose connection was lost
	owed []Wake    // of groups of which nobody knows whether they were committed
}

// newWriter makes a writer whose first connection is conn.
func newWriter(d dialect, connect func(context.Context) (*sql.Conn, error), look func(context.Context, *sql.Conn) error, conn *sql.Conn, wake func([]Wake), log *slog.Logger) *writer {
	return &writer{
		session: session{dialect: d, connect: connect, look: look, conn: conn, stmts: map[string]*sql.Stmt{}, taken: make(chan struct{})},
		wake:    wake, log: log, turns: newTurns(d.turns),
		in: make(chan request, queueLength), quit: make(chan struct{}), ended: make(chan struct{}),
	}
}

// do hands an op over and waits until it is durable or refused.
func (w *writer) do(ctx context.Context, o op) error {
	wait, err := w.start(ctx, o)
	if err != nil {
		return err
	}
	return wait()
}

// start hands an op over. The function it returns waits, once, until the op is
// durable or refused, even when ctx ends: its outcome must be known.
func (w *writer) start(ctx context.Context, o op) (wait func() error, err error) {
	r := request{op: o, done: make(chan error, 1)}
	select {
	case w.in <- r:
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

// later hands an op over without waiting for it. After a lost connection it may
// be written twice: it must do no harm then.
func (w *writer) later(o op) { w.hand(request{op: o}) }

// after hands an op over and has then called once with its outcome, mostly from
// the writer, so that nobody need wait.
func (w *writer) after(o op, then func(error)) { w.hand(request{op: o, then: then}) }

// hand gives the writer a request that nobody waits for.
func (w *writer) hand(r request) {
	select {
	case w.in <- r:
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

func errClosed() error { return postern.Errorf(postern.Unavailable, "the server is stopping") }

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
			w.turns.add(r)
		case <-tick:
			w.revive()
		case <-w.quit:
			w.finish()
			return
		}
	}
}

func (w *writer) commitWaiting() {
	for len(w.turns.waiting) > 0 {
		if group := w.collect(); len(group) > 0 {
			w.commit(group)
		}
	}
}

// finish commits what was handed over before the end.
func (w *writer) finish() {
	for {
		select {
		case r := <-w.in:
			w.turns.add(r)
			w.commitWaiting()
		default:
			w.revive()
			for _, r := range w.kept {
				w.answer(r, errors.New("the connection was lost"))
			}
			return
		}
	}
}

// revive looks after the connection when nothing is to be written: one that
// was lost is made again, with what was left undone.
func (w *writer) revive() {
	if !w.dialect.remote {
		return
	}
	w.ping()
	if err := w.ready(); err != nil {
		return // it is tried again at the next tick
	}
	if len(w.kept)+len(w.owed) > 0 {
		w.commit(nil)
	}
}

// close ends run after all that was handed over is written.
func (w *writer) close() {
	close(w.quit)
	<-w.ended
}

// collect takes what waits, so that it shares one fsync. For a caller it does
// not linger: the fsync of the group before is the time in which a group
// gathers. A group that keeps nobody waiting gathers a little longer.
func (w *writer) collect() []request {
	for len(w.in) > 0 && len(w.turns.waiting) < queueLength {
		w.turns.add(<-w.in)
	}
	now := time.Now()
	ready, hurry, rested := w.turns.look(now)
	if hurry {
		return w.turns.next(now)
	}
	w.linger(ready, rested)
	return w.turns.next(time.Now())
}

// linger waits for more, or until somebody has rested; not once somebody waits
// for the group.
func (w *writer) linger(ready int, rested time.Time) {
	wait := patience
	if ready == 0 {
		wait = time.Until(rested)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for ready < patientGroup {
		select {
		case <-timer.C:
			return
		case r := <-w.in:
			w.turns.add(r)
			if !w.turns.rests(r, time.Now()).IsZero() {
				continue
			}
			if hurried(r) {
				return
			}
			if ready++; ready == 1 {
				timer.Reset(min(patience, time.Until(rested)))
			}
		}
	}
}

// hurried tells a write for which something stands still.
func hurried(r request) bool {
	_, is := bare(r.op).(Attempt)
	return !is && r.done != nil
}

// commit writes a group. When an op fails the group is rolled back and written
// again with a savepoint around each op, so that one caller's conflict never
// fails its neighbours.
func (w *writer) commit(group []request) {
	began := time.Now()
	w.group, w.kept = append(w.kept, group...), nil
	wakes, err := w.transact(false)
	if err != nil && !errors.Is(err, errUnknown) {
		wakes, err = w.transact(true)
	}
	if errors.Is(err, errUnknown) {
		w.owed = append(w.owed, wakes...)
	}
	if err == nil {
		w.publish(wakes)
	}
	for _, r := range w.group {
		if err != nil && r.done == nil && r.then == nil && w.conn == nil && len(w.kept) < queueLength {
			w.kept = append(w.kept, request{op: r.op}) // it keeps its place before all that follows
			continue
		}
		w.answer(r, errors.Join(err, r.outcome))
	}
	w.turns.tire(w.group, time.Now(), time.Since(began))
	w.group = nil
	if err == nil && w.written != nil {
		w.written(len(w.turns.seen) > 1)
	}
}

// publish wakes who waits for a change. Groups whose commit was not answered
// may have been committed: a wake too many harms nobody.
func (w *writer) publish(wakes []Wake) {
	wakes = append(wakes, w.owed...)
	w.owed = nil
	if len(wakes) > 0 {
		w.wake(wakes)
	}
}

func (w *writer) answer(r request, err error) {
	switch {
	case r.done != nil:
		r.done <- err
	case r.then != nil:
		r.then(err)
	case err != nil:
		w.log.Error("a write that nobody waits for failed", "op", fmt.Sprintf("%T", r.op), "error", err)
	}
}

// errUnknown means that the connection was lost while the commit was under
// way: the group is on disk, or it is not.
var errUnknown = errors.New("nobody knows whether it was committed")

// transact runs the group in one transaction. With savepoints each op has its
// own outcome; without, the first failure is returned, but for a refusal that
// has changed nothing.
func (w *writer) transact(savepoints bool) (wakes []Wake, err error) {
	if err := w.ready(); err != nil {
		return nil, err
	}
	defer w.check()
	t := &tx{w: w, ctx: context.Background(), well: map[postern.EndpointID]struct{}{}, tallies: map[tallyKey]tally{}, hours: map[hourKey]standing{}, chats: map[chatKey]struct{}{}} // a group belongs to many callers: no one's context may end it
	if err := t.exec(w.dialect.begin); err != nil {
		return nil, unavailable(err)
	}
	if err := t.runGroup(savepoints); err != nil {
		return nil, errors.Join(err, w.rollback(t))
	}
	if err := t.writeTallies(); err != nil {
		return nil, errors.Join(err, w.rollback(t))
	}
	if err := t.exec("COMMIT"); err != nil {
		err = errors.Join(storageFails("the storage cannot be written now"), unavailable(err))
		if w.lost() {
			return t.wakes, errors.Join(err, errUnknown)
		}
		return nil, errors.Join(err, w.rollback(t))
	}
	return t.wakes, nil
}

// rollback ends a transaction that failed. A connection on which that cannot
// be done is no longer used.
func (w *writer) rollback(t *tx) error {
	err := t.exec("ROLLBACK")
	if err != nil && w.dialect.remote {
		w.drop()
	}
	return err
}
