package store

import (
	"database/sql"

	"postern/internal/db"
	"postern/internal/postern"
)

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
