package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
)

// eventAt is an event to record and its time.
type eventAt struct {
	postern.Event

	now postern.Time
}

// EventsRecorded are events that were recorded together.
type EventsRecorded []eventAt

// Each calls do with each of the events.
func (e EventsRecorded) Each(do func(*postern.Event)) {
	for i := range e {
		do(&e[i].Event)
	}
}

// RecordEvent records one event in a transaction of another package's table, with a delivery for every active endpoint
// that wants it.
func RecordEvent(t *db.Tx, e postern.Event, now postern.Time) error { return recordEvent(t, e, now) }

// recordEvent records one event; see [recordEvents].
func recordEvent(t *db.Tx, e postern.Event, now postern.Time) error {
	return recordEvents(t, []eventAt{{e, now}})
}

const newEventColumns = `id, workspace_id, device_id, type, sequence, body, created_at, message_id`

// addEvents assigns events their positions in the log, in the order of their rows.
//
// Single writer: order.
var addEvents = db.NewStatement(newEventColumns, `INSERT INTO event (`+newEventColumns+`) @values`)

// recordEvents assigns events their sequences, times and positions in the log, and queues a
// delivery for every active endpoint that wants them.
func recordEvents(t *db.Tx, list []eventAt) error {
	if len(list) == 0 {
		return nil
	}
	rows, err := numberEvents(t, list)
	if err != nil {
		return err
	}
	positions, err := t.Inserted(addEvents, "position", rows)
	if err != nil {
		return err
	}
	t.Note(EventsRecorded(list))
	return fanOut(t, list, positions)
}

// numberEvents assigns events their sequences and times, and returns their rows. Events of
// one device that are recorded together have the time of the last one.
func numberEvents(t *db.Tx, list []eventAt) ([][]any, error) {
	last, err := advanceDevices(t, list)
	if err != nil {
		return nil, err
	}
	rows := make([][]any, len(list))
	for i, e := range slices.Backward(list) {
		d := last[e.DeviceID]
		if d == nil {
			return nil, sql.ErrNoRows // the device was deleted
		}
		rows[i] = []any{e.ID, e.WorkspaceID, e.DeviceID, e.Type, d.sequence, e.Envelope(d.sequence, d.at), d.at, e.MessageID}
		d.sequence--
	}
	return rows, nil
}

// numbered is the sequence and the time of a device's last event.
type numbered struct {
	sequence int64
	at       postern.Time
}

var advance = db.NewStatement("workspace, device, more, at",
	`UPDATE device SET sequence = sequence + @more, last_event_at = CASE WHEN last_event_at > @at THEN last_event_at
		ELSE @at END
	[FROM @rows] WHERE workspace_id = @workspace AND id = @device RETURNING id, sequence, last_event_at`)

// advanceDevices advances the sequences of devices by the number of their events, and
// returns the new ones.
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
func fanOut(t *db.Tx, list []eventAt, positions []int64) error {
	endpoints := make(map[postern.WorkspaceID][]postern.Endpoint, 1)
	var rows [][]any
	for i, e := range list {
		known, ok := endpoints[e.WorkspaceID]
		if !ok {
			t.Wake(EventLogged, string(e.WorkspaceID))
			var err error
			if known, err = subscribers(t, e.WorkspaceID, familyIn(list, e.WorkspaceID)); err != nil {
				return err
			}
			endpoints[e.WorkspaceID] = known
		}
		for _, ep := range known {
			if ep.Wants(e.Type, e.DeviceID) {
				rows = append(rows, newDelivery(ep, e.Event, positions[i], e.now))
			}
		}
	}
	return queueDeliveries(t, rows)
}

// familyIn returns the beginning of the types of a workspace's events, such as "message."; "" if they have several.
func familyIn(list []eventAt, ws postern.WorkspaceID) (family string) {
	for _, e := range list {
		one, _, _ := strings.Cut(string(e.Type), ".")
		switch {
		case e.WorkspaceID != ws:
		case family != "" && family != one+".":
			return ""
		default:
			family = one + "."
		}
	}
	return family
}

// subscribers returns the active endpoints of a workspace that may want events of a family, or all of them for "", with
// the fields that fanOut needs. The database leaves out the others, because reading 1,000 of them here takes the writer
// several milliseconds.
func subscribers(t *db.Tx, ws postern.WorkspaceID, family string) (list []postern.Endpoint, err error) {
	named := "%"
	if family != "" {
		named = `%"` + family + `%`
	}
	err = t.Rows(`SELECT id, events, devices, ordered FROM endpoint WHERE workspace_id = $1 AND status = 'active'
		AND (events LIKE '%"*"%' OR events LIKE $2)`,
		[]any{ws, named}, func(r *sql.Rows) error {
			var e postern.Endpoint
			err := r.Scan(&e.ID, jsonColumn{&e.Events}, jsonColumn{&e.DeviceIDs}, &e.Ordered)
			list = append(list, e)
			return err
		})
	return list, err
}

var addDeliveries = db.NewStatement("id, workspace_id, endpoint_id, event_id, position, device_id, type, chat, due_at, trace",
	`INSERT INTO delivery (id, workspace_id, endpoint_id, event_id, position, device_id, type, chat, due_at, created_at,
		status, attempts, first_attempt_at, last_attempt_at, last_status, last_reason, completed_at, trace)
	@values (@id, @workspace_id, @endpoint_id, @event_id, @position, @device_id, @type, @chat, @due_at, @due_at,
		'pending', 0, 0, 0, 0, '', 0, @trace)
	ON CONFLICT (endpoint_id, position) DO NOTHING`)

// newDelivery returns the row that queues an event for an endpoint.
func newDelivery(ep postern.Endpoint, e postern.Event, position int64, now postern.Time) []any {
	return []any{postern.NewDeliveryID(), e.WorkspaceID, ep.ID, e.ID, position, e.DeviceID, e.Type, lineOf(ep, e), now,
		e.Trace}
}

// queueDeliveries queues deliveries and wakes their endpoints' lanes.
func queueDeliveries(t *db.Tx, rows [][]any) error {
	for _, row := range rows {
		t.Wake(DeliveryDue, string(row[2].(postern.EndpointID))) //nolint:errcheck,forcetypeassert // see newDelivery
	}
	return t.Each(addDeliveries, rows)
}

// lineOf returns the key of the deliveries that wait for each other: the event's chat, when
// the endpoint wants events in order, and "" otherwise.
func lineOf(ep postern.Endpoint, e postern.Event) string {
	if !ep.Ordered || e.ChatID == "" {
		return ""
	}
	return string(e.DeviceID) + " " + e.ChatID
}

// LogEntry is an event with its position in the log.
type LogEntry struct {
	postern.Event
	Position int64 // grows in the order of commit
	Sequence int64
	At       postern.Time
	Body     []byte // the envelope; empty after the device was deleted
}

// EventFilter narrows the log. A nil field does not restrict it.
type EventFilter struct {
	Types   []postern.EventType
	Devices []postern.DeviceID
	Bytes   int // of the bodies on one page; 0 for as many as a list may have
}

// EventPage is a part of the log.
type EventPage struct {
	Entries []LogEntry
	Last    int64 // the log was read up to this position
	More    bool  // there may be entries beyond Last
}

// List returns the log of a workspace after a position, oldest first. A page may have fewer
// entries than limit even though there are more: with a filter that few events match, one
// page must not read the whole log.
//
// The log is ordered by position. The only writer assigns positions within its
// transactions, so events become visible in the order of their positions, and no event is
// ever committed before a position that was read. Single writer: order.
func (s Events) List(ctx context.Context, ws postern.WorkspaceID, f EventFilter, after int64,
	limit int,
) (p EventPage, err error) {
	scan := f.scan(limit)
	last, n, err := s.scan(ctx, ws, after, scan)
	if err != nil {
		return p, err
	}
	return s.page(ctx, ws, f, span{after, last, last, n == scan}, "", limit)
}

// Before returns the log of a workspace before a position, newest first, down to the
// positions above floor.
func (s Events) Before(ctx context.Context, ws postern.WorkspaceID, f EventFilter, before, floor int64,
	limit int,
) (p EventPage, err error) {
	var first int64
	var n int
	scan := f.scan(limit)
	err = s.look(ctx, `SELECT coalesce(min(position), $2), count(*) FROM
		(SELECT position FROM event WHERE workspace_id = $1 AND position < $2 AND position > $4 ORDER BY position DESC
		LIMIT $3 + 0) scanned`, []any{ws, before, scan, floor}, &first, &n)
	if err != nil {
		return p, err
	}
	return s.page(ctx, ws, f, span{first - 1, before - 1, first, n == scan}, " DESC", limit)
}

// span is the part of the log that one page may read: after the position after, up to last.
type span struct {
	after, last int64
	end         int64 // the position that the page reaches when it reads all of the span
	more        bool  // the log continues beyond the span
}

// page reads a part of the log in the given order of position. It ends before the entry
// whose body would make it larger than the filter allows; the first one always has room.
func (s Events) page(ctx context.Context, ws postern.WorkspaceID, f EventFilter, in span, order string,
	limit int,
) (p EventPage, err error) {
	room := cmp.Or(f.Bytes, logBytes)
	err = s.db.Rows(ctx, `SELECT position, id, device_id, type, sequence, created_at, body FROM event
		WHERE workspace_id = $1 AND position > $2 AND position <= $3
		AND ($4 = 'null' OR type IN `+s.db.InList(4)+`) AND ($5 = 'null' OR device_id IN `+s.db.InList(5)+`)
			ORDER BY position`+order+` LIMIT $6 + 0`,
		[]any{ws, in.after, in.last, asJSON(f.Types), textList(f.Devices), limit + 1}, func(r *sql.Rows) error {
			e := LogEntry{Event: postern.Event{WorkspaceID: ws}}
			err := r.Scan(&e.Position, &e.ID, &e.DeviceID, &e.Type, &e.Sequence, &e.At, &e.Body)
			if room -= len(e.Body); err == nil && room < 0 && len(p.Entries) > 0 {
				return errPageFull
			}
			p.Entries = append(p.Entries, e)
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

var errPageFull = errors.New("a page is full")

// scan returns how many events a page of at most limit entries reads: without a filter, each of them is an entry.
func (f EventFilter) scan(limit int) int {
	if f.Types == nil && f.Devices == nil {
		return limit + 1
	}
	return logScan
}

// scan returns the last of up to most positions of the log after one, and how many there are.
func (s Events) scan(
	ctx context.Context, ws postern.WorkspaceID, after int64, most int,
) (last int64, n int, err error) {
	err = s.look(ctx, `SELECT coalesce(max(position), $2), count(*) FROM
		(SELECT position FROM event WHERE workspace_id = $1 AND position > $2 ORDER BY position LIMIT $3 + 0) scanned`,
		[]any{ws, after, most}, &last, &n)
	return last, n, err
}

// Place returns the position of an event of the workspace in the log, and its device. Like
// [Devices.Get], it returns a ResourceNotAllowed error for an event of another workspace
// and NotFound for one that does not exist, such as a removed event.
func (s Events) Place(ctx context.Context, ws postern.WorkspaceID,
	id postern.EventID,
) (position int64, device postern.DeviceID, err error) {
	err = s.db.Row(ctx, `SELECT position, device_id FROM event WHERE workspace_id = $1 AND id = $2`, []any{ws, id},
		&position, &device)
	return position, device, notFoundOr(err, s.exists(ctx, `SELECT count(*) FROM event
		WHERE id = $1 AND workspace_id <> $2`, id, ws), "event")
}

// Get returns an event of the workspace, with the errors of [Events.Place].
func (s Events) Get(ctx context.Context, ws postern.WorkspaceID, id postern.EventID) (e LogEntry, err error) {
	position, _, err := s.Place(ctx, ws, id)
	if err != nil {
		return e, err
	}
	p, err := s.page(ctx, ws, EventFilter{}, span{after: position - 1, last: position}, "", 1)
	if err == nil && len(p.Entries) == 0 { // it was removed meanwhile
		err = postern.Errorf(postern.NotFound, "this event does not exist")
	}
	if err != nil {
		return e, err
	}
	return p.Entries[0], nil
}

// Floor returns the position up to which the log of a workspace was removed, and the latest
// time of a removed event. Both are zero when nothing was removed yet.
func (s Events) Floor(ctx context.Context, ws postern.WorkspaceID) (position int64, at postern.Time, err error) {
	err = s.db.Row(ctx, `SELECT position, made_at FROM event_floor WHERE workspace_id = $1`, []any{ws}, &position, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, nil
	}
	return position, at, err
}

// End returns the position of the newest event of a workspace.
func (s Events) End(ctx context.Context, ws postern.WorkspaceID) (position int64, err error) {
	err = s.db.Row(ctx, `SELECT max(position) FROM (SELECT coalesce(max(position), 0) AS position FROM event
		WHERE workspace_id = $1
		UNION ALL SELECT position FROM event_floor WHERE workspace_id = $1) ends`, []any{ws}, &position)
	return position, err
}

// Newest returns the last event of a workspace up to a position, limited to some devices
// when devices is not nil; it is "" when there is none. Each device is looked up
// separately, so that a device without recent events does not cause a scan of the log.
func (s Events) Newest(ctx context.Context, ws postern.WorkspaceID, devices []postern.DeviceID,
	upTo int64,
) (id postern.EventID, err error) {
	query, args := `SELECT id FROM event WHERE workspace_id = $1 AND position <= $2 ORDER BY position DESC LIMIT 1`,
		[]any{ws, upTo}
	if devices != nil {
		query = `WITH named (id) AS ` + s.db.InList(3) + ` SELECT id FROM event WHERE workspace_id = $1 AND position =
			(SELECT max((SELECT max(position) FROM event WHERE workspace_id = $1 AND device_id = named.id AND position <= $2))
			FROM named)`
		args = append(args, textList(devices))
	}
	err = s.db.Row(ctx, query, args, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, err
}

const deviceHealth = `SELECT position, id, type, created_at, body FROM event WHERE workspace_id = $1 AND device_id = $2
	AND type LIKE 'device.%' AND position < $3 ORDER BY position DESC LIMIT $4 + 0`

// DeviceHealth returns up to limit events about the state of a device, newest first, before
// a position in the log; 0 starts at the end of the log.
func (s Events) DeviceHealth(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, before int64,
	limit int,
) (list []LogEntry, err error) {
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

const oldEvents = `SELECT id, position, created_at, EXISTS (SELECT 1 FROM delivery d WHERE d.event_id = e.id
	AND ` + awaited + `)
	FROM event e WHERE workspace_id = $1 AND position > $2 ORDER BY position LIMIT $3 + 0`

// Remove deletes a chunk of the events recorded before a time, from after a place on, with
// their deliveries. An event that an active endpoint waits for is kept, even below the
// floor of the log. next is the place to continue from; more is false when no old events
// are left.
func (s Events) Remove(ctx context.Context, ws postern.WorkspaceID, before postern.Time,
	from int64,
) (next int64, more bool, err error) {
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
	err = t.Exec(`DELETE FROM event WHERE `+ofWorkspace+` AND id IN `+t.InList(2)+`
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
