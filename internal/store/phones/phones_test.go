package phones_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/migrated"
	"postern/internal/store/phones"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

const id = postern.DeviceID("dev_1")

// onBoth runs a test with each of the two databases, which have a connected device.
func onBoth(t *testing.T, test func(t *testing.T, s *store.Store, table phones.Table)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func() string{
		"sqlite": func() string { return "" }, "postgres": func() string { return migrated.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, url())
			test(t, s, phones.Of(s))
		})
	}
}

func open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: migrated.Dir(t, url), URL: url})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
		return errors.Join(
			tx.Exec(`INSERT INTO workspace (id, name, plan, created_at) VALUES ('ws_1', 'acme', 'growth', 1)`),
			tx.Exec(`INSERT INTO device (id, workspace_id, name, mode, status, status_reason, desired, account,
				phone_number, display_name, metadata, created_at, linked_at, connected_at, last_seen_at, sequence,
				last_event_at, deleted_at) VALUES ('dev_1', 'ws_1', '', 'live', 'connected', '', 'connect', '', '', '', '{}',
				1, 0, 0, 0, 0, 0, 0)`))
	})))
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A phone that was not seen for ten days is reported once. What is learnt late of a time within them ends that; what is
// older, and what is known already, does not.
func TestUnseen(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, table phones.Table) {
		const day = 24 * time.Hour
		start := s.Now()
		unseen := func(days int, want bool) {
			t.Helper()
			list, err := table.Unseen(t.Context(), start.Add(time.Duration(days)*day), 10)
			if check(t, err); (len(list) == 1) != want {
				t.Errorf("after %d days: %v", days, list)
			}
		}
		report := func(days, want int) {
			t.Helper()
			d := postern.Device{ID: id, WorkspaceID: "ws_1"}
			e, err := d.Event(postern.DevicePhoneUnseen)
			check(t, err)
			check(t, table.Report(t.Context(), id, e, start.Add(time.Duration(days)*day)))
			var n int
			check(t, s.Engine().Row(t.Context(), `SELECT count(*) FROM event WHERE type = 'device.phone_unseen'`, nil, &n))
			if n != want {
				t.Errorf("after %d days: %d events, want %d", days, n, want)
			}
		}
		unseen(100, false) // it is not known when the phone was seen
		check(t, table.Seen(t.Context(), id, start))
		unseen(9, false)
		report(9, 0)
		unseen(10, true)
		report(10, 1)
		report(11, 1)
		unseen(11, false)
		check(t, table.Seen(t.Context(), id, start.Add(-day)))
		unseen(12, false)
		check(t, table.Seen(t.Context(), id, start.Add(day)))
		unseen(10, false)
		unseen(11, true)
		check(t, table.Forget(t.Context(), "ws_2", id, start))
		unseen(10, false)
		check(t, table.Forget(t.Context(), "ws_1", id, start))
		unseen(0, true)
	})
}
