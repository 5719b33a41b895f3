package db

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
)

// While several workspaces write, checkpoints are requested often; for one alone they are
// rare.
func TestCheckpointsAreRequestedAfterSoManyGroups(t *testing.T) {
	t.Parallel()
	for several, want := range map[bool]int{false: checkpointGroups, true: checkpointOften} {
		c := &checkpointer{dirty: make(chan struct{}, 1)} // it does not run
		n := 0
		for ; len(c.dirty) == 0 && n <= checkpointGroups; n++ {
			c.written(several)
		}
		if n != want {
			t.Errorf("several write: %v: requested after %d groups, want %d", several, n, want)
		}
	}
}

// After a checkpoint the database file alone, without its journal, has what was committed
// before, though the database is still open.
func TestCheckpointsAreMadeBesideTheWriter(t *testing.T) {
	t.Parallel()
	var dir string
	db := engine{}.open(t, func(o *Options) { dir = o.Dir })
	if err := db.Do(t.Context(), Item(add{"moved", 7})); err != nil {
		t.Fatal(err)
	}
	if db.writer.written == nil {
		t.Fatal("the writer reports no groups to the checkpointer")
	}
	// The channel has room for one: the third fits once the first was handled.
	for range 3 {
		db.checkpoints.dirty <- struct{}{}
	}
	if got := valueWithoutJournal(t, dir, "moved"); got != 7 {
		t.Errorf("the file alone has the value %d, want 7", got)
	}
}

// valueWithoutJournal reads from the database file alone.
func valueWithoutJournal(t *testing.T, dir, name string) (value int) {
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
	if err := alone.QueryRowContext(t.Context(), `SELECT value FROM entry WHERE name = $1`,
		name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
