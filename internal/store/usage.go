package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/postern"
)

// MessagesUsed says how many units of a month's quota are spent.
func (db *DB) MessagesUsed(ctx context.Context, ws postern.WorkspaceID, month string) (n int, err error) {
	err = db.row(ctx, `SELECT messages FROM usage WHERE workspace_id = $1 AND month = $2`, []any{ws, month}, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

// EverSent tells whether a unit of any month is spent.
func (db *DB) EverSent(ctx context.Context, ws postern.WorkspaceID) (bool, error) {
	return db.exists(ctx, `SELECT count(*) FROM (SELECT 1 FROM usage WHERE workspace_id = $1 AND messages > 0 LIMIT 1) AS months`, ws)()
}

// MessagesUsedBy is the part of MessagesUsed that some devices have.
func (db *DB) MessagesUsedBy(ctx context.Context, ws postern.WorkspaceID, month string, devices []postern.DeviceID) (n int, err error) {
	err = db.row(ctx, `SELECT coalesce(sum(messages), 0) FROM device_usage WHERE workspace_id = $1 AND month = $2 AND device_id IN `+db.dialect.inList(3), []any{ws, month, asJSON(devices)}, &n)
	return n, err
}

// SlotsUsed says how many devices hold a slot of the plan; only counts just
// some when it is not nil.
func (db *DB) SlotsUsed(ctx context.Context, ws postern.WorkspaceID, only []postern.DeviceID) (n int, err error) {
	err = db.row(ctx, slotsUsed+` AND ($2 = 'null' OR id IN `+db.dialect.inList(2)+`)`, []any{ws, asJSON(only)}, &n)
	return n, err
}

// EndpointsUsed says how many webhook endpoints there are.
func (db *DB) EndpointsUsed(ctx context.Context, ws postern.WorkspaceID) (n int, err error) {
	err = db.row(ctx, `SELECT count(*) FROM endpoint WHERE workspace_id = $1`, []any{ws}, &n)
	return n, err
}
