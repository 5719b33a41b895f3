package whatsapp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"postern/internal/network"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// keyStore keeps the keys of linked accounts. It is the seam behind which
// whatsmeow's own SQL store can be replaced.
type keyStore struct{ container *sqlstore.Container }

// errKept is what whatsmeow gets when it wants to delete an account's keys.
var errKept = errors.New("the keys stay until they are forgotten")

// openKeys makes or upgrades the tables of the key store.
func openKeys(ctx context.Context, db *sql.DB, log waLog.Logger) (*keyStore, error) {
	container := sqlstore.NewWithDB(db, "sqlite", log.Sub("Keys"))
	if err := container.Upgrade(ctx); err != nil {
		return nil, fmt.Errorf("prepare session keys: %w", err)
	}
	return &keyStore{container: container}, nil
}

// fresh makes the keys of a link attempt. They are kept when a phone scanned.
func (k *keyStore) fresh() *store.Device {
	device := k.container.NewDevice()
	device.Container = keeper{k.container}
	return device
}

// load reads the keys of an account, or says [network.ErrUnknownAccount].
func (k *keyStore) load(ctx context.Context, account types.JID) (*store.Device, error) {
	device, err := k.container.GetDevice(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("read session keys: %w", unavailable{err})
	}
	if device == nil {
		return nil, network.ErrUnknownAccount
	}
	device.Container = keeper{k.container}
	return device, nil
}

func (k *keyStore) accounts(ctx context.Context) ([]string, error) {
	devices, err := k.container.GetAllDevices(ctx)
	if err != nil {
		return nil, fmt.Errorf("read session keys: %w", err)
	}
	accounts := make([]string, len(devices))
	for i, device := range devices {
		accounts[i] = device.ID.String()
	}
	return accounts, nil
}

// forget removes all that is kept for an account; the tables that hang on the
// account's row follow it, save the privacy tokens.
func (k *keyStore) forget(ctx context.Context, account types.JID) error {
	tokens := sqlstore.NewSQLStore(k.container, account)
	if _, err := tokens.DeleteExpiredPrivacyTokens(ctx, time.Unix(1<<40, 0)); err != nil {
		return fmt.Errorf("remove privacy tokens: %w", err)
	}
	if err := k.container.DeleteDevice(ctx, &store.Device{ID: &account}); err != nil {
		return fmt.Errorf("remove session keys: %w", err)
	}
	return nil
}

// keeper refuses the deletions that whatsmeow makes on its own when the vendor
// ends a link. They would write to fields that its other goroutines read, and the
// keys are ours to remove.
type keeper struct{ store.DeviceContainer }

func (keeper) DeleteDevice(context.Context, *store.Device) error { return errKept }

// PutDevice saves the device, which makes the SQL store put itself into it.
func (k keeper) PutDevice(ctx context.Context, device *store.Device) error {
	err := k.DeviceContainer.PutDevice(ctx, device)
	device.Container = k
	return err //nolint:wrapcheck // whatsmeow's own error, back to whatsmeow
}
