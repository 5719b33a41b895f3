package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"postern/internal/postern"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// op is one write: it runs its statements in the transaction it is given and
// may be run again after a rollback.
type op interface {
	apply(t *tx) error
}

// opFunc is an op for what happens rarely.
type opFunc func(t *tx) error

func (f opFunc) apply(t *tx) error { return f(t) }

// request is an op on its way through the writer; done is nil for Later.
type request struct {
	op   op
	done chan error
}

// writer is the one goroutine that writes. It owns one connection with its
// prepared statements.
type writer struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	in    chan request
	quit  chan struct{}
	ended chan struct{}
	wake  func([]Wake)
	log   *slog.Logger
}

func newWriter(conn *sql.Conn, wake func([]Wake), log *slog.Logger) *writer {
	return &writer{
		conn: conn, stmts: map[string]*sql.Stmt{}, wake: wake, log: log,
		in: make(chan request, queueLength), quit: make(chan struct{}), ended: make(chan struct{}),
	}
}

// do hands an op over and waits until it is durable or refused. Once handed
// over, the op is waited for even when ctx ends: its outcome must be known.
func (w *writer) do(ctx context.Context, o op) error {
	r := request{op: o, done: make(chan error, 1)}
	select {
	case w.in <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return errClosed()
	}
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

// later hands an op over without waiting for it.
func (w *writer) later(o op) {
	select {
	case w.in <- request{op: o}:
	case <-w.quit:
	}
}

func errClosed() error { return postern.Errorf(postern.Unavailable, "the server is stopping") }

// run commits groups until close, then what is still waiting.
func (w *writer) run() {
	defer close(w.ended)
	for {
		select {
		case r := <-w.in:
			w.commit(w.collect(r))
		case <-w.quit:
			for {
				select {
				case r := <-w.in:
					w.commit(w.collect(r))
				default:
					return
				}
			}
		}
	}
}

// close ends run after all that was handed over is written.
func (w *writer) close() {
	close(w.quit)
	<-w.ended
}

// collect takes what waits, so that it shares one fsync. It does not linger:
// the fsync of the group before is the time in which a group gathers.
func (w *writer) collect(first request) []request {
	group := append(make([]request, 0, groupSize), first)
	for len(group) < groupSize {
		select {
		case r := <-w.in:
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

// commit writes a group. When an op fails the group is rolled back and written
// again with a savepoint around each op, so that one caller's conflict never
// fails its neighbours.
func (w *writer) commit(group []request) {
	errs := make([]error, len(group))
	wakes, err := w.transact(group, errs, false)
	if err != nil {
		clear(errs)
		wakes, err = w.transact(group, errs, true)
	}
	if err == nil && len(wakes) > 0 {
		w.wake(wakes)
	}
	for i, r := range group {
		w.answer(r, errors.Join(errs[i], err))
	}
}

func (w *writer) answer(r request, err error) {
	switch {
	case r.done != nil:
		r.done <- err
	case err != nil:
		w.log.Error("a write that nobody waits for failed", "op", fmt.Sprintf("%T", r.op), "error", err)
	}
}

// transact runs the group in one transaction. With savepoints each op has its
// own outcome in errs; without, the first failure is returned.
func (w *writer) transact(group []request, errs []error, savepoints bool) (wakes []Wake, err error) {
	t := &tx{w: w, ctx: context.Background()} // a group belongs to many callers: no one's context may end it
	if err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return nil, unavailable(err)
	}
	for i, r := range group {
		if err := t.run(r.op, savepoints, &errs[i]); err != nil {
			return nil, errors.Join(err, t.exec("ROLLBACK"))
		}
	}
	if err := t.exec("COMMIT"); err != nil {
		return nil, errors.Join(postern.Errorf(postern.Unavailable, "the storage cannot be written now"), err, t.exec("ROLLBACK"))
	}
	return t.wakes, nil
}

// tx is a transaction of the writer. Statements are prepared once.
type tx struct {
	w     *writer
	ctx   context.Context //nolint:containedctx // it lives as long as one group
	wakes []Wake
}

// run applies one op. Without savepoints its failure ends the group; with
// them it is the op's own outcome.
func (t *tx) run(o op, savepoints bool, outcome *error) (err error) {
	if !savepoints {
		return t.guardPanic(o)
	}
	*outcome, err = t.guarded(o)
	return err
}

// guarded applies an op between savepoints. When the op cannot be taken back
// alone, the transaction is lost: a full disk makes SQLite roll all of it back
// by itself (sqlite.org/lang_transaction, 3.1), and then nothing of the group
// may be committed or said to be.
func (t *tx) guarded(o op) (outcome, lost error) {
	if err := t.exec("SAVEPOINT op"); err != nil {
		return nil, unavailable(err)
	}
	before := len(t.wakes)
	outcome = t.guardPanic(o)
	if outcome != nil {
		t.wakes = t.wakes[:before]
		lost = t.exec("ROLLBACK TO op")
	}
	if lost = errors.Join(lost, t.exec("RELEASE op")); lost != nil {
		return nil, errors.Join(postern.Errorf(postern.Unavailable, "the storage cannot be written now"), lost, outcome)
	}
	return outcome, nil
}

// guardPanic keeps a mistake in one op from ending the only writer.
func (t *tx) guardPanic(o op) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in %T: %v", o, p)
		}
	}()
	return unavailable(o.apply(t))
}

func (t *tx) stmt(query string) (*sql.Stmt, error) {
	if s := t.w.stmts[query]; s != nil {
		return s, nil
	}
	s, err := t.w.conn.PrepareContext(t.ctx, query)
	if err != nil {
		return nil, err
	}
	t.w.stmts[query] = s
	return s, nil
}

func (t *tx) exec(query string, args ...any) error {
	_, err := t.changed(query, args...)
	return err
}

// changed runs a statement and says how many rows it touched.
func (t *tx) changed(query string, args ...any) (int64, error) {
	s, err := t.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// row reads one row into dst; sql.ErrNoRows when there is none.
func (t *tx) row(query string, args []any, dst ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(t.ctx, args...).Scan(dst...)
}

// rows calls scan for each row.
func (t *tx) rows(query string, args []any, scan func(*sql.Rows) error) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(t.ctx, args...)
	if err != nil {
		return err
	}
	return each(rows, scan)
}

func each(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close() // rows.Err below reports what went wrong
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// wake announces a change once the transaction is committed.
func (t *tx) wake(topic Topic, id string) { t.wakes = append(t.wakes, Wake{topic, id}) }

// unavailable turns a failing disk into the error that callers may retry.
func unavailable(err error) error {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return err
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("%w (%w)", postern.Errorf(postern.Unavailable, "the storage cannot be written now"), err)
	}
	return err
}
