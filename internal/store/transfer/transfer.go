// Package transfer moves the data of Postern from one database to another: from a data directory to
// PostgreSQL, or back.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"postern/internal/db"
	"postern/internal/db/dbcopy"
	"postern/internal/postern"
	"postern/internal/store"
)

// Place is a data directory, or the URL of a PostgreSQL database.
type Place struct{ Dir, URL string }

// ParsePlace reads a place as it is written on the command line.
func ParsePlace(text string) Place {
	if strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://") {
		return Place{URL: text}
	}
	return Place{Dir: text}
}

func (p Place) database() dbcopy.Place {
	if p.URL != "" {
		return dbcopy.Place{URL: p.URL}
	}
	return dbcopy.Place{File: filepath.Join(p.Dir, db.FileName)}
}

// LockName is the name of the file in a data directory that servers lock.
const LockName = db.LockName

// Lock keeps servers away from a data directory, which it makes if it is missing, until release is called.
// It does nothing to a PostgreSQL database.
func (p Place) Lock() (release func() error, err error) {
	if p.URL != "" {
		return func() error { return nil }, nil
	}
	l, err := db.LockDir(p.Dir)
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

// held is a database that nobody else can use.
type held struct {
	store *store.Store
	lock  *db.DirLock // of its directory
	temp  string      // directory that is removed in the end; "" removes none
}

// hold opens a database, and migrates it.
func (p Place) hold(ctx context.Context) (h held, err error) {
	dir := p.Dir
	if p.URL != "" {
		if h.temp, err = os.MkdirTemp("", "postern"); err != nil {
			return h, err
		}
		dir = h.temp
	}
	if h.lock, err = db.LockDir(dir); err == nil {
		h.store, err = store.Open(ctx, store.Options{Dir: dir, URL: p.URL, Lock: h.lock})
	}
	if err != nil {
		return held{}, errors.Join(err, h.release())
	}
	return h, nil
}

// close closes the database, whose directory stays locked.
func (h *held) close() (err error) {
	if h.store != nil {
		err = h.store.Close()
	}
	h.store = nil
	return err
}

// release closes the database, and lets others use it.
func (h *held) release() error {
	err := h.close()
	if h.lock != nil {
		err = errors.Join(err, h.lock.Release())
	}
	if h.temp != "" {
		err = errors.Join(err, os.RemoveAll(h.temp))
	}
	return err
}

// Move copies everything from one database into another one, which must be empty, and returns what it
// has compared. If it fails, the target stays empty. The file of a source in a data directory is renamed,
// so that no server continues with it by mistake. The secret key and the files of messages are not in the
// database, and stay where they are.
func Move(ctx context.Context, from, to Place) (list []dbcopy.Table, err error) {
	if err := from.checkRetired(); err != nil {
		return nil, err
	}
	return move(ctx, from, to, from.retire)
}

// Retired is what is added to the name of a database file whose data was moved.
const Retired = ".moved"

// checkRetired refuses a source whose file could not be renamed, because one was renamed before.
func (p Place) checkRetired() error {
	if p.URL != "" {
		return nil
	}
	name := p.database().File + Retired
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s is there already, from an earlier move; move it elsewhere first", name))
	}
	return nil
}

// retire renames the database file and its journal.
func (p Place) retire() error {
	if p.URL != "" {
		return nil
	}
	file := p.database().File
	for _, end := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(file+end, file+Retired+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return syncDir(p.Dir)
}

// syncDir waits until the names of a directory's files are on disk.
func syncDir(name string) error {
	d, err := os.Open(name) //nolint:gosec // the operator names the directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// move copies everything, and calls done before anybody else can use one of the databases.
func move(ctx context.Context, from, to Place, done func() error) (list []dbcopy.Table, err error) {
	if err := Exists(ctx, from); err != nil {
		return nil, err
	}
	source, err := from.hold(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the source: %w", err)
	}
	defer func() { err = errors.Join(err, source.release()) }()
	target, err := to.hold(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the target: %w", err)
	}
	defer func() { err = errors.Join(err, target.release()) }()
	if list, err = dbcopy.Copy(ctx, from.database(), to.database(), skipped); err != nil {
		return nil, err
	}
	return list, errors.Join(source.close(), done())
}

// Exists returns an error if a place has no database of Postern: opening it would create one.
func Exists(ctx context.Context, p Place) error {
	if p.URL == "" {
		_, err := os.Stat(p.database().File)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no Postern database in the directory %s", p.Dir)
		}
		return err
	}
	has, err := dbcopy.Has(ctx, p.database(), "workspace")
	if err == nil && !has {
		err = errors.New("there is no Postern database at this URL")
	}
	return err
}

// Setting returns the value of a setting; "" if it has none. Servers may use the database.
func Setting(ctx context.Context, p Place, name string) (value string, err error) {
	err = dbcopy.Read(ctx, p.database(), "setting", []string{"name", "value"}, func(row []any) error {
		if fmt.Sprint(row[0]) == name {
			value = fmt.Sprint(row[1])
		}
		return nil
	})
	return value, err
}

// SecretKeys returns the ids of the secret keys without which a database cannot be used; none if it says nothing of
// them. Servers may use the database.
func SecretKeys(ctx context.Context, p Place) (ids []string, err error) {
	has, err := dbcopy.Has(ctx, p.database(), "secret_key")
	if err != nil || !has {
		return nil, err
	}
	err = dbcopy.Read(ctx, p.database(), "secret_key", []string{"id", "state"}, func(row []any) error {
		if fmt.Sprint(row[1]) != "retired" {
			ids = append(ids, fmt.Sprint(row[0]))
		}
		return nil
	})
	return ids, err
}

// EachBlob calls do for each blob of a database that servers may use.
func EachBlob(ctx context.Context, p Place, do func(ws postern.WorkspaceID, hash string)) error {
	return dbcopy.Read(ctx, p.database(), "blob", []string{"workspace_id", "hash"}, func(row []any) error {
		do(postern.WorkspaceID(fmt.Sprint(row[0])), fmt.Sprint(row[1]))
		return nil
	})
}

// skipped reports whether a table is not copied: it describes the database itself, or is the index of
// words, which the server fills again.
func skipped(table string) bool {
	switch table {
	case "goose_db_version", "node", "word_place", "word_change":
		return true
	}
	return strings.HasPrefix(table, "message_word")
}
