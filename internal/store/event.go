package store

import (
	"database/sql"
	"slices"

	"postern/internal/postern"
)

// record gives an event its sequence, its time and its place in the log, and
// writes a delivery for every active endpoint that asks for it.
func (t *tx) record(e postern.Event, now postern.Time) error {
	var sequence int64
	var at postern.Time
	err := t.row(`UPDATE device SET sequence = sequence + 1, last_event_at = CASE WHEN last_event_at > $3 THEN last_event_at ELSE $3 END WHERE workspace_id = $1 AND id = $2 RETURNING sequence, last_event_at`,
		[]any{e.WorkspaceID, e.DeviceID, now}, &sequence, &at)
	if err != nil {
		return err
	}
	var position int64
	err = t.row(`INSERT INTO event (id, workspace_id, device_id, type, sequence, body, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING position`,
		[]any{e.ID, e.WorkspaceID, e.DeviceID, e.Type, sequence, e.Envelope(sequence, at), at}, &position)
	if err != nil {
		return err
	}
	t.wake(EventLogged, string(e.WorkspaceID))
	return t.fanOut(e, position, now)
}

// happening is an event that is to be recorded, and when it happened.
type happening struct {
	postern.Event

	now postern.Time
}

// recordAll is record for many events, with the same number of statements as
// for one.
func (t *tx) recordAll(list []happening) error {
	if len(list) == 0 {
		return nil
	}
	values, err := t.number(list)
	if err != nil {
		return err
	}
	positions := make(map[postern.EventID]int64, len(list))
	const columns = `id, workspace_id, device_id, type, sequence, body, created_at`
	from, args := table(columns, values)
	err = t.rows(`INSERT INTO event (`+columns+`) SELECT `+columns+` FROM `+from+` ORDER BY ord RETURNING id, position`, args, func(r *sql.Rows) error {
		var id postern.EventID
		var position int64
		err := r.Scan(&id, &position)
		positions[id] = position
		return err
	})
	if err != nil {
		return err
	}
	return t.fanOutAll(list, positions)
}

// number gives events their sequences and times, and makes rows of them. Events
// of one device that are recorded together carry the time of the last.
func (t *tx) number(list []happening) ([][]any, error) {
	last, err := t.advance(list)
	if err != nil {
		return nil, err
	}
	values := make([][]any, len(list))
	for i, e := range slices.Backward(list) {
		d := last[e.DeviceID]
		if d == nil {
			return nil, sql.ErrNoRows // the device is gone
		}
		values[i] = []any{e.ID, e.WorkspaceID, e.DeviceID, e.Type, d.sequence, e.Envelope(d.sequence, d.at), d.at}
		d.sequence--
	}
	return values, nil
}

// numbered is where a device's events have got to.
type numbered struct {
	sequence int64
	at       postern.Time
}

// advance moves devices on by the number of their events.
func (t *tx) advance(list []happening) (map[postern.DeviceID]*numbered, error) {
	last := map[postern.DeviceID]*numbered{}
	var order []happening
	for _, e := range list {
		if last[e.DeviceID] == nil {
			last[e.DeviceID] = &numbered{}
			order = append(order, e)
		}
		d := last[e.DeviceID]
		d.sequence, d.at = d.sequence+1, max(d.at, e.now)
	}
	values := make([][]any, len(order))
	for i, e := range order {
		values[i] = []any{e.WorkspaceID, e.DeviceID, last[e.DeviceID].sequence, last[e.DeviceID].at}
	}
	clear(last)
	from, args := table(`workspace_id, id, n, at`, values)
	err := t.rows(`UPDATE device AS d SET sequence = d.sequence + u.n, last_event_at = greatest(d.last_event_at, u.at) FROM `+from+`
		WHERE d.workspace_id = u.workspace_id AND d.id = u.id RETURNING d.id, d.sequence, d.last_event_at`, args, func(r *sql.Rows) error {
		var id postern.DeviceID
		var d numbered
		err := r.Scan(&id, &d.sequence, &d.at)
		last[id] = &d
		return err
	})
	return last, err
}

// fanOutAll is fanOut for many events.
func (t *tx) fanOutAll(list []happening, positions map[postern.EventID]int64) error {
	endpoints := map[postern.WorkspaceID][]postern.Endpoint{}
	var values [][]any
	for _, e := range list {
		known, ok := endpoints[e.WorkspaceID]
		if !ok {
			t.wake(EventLogged, string(e.WorkspaceID))
			var err error
			if known, err = t.subscribers(e.WorkspaceID); err != nil {
				return err
			}
			endpoints[e.WorkspaceID] = known
		}
		for _, ep := range known {
			if ep.Wants(e.Type, e.DeviceID) {
				t.wake(DeliveryDue, string(ep.ID))
				values = append(values, []any{postern.NewDeliveryID(), e.WorkspaceID, ep.ID, e.ID, positions[e.ID], e.DeviceID, e.Type, lineOf(ep, e.Event), e.now})
			}
		}
	}
	return t.deliverAll(values)
}

func (t *tx) deliverAll(values [][]any) error {
	if len(values) == 0 {
		return nil
	}
	const columns = `id, workspace_id, endpoint_id, event_id, position, device_id, type, chat, due_at`
	from, args := table(columns, values)
	return t.exec(`INSERT INTO delivery (`+columns+`, created_at, status, attempts, first_attempt_at, last_attempt_at, last_status, last_reason, completed_at)
		SELECT `+columns+`, due_at, 'pending', 0, 0, 0, 0, '', 0 FROM `+from+` ORDER BY ord ON CONFLICT (endpoint_id, position) DO NOTHING`, args...)
}

// subscribers are the active endpoints of a workspace, with what fanOut needs of them.
func (t *tx) subscribers(ws postern.WorkspaceID) (list []postern.Endpoint, err error) {
	err = t.rows(`SELECT id, events, devices, ordered FROM endpoint WHERE workspace_id = $1 AND status = 'active'`, []any{ws}, func(r *sql.Rows) error {
		var e postern.Endpoint
		err := r.Scan(&e.ID, jsonColumn{&e.Events}, jsonColumn{&e.DeviceIDs}, &e.Ordered)
		list = append(list, e)
		return err
	})
	return list, err
}

func (t *tx) fanOut(e postern.Event, position int64, now postern.Time) error {
	endpoints, err := t.subscribers(e.WorkspaceID)
	if err != nil {
		return err
	}
	for _, ep := range endpoints {
		if !ep.Wants(e.Type, e.DeviceID) {
			continue
		}
		if err := t.deliver(ep, e, position, now); err != nil {
			return err
		}
	}
	return nil
}

// deliver queues one event for one endpoint.
func (t *tx) deliver(ep postern.Endpoint, e postern.Event, position int64, now postern.Time) error {
	t.wake(DeliveryDue, string(ep.ID))
	return t.exec(`INSERT INTO delivery (id, workspace_id, endpoint_id, event_id, position, device_id, type, status, attempts, due_at, created_at, first_attempt_at, last_attempt_at, last_status, last_reason, completed_at, chat)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', 0, $8, $8, 0, 0, 0, '', 0, $9) ON CONFLICT (endpoint_id, position) DO NOTHING`,
		postern.NewDeliveryID(), e.WorkspaceID, ep.ID, e.ID, position, e.DeviceID, e.Type, now, lineOf(ep, e))
}

// lineOf names what the deliveries of an event have to wait in line with: the
// chat, when the endpoint wants order.
func lineOf(ep postern.Endpoint, e postern.Event) string {
	if !ep.Ordered || e.ChatID == "" {
		return ""
	}
	return string(e.DeviceID) + " " + e.ChatID
}
