package newchats_test

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
	"postern/internal/store/newchats"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

const (
	ws  = postern.WorkspaceID("ws_1")
	id  = postern.DeviceID("dev_1")
	day = 24 * time.Hour
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a store with a connected device.
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

// Each limit halves the pace, but no more often than the bound says; each day without one doubles it.
func TestLimitsAndThePace(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func() string{
		"sqlite": func() string { return "" }, "postgres": func() string { return migrated.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, url())
			table, start := newchats.Of(s), s.Now()
			set := func(n postern.NewChats, at postern.Time) {
				t.Helper()
				e, err := postern.Device{ID: id, WorkspaceID: ws, NewChats: n}.Event(postern.DeviceLimited)
				check(t, err)
				check(t, table.Set(t.Context(), newchats.Change{WorkspaceID: ws, DeviceID: id, NewChats: n, At: at, Event: e}))
			}
			wants := func(what string, allowed bool, slowed postern.Slowdown) {
				t.Helper()
				d, err := s.Devices.ForEngine(t.Context(), id)
				if check(t, err); d.NewChats.Allowed != allowed || d.NewChats.Slowed != slowed {
					t.Errorf("%s: %+v, want %v and %d halvings", what, d.NewChats, allowed, slowed)
				}
			}
			over := func(at postern.Time, want int) {
				t.Helper()
				if list, err := table.Over(t.Context(), at, at.Add(-day), 10); err != nil || len(list) != want {
					t.Errorf("%d limits are over (%v), want %d", len(list), err, want)
				}
			}
			ease := func(at postern.Time) { t.Helper(); check(t, table.Ease(t.Context(), at, at.Add(-day))) }

			wants("before any limit", true, 0)
			set(postern.NewChats{Until: start.Add(time.Hour)}, start)
			set(postern.NewChats{Until: start.Add(2 * time.Hour)}, start) // the same limit, for longer
			wants("the first limit", false, 1)
			over(start.Add(time.Hour), 0)
			over(start.Add(2*time.Hour), 1)
			ease(start.Add(3 * day))
			wants("a limit that lasts", false, 1)
			for range 5 {
				set(postern.NewChats{Allowed: true}, start.Add(3*day))
				set(postern.NewChats{}, start.Add(3*day))
			}
			wants("the sixth limit", false, postern.MostSlowed)
			over(start.Add(4*day-time.Second), 0)
			over(start.Add(4*day), 1)
			set(postern.NewChats{Allowed: true}, start.Add(4*day))
			ease(start.Add(5*day - time.Second))
			wants("less than a day later", true, postern.MostSlowed)
			ease(start.Add(5 * day))
			ease(start.Add(5 * day)) // only once a day
			wants("a day later", true, postern.MostSlowed-1)
			for days := range 9 {
				ease(start.Add(6*day + time.Duration(days)*day))
			}
			wants("days later", true, 0)
		})
	}
}
