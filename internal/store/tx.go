package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"postern/internal/postern"
)

// tx is a transaction of the writer. Statements are prepared once.
type tx struct {
	w     *writer
	ctx   context.Context //nolint:containedctx // it lives as long as one group
	wakes []Wake

	changes bool  // the op at hand has changed a row
	failed  error // a statement of the op at hand failed

	well    map[postern.EndpointID]struct{} // endpoints that this transaction has noted to be well
	tallies map[tallyKey]tally              // attempts that were counted and are not written yet
	hours   map[hourKey]standing            // messages, likewise
	chats   map[chatKey]struct{}            // that have new messages, likewise
}

// runGroup applies the ops of the writer's group. The first time, it may become
// shorter: see turns.
func (t *tx) runGroup(savepoints bool) error {
	if t.w.dialect.remote && !savepoints {
		list := make([]pending, len(t.w.group))
		for i, r := range t.w.group {
			list[i] = pending{r.op, &t.w.group[i].outcome}
		}
		return t.runTogether(list)
	}
	for i := 0; i < len(t.w.group); i++ {
		r := &t.w.group[i]
		if err := t.run(r.op, savepoints, &r.outcome); err != nil {
			return err
		}
		if !savepoints {
			t.w.group = t.w.turns.cut(t.w.group, i+1, t.w.in)
		}
	}
	return nil
}

// run applies one op. With savepoints, its failure is its own outcome; without
// them it ends the group. A refusal that comes before any change has nothing to
// take back, so the group goes on without it.
func (t *tx) run(o op, savepoints bool, outcome *error) (err error) {
	if savepoints {
		*outcome, err = t.guarded(o)
		return err
	}
	before := len(t.wakes)
	if err = t.apply(o); err != nil && !t.changes && t.failed == nil {
		*outcome, err = err, nil
		t.wakes = t.wakes[:before]
	}
	return err
}

// guarded applies an op between savepoints. When the op cannot be taken back
// alone, the transaction is lost: a full disk makes SQLite roll all of it back
// by itself (sqlite.org/lang_transaction, 3.1), and then nothing of the group
// may be committed or said to be.
func (t *tx) guarded(o op) (outcome, lost error) {
	if err := errors.Join(t.writeTallies(), t.exec("SAVEPOINT op")); err != nil {
		return nil, unavailable(err)
	}
	before := len(t.wakes)
	if outcome = t.apply(o); outcome == nil {
		outcome = unavailable(t.writeTallies())
	}
	clear(t.well) // what was noted may be taken back
	clear(t.tallies)
	clear(t.hours)
	clear(t.chats)
	if outcome != nil {
		t.wakes = t.wakes[:before]
		lost = t.exec("ROLLBACK TO op")
	}
	if lost = errors.Join(lost, t.exec("RELEASE op")); lost != nil {
		return nil, errors.Join(storageFails("the storage cannot be written now"), unavailable(lost), outcome)
	}
	return outcome, nil
}

// apply runs an op, and keeps a mistake in it from ending the only writer. An
// op that goes on after a failed statement has failed: PostgreSQL would turn
// the commit of it, and of its neighbours, into a rollback.
func (t *tx) apply(o op) (err error) {
	t.changes, t.failed = false, nil
	defer func() {
		if p := recover(); p != nil {
			t.changes, err = true, fmt.Errorf("panic in %T: %v", o, p)
		}
	}()
	err = o.apply(t)
	if err == nil && t.failed != nil {
		err = fmt.Errorf("%T went on after a failed statement: %w", o, t.failed)
	}
	return unavailable(err)
}

func (t *tx) stmt(query string) (*sql.Stmt, error) {
	if changesDevices(query) {
		t.wakes = append(t.wakes, deviceRow)
	}
	if s := t.w.stmts[query]; s != nil {
		return s, nil
	}
	s, err := t.w.conn.PrepareContext(t.ctx, query)
	if err != nil {
		t.failed = err
		return nil, err
	}
	t.w.stmts[query] = s
	return s, nil
}

// ran notes what a statement did, for apply and run.
func (t *tx) ran(err error, changes bool) error {
	switch {
	case err == nil:
		t.changes = t.changes || changes
	case !errors.Is(err, sql.ErrNoRows):
		t.failed = err
	}
	return err
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
	res, err := s.ExecContext(t.ctx, plain(args)...)
	if err != nil {
		return 0, t.ran(err, false)
	}
	n, err := res.RowsAffected()
	return n, t.ran(err, n > 0)
}

// row reads one row into dst; sql.ErrNoRows when there is none.
func (t *tx) row(query string, args []any, dst ...any) error {
	return t.one(query, args...).Scan(dst...)
}

// one is the row that a query finds; its Scan says what went wrong.
func (t *tx) one(query string, args ...any) scanner {
	s, err := t.stmt(query)
	if err != nil {
		return failedRow{err}
	}
	return txRow{t, s.QueryRowContext(t.ctx, plain(args)...), writes(query)}
}

// txRow tells the transaction what became of it.
type txRow struct {
	t      *tx
	row    *sql.Row
	writes bool
}

func (r txRow) Scan(dst ...any) error { return r.t.ran(r.row.Scan(dst...), r.writes) }

// writes tells a query that changes what it gives from one that only reads.
func writes(query string) bool { return !strings.HasPrefix(query, "SELECT") }

// rows calls scan for each row.
func (t *tx) rows(query string, args []any, scan func(*sql.Rows) error) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(t.ctx, plain(args)...)
	if err == nil {
		err = each(rows, scan)
	}
	return t.ran(err, writes(query))
}

// each gives what a query found to scan, row by row.
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
