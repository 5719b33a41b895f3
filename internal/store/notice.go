package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"postern/internal/db"
	"postern/internal/postern"
)

// QueueNotice queues a notice for an endpoint of the workspace, which must be
// active. d says what it is; body is what is posted.
func (s Deliveries) QueueNotice(ctx context.Context, ws postern.WorkspaceID, d postern.Delivery, body []byte, once *Once, acts ...Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if err := once.claim(t); err != nil {
			return err
		}
		if err := checkActive(t, ws, d.EndpointID); err != nil {
			return err
		}
		return errors.Join(insertNotice(t, ws, d, body), recordActs(t, acts))
	}))
}

// activeEndpoint refuses an endpoint that gets nothing.
func checkActive(t *db.Tx, ws postern.WorkspaceID, id postern.EndpointID) error {
	var status postern.EndpointStatus
	err := t.Row(`SELECT status FROM endpoint WHERE workspace_id = $1 AND id = $2`, []any{ws, id}, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return postern.Errorf(postern.NotFound, "there is no such webhook endpoint")
	}
	if err == nil && status != postern.EndpointActive {
		return notActive(status)
	}
	return err
}

func insertNotice(t *db.Tx, ws postern.WorkspaceID, d postern.Delivery, body []byte) error {
	t.Wake(DeliveryDue, string(d.EndpointID))
	return t.Exec(`INSERT INTO delivery (id, workspace_id, endpoint_id, event_id, position, device_id, type, status, attempts, due_at, created_at, first_attempt_at, last_attempt_at, last_status, last_reason, completed_at, notice)
		SELECT $1, $2, $3, $4, coalesce(min(position), 0) - 1, '', $5, 'pending', 0, $6, $6, 0, 0, 0, '', 0, $7 FROM delivery WHERE endpoint_id = $3 AND position < 0`,
		d.ID, ws, d.EndpointID, d.EventID, d.Type, d.CreatedAt, body)
}

// tellDisabled tells the endpoints that ask for it by name that another one was
// disabled. One that is limited to devices learns of no endpoint beyond them.
func recordDisabled(t *db.Tx, id postern.EndpointID, at postern.Time) error {
	gone, err := scanEndpoint(t.One(`SELECT `+endpointColumns+` FROM endpoint WHERE id = $1`, id))
	if err != nil {
		return err
	}
	list, err := subscribers(t, gone.WorkspaceID)
	if err != nil {
		return err
	}
	event := postern.NewEventID()
	body := gone.DisabledNotice(event, at)
	for _, e := range list {
		if !slices.Contains(e.Events, string(postern.WebhookDisabled)) || !covers(e.DeviceIDs, gone.DeviceIDs) {
			continue
		}
		d := postern.Delivery{ID: postern.NewDeliveryID(), EndpointID: e.ID, EventID: event, Type: postern.WebhookDisabled, CreatedAt: at}
		if err := insertNotice(t, gone.WorkspaceID, d, body); err != nil {
			return err
		}
	}
	return nil
}

// covers tells whether a list of devices holds all of another; nil is every
// device.
func covers(list, all []postern.DeviceID) bool {
	if list == nil {
		return true
	}
	return all != nil && !slices.ContainsFunc(all, func(id postern.DeviceID) bool { return !slices.Contains(list, id) })
}
