package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"postern/internal/db/dbcopy"
	"postern/internal/store"
)

// Snapshot is a copy of a database as it was at one moment, in a file of SQLite.
type Snapshot struct {
	File    string         // its path
	Moment  time.Time      // everything that was accepted before it is in the copy
	Version int64          // of the database; see [store.Store.Version]
	Tables  []dbcopy.Table // what was copied and compared
}

// Copy takes a snapshot of a database, which servers may use meanwhile. It makes the file in a directory
// that must be empty, and leaves nothing else of use there.
func Copy(ctx context.Context, from Place, dir string) (s Snapshot, err error) {
	if err := Exists(ctx, from); err != nil {
		return s, err
	}
	to := Place{Dir: dir}
	s.File = to.database().File
	if s.Version, err = to.create(ctx); err != nil {
		return s, err
	}
	if err := checkVersion(ctx, from, s.Version); err != nil {
		return s, err
	}
	s.Moment = time.Now().UTC().Truncate(time.Millisecond)
	if s.Tables, err = dbcopy.Copy(ctx, from.database(), to.database(), skipped); err != nil {
		return s, fmt.Errorf("copy the database: %w", err)
	}
	return s, nil
}

// checkVersion refuses a database of another version: what an older one lacks could not be told from what was
// lost.
func checkVersion(ctx context.Context, p Place, want int64) error {
	var has int64
	err := dbcopy.Read(ctx, p.database(), "goose_db_version", []string{"version_id"}, func(row []any) error {
		if v, ok := row[0].(int64); ok {
			has = max(has, v)
		}
		return nil
	})
	if err == nil && has != want {
		err = fmt.Errorf("the database has the version %d, and this release makes backups of the version %d; make the "+
			"backup with the release that the server runs", has, want)
	}
	return err
}

// create makes an empty database and returns its version.
func (p Place) create(ctx context.Context) (version int64, err error) {
	s, err := store.Open(ctx, store.Options{Dir: p.Dir})
	if err != nil {
		return 0, err
	}
	version, err = s.Version(ctx)
	return version, errors.Join(err, s.Close())
}

// Open opens the database of a snapshot, migrates it, and calls do. Nothing else may use the directory.
func Open(ctx context.Context, dir string, do func(*store.Store) error) error {
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// Fill copies the database of a data directory, which no server uses, into an empty PostgreSQL database.
func Fill(ctx context.Context, from, to Place) ([]dbcopy.Table, error) {
	return move(ctx, from, to, func() error { return nil })
}
