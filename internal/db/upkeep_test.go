package db

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// While several workspaces write, checkpoints are requested often; for one alone they are
// rare.
func TestCheckpointsAreRequestedAfterSoManyGroups(t *testing.T) {
	t.Parallel()
	for several, want := range map[bool]int{false: checkpointGroups, true: checkpointOften} {
		u := newCheckpoints()
		u.due = make(chan struct{}, 1) // it does not run
		n := 0
		for ; len(u.due) == 0 && n <= checkpointGroups; n++ {
			u.written(1, several)
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
		db.upkeep.due <- struct{}{}
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

// The first statements are planned for empty tables. PostgreSQL would go on reading whole tables by these plans
// until its own upkeep comes by, which takes a minute.
func TestStatisticsFollowTablesThatGrow(t *testing.T) {
	t.Parallel()
	db := engine{postgres: true}.open(t)
	grow := func(name string) {
		t.Helper()
		writes := []Write{Func(func(tx *Tx) error { return tx.Exec(`SELECT pg_stat_force_next_flush()`) })}
		for i := range statisticsWrites {
			writes = append(writes, Item(add{name + strconv.Itoa(i), 1}))
		}
		if err := errors.Join(group(t, db, writes...)...); err != nil {
			t.Fatal(err)
		}
	}
	grow("first") // the server has counted them when the next ones are written
	grow("second")
	until(func() bool {
		var analyzed bool
		err := db.Row(t.Context(), `SELECT last_analyze IS NOT NULL FROM pg_stat_user_tables WHERE relname = 'entry'`,
			nil, &analyzed)
		if err != nil {
			t.Error(err)
		}
		return err != nil || analyzed
	})
}
