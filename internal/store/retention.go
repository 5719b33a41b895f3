package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"postern/internal/db"
	"postern/internal/postern"
)

// oldRow is a row that may be old enough to be removed.
type oldRow struct {
	id    string
	place int64 // grows in the order of recording
	at    postern.Time
	held  bool // something still needs it
}

// oldest returns the first rows after a place that were made before a time. Rows are
// recorded in the order of time, apart from steps of the clock, so it stops at the first
// row that is too young, and the cost of a pass is proportional to what it removes.
func (c *core) oldest(ctx context.Context, query string, ws postern.WorkspaceID, before postern.Time,
	from int64) (list []oldRow, err error) {
	err = c.db.Rows(ctx, query, []any{ws, from, purgeChunk}, func(r *sql.Rows) error {
		var row oldRow
		err := r.Scan(&row.id, &row.place, &row.at, &row.held)
		list = append(list, row)
		return err
	})
	for i, row := range list {
		if row.at >= before {
			return list[:i], err
		}
	}
	return list, err
}

// free returns the rows that nothing needs.
func free(list []oldRow) []oldRow {
	return slices.DeleteFunc(slices.Clone(list), func(row oldRow) bool { return row.held })
}

func idsOf(list []oldRow) (ids []string) {
	for _, row := range list {
		ids = append(ids, row.id)
	}
	return ids
}

// awaited is the condition that an active endpoint still waits for a delivery. An endpoint
// that is not active, possibly for ever, holds nothing back: it no longer receives events
// older than the retention.
const awaited = `(d.status = 'pending' AND EXISTS (SELECT 1 FROM endpoint p WHERE p.id = d.endpoint_id
	AND p.status = 'active'))`

const oldEvents = `SELECT id, position, created_at, EXISTS (SELECT 1 FROM delivery d WHERE d.event_id = e.id
	AND ` + awaited + `)
	FROM event e WHERE workspace_id = $1 AND position > $2 ORDER BY position LIMIT $3 + 0`

// Remove deletes a chunk of the events recorded before a time, from after a place on, with
// their deliveries. An event that an active endpoint waits for is kept, even below the
// floor of the log. next is the place to continue from; more is false when no old events
// are left.
func (s Events) Remove(ctx context.Context, ws postern.WorkspaceID, before postern.Time,
	from int64) (next int64, more bool, err error) {
	list, err := s.oldest(ctx, oldEvents, ws, before, from)
	if err != nil || len(list) == 0 {
		return from, false, err
	}
	next, more = list[len(list)-1].place, len(list) == purgeChunk
	gone := free(list)
	if len(gone) == 0 {
		return next, more, nil
	}
	o := removeEvents{ws: ws, ids: idsOf(gone), floor: gone[len(gone)-1].place}
	for _, row := range gone {
		o.newest = max(o.newest, row.at)
	}
	if err := s.db.Do(ctx, db.Func(o.apply)); err != nil || o.left {
		return from, true, err
	}
	return next, more, nil
}

type removeEvents struct {
	ws     postern.WorkspaceID
	ids    []string
	floor  int64
	newest postern.Time
	left   bool // deliveries are left, so no event was removed yet
}

func (o *removeEvents) apply(t *db.Tx) error {
	var err error
	if o.left, err = dropEnded(t, o.ws, o.ids); err != nil || o.left {
		return err
	}
	// A delivery may have been queued since the rows were read.
	err = t.Exec(`DELETE FROM event WHERE workspace_id = $1 AND id IN `+t.InList(2)+`
		AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.event_id = event.id AND `+awaited+`)`, o.ws, asJSON(o.ids))
	if err != nil {
		return err
	}
	return t.Exec(`INSERT INTO event_floor (workspace_id, position, made_at) VALUES ($1, $2, $3) ON CONFLICT (workspace_id)
		DO UPDATE SET
		position = CASE WHEN excluded.position > event_floor.position THEN excluded.position ELSE event_floor.position END,
		made_at = CASE WHEN excluded.made_at > event_floor.made_at THEN excluded.made_at ELSE event_floor.made_at END`, o.ws,
		o.floor, o.newest)
}

// dropEnded deletes a chunk of the deliveries of some events, except those that an active
// endpoint waits for.
func dropEnded(t *db.Tx, ws postern.WorkspaceID, events []string) (left bool, err error) {
	return dropSome(t, `SELECT id FROM delivery d WHERE workspace_id = $1
		AND event_id IN `+t.InList(2)+` AND NOT `+awaited+` LIMIT $3 + 0`, ws, asJSON(events), purgeChunk)
}

// dropSome deletes the deliveries that a query returns, with their attempts. The query
// returns at most purgeChunk ids; left reports that there may be more.
func dropSome(t *db.Tx, query string, args ...any) (left bool, err error) {
	var ids []string
	err = t.Rows(query, args, func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	})
	if err != nil || len(ids) == 0 {
		return false, err
	}
	if err := t.Exec(`DELETE FROM attempt WHERE delivery_id IN `+t.InList(1), asJSON(ids)); err != nil {
		return false, err
	}
	return len(ids) == purgeChunk, t.Exec(`DELETE FROM delivery WHERE id IN `+t.InList(1), asJSON(ids))
}

// RemoveNotices deletes a chunk of the notices and ended replays made before a time, which
// are not removed with an event; more is false when none are left.
func (s Deliveries) RemoveNotices(ctx context.Context, ws postern.WorkspaceID,
	before postern.Time) (more bool, err error) {
	const notices = `SELECT id FROM delivery d WHERE workspace_id = $1 AND position < 0 AND created_at < $2
		AND NOT ` + awaited + ` LIMIT $3 + 0`
	const replays = `SELECT id FROM replay WHERE workspace_id = $1 AND ended_at > 0 AND ended_at < $2 LIMIT $3 + 0`
	old, err := s.exists(ctx, `SELECT (SELECT count(*) FROM (`+notices+`) AS n) + (SELECT count(*)
		FROM (`+replays+`) AS r)`, ws, before, 1)()
	if err != nil || !old {
		return false, err // the common case costs no write
	}
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`DELETE FROM replay WHERE id IN (`+replays+`)`, ws, before, purgeChunk)
		if err != nil {
			return err
		}
		more, err = dropSome(t, notices, ws, before, purgeChunk)
		more = more || n == purgeChunk
		return err
	}))
	return more, err
}

const oldMessages = `SELECT id, n, created_at, status IN ` + kept + `
	FROM message WHERE workspace_id = $1 AND n > $2 ORDER BY n LIMIT $3 + 0`

// Remove deletes a chunk of the messages made before a time, from after a place on;
// messages still to be sent are kept. next is the place to continue from; more is false
// when no old messages are left.
func (s Messages) Remove(ctx context.Context, ws postern.WorkspaceID, before postern.Time,
	from int64) (next int64, more bool, err error) {
	list, err := s.oldest(ctx, oldMessages, ws, before, from)
	if err != nil || len(list) == 0 {
		return from, false, err
	}
	next, more = list[len(list)-1].place, len(list) == purgeChunk
	ids := idsOf(free(list))
	if len(ids) == 0 {
		return next, more, nil
	}
	return next, more, s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return errors.Join(t.Exec(`DELETE FROM message WHERE workspace_id = $1
			AND id IN `+t.InList(2)+` AND status NOT IN `+kept, ws, asJSON(ids)), lowerHistory(t))
	}))
}

// lowerHistory must follow every deletion of messages. SQLite gives a new message the
// number after the newest one that is left, and [current] requires that this number is
// beyond the history of the message's device. The numbers of PostgreSQL never go back.
func lowerHistory(t *db.Tx) error {
	if t.Postgres() {
		return nil
	}
	return changeDevice(t, `UPDATE device SET history_from = (SELECT coalesce(max(n), 0) FROM message)
		WHERE history_from > 0 AND history_from > (SELECT coalesce(max(n), 0) FROM message)`)
}
