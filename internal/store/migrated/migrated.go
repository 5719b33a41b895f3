// Package migrated gives tests of other packages copies of a new store's database, because to
// migrate one takes longer than most tests.
package migrated

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"postern/internal/db/dbtest"
	"postern/internal/store"
)

//nolint:gochecknoglobals // all tests of a binary copy the same database
var template = dbtest.NewTemplate(func(dir, url string) error {
	db, err := store.Open(context.Background(), store.Options{Dir: dir, URL: url})
	if err != nil {
		return err
	}
	return db.Close()
})

// Dir returns a new data directory for a store whose database is at url. If url is empty, the
// directory contains the SQLite database of a new store.
func Dir(tb testing.TB, url string) string {
	tb.Helper()
	if url != "" {
		return tb.TempDir()
	}
	return template.Dir(tb)
}

// Fill puts the SQLite database of a new store into an empty directory, for a test that must
// choose the directory itself.
func Fill(tb testing.TB, dir string) {
	tb.Helper()
	from := template.Dir(tb)
	files, err := os.ReadDir(from)
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range files {
		if err := os.Rename(filepath.Join(from, f.Name()), filepath.Join(dir, f.Name())); err != nil {
			tb.Fatal(err)
		}
	}
}

// URL creates the PostgreSQL database of a new store and returns its URL. The TestMain of the
// binary must run a [dbtest.Binary].
func URL(tb testing.TB) string {
	tb.Helper()
	return template.URL(tb)
}
