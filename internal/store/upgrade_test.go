package store

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

// TestMigrationsStay fails when a migration that databases have already applied is changed,
// because the change would never reach them.
func TestMigrationsStay(t *testing.T) {
	t.Parallel()
	for engine, want := range map[string]string{
		"sqlite":   "277e74dafbfb20cacb95e9111d1697376a6d16cce29cf2e315be0728921c3fe2",
		"postgres": "0532e70e1d87247af26c9b25d209d958ae0527cdf6d73285b00765e1b0c7392b",
	} {
		names, err := fs.Glob(migrations, "migrations/"+engine+"/*.sql")
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		for _, name := range slices.Sorted(slices.Values(names)) {
			if path.Base(name) > "0024" {
				break
			}
			text, err := migrations.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(text)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("the migrations of %s up to 23 have the hash %s, want %s: add a migration instead of changing one",
				engine, got, want)
		}
	}
}

// TestUpgrade upgrades a database that was filled at version 13.
func TestUpgrade(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		opts := e.empty(t)
		fill(t, atVersion(t, opts, 13), []string{
			`INSERT INTO workspace (id, name, plan, created_at) VALUES ('ws_1', 'acme', 'growth', 1)`,
			`INSERT INTO device (id, workspace_id, name, mode, status, status_reason, desired, account, phone_number,
				display_name, metadata, created_at, linked_at, connected_at, last_seen_at, sequence, last_event_at, deleted_at)
				VALUES ('dev_1', 'ws_1', 'd', 'sandbox', 'connected', '', 'connect', 'a', '+15550001111', '', '{}', 1, 1, 1,
				1, 0, 0, 0)`,
			`INSERT INTO device (id, workspace_id, name, mode, status, status_reason, desired, account, phone_number,
				display_name, metadata, created_at, linked_at, connected_at, last_seen_at, sequence, last_event_at, deleted_at,
				history_from) VALUES ('dev_2', 'ws_1', 'd', 'sandbox', 'unlinked', '', 'idle', '', '', '', '{}', 1, 1, 1,
				1, 0, 0, 0, 50)`,
			oldMessage("msg_1", "outbound", "api", "read", 3_600_000),
			oldMessage("msg_2", "outbound", "api", "failed", 3_600_001),
			oldMessage("msg_3", "outbound", "phone", "sent", 3_600_002),
			oldMessage("msg_4", "inbound", "contact", "received", 7_199_999),
			oldMessage("msg_5", "outbound", "api", "sent", 7_200_000),
			`INSERT INTO event (id, workspace_id, device_id, type, sequence, body, created_at)
				VALUES ('evt_1', 'ws_1', 'dev_1', 'device.connected', 1, $1, 1)`,
			`INSERT INTO users (id, email, password_hash, created_at)
				VALUES ('usr_1', 'a@example.com', 'x', 1), ('usr_2', 'b@example.com', 'x', 1)`,
			`INSERT INTO password_link (user_id, token_hash, expires_at) VALUES ('usr_2', 'h', 9)`,
			`INSERT INTO audit (at, workspace_id, user_id, act, subject, address)
				VALUES (1, 'ws_1', 'usr_1', 'user.set-up', 'usr_1', ''), (2, 'ws_1', 'usr_1', 'key.created', 'key_1', '')`,
		})
		var log bytes.Buffer
		opts.Log = slog.New(slog.NewTextHandler(&log, nil))
		wantUpgraded(t, reopen(t, opts))
		if !strings.Contains(log.String(), "please wait\" from=13") || !strings.Contains(log.String(), "took=") {
			t.Errorf("the log says %s", log.String())
		}
	})
}

func wantUpgraded(t *testing.T, s *Store) {
	t.Helper()
	list, err := s.Hours.MessageSpans(t.Context(), "ws_1", 0, time.Hour)
	want := []postern.MessageSpan{
		{Start: 3_600_000, Accepted: 2, Sent: 1, Delivered: 1, Failed: 1, Received: 1},
		{Start: 7_200_000, Accepted: 1, Sent: 1},
	}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("hours %+v, want %+v; error %v", list, want, err)
	}
	if n := count(t, s, `SELECT count(*) FROM device WHERE history_from > 5`); n != 0 && !s.db.Postgres() {
		t.Errorf("%d devices would archive their next message", n)
	}
	chats, err := s.Chats.Newest(t.Context(), "ws_1", newestIn(t, s, "dev_1"))
	if err != nil || len(chats) != 1 || chats[0].ID != "msg_5" {
		t.Errorf("chats %+v, error %v", chats, err)
	}
	health, err := s.Events.DeviceHealth(t.Context(), "ws_1", "dev_1", 0, 10)
	if err != nil || len(health) != 1 {
		t.Errorf("health %+v, error %v", health, err)
	}
	acts, err := s.Audit.List(t.Context(), "ws_1", ActFilter{Kind: "key", Limit: 10})
	if err != nil || len(acts) != 1 {
		t.Errorf("acts %+v, error %v", acts, err)
	}
	for id, operator := range map[string]int{"usr_1": 1, "usr_2": 0} {
		n := count(t, s, `SELECT count(*) FROM users WHERE id = $1 AND operator = $2 AND epoch = 0`, id, operator)
		if n != 1 {
			t.Errorf("%s is not the user that was there, with %d as the right of an operator", id, operator)
		}
	}
}

func oldMessage(id, direction, source, status string, at int) string {
	return fmt.Sprintf(`INSERT INTO message (id, workspace_id, device_id, direction, type, chat_id, sender, from_number,
		from_lid, from_name, to_number, body, reply_to, status, error_code, error_detail,
		network_id, source, metadata, created_at, sent_at, delivered_at, read_at, expires_at, frame_left, undecryptable)
		VALUES ('%[1]s', 'ws_1', 'dev_1', '%[2]s', 'text', '+15551234567', '', '', '', '', '', 'x', '', '%[4]s', '', '',
		'%[1]s', '%[3]s', '{}', %[5]d, 0, 0, 0, 0, 0, 0)`, id, direction, source, status, at)
}

// atVersion opens a new database at an earlier version, for statements of the test.
func atVersion(t *testing.T, opts Options, version int64) *sql.DB {
	t.Helper()
	before, err := db.OpenAt(t.Context(), new(core).engineOptions(opts), version)
	if err != nil {
		t.Fatal(err)
	}
	return before
}

// TestUpgradeOfSecretsAndReasons upgrades a database that was filled at version 23. The first try
// ends after two migrations, and so does the first try to seal the headers.
func TestUpgradeOfSecretsAndReasons(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		opts := e.empty(t)
		fill(t, atVersion(t, opts, 23), append([]string{
			`INSERT INTO workspace (id, name, plan, created_at) VALUES ('ws_1', 'acme', 'growth', 1)`,
			oldEndpoint("whk_1", `{"X-Tenant":"canary"}`), oldEndpoint("whk_2", `null`),
			`INSERT INTO api_key (id, workspace_id, name, environment, hash, last_four, scopes, devices, created_at,
				last_used_at, expires_at, revoked_at) VALUES ('key_1', 'ws_1', 'k', 'live', $1, 'abcd', '[]', 'null', 1, 0, 0, 0)`,
			`INSERT INTO audit (at, workspace_id, user_id, act, subject, address, kind) VALUES
				(1, 'ws_1', 'usr_1', 'key.created', 'key_1', '', 'key'), (2, 'ws_2', 'usr_2', 'key.created', 'key_1', '', 'key')`,
		}, oldReasons()...))
		if err := atVersion(t, opts, 25).Close(); err != nil {
			t.Fatal(err)
		}
		db := reopen(t, opts)
		wantReasons(t, db)
		if k, err := db.Keys.Get(t.Context(), "ws_1", "key_1"); err != nil || k.CreatedBy != "usr_1" {
			t.Errorf("the key was created by %q (%v)", k.CreatedBy, err)
		}
		wantSealed(t, db)
	})
}

// oldReasons are devices and attempts with the reasons of earlier releases, each named like the
// reason that replaces it.
func oldReasons() (list []string) {
	for i, reason := range [][2]string{
		{"temporary-ban-101 until 2026-01-01T00:00:00.000Z", "temporary-ban"},
		{"refused-405", "refused"},
		{"number-taken", "refused"},
		{"stream-error-503", "stream-error"},
		{"rate-limited", "too-many-codes"},
		{"socket-closed", "socket-closed"},
	} {
		list = append(list, fmt.Sprintf(`INSERT INTO device (id, workspace_id, name, mode, status, status_reason, desired,
			account, phone_number, display_name, metadata, created_at, linked_at, connected_at, last_seen_at, sequence,
			last_event_at, deleted_at) VALUES ('dev_%d', 'ws_1', '%s', 'live', 'restricted', '%s', 'connect', 'a', '', '', '{}',
			1, 1, 1, 1, 0, 0, 0)`, i, reason[1], reason[0]),
			fmt.Sprintf(`INSERT INTO link (id, workspace_id, device_id, method, status, code, code_expires_at, allow_new,
			expected_number, account, number, reason, created_at, expires_at, ended_at)
			VALUES ('lnk_%d', 'ws_1', '%s', 'qr', 'failed', $1, 0, 0, '', '', '', '%s', 1, 1, 1)`, i, reason[1], reason[0]))
	}
	return list
}

func oldEndpoint(id, headers string) string {
	return fmt.Sprintf(`INSERT INTO endpoint (id, workspace_id, url, description, events, devices, headers, status,
		status_reason, secret, secret_last_four, max_in_flight, ordered, created_at, verified_at, attempts, due_at, since,
		failing_since, failures) VALUES ('%s', 'ws_1', 'https://example.com', '', '["*"]', 'null', '%s', 'active', '', $1,
		'abcd', 8, 0, 1, 1, 0, 0, 0, 0, 0)`, id, headers)
}

// fill runs statements, and closes the database.
func fill(t *testing.T, before *sql.DB, statements []string) {
	t.Helper()
	for _, text := range statements {
		var args []any
		if strings.Contains(text, "$1") {
			args = append(args, []byte("{}"))
		}
		if _, err := before.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantReasons(t *testing.T, s *Store) {
	t.Helper()
	for table, columns := range map[string]string{"device": "status_reason <> name", "link": "reason <> device_id"} {
		if n := count(t, s, `SELECT count(*) FROM `+table+` WHERE workspace_id = 'ws_1' AND `+columns); n != 0 {
			t.Errorf("%d rows of %s have a reason of an earlier release", n, table)
		}
		if n := count(t, s, `SELECT count(*) FROM `+table); n != 6 {
			t.Errorf("%d rows of %s, want 6", n, table)
		}
	}
}

// wantSealed seals the headers of an earlier release, at the second try.
func wantSealed(t *testing.T, s *Store) {
	t.Helper()
	broken := errors.New("broken")
	err := s.Endpoints.SealHeaders(t.Context(), func(*postern.Endpoint, map[string]string) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("sealing that fails returns %v", err)
	}
	for want := 1; want >= 0; want-- { // nothing is left for a second start
		sealed := 0
		err := s.Endpoints.SealHeaders(t.Context(), func(e *postern.Endpoint, headers map[string]string) error {
			sealed++
			e.Headers, e.HeaderValues = slices.Sorted(maps.Keys(headers)), []byte("sealed")
			return nil
		})
		if err != nil || sealed != want {
			t.Errorf("%d endpoints are sealed, want %d; error %v", sealed, want, err)
		}
	}
	e, err := s.Endpoints.Get(t.Context(), "ws_1", "whk_1")
	if err != nil || !slices.Equal(e.Headers, []string{"X-Tenant"}) || string(e.HeaderValues) != "sealed" ||
		e.Handshake != postern.HandshakeEcho {
		t.Errorf("the endpoint is %+v, error %v", e, err)
	}
	if n := count(t, s, `SELECT count(*) FROM endpoint WHERE headers LIKE '%canary%'`); n != 0 {
		t.Errorf("%d endpoints have values in the clear", n)
	}
}

// onLine calls a function at the first line of a log that contains a text.
type onLine struct {
	text string
	call func()
}

func (o *onLine) Write(line []byte) (int, error) {
	if o.call != nil && strings.Contains(string(line), o.text) {
		o.call()
		o.call = nil
	}
	return len(line), nil
}

// An upgrade does not wait for a backup with a place in the queue for the table, in which others would wait behind it.
func TestUpgradeLetsOthersPassWhileATableIsInUse(t *testing.T) {
	t.Parallel()
	e := engine{postgres: true}
	opts := e.empty(t)
	before := atVersion(t, opts, 107)
	t.Cleanup(func() { before.Close() })
	backup, err := before.BeginTx(t.Context(), nil)
	if err == nil {
		_, err = backup.ExecContext(t.Context(), `LOCK TABLE api_key IN ACCESS SHARE MODE`)
	}
	if err != nil {
		t.Fatal(err)
	}
	waited := false
	opts.Log = slog.New(slog.NewTextHandler(&onLine{"in use", func() {
		waited = true
		if err := backup.Rollback(); err != nil {
			t.Error(err)
		}
	}}, nil))
	reopen(t, opts)
	if !waited {
		t.Error("the upgrade did not wait for the table")
	}
}
