package store

import (
	"database/sql"

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

// subscribers are the active endpoints of a workspace, with what fanOut needs of them.
func (t *tx) subscribers(ws postern.WorkspaceID) (list []postern.Endpoint, err error) {
	err = t.rows(`SELECT id, events, devices FROM endpoint WHERE workspace_id = $1 AND status = 'active'`, []any{ws}, func(r *sql.Rows) error {
		var e postern.Endpoint
		err := r.Scan(&e.ID, jsonColumn{&e.Events}, jsonColumn{&e.DeviceIDs})
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
		if err := t.deliver(ep.ID, e, position, now); err != nil {
			return err
		}
	}
	return nil
}

// deliver queues one event for one endpoint.
func (t *tx) deliver(ep postern.EndpointID, e postern.Event, position int64, now postern.Time) error {
	t.wake(DeliveryDue, string(ep))
	return t.exec(`INSERT INTO delivery (id, workspace_id, endpoint_id, event_id, position, device_id, type, status, attempts, due_at, created_at, first_attempt_at, last_attempt_at, last_status, last_reason, completed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', 0, $8, $8, 0, 0, 0, '', 0) ON CONFLICT (endpoint_id, position) DO NOTHING`,
		postern.NewDeliveryID(), e.WorkspaceID, ep, e.ID, position, e.DeviceID, e.Type, now)
}
