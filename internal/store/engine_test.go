package store

import (
	"context"
	"testing"

	"postern/internal/db"
	"postern/internal/db/dbtest"

	"go.uber.org/goleak"
)

// Short names for tests, where db is a *Store.
type (
	tx     = db.Tx
	opFunc = db.Func
	op     = db.Write
)

func hot[T db.Hot[T]](value T) op { return db.Item(value) }

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(dbtest.Binary{M: m})
}

// engine is a database engine that a test runs on.
type engine struct {
	postgres bool
}

// forEachEngine runs a test on SQLite and on PostgreSQL.
func forEachEngine(t *testing.T, test func(t *testing.T, e engine)) {
	t.Helper()
	t.Parallel()
	for name, e := range map[string]engine{"sqlite": {}, "postgres": {postgres: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// template is the database of a new store.
var template = dbtest.NewTemplate(func(dir, url string) error {
	db, err := Open(context.Background(), Options{Dir: dir, URL: url})
	if err != nil {
		return err
	}
	return db.Close()
})

// options returns options for the database of a new store.
func (e engine) options(t *testing.T) Options {
	t.Helper()
	if e.postgres {
		return Options{Dir: t.TempDir(), URL: template.URL(t)}
	}
	return Options{Dir: template.Dir(t)}
}

// empty returns options for a database without tables.
func (e engine) empty(t *testing.T) Options {
	t.Helper()
	opts := Options{Dir: t.TempDir()}
	if e.postgres {
		opts.URL = dbtest.URL(t)
	}
	return opts
}

// open opens a new database, which is closed with the test.
func (e engine) open(t *testing.T) *Store {
	t.Helper()
	return reopen(t, e.options(t))
}

func reopen(t *testing.T, opts Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
