package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"postern/internal/db"
	"postern/internal/postern"
)

const testNow = postern.Time(1_795_000_000_000) // 2026-11-18

func newWorkspace(t *testing.T, db *Store) postern.WorkspaceID {
	t.Helper()
	ws := postern.Workspace{ID: postern.NewWorkspaceID(), Name: "acme", Plan: "growth", CreatedAt: testNow}
	if err := db.Workspaces.Create(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	return ws.ID
}

// limitMessages gives a workspace a quota of its own.
func limitMessages(tb testing.TB, db *Store, ws postern.WorkspaceID, n int) {
	tb.Helper()
	if _, err := db.Workspaces.ChangeLimits(tb.Context(), ws, postern.Limits{Messages: &n}, testNow); err != nil {
		tb.Fatal(err)
	}
}

func newDevice(t *testing.T, db *Store, ws postern.WorkspaceID, status postern.Status) postern.Device {
	t.Helper()
	d := postern.Device{
		ID: postern.NewDeviceID(), WorkspaceID: ws, Name: "d", Mode: "sandbox", Status: status,
		Desired: postern.WantIdle, Metadata: map[string]string{}, CreatedAt: testNow,
	}
	if status == postern.Connected {
		d.Desired = postern.WantConnect
	}
	if err := db.Devices.Create(t.Context(), d, nil); err != nil {
		t.Fatal(err)
	}
	return d
}

// writeAll writes many values of one kind in few transactions.
func writeAll[T db.Hot[T]](t *testing.T, s *Store, values ...T) {
	t.Helper()
	for some := range slices.Chunk(values, 250) { // about as many as a group has
		if err := s.db.Do(t.Context(), opFunc(func(tx *tx) error { return db.WriteNow(tx, some...) })); err != nil {
			t.Fatal(err)
		}
	}
}

func outbound(d postern.Device) postern.Message {
	return postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Outbound,
		ChatID: "+15551234567", To: "+15551234567",
		Content: postern.Text("hello"), Status: postern.Queued, NetworkID: postern.NewNetworkID(),
		Source:   postern.FromAPI,
		Metadata: map[string]string{}, CreatedAt: testNow, ExpiresAt: testNow.Add(3_600_000_000_000),
	}
}

func queue(t *testing.T, db *Store, d postern.Device) postern.Message {
	t.Helper()
	o := queued(d)
	if err := db.Messages.Queue(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o.Message
}

func queued(d postern.Device) QueueMessage {
	return QueueMessage{Message: outbound(d), Month: MonthOf(testNow)}
}

// eventTypes returns the types of a device's events, and checks their sequence.
func eventTypes(t *testing.T, db *Store, d postern.DeviceID) []string {
	t.Helper()
	var list []string
	want := int64(1)
	err := db.db.Rows(t.Context(), `SELECT type, sequence, body FROM event WHERE device_id = $1
		ORDER BY position`, []any{d}, func(r *sql.Rows) error {
		var kind string
		var sequence int64
		var body []byte
		if err := r.Scan(&kind, &sequence, &body); err != nil {
			return err
		}
		if sequence != want {
			t.Errorf("event %s has sequence %d, want %d", kind, sequence, want)
		}
		want++
		list = append(list, kind)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func sameText(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestFailingOperationLeavesItsNeighboursAlone(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		boom := errors.New("boom")
		var wg sync.WaitGroup
		var wrong atomic.Int32
		for i := range 200 {
			wg.Go(func() {
				err := db.db.Do(t.Context(), opFunc(func(tx *tx) error {
					if err := tx.Exec(`INSERT INTO setting (name, value) VALUES ($1, '')`, fmt.Sprint(i)); err != nil {
						return err
					}
					switch i % 10 {
					case 3:
						return boom
					case 7:
						panic("boom")
					}
					return nil
				}))
				if (err != nil) != (i%10 == 3 || i%10 == 7) {
					wrong.Add(1)
				}
			})
		}
		wg.Wait()
		if n := wrong.Load(); n != 0 {
			t.Errorf("%d operations had another's outcome", n)
		}
		var rows int
		if err := db.db.Row(t.Context(), `SELECT count(*) FROM setting`, nil, &rows); err != nil || rows != 160 {
			t.Errorf("rows = %d (%v), want 160: what failed must leave nothing", rows, err)
		}
	})
}

func TestLaterIsDurableWithTheNextDoAndAtClose(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		opts := on.options(t)
		db, err := Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		put := func(name string) opFunc {
			return opFunc(func(tx *tx) error {
				return tx.Exec(`INSERT INTO setting (name, value) VALUES ($1, (SELECT count(*) FROM setting))`, name)
			})
		}
		for i := range 50 {
			db.db.Later(put(fmt.Sprint(i)))
		}
		if err := db.db.Do(t.Context(), put("do")); err != nil {
			t.Fatal(err)
		}
		if v, err := db.Settings.Get(t.Context(), "do"); v != "50" {
			t.Errorf("Do saw %s rows (%v), want the 50 handed over before it", v, err)
		}
		db.db.Later(put("last"))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := db.db.Do(t.Context(), put("closed")); postern.ReasonOf(err) != postern.Unavailable {
			t.Errorf("Do after Close = %v, want unavailable", err)
		}
		again, err := Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if v, err := again.Settings.Get(t.Context(), "last"); v != "51" {
			t.Errorf("after reopening last = %q (%v), want 51", v, err)
		}
	})
}

func TestSecondProcessIsToldWhoHoldsTheDirectory(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		opts := on.options(t)
		db, err := Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		_, err = Open(t.Context(), opts)
		var locked *LockedError
		if !errors.As(err, &locked) || locked.PID != os.Getpid() {
			t.Errorf("second Open = %v, want a LockedError with process %d", err, os.Getpid())
		}
	})
}

func TestDirectoryThatCannotBeWrittenIsNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Options{Dir: filepath.Join(file, "data")})
	if err == nil || !strings.Contains(err.Error(), "data directory") {
		t.Errorf("Open = %v, want an error that names the data directory", err)
	}
}

func TestDatabaseOfANewerReleaseIsRefusedUntouched(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		opts := on.options(t)
		db, err := Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		err = db.db.Do(t.Context(), opFunc(func(tx *tx) error {
			return tx.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
		}))
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := Open(t.Context(), opts); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "9999") {
				t.Fatalf("Open = %v, want ErrNewer naming version 9999", err)
			}
		}
	})
}

func TestLastUnitOfQuotaIsSpentOnce(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		const quota = 10
		limitMessages(t, db, d.WorkspaceID, quota)
		var wg sync.WaitGroup
		var accepted atomic.Int32
		for range 64 {
			wg.Go(func() {
				err := db.Messages.Queue(context.WithoutCancel(t.Context()),
					QueueMessage{Message: outbound(d), Month: MonthOf(testNow)})
				switch postern.ReasonOf(err) {
				case postern.QuotaExhausted:
				default:
					if err != nil {
						t.Error(err)
					} else {
						accepted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		used, err := db.Usage.Messages(t.Context(), d.WorkspaceID, MonthOf(testNow))
		if accepted.Load() != quota || used != quota || err != nil {
			t.Errorf("accepted %d, used %d (%v), want %d and %d", accepted.Load(), used, err, quota, quota)
		}
		if n := count(t, db, `SELECT count(*) FROM message`); n != quota {
			t.Errorf("%d messages were stored, want %d", n, quota)
		}
	})
}

func count(t *testing.T, db *Store, query string, args ...any) (n int) {
	t.Helper()
	if err := db.db.Row(t.Context(), query, args, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSendIsRefusedByTheStateOfTheDevice(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		limitMessages(t, db, ws, 5)
		for status, queueable := range map[postern.Status]bool{
			postern.Unlinked: false, postern.Linking: false, postern.Connecting: true, postern.Disconnected: true,
			postern.Paused:     true,
			postern.Restricted: true, postern.Conflict: true, postern.LoggedOut: false, postern.Banned: false,
		} {
			d := newDevice(t, db, ws, status)
			try := func(when string) postern.Reason {
				return postern.ReasonOf(db.Messages.Queue(t.Context(),
					QueueMessage{Message: outbound(d), Month: MonthOf(testNow), WhenDisconnected: when}))
			}
			if got := try("fail"); got != postern.DeviceNotConnected {
				t.Errorf("%s, fail: %s, want device-not-connected", status, got)
			}
			if got := try("queue"); (got != postern.DeviceNotConnected) != queueable {
				t.Errorf("%s, queue: %s, want accepted %v", status, got, queueable)
			}
		}
		if used, err := db.Usage.Messages(t.Context(), ws, MonthOf(testNow)); used != 5 || err != nil {
			t.Errorf("used %d (%v), want 5: a refusal costs nothing", used, err)
		}
	})
}

func TestIdempotencyKeyHasOneEffect(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		var wg sync.WaitGroup
		var done, repeated atomic.Int32
		for range 100 {
			wg.Go(func() {
				once := &Once{
					WorkspaceID: d.WorkspaceID, Method: "POST", Path: "/v1/messages", Key: "k",
					Answer: []byte("a"),
					At:     testNow,
				}
				err := db.Messages.Queue(context.WithoutCancel(t.Context()),
					QueueMessage{Message: outbound(d), Month: MonthOf(testNow), Once: once})
				switch {
				case err == nil:
					done.Add(1)
				case errors.Is(err, ErrAlreadyDone):
					repeated.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if done.Load() != 1 || repeated.Load() != 99 || count(t, db, `SELECT count(*) FROM message`) != 1 {
			t.Errorf("%d done, %d repeated, want 1 and 99", done.Load(), repeated.Load())
		}
		late := Once{
			WorkspaceID: d.WorkspaceID, Method: "POST", Path: "/v1/messages", Key: "k", Answer: []byte("b"),
			At: testNow.Add(IdempotencyKept),
		}
		if _, _, ok, err := db.Idempotency.Answered(t.Context(), late); ok || err != nil {
			t.Errorf("an answer is still given after %s (%v)", IdempotencyKept, err)
		}
		if err := db.Messages.Queue(t.Context(),
			QueueMessage{
				Message: outbound(d), Month: MonthOf(testNow),
				Once: &late,
			}); err != nil {
			t.Errorf("the key cannot be used again after %s: %v", IdempotencyKept, err)
		}
	})
}

// limitDisk leaves room for a few pages. SQLite detects the limit by itself; with
// PostgreSQL a statement returns the error of a full disk.
func (e engine) limitDisk(t *testing.T, db *Store) (room func(tx *tx, size int) error) {
	t.Helper()
	if e.postgres {
		return func(tx *tx, size int) error {
			if size < 1<<16 {
				return nil
			}
			return tx.Exec(`DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$`)
		}
	}
	var pages int
	if err := db.db.Row(t.Context(), `PRAGMA page_count`, nil, &pages); err != nil {
		t.Fatal(err)
	}
	if err := db.db.Do(t.Context(), opFunc(func(tx *tx) error {
		var n int
		return tx.Row(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages+8), nil, &n)
	})); err != nil {
		t.Fatal(err)
	}
	return func(*tx, int) error { return nil }
}

func TestFullDiskCommitsNothingThatWasRefused(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		room := on.limitDisk(t, db)
		put := func(name string, size int) opFunc {
			return opFunc(func(tx *tx) error {
				if err := tx.Exec(`INSERT INTO setting (name, value) VALUES ($1, $2)`, name,
					strings.Repeat("x", size)); err != nil {
					return err
				}
				return room(tx, size)
			})
		}
		// One group: a small row, a row that does not fit, a small row.
		if err := db.db.Do(t.Context(), opFunc(func(*tx) error { return nil })); err != nil {
			t.Fatal(err)
		}
		for i, err := range grouped(db, put("a", 1), put("b", 1<<20), put("c", 1)) {
			name := string(rune('a' + i))
			stored, readErr := db.Settings.Get(t.Context(), name)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if (err == nil) != (stored != "") {
				t.Errorf("%s was answered %v, and stored: %v", name, err, stored != "")
			}
			if err != nil && postern.ReasonOf(err) != postern.Unavailable {
				t.Errorf("%s was answered %v, want unavailable", name, err)
			}
		}
		if err := db.db.Do(t.Context(), put("d", 1)); err != nil {
			t.Errorf("the writer does not go on: %v", err)
		}
	})
}

func TestWhoHasEverSentStaysSoInALaterMonth(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws, other := newWorkspace(t, db), newWorkspace(t, db)
		err := db.db.Do(t.Context(), opFunc(func(tx *tx) error {
			return errors.Join(
				tx.Exec(`INSERT INTO usage (workspace_id, month, messages) VALUES ($1, '2020-01', 1)`, ws),
				tx.Exec(`INSERT INTO usage (workspace_id, month, messages) VALUES ($1, '2020-01', 0)`, other))
		}))
		if err != nil {
			t.Fatal(err)
		}
		for id, want := range map[postern.WorkspaceID]bool{ws: true, other: false, postern.NewWorkspaceID(): false} {
			if sent, err := db.Usage.EverSent(t.Context(), id); sent != want || err != nil {
				t.Errorf("has sent: %t (%v), want %t", sent, err, want)
			}
		}
	})
}
