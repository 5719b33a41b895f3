package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrUnknown means that the connection was lost during the commit: the group is on disk,
// or it is not.
var ErrUnknown = errors.New("it is unknown whether the commit succeeded")

// commit writes a group. If a write fails, the group is rolled back and written again
// with a savepoint around each write, so that one caller's conflict never fails its
// neighbours.
func (w *writer) commit(group []request) {
	began := time.Now()
	w.group, w.carried = append(w.carried, group...), nil
	wakes, err := w.transact(false)
	if err != nil && !errors.Is(err, ErrUnknown) {
		wakes, err = w.transact(true)
	}
	if errors.Is(err, ErrUnknown) {
		w.owed = append(w.owed, wakes...)
	}
	if err == nil {
		w.ledgers.committed(w.log)
		w.publish(wakes)
	}
	w.answerGroup(err)
	w.scheduler.tire(w.group, time.Now(), time.Since(began))
	if err == nil && w.committed != nil {
		w.committed(len(w.group), time.Since(began))
	}
	if err == nil && w.written != nil {
		w.written(len(w.group), len(w.scheduler.seen) > 1)
	}
	w.group = nil
}

// answerGroup gives each write its outcome. Those that nobody waits for survive a lost
// connection: they keep their place before everything that follows.
func (w *writer) answerGroup(err error) {
	for _, r := range w.group {
		if err != nil && r.done == nil && r.then == nil && w.conn == nil && len(w.carried) < queueLength {
			w.carried = append(w.carried, newRequest(r.write))
			continue
		}
		w.answer(r, errors.Join(err, r.outcome))
	}
}

// publish wakes those who wait for a change. Groups whose commit got no response may
// have been committed: one wake-up too many does no harm.
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
		_ = guarded(w.log, nameOf(r.write), func() error { r.then(err); return nil }) // it has logged its panic
	case err != nil:
		w.log.Error("a write that nobody waits for failed", "write", nameOf(r.write), "error", err)
	}
}

// guarded calls code that others wrote. It turns a panic, which it logs, into an error: a
// mistake of theirs must not end the only writer.
func guarded(log *slog.Logger, name string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in the writer", "in", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic in %s: %v", name, p)
		}
	}()
	return f()
}

// transact runs the group in one transaction. With savepoints each write has its own
// outcome. Without, it returns the first failure, except for a refusal that has changed
// nothing.
func (w *writer) transact(savepoints bool) (wakes []Wake, err error) {
	if err := w.ready(); err != nil {
		return nil, err
	}
	defer w.check()
	w.ledgers.begin()
	t := &Tx{w: w, ctx: context.Background(), seen: map[any]struct{}{}} // many callers: no single context may end it
	t.gathers = w.dialect.remote && !savepoints
	if err := t.Exec(w.dialect.begin); err != nil {
		return nil, unavailable(err)
	}
	if err := w.takeTurn(t); err != nil {
		return nil, errors.Join(unavailable(err), w.rollback(t))
	}
	if err := t.runGroup(savepoints); err != nil {
		return nil, errors.Join(err, w.rollback(t))
	}
	if err := t.writeLedgers(); err != nil {
		return nil, errors.Join(err, w.rollback(t))
	}
	if err := t.begin(); err != nil {
		return nil, errors.Join(unavailable(err), w.rollback(t))
	}
	if err := errors.Join(t.Exec("COMMIT"), t.send()); err != nil {
		_, unsent := errors.AsType[pgx.ErrPreprocessingBatch](err) // nothing of the batch was sent, so no COMMIT
		err = errors.Join(fails("the storage cannot be written now"), unavailable(err))
		if w.lost() && !unsent {
			return t.wakes, errors.Join(err, ErrUnknown)
		}
		return nil, errors.Join(err, w.rollback(t))
	}
	return t.wakes, nil
}

// takeTurn makes the other servers wait until the transaction has ended. PostgreSQL gets the statement with the
// first ones of the group, in one round trip. While others write, it gets it alone, and what was handed over
// during the wait joins the group.
func (w *writer) takeTurn(t *Tx) error {
	if w.dialect.turn == "" {
		return nil
	}
	if err := t.Exec(w.dialect.turn); err != nil || !w.crowded || !t.gathers {
		return err
	}
	if err := t.send(); err != nil {
		return err
	}
	w.takeIn()
	w.group = w.scheduler.fill(w.group, time.Now())
	return nil
}

// rollback ends a transaction that failed. A connection that cannot roll back is dropped.
func (w *writer) rollback(t *Tx) error {
	t.gathers, t.gathered = false, nil
	err := t.Exec("ROLLBACK")
	if err != nil && w.dialect.remote {
		w.drop()
	}
	return err
}
