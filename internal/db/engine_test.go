package db

import (
	"database/sql"
	"sync"
	"testing"
	"testing/fstest"

	"postern/internal/db/dbtest"

	"go.uber.org/goleak"
)

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

// options name a new, empty database with one table.
func (e engine) options(t *testing.T) Options {
	t.Helper()
	table := &fstest.MapFile{Data: []byte("CREATE TABLE entry (name TEXT PRIMARY KEY, value BIGINT NOT NULL);\n")}
	if !e.postgres {
		table.Data = []byte("CREATE TABLE entry (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;\n")
	}
	opts := Options{Dir: t.TempDir(), Migrations: fstest.MapFS{
		"sqlite/0001_entry.sql":   table,
		"postgres/0001_entry.sql": table,
	}}
	if e.postgres {
		opts.URL = dbtest.URL(t)
	}
	return opts
}

// open opens a new database, which is closed with the test.
func (e engine) open(t *testing.T, with ...func(*Options)) *DB {
	t.Helper()
	opts := e.options(t)
	for _, change := range with {
		change(&opts)
	}
	db, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// entries are all rows of the table.
func entries(t *testing.T, db *DB) map[string]int {
	t.Helper()
	all := map[string]int{}
	err := db.Rows(t.Context(), `SELECT name, value FROM entry`, nil, func(r *sql.Rows) error {
		var name string
		var value int
		err := r.Scan(&name, &value)
		all[name] = value
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// group hands writes over so that they share a group, and returns their outcomes.
func group(t *testing.T, db *DB, writes ...Write) (outcomes []error) {
	t.Helper()
	hold, held := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(held) })
	db.Later(Func(func(*Tx) error { begun(); <-hold; return nil }))
	<-held // alone in its group: what follows shares the next
	var waits []func() error
	for _, w := range writes {
		wait, err := db.Start(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, wait)
	}
	close(hold)
	for _, wait := range waits {
		outcomes = append(outcomes, wait())
	}
	return outcomes
}
