package app

import (
	"context"
	"encoding/hex"
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
	key, err := loadKey(ctx, cfg, db)
	if err != nil {
		return core{}, errors.Join(err, db.Close())
	}
	box, err := seal.NewBox(key)
	if err == nil {
		err = checkKey(ctx, db, box)
	}
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

// loadKey reads the secret key. It creates one only for a database that has never had one.
func loadKey(ctx context.Context, cfg config.Data, db *store.Store) ([]byte, error) {
	known, err := db.Settings.Get(ctx, keyCheck)
	if err != nil {
		return nil, err
	}
	if known == "" {
		return cfg.LoadKey()
	}
	key, err := seal.LoadKey(cfg.KeyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s, but the database is encrypted with a secret key; "+
			"restore the file, or name it by POSTERN_SECRET_KEY_FILE", cfg.KeyFile())
	}
	return key, err
}

// checkKey refuses a secret key that is not the one with which the database was
// encrypted, because it could not open any secret.
func checkKey(ctx context.Context, db *store.Store, box *seal.Box) error {
	now := hex.EncodeToString(box.MAC("key check", "postern"))
	before, err := db.Settings.Get(ctx, keyCheck)
	switch {
	case err != nil:
		return err
	case before == "":
		return db.Settings.Set(ctx, keyCheck, now)
	case before != now:
		return errors.New("the secret key is not the one this database was sealed with; " +
			"restore secret.key, or name it by POSTERN_SECRET_KEY_FILE")
	}
	return nil
}
