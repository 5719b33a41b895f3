package store

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"postern/internal/postern"
)

// LogEntry is an event with its place in the log.
type LogEntry struct {
	postern.Event
	Position int64 // grows along the order of commit
	Sequence int64
	At       postern.Time
	Body     []byte // the envelope; empty once its device was deleted
}

// EventFilter narrows the log; nil members ask for nothing.
type EventFilter struct {
	Types   []postern.EventType
	Devices []postern.DeviceID
}

// EventPage is a part of the log, oldest first.
type EventPage struct {
	Entries []LogEntry
	Last    int64 // the log was read up to here, entries or none
	More    bool  // there may be more behind Last
}

// List reads the log of a workspace after a position. A page may have fewer
// entries than the limit, and still more behind it: a filter that lets little
// through must not read the whole log for one page.
//
// The order is that of position. One writer hands positions out within its
// transactions, so that they become visible in their order and nothing is
// ever committed before a position that was read.
func (s Events) List(ctx context.Context, ws postern.WorkspaceID, f EventFilter, after int64, limit int) (p EventPage, err error) {
	last, n, err := s.scan(ctx, ws, after)
	if err != nil {
		return p, err
	}
	return s.page(ctx, ws, f, span{after, last, last, n == logScan}, "", limit)
}

// Before is Events the other way, newest first: it reads before a position,
// and no further back than behind a floor.
func (s Events) Before(ctx context.Context, ws postern.WorkspaceID, f EventFilter, before, floor int64, limit int) (p EventPage, err error) {
	var first int64
	var n int
	err = s.db.Row(ctx, `SELECT coalesce(min(position), $2), count(*) FROM
		(SELECT position FROM event WHERE workspace_id = $1 AND position < $2 AND position > $4 ORDER BY position DESC LIMIT $3 + 0) scanned`, []any{ws, before, logScan, floor}, &first, &n)
	if err != nil {
		return p, err
	}
	return s.page(ctx, ws, f, span{first - 1, before - 1, first, n == logScan}, " DESC", limit)
}

// span is a part of the log that one page may look at: behind after, up to last.
type span struct {
	after, last int64
	end         int64 // where the page has got to when all of it is looked at
	more        bool  // there is more beyond
}

// page reads a part of the log in the order of position, or the other way.
func (s Events) page(ctx context.Context, ws postern.WorkspaceID, f EventFilter, in span, order string, limit int) (p EventPage, err error) {
	size := 0
	err = s.db.Rows(ctx, `SELECT position, id, device_id, type, sequence, created_at, body FROM event WHERE workspace_id = $1 AND position > $2 AND position <= $3
		AND ($4 = 'null' OR type IN `+s.db.InList(4)+`) AND ($5 = 'null' OR device_id IN `+s.db.InList(5)+`) ORDER BY position`+order+` LIMIT $6 + 0`,
		[]any{ws, in.after, in.last, asJSON(f.Types), asJSON(f.Devices), limit + 1}, func(r *sql.Rows) error {
			e := LogEntry{Event: postern.Event{WorkspaceID: ws}}
			err := r.Scan(&e.Position, &e.ID, &e.DeviceID, &e.Type, &e.Sequence, &e.At, &e.Body)
			p.Entries = append(p.Entries, e)
			if size += len(e.Body); err == nil && size > logBytes {
				return errPageFull
			}
			return err
		})
	p.Last, p.More = in.end, in.more
	switch {
	case errors.Is(err, errPageFull):
		p.Last, p.More, err = p.Entries[len(p.Entries)-1].Position, true, nil
	case len(p.Entries) > limit:
		p.Entries, p.More = p.Entries[:limit], true
		p.Last = p.Entries[limit-1].Position
	}
	return p, err
}

var errPageFull = errors.New("a page of the log is full")

// scan says how far the part of the log reaches that one page may look at,
// and how many events are in it.
func (s Events) scan(ctx context.Context, ws postern.WorkspaceID, after int64) (last int64, n int, err error) {
	err = s.db.Row(ctx, `SELECT coalesce(max(position), $2), count(*) FROM
		(SELECT position FROM event WHERE workspace_id = $1 AND position > $2 ORDER BY position LIMIT $3 + 0) scanned`, []any{ws, after, logScan}, &last, &n)
	return last, n, err
}

// Place finds an event of the workspace in the log: its position and its
// device. It refuses like [DB.Device]; a removed event is not found.
func (s Events) Place(ctx context.Context, ws postern.WorkspaceID, id postern.EventID) (position int64, device postern.DeviceID, err error) {
	err = s.db.Row(ctx, `SELECT position, device_id FROM event WHERE workspace_id = $1 AND id = $2`, []any{ws, id}, &position, &device)
	return position, device, notFoundOr(err, s.exists(ctx, `SELECT count(*) FROM event WHERE id = $1 AND workspace_id <> $2`, id, ws), "event")
}

// Floor says how far the log of a workspace was removed, and the latest
// time of a removed event; zeros when nothing ever was.
func (s Events) Floor(ctx context.Context, ws postern.WorkspaceID) (position int64, at postern.Time, err error) {
	err = s.db.Row(ctx, `SELECT position, made_at FROM event_floor WHERE workspace_id = $1`, []any{ws}, &position, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, nil
	}
	return position, at, err
}

// End is the position of the newest event of a workspace.
func (s Events) End(ctx context.Context, ws postern.WorkspaceID) (position int64, err error) {
	err = s.db.Row(ctx, `SELECT max(position) FROM (SELECT coalesce(max(position), 0) AS position FROM event WHERE workspace_id = $1
		UNION ALL SELECT position FROM event_floor WHERE workspace_id = $1) ends`, []any{ws}, &position)
	return position, err
}

// Newest is the last event of a workspace up to a position, of some
// devices when these are not nil; "" when there is none. Each device is looked
// up by itself: one that is silent must not cost a walk through the log.
func (s Events) Newest(ctx context.Context, ws postern.WorkspaceID, devices []postern.DeviceID, upTo int64) (id postern.EventID, err error) {
	query, args := `SELECT id FROM event WHERE workspace_id = $1 AND position <= $2 ORDER BY position DESC LIMIT 1`, []any{ws, upTo}
	if devices != nil {
		query = `WITH named (id) AS ` + s.db.InList(3) + ` SELECT id FROM event WHERE workspace_id = $1 AND position =
			(SELECT max((SELECT max(position) FROM event WHERE workspace_id = $1 AND device_id = named.id AND position <= $2)) FROM named)`
		args = append(args, asJSON(devices))
	}
	err = s.db.Row(ctx, query, args, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, err
}

const deviceHealth = `SELECT position, id, type, created_at, body FROM event WHERE workspace_id = $1 AND device_id = $2 AND type LIKE 'device.%' AND position < $3 ORDER BY position DESC LIMIT $4 + 0`

// DeviceHealth lists what became of a device, the newest first, before a place in
// the log; 0 is its end.
func (s Events) DeviceHealth(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, before int64, limit int) (list []LogEntry, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	err = s.db.Rows(ctx, deviceHealth, []any{ws, id, before, limit}, func(r *sql.Rows) error {
		e := LogEntry{Event: postern.Event{WorkspaceID: ws, DeviceID: id}}
		err := r.Scan(&e.Position, &e.ID, &e.Type, &e.At, &e.Body)
		list = append(list, e)
		return err
	})
	return list, err
}
