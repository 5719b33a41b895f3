package contacts

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// Picture returns which picture of a contact the account of a device last saw, and its file; "" if it saw none.
func (t Table) Picture(
	ctx context.Context, device postern.DeviceID, id postern.ContactID,
) (picture string, file postern.MediaID, err error) {
	err = t.db.One(ctx, `SELECT picture_id, media_id FROM contact_picture WHERE contact_id = $1 AND device_id = $2`,
		id, device).Scan(&picture, &file)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", nil
	}
	return picture, file, err
}

// SetPicture notes which picture of a contact the account of a device sees, and its file. It does nothing for a contact
// that was erased meanwhile.
func (t Table) SetPicture(
	ctx context.Context, device postern.DeviceID, id postern.ContactID, picture string, file postern.MediaID,
) error {
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		return tx.Exec(`INSERT INTO contact_picture (contact_id, device_id, picture_id, media_id)
			SELECT id, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT) FROM contact WHERE id = $1 AND erased_at = 0
			ON CONFLICT (contact_id, device_id) DO UPDATE SET picture_id = excluded.picture_id, media_id = excluded.media_id`,
			id, device, picture, file)
	}))
}

// withMerged are the ids of the contact $2 and of those that were merged into it.
const withMerged = `(SELECT CAST($2 AS TEXT) UNION ALL SELECT id FROM contact WHERE merged_into = $2 AND merged_into <> '')`

// Pictures returns the files of a contact's pictures, and of those that were merged into it.
func (t Table) Pictures(
	ctx context.Context, ws postern.WorkspaceID, id postern.ContactID,
) (list []postern.MediaID, err error) {
	err = t.db.Rows(ctx, `SELECT p.media_id FROM contact c JOIN contact_picture p ON p.contact_id = c.id
		WHERE c.workspace_id = $1 AND c.id IN `+withMerged, []any{ws, id}, func(r *sql.Rows) error {
		var file postern.MediaID
		err := r.Scan(&file)
		list = append(list, file)
		return err
	})
	return list, err
}
