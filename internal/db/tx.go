package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Tx is a transaction of the writer, shared by all writes of a group. Its
// statements are prepared once.
type Tx struct {
	w     *writer
	ctx   context.Context //nolint:containedctx // it lives as long as one group
	wakes []Wake
	seen  map[any]struct{} // see First

	asked    bool  // whether the fence was asked in this transaction
	fencedBy error // what it said

	gathers  bool        // statements whose result nobody needs
	gathered []statement // that were not sent yet

	changed bool  // the write at hand has changed a row
	failed  error // a statement of the write at hand failed
}

// Postgres tells whether the database is PostgreSQL.
func (t *Tx) Postgres() bool { return t.w.dialect.remote }

// InList is [DB.InList].
func (t *Tx) InList(n int) string { return t.w.dialect.inList(n) }

// Wake wakes those who listen to a topic once the transaction is committed.
func (t *Tx) Wake(topic Topic, id string) { t.wakes = append(t.wakes, Wake{topic, id}) }

// Note tells the ledgers of a change.
func (t *Tx) Note(change any) { t.w.ledgers.note(change) }

// writeLedgers writes what the ledgers have noted.
func (t *Tx) writeLedgers() error {
	return guarded(t.w.log, "a ledger", func() error { return t.w.ledgers.write(t) })
}

// First tells whether this is the first call with a key in this transaction, for
// what need not be done twice. After a partial rollback, keys are new again.
func (t *Tx) First(key any) bool {
	if _, seen := t.seen[key]; seen {
		return false
	}
	t.seen[key] = struct{}{}
	return true
}

// Forget makes a key of First new again.
func (t *Tx) Forget(key any) { delete(t.seen, key) }

// Exec runs a statement. PostgreSQL may get it later, together with those that follow; see [Tx.send].
func (t *Tx) Exec(query string, args ...any) error {
	if t.gathers {
		t.w.trace(query, nil)
		t.gathered = append(t.gathered, statement{query, plain(args)})
		t.changed = true // nobody knows yet
		return nil
	}
	_, err := t.result(query, args)
	return err
}

// statement is a statement of PostgreSQL whose result nobody needs.
type statement struct {
	query string
	args  []any
}

// send sends the statements that were gathered, in one round trip. They are gathered until one follows whose
// result is needed, and the last ones are sent with the commit. A failure is one of the group:
// its writes are repeated one by one, and then each statement has its own result.
func (t *Tx) send() error {
	if len(t.gathered) == 0 {
		return nil
	}
	list, began := t.gathered, time.Now()
	t.gathered = nil
	err := guarded(t.w.log, "the statements of a group", func() error { return t.w.together(t.ctx, list) })
	if list[0].query == t.w.dialect.begin { // so the turn is among them
		t.w.crowded = time.Since(began) > turnNoticed
	}
	return t.ran(err, false)
}

// begin begins the transaction at the server if nothing was sent yet. Otherwise a connection that was lost before
// would be noticed only by the commit, whose outcome would then be unknown.
func (t *Tx) begin() error {
	if len(t.gathered) > 0 && t.gathered[0].query == t.w.dialect.begin {
		return t.send()
	}
	return nil
}

// Changed runs a statement and returns the number of rows it changed.
func (t *Tx) Changed(query string, args ...any) (int64, error) {
	res, err := t.result(query, args)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (t *Tx) result(query string, args []any) (sql.Result, error) {
	s, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	res, err := s.ExecContext(t.ctx, s.args(args)...)
	if err != nil {
		return nil, t.ran(err, false)
	}
	n, err := res.RowsAffected()
	return res, t.ran(err, n > 0)
}

// Row reads one row into dst. The error is sql.ErrNoRows when there is none.
func (t *Tx) Row(query string, args []any, dst ...any) error {
	return t.One(query, args...).Scan(dst...)
}

// One is the row that a query finds. Its Scan returns what went wrong.
func (t *Tx) One(query string, args ...any) Scanner {
	s, err := t.stmt(query)
	if err != nil {
		return failedRow{err}
	}
	return txRow{t, s.QueryRowContext(t.ctx, s.args(args)...), writes(query)}
}

// Rows calls scan for each row that a query finds.
func (t *Tx) Rows(query string, args []any, scan func(*sql.Rows) error) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(t.ctx, s.args(args)...)
	if err == nil {
		err = each(rows, scan)
	}
	return t.ran(err, writes(query))
}

// Each runs a statement for each of the rows.
func (t *Tx) Each(s *Statement, rows [][]any, more ...any) error {
	if t.gathers && len(rows) > 0 {
		types, args := s.arrays(rows)
		return t.Exec(s.forRows(types), append(args, more...)...)
	}
	_, err := t.Count(s, rows, more...)
	return err
}

// Count runs a statement for each of the rows and returns the number of rows it changed.
func (t *Tx) Count(s *Statement, rows [][]any, more ...any) (n int64, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	if t.Postgres() {
		types, args := s.arrays(rows)
		return t.Changed(s.forRows(types), append(args, more...)...)
	}
	for _, row := range rows {
		changed, err := t.Changed(s.forRow(), append(row, more...)...)
		if n += changed; err != nil {
			return n, err
		}
	}
	return n, nil
}

// EachRow runs a statement for each of the rows and calls scan for every row that it
// finds or returns.
func (t *Tx) EachRow(s *Statement, rows [][]any, scan func(*sql.Rows) error, more ...any) error {
	if len(rows) == 0 {
		return nil
	}
	if t.Postgres() {
		types, args := s.arrays(rows)
		return t.Rows(s.forRows(types), append(args, more...), scan)
	}
	for _, row := range rows {
		if err := t.Rows(s.forRow(), append(row, more...), scan); err != nil {
			return err
		}
	}
	return nil
}

// Which runs an UPDATE or DELETE for each of the rows and tells for each of them whether it
// changed something. No two rows may be about the same row of the table.
func (t *Tx) Which(s *Statement, rows [][]any, more ...any) (changed []bool, err error) {
	changed = make([]bool, len(rows))
	if len(rows) == 0 {
		return changed, nil
	}
	if t.Postgres() {
		types, args := s.arrays(rows)
		err = t.Rows(s.forRows(types)+" RETURNING ord", append(args, more...), func(r *sql.Rows) error {
			var ord int
			err := r.Scan(&ord)
			changed[ord-1] = true
			return err
		})
		return changed, err
	}
	for i, row := range rows {
		n, err := t.Changed(s.forRow(), append(row, more...)...)
		if changed[i] = n > 0; err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// Inserted runs an INSERT that skips rows which conflict, and returns for each of the rows the number that its
// table has given it, from 1 on, and 0 if it was skipped. number is the column of these numbers. The statement's
// first column is a string that no two rows of the table have in common; PostgreSQL returns both. SQLite's
// RETURNING would double the cost of the statement.
func (t *Tx) Inserted(s *Statement, number string, rows [][]any) (numbers []int64, err error) {
	numbers = make([]int64, len(rows))
	if len(rows) == 0 {
		return numbers, nil
	}
	if t.Postgres() {
		return numbers, t.insertedTogether(s, number, rows, numbers)
	}
	for i, row := range rows {
		res, err := t.result(s.forRow(), row)
		if err != nil {
			return numbers, err
		}
		if n, _ := res.RowsAffected(); n > 0 { // SQLite's driver knows both without an error
			numbers[i], _ = res.LastInsertId()
		}
	}
	return numbers, nil
}

func (t *Tx) insertedTogether(s *Statement, number string, rows [][]any, numbers []int64) error {
	types, args := s.arrays(rows)
	keys := args[0].([]string) //nolint:errcheck,forcetypeassert // a programmer's mistake; run recovers
	places := make(map[string]int, len(rows))
	for i, key := range keys {
		places[key] = i
	}
	return t.Rows(s.forRows(types)+" RETURNING "+s.columns[0]+", "+number, args, func(r *sql.Rows) error {
		var key string
		var n int64
		err := r.Scan(&key, &n)
		numbers[places[key]] = n
		return err
	})
}

func (t *Tx) stmt(query string) (*prepared, error) {
	if err := t.send(); err != nil {
		return nil, err
	}
	t.w.trace(query, nil)
	if s := t.w.stmts[query]; s != nil {
		return s, nil
	}
	s, err := t.w.dialect.prepare(t.ctx, t.w.conn, query)
	if err != nil {
		t.failed = err
		return nil, err
	}
	t.w.stmts[query] = s
	return s, nil
}

// ran notes what a statement did, for run.
func (t *Tx) ran(err error, changed bool) error {
	switch {
	case err == nil:
		t.changed = t.changed || changed
	case !errors.Is(err, sql.ErrNoRows):
		t.failed = err
	}
	return err
}

// writes tells a query that changes what it returns from one that only reads.
func writes(query string) bool { return !strings.HasPrefix(query, "SELECT") }

// runGroup runs the writes of the writer's group. Without savepoints the group may
// become shorter; see [scheduler.cut].
func (t *Tx) runGroup(savepoints bool) error {
	if t.Postgres() && !savepoints {
		list := make([]pending, len(t.w.group))
		for i := range t.w.group {
			list[i] = t.w.group[i].pending()
		}
		return t.runTogether(list)
	}
	for i := 0; i < len(t.w.group); i++ {
		p := t.w.group[i].pending()
		if savepoints {
			if err := t.runGuarded(p); err != nil {
				return err
			}
			continue
		}
		if err := t.run([]pending{p}); err != nil {
			return err
		}
		t.w.group = t.w.scheduler.cut(t.w.group, i+1, t.w.in)
	}
	return nil
}

// runTogether runs the writes of a group for PostgreSQL, where the round trip to the
// server is what costs. Those between two writes that are always alone are run kind
// by kind: their callers wait for them, or for what comes after in the same
// transaction, so there is no order among kinds.
func (t *Tx) runTogether(list []pending) error {
	for len(list) > 0 {
		n := 0
		for n < len(list) && list[n].write.kind() != nil {
			n++
		}
		if err := t.runKinds(list[:n]); err != nil {
			return err
		}
		if list = list[n:]; len(list) == 0 {
			return nil
		}
		if err := t.run(list[:1]); err != nil {
			return err
		}
		list = list[1:]
	}
	return nil
}

// runKinds runs hot writes kind by kind, in the order in which the kinds first occur.
func (t *Tx) runKinds(list []pending) error {
	for len(list) > 0 {
		kind := list[0].write.kind()
		same, others := make([]pending, 0, len(list)), []pending(nil)
		for _, p := range list {
			if p.write.kind() == kind {
				same = append(same, p)
			} else {
				others = append(others, p)
			}
		}
		if err := t.run(same); err != nil {
			return err
		}
		list = others
	}
	return nil
}

// run runs writes of one kind, or a single one, without savepoints: a failure ends the
// group. The refusal of a single write before any change needs no rollback, so the
// group goes on without it.
func (t *Tx) run(list []pending) error {
	before := len(t.wakes)
	err := t.apply(list)
	if err != nil && len(list) == 1 && !t.changed && t.failed == nil {
		*list[0].outcome, err = err, nil
		t.wakes = t.wakes[:before]
	}
	return err
}

// runGuarded runs one write between savepoints, so that its failure is its own outcome.
// When it cannot be rolled back alone, the transaction is lost: a full disk makes SQLite
// roll all of it back by itself (sqlite.org/lang_transaction, 3.1), and then nothing of
// the group may be committed or reported as done.
func (t *Tx) runGuarded(p pending) (lost error) {
	if err := errors.Join(t.writeLedgers(), t.Exec("SAVEPOINT op")); err != nil {
		return unavailable(err)
	}
	before := len(t.wakes)
	*p.outcome = nil
	if err := t.apply([]pending{p}); err != nil {
		*p.outcome = err
	}
	if *p.outcome == nil {
		*p.outcome = unavailable(t.writeLedgers())
	}
	clear(t.seen) // what was done once may be rolled back
	t.w.ledgers.discard()
	if *p.outcome != nil {
		t.wakes = t.wakes[:before]
		lost = t.Exec("ROLLBACK TO op")
	}
	if lost = errors.Join(lost, t.Exec("RELEASE op")); lost != nil {
		return errors.Join(fails("the storage cannot be written now"), unavailable(lost), *p.outcome)
	}
	return nil
}

// fence asks, once in a transaction, whether this server may make fenced writes.
func (t *Tx) fence() error {
	if !t.asked && t.w.fence != nil {
		t.asked, t.fencedBy = true, t.w.fence(t)
	}
	return t.fencedBy
}

// apply runs writes of one kind. A write that goes on after a failed statement has failed: PostgreSQL would
// turn the commit of it, and of its neighbours, into a rollback.
func (t *Tx) apply(list []pending) (err error) {
	t.changed, t.failed = false, nil
	w, ended := list[0].write, false
	if w.about().Fenced {
		if err := t.fence(); err != nil {
			if t.failed != nil { // the transaction is lost, not the lease
				return unavailable(t.failed)
			}
			for _, p := range list {
				*p.outcome = err
			}
			return nil
		}
	}
	err = guarded(t.w.log, nameOf(w), func() error {
		err := w.apply(t, list)
		ended = true
		return err
	})
	t.changed = t.changed || !ended // nobody knows what it did before the panic
	if err == nil && t.failed != nil {
		err = fmt.Errorf("%s went on after a failed statement: %w", nameOf(w), t.failed)
	}
	return unavailable(err)
}
