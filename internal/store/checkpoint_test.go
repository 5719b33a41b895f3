package store

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
)

// While several workspaces write, checkpoints are asked for often; for one alone
// they are few.
func TestCheckpointsAreAskedForAfterSoManyGroups(t *testing.T) {
	t.Parallel()
	for several, want := range map[bool]int{false: checkpointGroups, true: checkpointOften} {
		c := &checkpointer{dirty: make(chan struct{}, 1)} // it does not run
		n := 0
		for ; len(c.dirty) == 0 && n <= checkpointGroups; n++ {
			c.written(several)
		}
		if n != want {
			t.Errorf("several write: %v: asked for after %d groups, want %d", several, n, want)
		}
	}
}

// The database file has, without its journal, what was committed before a
// checkpoint, though nobody has closed it.
func TestCheckpointsAreMadeBesideTheWriter(t *testing.T) {
	t.Parallel()
	opts := engine{}.options(t)
	db := reopen(t, opts)
	if err := db.Settings.Set(t.Context(), "moved", "yes"); err != nil {
		t.Fatal(err)
	}
	if db.db.writer.written == nil {
		t.Fatal("the writer tells the checkpoints of no group")
	}
	// There is room for one: the third is taken once the first has been seen to.
	for range 3 {
		db.db.checkpoints.dirty <- struct{}{}
	}
	if got := settingWithoutJournal(t, opts.Dir, "moved"); got != "yes" {
		t.Errorf("the file alone says %q", got)
	}
}

// settingWithoutJournal reads from the database file alone.
func settingWithoutJournal(t *testing.T, dir, name string) (value string) {
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
	if err := alone.QueryRowContext(t.Context(), `SELECT value FROM setting WHERE name = $1`, name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
