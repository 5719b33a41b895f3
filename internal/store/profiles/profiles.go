// Package profiles keeps what is known of the profiles that accounts show to others.
package profiles

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// Table has the profiles of all devices.
type Table struct{ db *db.DB }

// Of returns the profiles of a store.
func Of(s *store.Store) Table { return Table{s.Engine()} }

// Rename stores the name of an account.
func (t Table) Rename(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, name string) error {
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		tx.Wake(store.DeviceRow, "")
		return tx.Exec(`UPDATE device SET display_name = $3 WHERE workspace_id = $1 AND id = $2 AND display_name <> $3`,
			ws, id, name)
	}))
}

// Picture returns which picture of an account was last read, and its file; "" if none was.
func (t Table) Picture(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID,
) (picture string, file postern.MediaID, err error) {
	err = t.db.One(ctx, `SELECT picture_id, picture_media FROM device WHERE workspace_id = $1 AND id = $2`,
		ws, id).Scan(&picture, &file)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", nil
	}
	return picture, file, err
}

// SetPicture notes which picture of an account was read, and its file.
func (t Table) SetPicture(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, picture string, file postern.MediaID,
) error {
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		return tx.Exec(`UPDATE device SET picture_id = $3, picture_media = $4 WHERE workspace_id = $1 AND id = $2`,
			ws, id, picture, file)
	}))
}
