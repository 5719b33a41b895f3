package app

import (
	"context"
	"errors"

	"postern/internal/config"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

// core is the part of the server that commands need too: the database and the box for its
// secrets.
type core struct {
	db   *store.Store
	box  *seal.Box
	keys *secretKeys
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
	keys, err := openKeys(ctx, cfg, db)
	if err == nil {
		err = db.Endpoints.SealHeaders(ctx, func(e *postern.Endpoint, headers map[string]string) error {
			return gateway.SealHeaders(keys.box, e, headers)
		})
	}
	if err != nil {
		return core{}, errors.Join(err, db.Close())
	}
	return core{db, keys.box, keys}, nil
}

// keyCheck is the setting by which a database recognizes its first secret key.
const keyCheck = "secret_key_check"
