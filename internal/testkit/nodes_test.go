package testkit_test

import (
	"database/sql"
	"fmt"
	"testing"

	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/testkit"
)

// Two servers on one database share its devices. Each takes requests for all of them, every event
// is posted once, and when one stops, the other works for all.
func TestTwoServersShareOneDatabase(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	first := testkit.StartOn(t, url)
	first.Stop()
	first.Shared = true
	first.Boot()
	second := first.Another()
	c := first.Workspace("growth")
	hooks := c.Receive(string(postern.MessageSent))
	var devices []postern.Device
	for i := range 4 {
		devices = append(devices, c.Link(fmt.Sprintf("+1555000%04d", i)))
	}
	testkit.Eventually(t, "two devices on each server", func() (bool, any) {
		owners := ownersOf(t, url)
		return len(owners) == 2 && owners[0] == 2 && owners[1] == 2, owners
	})
	for i, d := range devices {
		for _, at := range []*testkit.Client{c, c.At(second)} {
			at.Await(d.ID, postern.Connected)
			m := queue(at, d, fmt.Sprint("to ", i)) // it may be changing its server
			at.AwaitMessage(m.ID, postern.Read)
		}
	}
	hooks.AwaitCount(postern.MessageSent, 8)
	second.Stop()
	for _, d := range devices {
		c.Await(d.ID, postern.Connected)
		m := queue(c, d, "alone again")
		c.AwaitMessage(m.ID, postern.Read)
	}
	if got := len(hooks.AwaitCount(postern.MessageSent, 12)); got != 12 {
		t.Errorf("%d events of 12 messages", got)
	}
}

// ownersOf returns how many devices each server owns.
func ownersOf(t *testing.T, url string) (counts []int) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT count(*) FROM device WHERE owner <> '' GROUP BY owner`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		n := 0
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, n)
	}
	return counts
}
