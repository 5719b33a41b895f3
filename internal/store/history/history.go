// Package history keeps which parts of their histories phones have offered, until they are read.
package history

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

// Part is a part of a history that is to be read.
type Part struct {
	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID
	Account     string // to which the phone belongs
	NetworkID   string // of the offer
	Extent      string
	Ref         []byte // where the part is, and its key
	Attempts    int    // to read it
	NextAt      postern.Time
}

// Table has the parts of all devices. Where they are is encrypted.
type Table struct {
	db  *db.DB
	box *seal.Box
}

// Of returns the parts of a store.
func Of(s *store.Store, box *seal.Box) Table { return Table{s.Engine(), box} }

// maxWaiting is how many parts of a device may wait. A phone offers some dozens after linking.
const maxWaiting = 500

// Put adds a part, unless it is known, or too many wait. It removes those of other accounts to which the device was linked.
func (t Table) Put(ctx context.Context, p Part) error {
	sealed := t.box.Seal(p.Ref, postern.HistoryPlace(string(p.DeviceID), p.NetworkID))
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		err := tx.Exec(`DELETE FROM history_part WHERE device_id = $1 AND account <> $2`, p.DeviceID, p.Account)
		if err != nil {
			return err
		}
		var waiting int
		err = tx.Row(`SELECT count(*) FROM history_part WHERE device_id = $1`, []any{p.DeviceID}, &waiting)
		if err != nil || waiting >= maxWaiting {
			return err
		}
		return tx.Exec(`INSERT INTO history_part (device_id, network_id, workspace_id, account, extent, part, attempts,
			next_at) VALUES ($1, $2, $3, $4, $5, $6, 0, $7) ON CONFLICT (device_id, network_id) DO NOTHING`,
			p.DeviceID, p.NetworkID, p.WorkspaceID, p.Account, p.Extent, sealed, p.NextAt)
	})))
}

// Next returns the part of an account's history that is to be read next, which may be later; ok is false if there is none.
// A part that cannot be decrypted has no Ref.
func (t Table) Next(ctx context.Context, id postern.DeviceID, account string) (p Part, ok bool, err error) {
	p.DeviceID, p.Account = id, account
	err = t.db.One(ctx, `SELECT network_id, workspace_id, extent, part, attempts, next_at FROM history_part
		WHERE device_id = $1 AND account = $2 ORDER BY next_at, network_id LIMIT 1`, id, account).
		Scan(&p.NetworkID, &p.WorkspaceID, &p.Extent, &p.Ref, &p.Attempts, &p.NextAt)
	if errors.Is(err, sql.ErrNoRows) {
		return p, false, nil
	}
	if err == nil {
		p.Ref, _ = t.box.Open(p.Ref, postern.HistoryPlace(string(id), p.NetworkID)) // the secret key was replaced
	}
	return p, err == nil, err
}

// Remove removes a part that was read, or cannot be.
func (t Table) Remove(ctx context.Context, p Part) error {
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		return tx.Exec(`DELETE FROM history_part WHERE device_id = $1 AND network_id = $2`, p.DeviceID, p.NetworkID)
	})))
}

// Postpone lets a part be read again later.
func (t Table) Postpone(ctx context.Context, p Part, next postern.Time) error {
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		return tx.Exec(`UPDATE history_part SET attempts = attempts + 1, next_at = $3 WHERE device_id = $1
			AND network_id = $2`, p.DeviceID, p.NetworkID, next)
	})))
}

// Count returns how many parts wait, of all devices.
func (t Table) Count(ctx context.Context) (n int, err error) {
	err = t.db.One(ctx, `SELECT count(*) FROM history_part`).Scan(&n)
	return n, err
}
