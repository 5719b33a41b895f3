package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"postern/internal/config"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

// core is the part of the server that commands need too: the database and the box for its
// secrets.
type core struct {
	db  *store.Store
	box *seal.Box
}

// openCore opens the database of the settings, with further options.
func openCore(ctx context.Context, cfg config.Data, opts store.Options) (core, error) {
	if err := cfg.Validate(); err != nil {
		return core{}, err
	}
	opts.Dir, opts.URL = cfg.Dir, cfg.DatabaseURL.Reveal()
	db, err := store.Open(ctx, opts)
	if err != nil {
		return core{}, err
	}
	box, err := openBox(ctx, cfg, db)
	if err == nil {
		err = db.Endpoints.SealHeaders(ctx, func(e *postern.Endpoint, headers map[string]string) error {
			return gateway.SealHeaders(box, e, headers)
		})
	}
	if err != nil {
		return core{}, errors.Join(err, db.Close())
	}
	return core{db, box}, nil
}

// keyCheck is the setting by which a database recognizes its secret key.
const keyCheck = "secret_key_check"

// openBox reads the secret keys and returns a box that opens what the database has. It creates a key only for a
// database that has never had one.
func openBox(ctx context.Context, cfg config.Data, db *store.Store) (*seal.Box, error) {
	known, err := db.Settings.Get(ctx, keyCheck)
	if err != nil {
		return nil, err
	}
	if known == "" {
		keys, err := cfg.LoadKeys()
		if err != nil {
			return nil, err
		}
		box, err := seal.NewBoxOf(keys, keys.IDs()[0], keys.IDs()[0])
		if err != nil {
			return nil, err
		}
		return box, db.Settings.Set(ctx, keyCheck, box.Check())
	}
	keys, err := seal.LoadKeys(cfg.KeyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s, but the database is encrypted with a secret key; "+
			"restore the file, or name it by POSTERN_SECRET_KEY_FILE", cfg.KeyFile())
	}
	if err != nil {
		return nil, err
	}
	return boxFor(known, keys)
}

// boxFor refuses secret keys without the one with which the database was encrypted, because they could not
// open any secret.
func boxFor(check string, keys seal.Keys) (*seal.Box, error) {
	first, ok := keys.Checked(check)
	if !ok {
		return nil, errors.New("the secret key is not the one this database was sealed with; " +
			"restore secret.key, or name it by POSTERN_SECRET_KEY_FILE")
	}
	return seal.NewBoxOf(keys, first, first)
}
