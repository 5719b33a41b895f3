package secretkey

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

// onBoth runs a test with each of the two databases.
func onBoth(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t, "") })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, migrated.URL(t)) })
}

func open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: migrated.Dir(t, url), URL: url, Nodes: url != ""})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// keysOf returns keys whose bytes are all the same, in an order.
func keysOf(t *testing.T, fills ...byte) seal.Keys {
	t.Helper()
	var text strings.Builder
	for _, fill := range fills {
		text.WriteString(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, seal.KeySize)) + "\n")
	}
	k, err := seal.ParseKeys(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rotated returns a box that seals with the first key of a database, and the id of the next one, which it knows.
func rotated(t *testing.T) (box *seal.Box, first, next seal.KeyID) {
	t.Helper()
	keys := keysOf(t, 2, 1)
	next, first = keys.IDs()[0], keys.IDs()[1]
	box, err := seal.NewBoxOf(keys, first, first)
	if err != nil {
		t.Fatal(err)
	}
	return box, first, next
}

// run runs statements in a transaction.
func run(t *testing.T, s *store.Store, do func(tx *db.Tx) error) {
	t.Helper()
	if err := s.Engine().Do(t.Context(), db.Func(do)); err != nil {
		t.Fatal(err)
	}
}

// sealedRow is a row with an encrypted value in a column.
type sealedRow struct {
	column string // table and column
	place  string
	insert string // $1 is the value
}

// sealedRows has one for each column but the lists of old secrets.
func sealedRows() []sealedRow {
	endpoint := func(column, place string) sealedRow {
		return sealedRow{"endpoint." + column, place, `UPDATE endpoint SET ` + column + ` = $1 WHERE id = 'whk_1'`}
	}
	return []sealedRow{
		endpoint("secret", "endpoint.secret whk_1"),
		endpoint("signing_key", "endpoint.signing_key whk_1"),
		endpoint("header_values", "endpoint.headers whk_1"),
		{"device.proxy_url", "device.proxy dev_1", `UPDATE device SET proxy_url = $1 WHERE id = 'dev_1'`},
		{"session_key.value", "session_key a k n", `INSERT INTO session_key (account, kind, name, at, value)
			VALUES ('a', 'k', 'n', 0, $1)`},
		{"link.code", "link.code lnk_1", `INSERT INTO link (id, workspace_id, device_id, method, status, code,
			code_expires_at, allow_new, expected_number, account, number, reason, created_at, expires_at, ended_at)
			VALUES ('lnk_1', 'ws_1', 'dev_1', 'qr', 'pending', $1, 0, 0, '', '', '', '', 1, 1, 0)`},
		{"alert_url.url", "alert.url ws_1", `INSERT INTO alert_url (workspace_id, url, host, failed_at, reason)
			VALUES ('ws_1', $1, 'example.com', 0, '')`},
		{"link.passkey_data", "link.passkey lnk_1", `UPDATE link SET passkey_data = $1 WHERE id = 'lnk_1'`},
		{"idempotency.answer", "idempotency.answer ws_1 POST /v1/messages once", `INSERT INTO idempotency
			(workspace_id, method, path, key, request_hash, answer, created_at)
			VALUES ('ws_1', 'POST', '/v1/messages', 'once', $1, $1, 1)`},
		{"media.source", "media med_1", `INSERT INTO media (id, workspace_id, device_id, message_id, hash, status, object,
			source, attempts, next_at, created_at, used_at) VALUES ('med_1', 'ws_1', '', '', '', 'pending', '{}', $1, 0, 0,
			1, 1)`},
		{"history_part.part", "history_part dev_1 3EB0", `INSERT INTO history_part (device_id, network_id, workspace_id,
			account, extent, part, attempts, next_at) VALUES ('dev_1', '3EB0', 'ws_1', '', '', $1, 0, 0)`},
		{"media_upload.upload", "media med_1", `INSERT INTO media_upload (media_id, device_id, kind, upload, created_at)
			VALUES ('med_1', 'dev_1', 'image', $1, 1)`},
		{"session_request.input", "session_request req_1", `INSERT INTO session_request (id, workspace_id, device_id, kind,
			input, outcome, expires_at, taken_at, method, path, key)
			VALUES ('req_1', 'ws_1', 'dev_1', '', $1, $1, 1, 0, '', '', '')`},
		{"session_request.outcome", "session_request req_1", `UPDATE session_request SET outcome = $1 WHERE id = 'req_1'`},
		{"totp.secret", "totp usr_1", `INSERT INTO totp (user_id, secret) VALUES ('usr_1', $1)`},
		{"passkey.kept", "passkey usr_1", `INSERT INTO passkey (id, user_id, name, kept, created_at)
			VALUES ('p1', 'usr_1', 'x', $1, 1)`},
		{"secret_key.keepsake", "secret_key.keepsake 00000000", `INSERT INTO secret_key (id, state, since, keepsake)
			VALUES ('00000000', 'retired', 1, $1)`},
	}
}

// fill stores a value in each column with encrypted ones. Each value is the name of its column.
func fill(t *testing.T, s *store.Store, box *seal.Box) {
	t.Helper()
	old := asJSON([]postern.OldSecret{
		{
			Secret:     box.Seal([]byte("endpoint.old_secrets"), "endpoint.secret whk_1"),
			SigningKey: box.Seal([]byte("endpoint.old_secrets"), "endpoint.signing_key whk_1"), Until: 12345,
		},
		{Secret: box.Seal([]byte("endpoint.old_secrets"), "endpoint.secret whk_1"), Until: 1234},
	})
	run(t, s, func(tx *db.Tx) error {
		err := errors.Join(
			tx.Exec(`INSERT INTO workspace (id, name, plan, created_at) VALUES ('ws_1', 'acme', 'growth', 1)`),
			tx.Exec(`INSERT INTO users (id, email, password_hash, created_at) VALUES ('usr_1', 'a@example.com', '', 1)`),
			tx.Exec(`INSERT INTO device (id, workspace_id, name, mode, status, status_reason, desired, account,
				phone_number, display_name, metadata, created_at, linked_at, connected_at, last_seen_at, sequence,
				last_event_at, deleted_at) VALUES ('dev_1', 'ws_1', '', 'live', 'idle', '', 'idle', '', '', '', '{}', 1, 0, 0,
				0, 0, 0, 0)`),
			tx.Exec(`INSERT INTO endpoint (id, workspace_id, url, description, events, devices, headers, status,
				status_reason, secret, secret_last_four, max_in_flight, ordered, created_at, verified_at, attempts, due_at,
				since, failing_since, failures, old_secrets) VALUES ('whk_1', 'ws_1', 'https://example.com', '', '["*"]',
				'null', '{}', 'paused', '', $1, '', 1, 0, 1, 0, 0, 0, 0, 0, 0, $2)`, []byte{}, string(old)))
		for _, r := range sealedRows() {
			err = errors.Join(err, tx.Exec(r.insert, box.Seal([]byte(r.column), r.place)))
		}
		return err
	})
}

// values returns the values of a column.
func values(t *testing.T, s *store.Store, column string) (list [][]byte) {
	t.Helper()
	table, name, _ := strings.Cut(column, ".")
	err := s.Engine().Rows(t.Context(), `SELECT `+name+` FROM `+table+` WHERE length(`+name+`) > 0`, nil,
		func(r *sql.Rows) error {
			var v []byte
			err := r.Scan(&v)
			list = append(list, v)
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// pass goes through all values.
func pass(t *testing.T, table *Table, box *seal.Box) *Resealing {
	t.Helper()
	p := table.NewResealing(box)
	for more := true; more; {
		var err error
		if _, more, err = p.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestEachValueIsEncryptedAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		s := open(t, url)
		box, first, next := rotated(t)
		table := Of(s)
		if err := table.Begin(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		fill(t, s, box)
		rows := int64(len(sealedRows())) + 1 // with the old secrets
		if done, err := table.Switch(t.Context(), box, next); err != nil || !done {
			t.Fatalf("Switch = %v, %v", done, err)
		}
		rows++ // with the keepsake of the first key
		if err := box.Use(next); err != nil {
			t.Fatal(err)
		}
		if n, err := table.Count(t.Context(), box, first); err != nil || n != rows {
			t.Errorf("%d values are encrypted with the first key, want %d (error %v)", n, rows, err)
		}
		if p := pass(t, table, box); p.Changed != rows || p.Broken != 0 {
			t.Errorf("%d values changed and %d are broken, want %d and none", p.Changed, p.Broken, rows)
		}
		if p := pass(t, table, box); p.Changed != 0 || p.Broken != 0 {
			t.Errorf("the second pass changed %d values, and found %d broken", p.Changed, p.Broken)
		}
		if n, err := table.Count(t.Context(), box, first); err != nil || n != 0 {
			t.Errorf("%d values are still encrypted with the first key (error %v)", n, err)
		}
		checkOpens(t, s, next)
		checkStates(t, table, first, next, rows)
	})
}

// checkOpens checks that all values open with the second key alone.
func checkOpens(t *testing.T, s *store.Store, next seal.KeyID) {
	t.Helper()
	alone, err := seal.NewBoxOf(keysOf(t, 2), "", next)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range sealedRows() {
		found := false
		for _, v := range values(t, s, r.column) {
			plain, err := alone.Open(v, r.place)
			found = found || err == nil && string(plain) == r.column
		}
		if !found {
			t.Errorf("no value of %s opens with the new key alone", r.column)
		}
	}
	e, err := s.Endpoints.Get(t.Context(), "ws_1", "whk_1")
	if err != nil {
		t.Fatal(err)
	}
	if len(e.OldSecrets) != 2 || e.OldSecrets[0].Until != 12345 || len(e.OldSecrets[1].SigningKey) != 0 {
		t.Fatalf("old secrets = %+v", e.OldSecrets)
	}
	for _, o := range e.OldSecrets {
		if _, err := alone.Open(o.Secret, e.ID.SecretPlace()); err != nil {
			t.Error(err)
		}
	}
	if _, err := alone.Open(e.OldSecrets[0].SigningKey, e.ID.SigningKeyPlace()); err != nil {
		t.Error(err)
	}
}

// checkStates retires the first key, and checks what the database says of both.
func checkStates(t *testing.T, table *Table, first, next seal.KeyID, resealed int64) {
	t.Helper()
	list := func() string {
		list, err := table.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(Needed(list))
		for _, k := range list {
			if k.ID == next && k.Resealed != resealed {
				t.Errorf("resealed = %d, want %d", k.Resealed, resealed)
			}
		}
		return text
	}
	if got, want := list(), fmt.Sprint([]seal.KeyID{next, first}); got != want {
		t.Errorf("needed = %s, want %s", got, want)
	}
	if err := table.Retire(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if got, want := list(), fmt.Sprint([]seal.KeyID{next, first}); got != want {
		t.Errorf("needed = %s, want %s: the key that encrypted before retires nothing", got, want)
	}
	if err := table.Retire(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if got, want := list(), fmt.Sprint([]seal.KeyID{next}); got != want {
		t.Errorf("needed = %s, want %s", got, want)
	}
	if err := table.Revive(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if got, want := list(), fmt.Sprint([]seal.KeyID{next, first}); got != want {
		t.Errorf("needed = %s, want %s", got, want)
	}
}

// A value that no key opens is left as it is, and reported.
func TestBrokenValuesAreReported(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		s := open(t, url)
		box, _, next := rotated(t)
		fill(t, s, box)
		run(t, s, func(tx *db.Tx) error {
			return tx.Exec(`UPDATE session_key SET value = $1`, box.Seal([]byte("moved"), "another place"))
		})
		before := values(t, s, "session_key.value")
		if err := box.Use(next); err != nil {
			t.Fatal(err)
		}
		if p := pass(t, Of(s), box); p.Broken != 1 || p.Changed != int64(len(sealedRows())) {
			t.Errorf("%d values are broken, and %d changed", p.Broken, p.Changed)
		}
		if after := values(t, s, "session_key.value"); !bytes.Equal(after[0], before[0]) {
			t.Error("the value changed")
		}
	})
}

// What is written while values are encrypted again is not lost, and pages continue where the last one ended.
func TestWritesWinOverResealing(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		s := open(t, url)
		box, first, next := rotated(t)
		const keys, rounds = 3*pageRows + 7, 20
		write := func(round int) error {
			o := store.WriteSessionKeys{Account: "a"}
			for i := range keys {
				name := fmt.Sprintf("%04d", i)
				o.Keys = append(o.Keys, store.SessionKey{
					Kind: "k", Name: name, Value: box.Seal(fmt.Appendf(nil, "%d", round), postern.SessionKeyPlace("a", "k", name)),
				})
			}
			return s.SessionKeys.Write(t.Context(), o)
		}
		if err := write(0); err != nil {
			t.Fatal(err)
		}
		if err := box.Use(next); err != nil {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		writers.Go(func() {
			for round := range rounds {
				if err := write(round + 1); err != nil {
					t.Error(err)
				}
			}
		})
		pass(t, Of(s), box)
		writers.Wait()
		if p := pass(t, Of(s), box); p.Broken != 0 {
			t.Errorf("%d broken values", p.Broken)
		}
		list, err := s.SessionKeys.List(t.Context(), "a", "k", "")
		if err != nil || len(list) != keys {
			t.Fatalf("%d keys (error %v)", len(list), err)
		}
		for _, k := range list {
			plain, err := box.Open(k.Value, postern.SessionKeyPlace("a", "k", k.Name))
			if err != nil || string(plain) != fmt.Sprint(rounds) || bytes.HasPrefix(k.Value, box.Head(first)) {
				t.Fatalf("%s is %q, want %d (error %v)", k.Name, plain, rounds, err)
			}
		}
	})
}

// A value that was written after it was read is left as it was written.
func TestNewerValueIsKept(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		s := open(t, url)
		box, _, next := rotated(t)
		fill(t, s, box)
		if err := box.Use(next); err != nil {
			t.Fatal(err)
		}
		p := Of(s).NewResealing(box)
		for _, c := range p.columns {
			list, _, err := p.table.read(t.Context(), c, nil, box.Head(next))
			if err != nil || len(list) != 1 {
				t.Fatalf("%s.%s: %d rows, error %v", c.table, c.value, len(list), err)
			}
			rows, _ := p.freshen(c, list)
			newer := c.stored([]byte(`["newer"]`))
			run(t, s, func(tx *db.Tx) error { return tx.Exec(`UPDATE `+c.table+` SET `+c.value+` = $1`, newer) })
			if changed, err := p.table.write(t.Context(), c, rows, next); err != nil || changed != 0 {
				t.Errorf("%s.%s: %d values changed, error %v", c.table, c.value, changed, err)
			}
		}
	})
}

// A new key encrypts only when all servers know it, and what an earlier process of a server said does not count.
func TestAllServersMustKnowTheKey(t *testing.T) {
	t.Parallel()
	url := migrated.URL(t)
	box, first, next := rotated(t)
	one, two := open(t, url), open(t, url)
	join := func(s *store.Store, id string) {
		t.Helper()
		if _, err := s.Nodes.Join(t.Context(), store.Node{ID: id, Name: "server " + id}, 1e12); err != nil {
			t.Fatal(err)
		}
	}
	announce := func(s *store.Store, ids ...seal.KeyID) {
		t.Helper()
		if err := Of(s).Announce(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(why string, lacking ...string) {
		t.Helper()
		if done, err := Of(one).Switch(t.Context(), box, next); err != nil || done {
			t.Fatalf("%s: Switch = %v, %v", why, done, err)
		}
		if names, err := Of(one).Lacking(t.Context(), next); err != nil || !slices.Equal(names, lacking) {
			t.Errorf("%s: %q lack the key, want %q (error %v)", why, names, lacking, err)
		}
	}
	join(one, "1")
	join(two, "2")
	if err := Of(one).Begin(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	announce(one, first, next)
	refused("a server has said nothing", "server 2")
	announce(two, first)
	refused("a server does not know the key", "server 2")
	announce(two, first, next)
	join(two, "2")
	refused("a server has said nothing since it joined again", "server 2")
	announce(two, first, next)
	if done, err := Of(one).Switch(t.Context(), box, next); err != nil || !done {
		t.Fatalf("Switch = %v, %v", done, err)
	}
	announce(one, next, first)
	if agreed, err := Of(one).Agreed(t.Context(), next); err != nil || agreed {
		t.Errorf("agreed = %v, %v; one server still encrypts with the first key", agreed, err)
	}
	announce(two, next, first)
	if agreed, err := Of(one).Agreed(t.Context(), next); err != nil || !agreed {
		t.Errorf("agreed = %v, %v", agreed, err)
	}
	third := keysOf(t, 3).IDs()[0]
	announce(one, next, third)
	announce(two, next, third)
	if done, err := Of(one).Switch(t.Context(), box, third); err != nil || done {
		t.Errorf("the key is rotated while an earlier one is retiring (error %v)", err)
	}
}

// Each column of bytes has encrypted values and is among the columns, or is named here as having none.
func TestEveryEncryptedColumnIsKnown(t *testing.T) {
	t.Parallel()
	plain := []string{
		"api_key.hash", "blob.thumbnail", "delivery.notice", "event.body", "idempotency.request_hash",
		"link_page.browser_hash", "link_page.token_hash", "message.preview", "request_log.body", "sign_in.data",
	}
	var known []string
	for _, c := range columns() {
		if !c.list {
			known = append(known, c.table+"."+c.value)
		}
	}
	s := open(t, "")
	var found []string
	err := s.Engine().Rows(t.Context(), `SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND c.type = 'BLOB' AND m.name NOT LIKE 'message_word%'`, nil, func(r *sql.Rows) error {
		var table, name string
		err := r.Scan(&table, &name)
		found = append(found, table+"."+name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if slices.Contains(known, name) == slices.Contains(plain, name) {
			t.Errorf("%s is neither a column with encrypted values nor one without, or both", name)
		}
	}
	if len(found) != len(known)+len(plain) {
		t.Errorf("columns = %q, want %q and %q", found, known, plain)
	}
}

// A page is found through the index of its rows' names.
func TestPagesAreFoundThroughIndexes(t *testing.T) {
	t.Parallel()
	s := open(t, "")
	for _, c := range columns() {
		query, plan := c.page(5), ""
		err := s.Engine().Rows(t.Context(), `EXPLAIN QUERY PLAN `+query, make([]any, len(c.keys)+2),
			func(r *sql.Rows) error {
				var id, parent, x int
				var detail string
				err := r.Scan(&id, &parent, &x, &detail)
				plan += detail + "\n"
				return err
			})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(plan, "SEARCH "+c.table) || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("the plan for %s.%s is %s", c.table, c.value, plan)
		}
	}
}
