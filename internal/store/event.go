package store

import (
	"database/sql"
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
