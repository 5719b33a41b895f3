package db

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"
)

func TestServerGivesUpOnlyWhenAnotherHoldsTheDatabaseForLong(t *testing.T) {
	t.Parallel()
	s := connection{taken: make(chan struct{})}
	gone := func(since time.Duration, err error) bool {
		s.failure = err
		if !s.since.IsZero() {
			s.since = time.Now().Add(-since)
		}
		s.notice()
		select {
		case <-s.taken:
			return true
		default:
			return false
		}
	}
	for i, tt := range []struct {
		since time.Duration
		err   error
		want  bool
	}{
		{0, &InUseError{}, false},
		{takenAfter - time.Second, &InUseError{}, false},
		{2 * takenAfter, errors.New("unreachable"), false},
		{0, &InUseError{}, false},
		{2 * takenAfter, &InUseError{}, true},
		{2 * takenAfter, &InUseError{}, true},
	} {
		if got := gone(tt.since, tt.err); got != tt.want {
			t.Errorf("step %d: gone %v, want %v", i, got, tt.want)
		}
	}
}

// A database that was written and closed is one file.
func TestClosedDatabaseHasNoJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := Open(t.Context(), Options{Dir: dir, Migrations: fstest.MapFS{
		"sqlite/1_table.sql": {Data: []byte("-- +goose Up\nCREATE TABLE entry (name TEXT PRIMARY KEY) STRICT;\n")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Do(t.Context(), Func(func(tx *Tx) error { return tx.Exec(`INSERT INTO entry (name) VALUES ($1)`, "a") }))
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, FileName+"-*")); len(left) > 0 || err != nil {
		t.Errorf("%v are left, %v", left, err)
	}
}
