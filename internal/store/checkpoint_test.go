package store

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The database file has, without its journal, what was committed in groups
// enough, though nobody has closed it.
func TestCheckpointsAreMadeBesideTheWriter(t *testing.T) {
	t.Parallel()
	opts := engine{}.options(t)
	db := reopen(t, opts)
	for range checkpointGroups {
		err := db.do(t.Context(), opFunc(func(tx *tx) error {
			return tx.exec(`INSERT INTO setting (name, value) SELECT 'row' || count(*), '' FROM setting`)
		}))
		if err != nil {
			t.Fatal(err)
		}
	}
	for began := time.Now(); rowsWithoutJournal(t, opts.Dir) < checkpointGroups; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("the file has %d rows of %d", rowsWithoutJournal(t, opts.Dir), checkpointGroups)
		}
	}
}

// rowsWithoutJournal counts what is in the database file alone.
func rowsWithoutJournal(t *testing.T, dir string) (rows int) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(dir, "postern.db"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "alone.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	alone, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	err = alone.QueryRowContext(context.Background(), `SELECT count(*) FROM setting WHERE name LIKE 'row%'`).Scan(&rows)
	if err != nil && !strings.Contains(err.Error(), "malformed") && !strings.Contains(err.Error(), "no such table") { // read while pages were being moved
		t.Fatal(err)
	}
	return rows
}
