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
	"go.mau.fi/whatsmeow/util/keys"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// Store holds the keys of all linked accounts, sealed, in the gateway's
// database. Its methods may be called from any goroutine.
type Store struct {
	db  *pstore.Store
	box *seal.Box
	log waLog.Logger
}

// NewStore makes a Store. The values are sealed with box; log is the logger of
// the devices.
func NewStore(db *pstore.Store, box *seal.Box, log waLog.Logger) *Store {
	return &Store{db: db, box: box, log: log}
}

// Fresh makes the device of a link attempt, with new keys. They are stored
// when whatsmeow saves the device, after a phone has scanned the code. The account's
// name is the prefix and the address that the vendor gives it.
func (s *Store) Fresh(prefix string) *store.Device {
	random := make([]byte, 4+32)
	_, _ = rand.Read(random) // never fails (Go 1.24)
	device := &store.Device{
		Log: s.log, Container: container{store: s, prefix: prefix},
		NoiseKey: keys.NewKeyPair(), IdentityKey: keys.NewKeyPair(),
		RegistrationID: binary.BigEndian.Uint32(random), AdvSecretKey: random[4:],
	}
	device.SignedPreKey = device.IdentityKey.CreateSignedPreKey(1)
	return device
}

// Check returns [network.ErrUnknownAccount] if there are no keys of an account.
func (s *Store) Check(ctx context.Context, account string) error {
	row, err := s.db.SessionKeys.Get(ctx, account, kindDevice, unnamed)
	if err != nil {
		return fmt.Errorf("read session keys: %w", unavailable{err})
	}
	if row.Value == nil {
		return network.ErrUnknownAccount
	}
	return nil
}

// Load reads the device of an account for a new connection. The previous
// connection of the account must have ended. It returns
// [network.ErrUnknownAccount] if there are no keys.
func (s *Store) Load(ctx context.Context, account string) (*store.Device, error) {
	device, err := s.load(ctx, newRing(s, account))
	if err != nil {
		return nil, fmt.Errorf("read session keys: %w", unavailable{err})
	}
	if device == nil {
		return nil, network.ErrUnknownAccount
	}
	return device, nil
}

// load reads a device, or returns nil if there is none. With several nodes, the
// epoch of the account will be taken here.
func (s *Store) load(ctx context.Context, ring *Ring) (*store.Device, error) {
	// An empty write comes after all that the previous connection handed over.
	if err := s.db.SessionKeys.Write(ctx, pstore.WriteSessionKeys{Account: ring.account}); err != nil {
		return nil, err
	}
	rec, err := ring.read(ctx, ref{kindDevice, unnamed})
	if err != nil || rec.value == nil {
		return nil, err
	}
	device, err := decodeDevice(rec.value)
	if err != nil {
		return nil, err
	}
	plaintexts, err := s.db.SessionKeys.Before(ctx, ring.account, kindEvent, postern.Time(math.MaxInt64))
	if err != nil {
		return nil, err
	}
	ring.buffer.expect(plaintexts)
	device.Log = s.log
	ring.equip(device)
	return device, nil
}

// Accounts lists the accounts that have keys.
func (s *Store) Accounts(ctx context.Context) ([]string, error) {
	accounts, err := s.db.SessionKeys.Accounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("read session keys: %w", err)
	}
	return accounts, nil
}

// Forget removes all records of an account. The companion's own keys go first,
// so that the account cannot be opened if a crash leaves the others behind.
func (s *Store) Forget(ctx context.Context, account string) error {
	device := []pstore.SessionKey{{Kind: kindDevice, Name: unnamed}}
	first := pstore.WriteSessionKeys{Account: account, Keys: device}
	if err := s.db.SessionKeys.Write(ctx, first); err != nil {
		return fmt.Errorf("remove session keys: %w", err)
	}
	if err := s.db.SessionKeys.Remove(ctx, account); err != nil {
		return fmt.Errorf("remove session keys: %w", err)
	}
	return nil
}
