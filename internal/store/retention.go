package store

import (
	"context"
	"database/sql"
	"slices"

	"postern/internal/postern"
)

// oldRow is a row that may be old enough to be removed.
type oldRow struct {
	id    string
	place int64 // grows along the order of recording
	at    postern.Time
	held  bool // something still needs it
}

// oldest gives the first rows behind a place that were made before a time.
// Rows are recorded in the order of time, but for steps of the clock: it stops
// at the first young one, so that a pass costs what it removes.
func (db *DB) oldest(ctx context.Context, query string, ws postern.WorkspaceID, before postern.Time, from int64) (list []oldRow, err error) {
	err = db.rows(ctx, query, []any{ws, from, purgeChunk}, func(r *sql.Rows) error {
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

// free are the rows that nothing needs.
func free(list []oldRow) []oldRow {
	return slices.DeleteFunc(slices.Clone(list), func(row oldRow) bool { return row.held })
}

func idsOf(list []oldRow) (ids []string) {
	for _, row := range list {
		ids = append(ids, row.id)
	}
	return ids
}

const oldEvents = `SELECT id, position, created_at, EXISTS (SELECT 1 FROM delivery d WHERE d.event_id = e.id AND d.status = 'pending')
	FROM event e WHERE workspace_id = $1 AND position > $2 ORDER BY position LIMIT $3 + 0`

// RemoveEvents takes a chunk of the events recorded before a time out of the
// log, from behind a place on, with the deliveries of them that have ended. An
// event whose delivery is pending stays for it, though it may be below the floor
// of the log. It gives the place to go on from; more is false at the end of what is old.
func (db *DB) RemoveEvents(ctx context.Context, ws postern.WorkspaceID, before postern.Time, from int64) (next int64, more bool, err error) {
	list, err := db.oldest(ctx, oldEvents, ws, before, from)
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
	if err := db.do(ctx, &o); err != nil || o.left {
		return from, true, err
	}
	return next, more, nil
}

type removeEvents struct {
	ws     postern.WorkspaceID
	ids    []string
	floor  int64
	newest postern.Time
	left   bool // deliveries are left: nothing was removed yet
}

func (o *removeEvents) apply(t *tx) error {
	var err error
	if o.left, err = dropEnded(t, o.ws, o.ids); err != nil || o.left {
		return err
	}
	// A delivery may have been made since the rows were read.
	err = t.exec(`DELETE FROM event WHERE workspace_id = $1 AND id IN `+t.w.dialect.inList(2)+`
		AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.event_id = event.id AND d.status = 'pending')`, o.ws, asJSON(o.ids))
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO event_floor (workspace_id, position, made_at) VALUES ($1, $2, $3) ON CONFLICT (workspace_id) DO UPDATE SET
		position = CASE WHEN excluded.position > event_floor.position THEN excluded.position ELSE event_floor.position END,
		made_at = CASE WHEN excluded.made_at > event_floor.made_at THEN excluded.made_at ELSE event_floor.made_at END`, o.ws, o.floor, o.newest)
}

// dropEnded deletes a chunk of the ended deliveries of some events, with their
// attempts.
func dropEnded(t *tx, ws postern.WorkspaceID, events []string) (left bool, err error) {
	var ended []string
	err = t.rows(`SELECT id FROM delivery WHERE workspace_id = $1 AND event_id IN `+t.w.dialect.inList(2)+` AND status <> 'pending' LIMIT $3 + 0`, []any{ws, asJSON(events), purgeChunk}, func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		ended = append(ended, id)
		return err
	})
	if err != nil || len(ended) == 0 {
		return false, err
	}
	if err := t.exec(`DELETE FROM attempt WHERE delivery_id IN `+t.w.dialect.inList(1), asJSON(ended)); err != nil {
		return false, err
	}
	return len(ended) == purgeChunk, t.exec(`DELETE FROM delivery WHERE workspace_id = $1 AND id IN `+t.w.dialect.inList(2), ws, asJSON(ended))
}

const oldMessages = `SELECT id, n, created_at, status IN ('queued', 'sending', 'scheduled')
	FROM message WHERE workspace_id = $1 AND n > $2 ORDER BY n LIMIT $3 + 0`

// RemoveMessages deletes a chunk of the messages made before a time, from
// behind a place on; what is still to be sent stays. It gives the place to go
// on from; more is false at the end of what is old.
func (db *DB) RemoveMessages(ctx context.Context, ws postern.WorkspaceID, before postern.Time, from int64) (next int64, more bool, err error) {
	list, err := db.oldest(ctx, oldMessages, ws, before, from)
	if err != nil || len(list) == 0 {
		return from, false, err
	}
	next, more = list[len(list)-1].place, len(list) == purgeChunk
	ids := idsOf(free(list))
	if len(ids) == 0 {
		return next, more, nil
	}
	return next, more, db.do(ctx, opFunc(func(t *tx) error {
		return t.exec(`DELETE FROM message WHERE workspace_id = $1 AND id IN `+t.w.dialect.inList(2)+` AND status NOT IN ('queued', 'sending', 'scheduled')`, ws, asJSON(ids))
	}))
}
