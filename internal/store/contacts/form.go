package contacts

import (
	"context"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/contactid"
)

// AddForm records by which number the network knows one that a device has written to. The contact is found by both.
func (t Table) AddForm(
	ctx context.Context, ws postern.WorkspaceID, device postern.DeviceID, f postern.OtherForm, now postern.Time,
) error {
	s := contactid.Sighting{
		WorkspaceID: ws, DeviceID: device, Who: postern.Seen{Number: f.Number, LID: f.LID}, At: now,
	}
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		news, err := contactid.AddForm(tx, s, f.Form)
		if err != nil {
			return err
		}
		return store.RecordIdentified(tx, news, now)
	}))
}
