package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"

	"postern/internal/db"
	"postern/internal/postern"
)

// eventAt is an event to be recorded and when it happened.
type eventAt struct {
	postern.Event

	now postern.Time
}

// recordEvent records one event; see [recordEvents].
func recordEvent(t *db.Tx, e postern.Event, now postern.Time) error {
	return recordEvents(t, []eventAt{{e, now}})
}

const newEventColumns = `id, workspace_id, device_id, type, sequence, body, created_at`

// addEvents gives events their positions in the log, in the order of their rows; see
// singlewriter.go.
var addEvents = db.NewStatement(newEventColumns, `INSERT INTO event (`+newEventColumns+`) @values RETURNING id, position`)

// recordEvents gives events their sequences, times and places in the log, and writes a
// delivery for every active endpoint that wants them.
func recordEvents(t *db.Tx, list []eventAt) error {
	if len(list) == 0 {
		return nil
	}
	rows, err := numberEvents(t, list)
	if err != nil {
		return err
	}
	positions := make(map[postern.EventID]int64, len(list))
	err = t.EachRow(addEvents, rows, func(r *sql.Rows) error {
		var id postern.EventID
		var position int64
		err := r.Scan(&id, &position)
		positions[id] = position
		return err
	})
	if err != nil {
		return err
	}
	return fanOut(t, list, positions)
}

// numberEvents gives events their sequences and times, and makes rows of them. Events of
// one device that are recorded together have the time of the last.
func numberEvents(t *db.Tx, list []eventAt) ([][]any, error) {
	last, err := advanceDevices(t, list)
	if err != nil {
		return nil, err
	}
	rows := make([][]any, len(list))
	for i, e := range slices.Backward(list) {
		d := last[e.DeviceID]
		if d == nil {
			return nil, sql.ErrNoRows // the device is gone
		}
		rows[i] = []any{e.ID, e.WorkspaceID, e.DeviceID, e.Type, d.sequence, e.Envelope(d.sequence, d.at), d.at}
		d.sequence--
	}
	return rows, nil
}

// numbered is the last sequence and time of a device's events.
type numbered struct {
	sequence int64
	at       postern.Time
}

var advance = db.NewStatement("workspace, device, more, at",
	`UPDATE device SET sequence = sequence + @more, last_event_at = CASE WHEN last_event_at > @at THEN last_event_at ELSE @at END
	[FROM @rows] WHERE workspace_id = @workspace AND id = @device RETURNING id, sequence, last_event_at`)

// advanceDevices advances devices by the number of their events.
func advanceDevices(t *db.Tx, list []eventAt) (map[postern.DeviceID]*numbered, error) {
	last := make(map[postern.DeviceID]*numbered, 1)
	var order []eventAt
	for _, e := range list {
		if last[e.DeviceID] == nil {
			last[e.DeviceID] = &numbered{}
			order = append(order, e)
		}
		d := last[e.DeviceID]
		d.sequence, d.at = d.sequence+1, max(d.at, e.now)
	}
	rows := make([][]any, len(order))
	for i, e := range order {
		rows[i] = []any{e.WorkspaceID, e.DeviceID, last[e.DeviceID].sequence, last[e.DeviceID].at}
	}
	clear(last)
	err := t.EachRow(advance, rows, func(r *sql.Rows) error {
		var id postern.DeviceID
		var d numbered
		err := r.Scan(&id, &d.sequence, &d.at)
		last[id] = &d
		return err
	})
	return last, err
}

// fanOut queues events for the active endpoints that want them.
func fanOut(t *db.Tx, list []eventAt, positions map[postern.EventID]int64) error {
	endpoints := make(map[postern.WorkspaceID][]postern.Endpoint, 1)
	var rows [][]any
	for _, e := range list {
		known, ok := endpoints[e.WorkspaceID]
		if !ok {
			t.Wake(EventLogged, string(e.WorkspaceID))
			var err error
			if known, err = subscribers(t, e.WorkspaceID); err != nil {
				return err
			}
			endpoints[e.WorkspaceID] = known
		}
		for _, ep := range known {
			if ep.Wants(e.Type, e.DeviceID) {
				rows = append(rows, newDelivery(ep, e.Event, positions[e.ID], e.now))
			}
		}
	}
	return queueDeliveries(t, rows)
}

// subscribers are the active endpoints of a workspace, with what fanOut needs of them.
func subscribers(t *db.Tx, ws postern.WorkspaceID) (list []postern.Endpoint, err error) {
	err = t.Rows(`SELECT id, events, devices, ordered FROM endpoint WHERE workspace_id = $1 AND status = 'active'`, []any{ws}, func(r *sql.Rows) error {
		var e postern.Endpoint
		err := r.Scan(&e.ID, jsonColumn{&e.Events}, jsonColumn{&e.DeviceIDs}, &e.Ordered)
		list = append(list, e)
		return err
	})
	return list, err
}

var addDeliveries = db.NewStatement("id, workspace_id, endpoint_id, event_id, position, device_id, type, chat, due_at",
	`INSERT INTO delivery (id, workspace_id, endpoint_id, event_id, position, device_id, type, chat, due_at, created_at,
		status, attempts, first_attempt_at, last_attempt_at, last_status, last_reason, completed_at)
	@values (@id, @workspace_id, @endpoint_id, @event_id, @position, @device_id, @type, @chat, @due_at, @due_at,
		'pending', 0, 0, 0, 0, '', 0)
	ON CONFLICT (endpoint_id, position) DO NOTHING`)

// newDelivery is the row that queues an event for an endpoint.
func newDelivery(ep postern.Endpoint, e postern.Event, position int64, now postern.Time) []any {
	return []any{postern.NewDeliveryID(), e.WorkspaceID, ep.ID, e.ID, position, e.DeviceID, e.Type, lineOf(ep, e), now}
}

// queueDeliveries queues deliveries and wakes their endpoints' lanes.
func queueDeliveries(t *db.Tx, rows [][]any) error {
	for _, row := range rows {
		t.Wake(DeliveryDue, string(row[2].(postern.EndpointID))) //nolint:errcheck,forcetypeassert // see newDelivery
	}
	_, err := t.Each(addDeliveries, rows)
	return err
}

// lineOf names what the deliveries of an event have to wait in line with: the
// chat, when the endpoint wants order.
func lineOf(ep postern.Endpoint, e postern.Event) string {
	if !ep.Ordered || e.ChatID == "" {
		return ""
	}
	return string(e.DeviceID) + " " + e.ChatID
}

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
