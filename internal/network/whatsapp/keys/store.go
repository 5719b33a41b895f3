package keys

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"

	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/seal"
	pstore "postern/internal/store"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// Store keeps the keys of all linked accounts, sealed, in the gateway's
// database.
type Store struct {
	db  *pstore.Store
	box *seal.Box
	log waLog.Logger
}

// NewStore makes a Store on the gateway's database.
func NewStore(db *pstore.Store, box *seal.Box, log waLog.Logger) *Store {
	return &Store{db: db, box: box, log: log}
}

// Fresh makes the keys of a link attempt. They are kept when a phone scanned.
func (k *Store) Fresh() *store.Device {
	random := make([]byte, 4+32)
	_, _ = rand.Read(random) // never fails (Go 1.24)
	device := &store.Device{
		Log: k.log, Container: keeper{keys: k},
		NoiseKey: keys.NewKeyPair(), IdentityKey: keys.NewKeyPair(),
		RegistrationID: binary.BigEndian.Uint32(random), AdvSecretKey: random[4:],
	}
	device.SignedPreKey = device.IdentityKey.CreateSignedPreKey(1)
	return device
}

// Known says [network.ErrUnknownAccount] for an account that has no keys.
func (k *Store) Known(ctx context.Context, account types.JID) error {
	row, err := k.db.SessionKeys.Get(ctx, account.String(), kindDevice, nameOnly)
	if err != nil {
		return fmt.Errorf("read session keys: %w", unavailable{err})
	}
	if row.Value == nil {
		return network.ErrUnknownAccount
	}
	return nil
}

// Load reads the keys of an account for a connection, after all that the
// connection before handed to the writer. It says [network.ErrUnknownAccount]
// when there are none. An epoch of the account will be taken here when there are
// many nodes.
func (k *Store) Load(ctx context.Context, account types.JID) (*store.Device, error) {
	ring := newRing(k, account)
	if err := k.db.SessionKeys.Write(ctx, pstore.WriteSessionKeys{Account: ring.account}); err != nil {
		return nil, fmt.Errorf("read session keys: %w", unavailable{err})
	}
	rec, err := ring.read(ctx, ref{kindDevice, nameOnly})
	if err != nil {
		return nil, fmt.Errorf("read session keys: %w", unavailable{err})
	}
	if rec.value == nil {
		return nil, network.ErrUnknownAccount
	}
	device, err := deviceOf(rec.value)
	if err == nil {
		err = ring.findWaiting(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("read session keys: %w", unavailable{err})
	}
	device.Log = k.log
	ring.equip(device)
	return device, nil
}

// findWaiting looks for the plaintexts that earlier connections left behind.
func (r *Ring) findWaiting(ctx context.Context) error {
	names, err := r.keys.db.SessionKeys.Before(ctx, r.account, kindEvent, postern.Time(math.MaxInt64))
	if err != nil {
		return err
	}
	for _, name := range names {
		r.waiting[name] = true
	}
	return nil
}

// Accounts lists the accounts whose keys are kept.
func (k *Store) Accounts(ctx context.Context) ([]string, error) {
	accounts, err := k.db.SessionKeys.Accounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("read session keys: %w", err)
	}
	return accounts, nil
}

// Forget removes all that is kept for an account, its own keys first: what a
// crash leaves behind cannot be opened.
func (k *Store) Forget(ctx context.Context, account types.JID) error {
	first := pstore.WriteSessionKeys{Account: account.String(), Keys: []pstore.SessionKey{{Kind: kindDevice, Name: nameOnly}}}
	if err := k.db.SessionKeys.Write(ctx, first); err != nil {
		return fmt.Errorf("remove session keys: %w", err)
	}
	if err := k.db.SessionKeys.Remove(ctx, account.String()); err != nil {
		return fmt.Errorf("remove session keys: %w", err)
	}
	return nil
}
