// Package passkeys carries a network's request for the passkey of an account from the server that holds the connection
// of a link attempt to whichever server the owner's browser or program talks to, and the answers back. They are in the
// row of the attempt, encrypted, and each change of the row is a wake-up.
package passkeys

import (
	"context"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

// The steps of a link attempt. The server that holds the connection sets Wanted and Compare, and the owner's answers set
// Answered and Confirmed.
const (
	None      = 0
	Wanted    = 1 // the network asks for the passkey; the data is its request
	Answered  = 2 // the data is the credential
	Compare   = 3 // the owner is to compare a code, which is the data
	Confirmed = 4
)

// Table has the steps of link attempts.
type Table struct {
	db    *db.DB
	links store.Links
	box   *seal.Box
}

// Of returns the steps of the link attempts in a store.
func Of(s *store.Store, box *seal.Box) Table { return Table{s.Engine(), s.Links, box} }

// Want records that the network asks for the passkey, in place of the codes, and keeps the attempt open until a time at
// least. It records the event with it.
func (t Table) Want(
	ctx context.Context, l store.LinkRow, request []byte, until postern.Time, e postern.Event, now postern.Time,
) error {
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		n, err := tx.Changed(`UPDATE link SET passkey = 1, passkey_step = $2, passkey_data = $3, code = $4,
			expires_at = CASE WHEN expires_at < $5 THEN $5 ELSE expires_at END WHERE id = $1 AND status = 'pending'`,
			l.ID, Wanted, t.seal(l, request), []byte{}, until)
		if err != nil || n == 0 {
			return err
		}
		tx.Wake(store.LinkChanged, string(l.DeviceID))
		tx.Wake(store.DeviceRow, "")
		err = tx.Exec(`UPDATE device SET status_reason = 'passkey-required' WHERE workspace_id = $1 AND id = $2
			AND status = 'linking'`, l.WorkspaceID, l.DeviceID)
		if err != nil {
			return err
		}
		return store.RecordEvent(tx, e, now)
	})))
}

// Answer records the credential; ok is false if the network does not ask for one any more.
func (t Table) Answer(ctx context.Context, l store.LinkRow, credential []byte) (ok bool, err error) {
	return t.advance(ctx, l, Wanted, Answered, credential)
}

// Confirm records that the owner has compared the code; ok is false if no code is waiting to be compared.
func (t Table) Confirm(ctx context.Context, l store.LinkRow) (ok bool, err error) {
	return t.advance(ctx, l, Compare, Confirmed, nil)
}

// Compare records the code that the owner is to compare. Only the server that serves the attempt calls it.
func (t Table) Compare(ctx context.Context, l store.LinkRow, code string) (ok bool, err error) {
	return t.advance(ctx, l, Answered, Compare, []byte(code))
}

// Reset begins an attempt anew whose connection is gone. Only the server that serves the attempt calls it.
func (t Table) Reset(ctx context.Context, l store.LinkRow) error {
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		tx.Wake(store.LinkChanged, string(l.DeviceID))
		tx.Wake(store.DeviceRow, "")
		return errors.Join(
			tx.Exec(`UPDATE link SET passkey = 0, passkey_step = 0, passkey_data = $2 WHERE id = $1 AND status = 'pending'`,
				l.ID, []byte{}),
			tx.Exec(`UPDATE device SET status_reason = '' WHERE workspace_id = $1 AND id = $2 AND status = 'linking'
				AND status_reason = 'passkey-required'`, l.WorkspaceID, l.DeviceID))
	})))
}

// advance moves an attempt from one step to another.
func (t Table) advance(ctx context.Context, l store.LinkRow, from, to int, data []byte) (ok bool, err error) {
	sealed := []byte{}
	if data != nil {
		sealed = t.seal(l, data)
	}
	change := db.Write(db.Func(func(tx *db.Tx) error {
		n, err := tx.Changed(`UPDATE link SET passkey_step = $4, passkey_data = $5 WHERE workspace_id = $1 AND id = $2
			AND status = 'pending' AND passkey_step = $3`, l.WorkspaceID, l.ID, from, to, sealed)
		if ok = n > 0; ok {
			tx.Wake(store.LinkChanged, string(l.DeviceID))
		}
		return err
	}))
	if to == Compare {
		change = db.Fenced(change)
	}
	err = t.db.Do(ctx, change)
	return ok, err
}

// Await waits until an attempt has reached a step, and returns its data. It returns a NoOpenLink error when the attempt
// has ended or began anew.
func (t Table) Await(ctx context.Context, l store.LinkRow, step int) ([]byte, error) {
	changes := t.db.Listen(store.LinkChanged, string(l.DeviceID))
	defer changes.Close()
	for {
		now, ok, err := t.links.Latest(ctx, l.WorkspaceID, l.DeviceID)
		switch {
		case err != nil:
			return nil, err
		case !ok || now.ID != l.ID || now.Status != postern.LinkPending || now.PasskeyStep == None:
			return nil, postern.Errorf(postern.NoOpenLink, "the link attempt has ended")
		case now.PasskeyStep >= step:
			return t.Open(now)
		}
		select {
		case <-changes.C():
			changes.Take()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Open returns the data of the step at which an attempt is.
func (t Table) Open(l store.LinkRow) ([]byte, error) {
	if len(l.PasskeyData) == 0 {
		return nil, nil
	}
	return t.box.Open(l.PasskeyData, l.ID.PasskeyPlace())
}

func (t Table) seal(l store.LinkRow, data []byte) []byte {
	return t.box.Seal(data, l.ID.PasskeyPlace())
}
