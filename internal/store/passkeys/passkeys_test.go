package passkeys_test

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"
	"postern/internal/store/passkeys"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

// onBoth runs a test with each of the two databases, which have an open link attempt.
func onBoth(t *testing.T, test func(t *testing.T, s *store.Store, table passkeys.Table, l store.LinkRow)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func() string{
		"sqlite": func() string { return "" }, "postgres": func() string { return migrated.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, url())
			box, err := seal.NewBox(bytes.Repeat([]byte{7}, 32))
			check(t, err)
			l := postern.Link{
				ID: "lnk_1", WorkspaceID: "ws_1", DeviceID: "dev_1", Method: postern.ByQR, Status: postern.LinkPending,
				ExpiresAt: s.Now().Add(time.Minute),
			}
			check(t, s.Links.Open(t.Context(), store.OpenLink{Link: l, Slots: 5, At: s.Now()}))
			test(t, s, passkeys.Of(s, box), store.LinkRow{Link: l})
		})
	}
}

func open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: migrated.Dir(t, url), URL: url})
	check(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
		return errors.Join(
			tx.Exec(`INSERT INTO workspace (id, name, plan, created_at) VALUES ('ws_1', 'acme', 'growth', 1)`),
			tx.Exec(`INSERT INTO device (id, workspace_id, name, mode, status, status_reason, desired, account,
				phone_number, display_name, metadata, created_at, linked_at, connected_at, last_seen_at, sequence,
				last_event_at, deleted_at) VALUES ('dev_1', 'ws_1', '', 'live', 'unlinked', '', 'idle', '', '', '', '{}', 1,
				0, 0, 0, 0, 0, 0)`))
	})))
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want lets the network ask for the passkey.
func want(t *testing.T, s *store.Store, table passkeys.Table, l store.LinkRow) postern.Time {
	t.Helper()
	e, err := postern.Device{ID: l.DeviceID, WorkspaceID: l.WorkspaceID}.Event(postern.DeviceLinking)
	check(t, err)
	until := s.Now().Add(10 * time.Minute)
	check(t, table.Want(t.Context(), l, []byte("request"), until, e, s.Now()))
	return until
}

func latest(t *testing.T, s *store.Store) store.LinkRow {
	t.Helper()
	l, _, err := s.Links.Latest(t.Context(), "ws_1", "dev_1")
	check(t, err)
	return l
}

// Each step is taken once, in order, and its data is encrypted.
func TestStepsFollowEachOther(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, table passkeys.Table, l store.LinkRow) {
		if ok, err := table.Answer(t.Context(), l, []byte("early")); ok || err != nil {
			t.Errorf("an answer before the request = %v, %v", ok, err)
		}
		until := want(t, s, table, l)
		now := latest(t, s)
		if data, err := table.Open(now); string(data) != "request" || err != nil || now.ExpiresAt != until ||
			bytes.Contains(now.PasskeyData, []byte("request")) {
			t.Errorf("the request is %q (%v) until %v", data, err, now.ExpiresAt)
		}
		credential := make(chan string)
		go func() {
			data, err := table.Await(t.Context(), l, passkeys.Answered)
			credential <- string(data) + errText(err)
		}()
		for i, good := range []bool{true, false} {
			if ok, err := table.Answer(t.Context(), l, []byte("credential")); ok != good || err != nil {
				t.Errorf("answer %d = %v, %v", i, ok, err)
			}
		}
		if got := <-credential; got != "credential" {
			t.Errorf("the server of the attempt gets %q", got)
		}
		if ok, err := table.Confirm(t.Context(), l); ok || err != nil {
			t.Errorf("confirmed %v, %v before there is a code", ok, err)
		}
		if ok, err := table.Compare(t.Context(), l, "K7QM-2XB4"); !ok || err != nil {
			t.Errorf("the code = %v, %v", ok, err)
		}
		if ok, err := table.Confirm(t.Context(), l); !ok || err != nil {
			t.Errorf("confirmed %v, %v", ok, err)
		}
		if _, err := table.Await(t.Context(), l, passkeys.Confirmed); err != nil {
			t.Error(err)
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A new code, a new beginning and the end of the attempt end the wait, and leave no data.
func TestNothingIsLeftOfARequest(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, table passkeys.Table, l store.LinkRow) {
		for what, end := range map[string]func() error{
			"code": func() error {
				s.Links.SetCode(l.ID, l.DeviceID, []byte("sealed"), s.Now())
				return s.Devices.ResetSessions(t.Context()) // waits for this write and so for the one before it
			},
			"reset": func() error { return table.Reset(t.Context(), l) },
		} {
			want(t, s, table, l)
			check(t, end())
			if now := latest(t, s); now.Passkey || now.PasskeyStep != passkeys.None || len(now.PasskeyData) > 0 {
				t.Errorf("%s: the attempt is %+v", what, now)
			}
			if d, err := s.Devices.Get(t.Context(), l.WorkspaceID, l.DeviceID); what == "reset" &&
				(err != nil || d.StatusReason != "") {
				t.Errorf("after the reset the device says %q, %v", d.StatusReason, err)
			}
		}
		want(t, s, table, l)
		waited := make(chan error)
		go func() {
			_, err := table.Await(t.Context(), l, passkeys.Answered)
			waited <- err
		}()
		_, err := s.Links.End(t.Context(), store.LinkEnd{
			WorkspaceID: l.WorkspaceID, DeviceID: l.DeviceID, Status: postern.LinkFailed, Reason: "canceled", At: s.Now(),
		})
		check(t, err)
		if err := <-waited; postern.ReasonOf(err) != postern.NoOpenLink {
			t.Errorf("after the end the wait returns %v", err)
		}
		if now := latest(t, s); len(now.PasskeyData) > 0 {
			t.Error("the request outlives its attempt")
		}
	})
}
