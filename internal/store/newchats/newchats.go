// Package newchats keeps whether accounts may start chats, and how much of their pace for new chats applies.
package newchats

import (
	"context"
	"database/sql"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// Table has the limits of all devices.
type Table struct{ db *db.DB }

// Of returns the limits of a store.
func Of(s *store.Store) Table { return Table{s.Engine()} }

// Change is a change of whether an account may start chats, with the event that reports it.
type Change struct {
	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID
	NewChats    postern.NewChats
	At          postern.Time
	Event       postern.Event
}

// Set records whether an account may start chats. It does nothing if that is known. Each time that an account may no
// longer do so, its pace for new chats is halved, up to [postern.MostSlowed] times.
func (t Table) Set(ctx context.Context, c Change) error {
	limitedAt := c.At
	if c.NewChats.Allowed {
		limitedAt = 0
	}
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		n, err := tx.Changed(`UPDATE device SET limited_at = CAST($3 AS BIGINT), limited_until = CAST($4 AS BIGINT),
			slowed = CASE WHEN limited_at = 0 AND slowed < $6 THEN slowed + 1 ELSE slowed END, slowed_at = $5
			WHERE workspace_id = $1 AND id = $2 AND deleted_at = 0 AND ((limited_at = 0) <> (CAST($3 AS BIGINT) = 0)
			OR CAST($4 AS BIGINT) > 0 AND limited_until <> CAST($4 AS BIGINT))`,
			c.WorkspaceID, c.DeviceID, limitedAt, c.NewChats.Until, c.At, int64(postern.MostSlowed))
		if err != nil || n == 0 {
			return err
		}
		wake(tx, c.DeviceID)
		return store.RecordEvent(tx, c.Event, c.At)
	})))
}

// Over returns up to limit devices whose accounts could not start chats, and may again: because the time that the
// network gave is over, or because it gave none and the limit was reported before a time.
func (t Table) Over(ctx context.Context, now, before postern.Time, limit int) ([]postern.DeviceID, error) {
	return t.devices(ctx, `SELECT id FROM device WHERE limited_at > 0 AND deleted_at = 0
		AND (limited_until > 0 AND limited_until <= $1 OR limited_until = 0 AND limited_at <= $2) ORDER BY limited_at, id
		LIMIT $3 + 0`, now, before, limit)
}

// slowedBefore are the devices that may start chats, and whose pace was last halved or doubled before a time.
const slowedBefore = `slowed > 0 AND slowed_at <= $1 AND limited_at = 0`

// Ease doubles the pace for new chats of the devices that may start chats, and whose pace was last halved or doubled
// before a time.
func (t Table) Ease(ctx context.Context, now, before postern.Time) error {
	list, err := t.devices(ctx, `SELECT id FROM device WHERE `+slowedBefore, before)
	if err != nil || len(list) == 0 {
		return err
	}
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		for _, id := range list {
			wake(tx, id)
		}
		return tx.Exec(`UPDATE device SET slowed = slowed - 1, slowed_at = $2 WHERE `+slowedBefore, before, now)
	}))
}

func (t Table) devices(ctx context.Context, query string, args ...any) (list []postern.DeviceID, err error) {
	err = t.db.Rows(ctx, query, args, func(r *sql.Rows) error {
		var id postern.DeviceID
		err := r.Scan(&id)
		list = append(list, id)
		return err
	})
	return list, err
}

func wake(tx *db.Tx, id postern.DeviceID) {
	tx.Wake(store.DeviceRow, "")
	tx.Wake(store.DeviceChanged, string(id))
}
