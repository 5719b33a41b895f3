package store

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
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
		"sqlite":   "7b0adfb2c11c5263ddea989aa15384c7d713e296164d6a35462c64883cdfba14",
		"postgres": "4a464d7959ecb1c1856adfa16ede871c804b79070faa5de805641f81e0d10769",
	} {
		names, err := fs.Glob(migrations, "migrations/"+engine+"/*.sql")
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		for _, name := range slices.Sorted(slices.Values(names)) {
			if path.Base(name) > "0021" {
				break
			}
			text, err := migrations.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(text)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("the migrations of %s up to 20 have the hash %s, want %s: add a migration instead of changing one",
				engine, got, want)
		}
	}
}

// TestUpgrade upgrades a database that was filled at version 13.
func TestUpgrade(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		opts := e.options(t)
		before := atVersion(t, opts, 13)
		for _, text := range []string{
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
		} {
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
		var log bytes.Buffer
		opts.Log = slog.New(slog.NewTextHandler(&log, nil))
		wantUpgraded(t, reopen(t, opts))
		if !strings.Contains(log.String(), "please wait\" from=13") || !strings.Contains(log.String(), "took=") {
			t.Errorf("the log says %s", log.String())
		}
	})
}

func wantUpgraded(t *testing.T, db *Store) {
	t.Helper()
	list, err := db.Hours.MessageSpans(t.Context(), "ws_1", 0, time.Hour)
	want := []postern.MessageSpan{{Start: 3_600_000, Accepted: 2, Sent: 1, Delivered: 1, Failed: 1, Received: 1},
		{Start: 7_200_000, Accepted: 1, Sent: 1}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("hours %+v, want %+v; error %v", list, want, err)
	}
	if n := count(t, db, `SELECT count(*) FROM device WHERE history_from > 5`); n != 0 && !db.db.Postgres() {
		t.Errorf("%d devices would archive their next message", n)
	}
	chats, err := db.Chats.List(t.Context(), "ws_1", "dev_1", 0, 10)
	if err != nil || len(chats) != 1 || chats[0].Newest.ID != "msg_5" {
		t.Errorf("chats %+v, error %v", chats, err)
	}
	health, err := db.Events.DeviceHealth(t.Context(), "ws_1", "dev_1", 0, 10)
	if err != nil || len(health) != 1 {
		t.Errorf("health %+v, error %v", health, err)
	}
	acts, err := db.Audit.List(t.Context(), "ws_1", ActFilter{Kind: "key", Limit: 10})
	if err != nil || len(acts) != 1 {
		t.Errorf("acts %+v, error %v", acts, err)
	}
	for id, operator := range map[postern.UserID]bool{"usr_1": true, "usr_2": false} {
		u, _, _, err := db.Users.Get(t.Context(), id)
		if err != nil || u.Operator != operator {
			t.Errorf("%s: %+v, error %v", id, u, err)
		}
		if err := db.SignIns.Create(t.Context(),
			SignIn{TokenHash: string(id), UserID: id, Epoch: u.Epoch,
				Data:      []byte("{}"),
				ExpiresAt: 9}); err != nil {
			t.Error(err)
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
	before, err := db.OpenAt(t.Context(), engineOptions(opts), version)
	if err != nil {
		t.Fatal(err)
	}
	return before
}
