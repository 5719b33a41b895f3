package contacts

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/contactid"
)

// identifyChunk is how many people are looked up at a time.
const identifyChunk = 500

// Identify gives contacts that a device knows by a LID alone their numbers. Nobody becomes a contact by it: a device sees
// the numbers of a whole group at once.
func (t Table) Identify(
	ctx context.Context, ws postern.WorkspaceID, device postern.DeviceID, people []postern.Seen, now postern.Time,
) error {
	for chunk := range slices.Chunk(people, identifyChunk) {
		known, err := t.nameless(ctx, ws, device, chunk)
		if err != nil {
			return err
		}
		if err := t.sight(ctx, ws, device, known, now); err != nil {
			return err
		}
	}
	return nil
}

// nameless returns those of the people whom a device knows by a LID alone.
func (t Table) nameless(
	ctx context.Context, ws postern.WorkspaceID, device postern.DeviceID, people []postern.Seen,
) (known []postern.Seen, err error) {
	lids := make([]string, len(people))
	for i, p := range people {
		lids[i] = p.LID
	}
	list, err := json.Marshal(lids)
	if err != nil {
		return nil, fmt.Errorf("encode LIDs: %w", err)
	}
	err = t.db.Rows(ctx, `SELECT k.name FROM contact_key k JOIN contact c ON c.id = k.contact_id
		JOIN contact_device d ON d.contact_id = c.id AND d.device_id = $2
		WHERE k.workspace_id = $1 AND k.name IN `+t.db.InList(3)+` AND c.number = ''`,
		[]any{ws, device, string(list)}, func(r *sql.Rows) error {
			var lid string
			err := r.Scan(&lid)
			known = append(known, people[slices.Index(lids, lid)])
			return err
		})
	return known, err
}

// sight records that a device has seen people.
func (t Table) sight(
	ctx context.Context, ws postern.WorkspaceID, device postern.DeviceID, people []postern.Seen, now postern.Time,
) error {
	if len(people) == 0 {
		return nil
	}
	sightings := make([]contactid.Sighting, len(people))
	for i, p := range people {
		sightings[i] = contactid.Sighting{WorkspaceID: ws, DeviceID: device, Who: p, At: now}
	}
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		_, news, err := contactid.Resolve(tx, sightings)
		if err != nil {
			return err
		}
		return store.RecordIdentified(tx, news, now)
	}))
}
