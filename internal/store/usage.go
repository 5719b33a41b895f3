package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/postern"
)

// Messages says how many units of a month's quota are spent.
func (s Usage) Messages(ctx context.Context, ws postern.WorkspaceID, month string) (n int, err error) {
	err = s.db.Row(ctx, `SELECT messages FROM usage WHERE workspace_id = $1 AND month = $2`, []any{ws, month}, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

// EverSent tells whether a unit of any month is spent.
func (s Usage) EverSent(ctx context.Context, ws postern.WorkspaceID) (bool, error) {
	return s.exists(ctx, `SELECT count(*) FROM (SELECT 1 FROM usage WHERE workspace_id = $1 AND messages > 0 LIMIT 1) AS months`, ws)()
}

// MessagesBy is the part of MessagesUsed that some devices have.
func (s Usage) MessagesBy(ctx context.Context, ws postern.WorkspaceID, month string, devices []postern.DeviceID) (n int, err error) {
	err = s.db.Row(ctx, `SELECT coalesce(sum(messages), 0) FROM device_usage WHERE workspace_id = $1 AND month = $2 AND device_id IN `+s.db.InList(3), []any{ws, month, asJSON(devices)}, &n)
	return n, err
}

// Slots says how many devices hold a slot of the plan; only counts just
// some when it is not nil.
func (s Usage) Slots(ctx context.Context, ws postern.WorkspaceID, only []postern.DeviceID) (n int, err error) {
	err = s.db.Row(ctx, slotsUsed+` AND ($2 = 'null' OR id IN `+s.db.InList(2)+`)`, []any{ws, asJSON(only)}, &n)
	return n, err
}

// Endpoints says how many webhook endpoints there are.
func (s Usage) Endpoints(ctx context.Context, ws postern.WorkspaceID) (n int, err error) {
	err = s.db.Row(ctx, `SELECT count(*) FROM endpoint WHERE workspace_id = $1`, []any{ws}, &n)
	return n, err
}
