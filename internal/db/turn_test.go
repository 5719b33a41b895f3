package db

import (
	"testing"
	"time"
)

// What a server is handed while it waits for its turn joins the group that waits.
func TestWritesJoinTheGroupThatWaitsForItsTurn(t *testing.T) {
	nodes := openNodes(t, 2)
	groups := make(chan int, 10)
	nodes[0].writer.committed = func(writes int, _ time.Duration) { groups <- writes }
	nodes[0].await(t, nodes[1], 1) // from now on it has noticed the other server
	if n := <-groups; n != 1 {
		t.Fatalf("the first group has %d writes, want 1", n)
	}
	nodes[0].await(t, nodes[1], 3)
	if n := <-groups; n != 3 {
		t.Errorf("the group that waited has %d writes, want 3", n)
	}
}

// await makes writes while another server has the turn: the first one waits for it before the others are made.
func (db *DB) await(t *testing.T, other *DB, writes int) {
	t.Helper()
	holds, release := make(chan struct{}), make(chan struct{})
	waits := []func() error{start(t, other, Func(func(t *Tx) error {
		err := t.Row(`SELECT 1`, nil, new(int)) // so the turn is taken
		close(holds)
		<-release
		return err
	}))}
	<-holds
	for range writes {
		waits = append(waits, start(t, db, Func(func(t *Tx) error { return t.Exec(`SELECT 1`) })))
		for waiting := 0; waiting == 0; {
			err := other.Row(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, nil, &waiting)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	close(release)
	for _, wait := range waits {
		if err := wait(); err != nil {
			t.Error(err)
		}
	}
}

func start(t *testing.T, db *DB, w Write) (wait func() error) {
	t.Helper()
	wait, err := db.Start(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return wait
}
