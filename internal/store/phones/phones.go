// Package phones keeps when the phones of accounts were last seen.
package phones

import (
	"context"
	"database/sql"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// Patience is for how long a phone may not be seen before that is reported. The vendor removes the companions of a phone
// that was not used for 14 days (faq.whatsapp.com/378279804439436).
const Patience = 10 * 24 * time.Hour

// Table has the phones of all devices.
type Table struct{ db *db.DB }

// Of returns the phones of a store.
func Of(s *store.Store) Table { return Table{s.Engine()} }

// Seen records that the phone of a device was seen. It does nothing if it was seen later.
func (t Table) Seen(ctx context.Context, id postern.DeviceID, at postern.Time) error {
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		wake(tx, id)
		return tx.Exec(`UPDATE device SET phone_seen_at = $2,
			phone_unseen_at = CASE WHEN phone_unseen_at <= $3 THEN 0 ELSE phone_unseen_at END
			WHERE id = $1 AND phone_seen_at < $2`, id, at, at.Add(Patience))
	}))
}

// Unseen returns up to limit devices that are connected and whose phones have not been seen for [Patience], which was not
// reported yet.
func (t Table) Unseen(ctx context.Context, now postern.Time, limit int) (list []postern.DeviceID, err error) {
	err = t.db.Rows(ctx, `SELECT id FROM device WHERE status = 'connected' AND deleted_at = 0 AND phone_unseen_at = 0
		AND phone_seen_at > 0 AND phone_seen_at <= $1 ORDER BY phone_seen_at, id LIMIT $2 + 0`,
		[]any{now.Add(-Patience), limit}, func(r *sql.Rows) error {
			var id postern.DeviceID
			err := r.Scan(&id)
			list = append(list, id)
			return err
		})
	return list, err
}

// Report records the event that the phone of a device has not been seen for [Patience]. It does nothing if it was seen
// meanwhile, or if that was reported.
func (t Table) Report(ctx context.Context, id postern.DeviceID, e postern.Event, now postern.Time) error {
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		n, err := tx.Changed(`UPDATE device SET phone_unseen_at = $2 WHERE id = $1 AND deleted_at = 0
			AND phone_unseen_at = 0 AND phone_seen_at <= $3`, id, now, now.Add(-Patience))
		if err != nil || n == 0 {
			return err
		}
		wake(tx, id)
		return store.RecordEvent(tx, e, now)
	})))
}

// Forget makes the phone of a device one that has not been seen for [Patience]: the sandbox shows what happens then.
func (t Table) Forget(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, now postern.Time) error {
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		wake(tx, id)
		return tx.Exec(`UPDATE device SET phone_seen_at = $3, phone_unseen_at = 0 WHERE workspace_id = $1 AND id = $2`,
			ws, id, now.Add(-Patience))
	}))
}

func wake(tx *db.Tx, id postern.DeviceID) {
	tx.Wake(store.DeviceRow, "")
	tx.Wake(store.DeviceChanged, string(id))
}
