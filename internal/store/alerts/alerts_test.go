package alerts_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/accounts"
	"postern/internal/store/alerts"
	"postern/internal/store/migrated"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a store with two workspaces, a member of the first one, and a device in each that is down.
func open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: migrated.Dir(t, url), URL: url})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
		err := errors.Join(
			tx.Exec(`INSERT INTO workspace (id, name, plan, created_at) VALUES ('ws_1', 'a', 'growth', 1), ('ws_2', 'b',
				'growth', 1)`),
			tx.Exec(`INSERT INTO users (id, email, password_hash, created_at) VALUES ('usr_1', 'ada@example.com', '', 1)`),
			tx.Exec(`INSERT INTO member (user_id, workspace_id, role, joined_at) VALUES ('usr_1', 'ws_1', 'owner', 1)`))
		for _, n := range []string{"1", "2"} {
			err = errors.Join(err, tx.Exec(`INSERT INTO device (id, workspace_id, name, mode, status, status_reason, desired,
				account, phone_number, display_name, metadata, created_at, linked_at, connected_at, last_seen_at, sequence,
				last_event_at, deleted_at) VALUES ('dev_`+n+`', 'ws_`+n+`', '', 'live', 'logged_out', '', 'connect', '', '',
				'', '{}', 1, 0, 0, 0, 0, 0, 0)`))
		}
		return err
	})))
	return s
}

func onEach(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Parallel()
	for name, url := range map[string]func() string{
		"sqlite": func() string { return "" }, "postgres": func() string { return migrated.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, url()))
		})
	}
}

func anybody(postern.Standing) error { return nil }

// Only workspaces whose people are told are looked at for them, and a member who leaves is told no longer.
func TestMembersWhoAreTold(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		table := alerts.Of(s)
		wrong := func(find func(context.Context, postern.Time) ([]alerts.Alert, error), want int) {
			t.Helper()
			list, err := find(t.Context(), s.Now())
			if err != nil || len(list) != want {
				t.Errorf("%d are wrong, want %d: %+v, %v", len(list), want, list, err)
			}
		}
		wrong(table.WrongWhereTold, 0)
		wrong(table.Wrong, 2)
		act := store.Act{At: s.Now(), WorkspaceID: "ws_1", Act: "workspace.alert-mails-changed"}
		check(t, table.SetMembers(t.Context(), []postern.UserID{"usr_1", "usr_nobody"}, anybody, act))
		wrong(table.WrongWhereTold, 1)
		mails, err := table.Mails(t.Context())
		check(t, err)
		if !slices.Equal(mails["ws_1"], []string{"ada@example.com"}) || len(mails) != 1 {
			t.Errorf("mails go to %v", mails)
		}
		check(t, accounts.Of(s).Members.Remove(t.Context(), accounts.Removal{
			WorkspaceID: "ws_1", UserID: "usr_1", Rule: anybody, Act: store.Act{At: s.Now(), WorkspaceID: "ws_1", Act: "member.removed"},
		}))
		wrong(table.WrongWhereTold, 0)
	})
}

// A failure is noted for the address that it happened at, and not for the one that took its place.
func TestFailureOfAnAddress(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		table, ws := alerts.Of(s), postern.WorkspaceID("ws_1")
		set := func(url string) {
			t.Helper()
			act := store.Act{At: s.Now(), WorkspaceID: ws, Act: "workspace.alert-url-changed"}
			check(t, table.SetAddress(t.Context(), alerts.Address{URL: []byte(url), Host: "example.com"}, anybody, act))
		}
		reason := func(want string) {
			t.Helper()
			a, err := table.Address(t.Context(), ws)
			if err != nil || a.Reason != want || (a.FailedAt > 0) != (want != "") {
				t.Errorf("%+v, %v; want the reason %q", a, err, want)
			}
		}
		set("first")
		check(t, table.Posted(t.Context(), ws, []byte("first"), s.Now(), "dns"))
		reason("dns")
		set("second")
		reason("")
		check(t, table.Posted(t.Context(), ws, []byte("first"), s.Now(), "dns"))
		reason("")
		check(t, table.Posted(t.Context(), ws, []byte("second"), 5, "dns"))
		check(t, table.Posted(t.Context(), ws, []byte("second"), s.Now(), "status"))
		reason("status")
		if a, err := table.Address(t.Context(), ws); err != nil || a.FailedAt != 5 {
			t.Errorf("it fails since %d, %v; want the first failure", a.FailedAt, err)
		}
		check(t, table.Posted(t.Context(), ws, []byte("second"), s.Now(), ""))
		reason("")
	})
}

// What one recipient was told says nothing about another one.
func TestRecipientsAreToldApart(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		table, one := alerts.Of(s), []alerts.Alert{{Kind: alerts.DeviceDown, Subject: "dev_1", WorkspaceID: "ws_1", Since: 1}}
		operator, people := alerts.Recipient{Way: alerts.URL}, alerts.Recipient{WorkspaceID: "ws_1", Way: alerts.URL}
		check(t, table.Note(t.Context(), operator, one))
		check(t, table.Note(t.Context(), people, one))
		one[0].ToldAt = 7
		check(t, table.Note(t.Context(), people, one))
		known, err := table.Known(t.Context())
		check(t, err)
		if len(known) != 2 || known[operator][0].ToldAt != 0 || known[people][0].ToldAt != 7 {
			t.Errorf("known: %+v", known)
		}
		check(t, table.Forget(t.Context(), operator, one))
		known, err = table.Known(t.Context())
		check(t, err)
		if len(known) != 1 || known[people][0].Workspace != "a" {
			t.Errorf("known: %+v", known)
		}
	})
}

// endpoint adds an unverified webhook to the first workspace.
func endpoint(t *testing.T, s *store.Store) postern.Endpoint {
	t.Helper()
	e := postern.Endpoint{
		ID: "whk_1", WorkspaceID: "ws_1", URL: "https://example.com", Events: []string{"*"},
		Status: postern.EndpointPending, CreatedAt: now, MaxInFlight: 8, Secret: []byte{1},
	}
	check(t, s.Endpoints.Create(t.Context(), e, 20, nil))
	return e
}

// An endpoint that was disabled is a problem until it has answered the challenge, also while it is verified again and
// after that has failed.
func TestEndpointIsAProblemUntilItIsVerified(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		e := endpoint(t, s)
		problem := func(want string, since postern.Time) {
			t.Helper()
			list, err := alerts.Of(s).WrongIn(t.Context(), "ws_1", 0)
			check(t, err)
			got, at := "", postern.Time(0)
			for _, a := range list {
				if a.Kind == alerts.EndpointDisabled {
					got, at = "is "+a.Detail, a.Since
				}
			}
			h, err := alerts.Of(s).Health(t.Context(), "ws_1", nil)
			if got != want || at != since || err != nil || (h.Disabled == 1) != (want != "") {
				t.Errorf("the endpoint %q since %d, and %d count, %v; want %q since %d", got, at, h.Disabled, err, want, since)
			}
		}
		set := func(assignments string) {
			t.Helper()
			check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
				return tx.Exec(`UPDATE endpoint SET ` + assignments)
			})))
		}
		problem("", 0)
		check(t, s.Endpoints.FinishHandshake(t.Context(), store.FinishHandshake{
			EndpointID: e.ID, URL: e.URL, Attempts: 1,
			Post: store.HandshakePost{EventID: "evt_1", Number: 1, At: now + 5, Ended: now + 6, Reason: "challenge"},
		}))
		problem("is unverified, challenge", now+5)
		set(`status = 'pending', status_reason = ''`)
		problem("is verifying", now+5)
		set(`failures = 3`) // it was failing, and not disabled
		problem("", 0)
		set(`status = 'disabled', status_reason = 'failing', failing_since = 7, failures = 10`)
		problem("is failing", 7)
		set(`status = 'pending', status_reason = ''`)
		problem("is verifying", 7)
		check(t, s.Endpoints.Activate(t.Context(), e.ID, now))
		problem("", 0)
	})
}

const now = postern.Time(1_800_000_000_000)

// The oldest message that waits is found behind those of a higher priority and those that were scheduled long ago.
// Actions on messages do not count.
func TestOldestMessageThatWaits(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		put := func(id, about string, lane int, accepted, queued postern.Time) string {
			return fmt.Sprintf(`INSERT INTO message (id, workspace_id, device_id, direction, type, chat_id, sender, from_number,
				from_lid, from_name, to_number, body, reply_to, status, error_code, error_detail, network_id, source, metadata,
				created_at, sent_at, delivered_at, read_at, expires_at, frame_left, undecryptable, about, lane, queued_at)
				VALUES ('%[1]s', 'ws_1', 'dev_1', 'outbound', 'text', '+15551234567', '', '', '', '', '', 'x', '', 'queued', '',
				'', '%[1]s', 'api', '{}', %[4]d, 0, 0, 0, 0, 0, 0, '%[2]s', %[3]d, %[5]d)`, id, about, lane, accepted, queued)
		}
		check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
			return errors.Join(
				tx.Exec(put("msg_1", "", 1, 1, now+9)), // scheduled
				tx.Exec(put("msg_2", "", 1, now+3, 0)),
				tx.Exec(put("msg_3", "", 0, now+7, 0)), // of a high priority
				tx.Exec(put("msg_4", "3EB0", 1, now+1, 0)),
				tx.Exec(`UPDATE device SET status = 'connected' WHERE id = 'dev_1'`))
		})))
		queues, err := alerts.Of(s).Queues(t.Context(), "ws_1")
		if want := (alerts.Queue{Waiting: 3, Since: now + 3}); err != nil || queues["dev_1"] != want {
			t.Errorf("the queues are %+v, %v, want %+v", queues, err, want)
		}
		board, err := alerts.Of(s).Devices(t.Context(), "ws_1")
		if err != nil || len(board) != 1 || board[0].Waiting != 3 || board[0].Queue.Since != now+3 {
			t.Errorf("the board has %+v, %v", board, err)
		}
		list, err := alerts.Of(s).WrongIn(t.Context(), "ws_1", now+4)
		if err != nil || len(list) != 1 || list[0].Kind != alerts.MessagesWaiting || list[0].Since != now+3 {
			t.Errorf("what is wrong: %+v, %v", list, err)
		}
	})
}

// attempt makes an attempt of each delivery of an endpoint that is due, with the outcomes in turn.
func attempt(t *testing.T, s *store.Store, e postern.Endpoint, outcomes ...postern.DeliveryStatus) {
	t.Helper()
	due, err := s.Deliveries.Due(t.Context(), e.ID, now.Add(time.Second), true, 10)
	check(t, err)
	if len(due) != len(outcomes) {
		t.Fatalf("%d deliveries are due, want %d", len(due), len(outcomes))
	}
	for i, d := range due {
		o := store.Attempt{
			DeliveryID: d.ID, Row: d.Row, EndpointID: e.ID, Number: 1, At: now, Ended: now, HTTPStatus: 500,
			Reason: "status", Status: outcomes[i], DueAt: now.Add(time.Hour),
		}
		if o.Status == postern.DeliverySucceeded {
			o.HTTPStatus, o.Reason = 200, ""
		}
		check(t, s.Deliveries.FinishAttempt(t.Context(), o))
	}
}

// What an endpoint has not received is what waits for another attempt, and what is no longer attempted, from a time on.
func TestBacklog(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		e := endpoint(t, s)
		check(t, s.Endpoints.Activate(t.Context(), e.ID, now))
		for n := range 5 {
			at := now.Add(time.Duration(n) * time.Millisecond)
			check(t, s.Messages.RecordInbound(t.Context(), store.RecordInbound{
				Sender: "lid:1", Type: postern.MessageReceived, Now: at, Message: postern.Message{
					ID: postern.NewMessageID(), WorkspaceID: "ws_1", DeviceID: "dev_1", Direction: postern.Inbound,
					ChatID: "+15551234567", Content: postern.Text("Hi"), Status: postern.Received, CreatedAt: at, SentAt: at,
					NetworkID: postern.NewNetworkID(), Source: postern.FromContact, Metadata: map[string]string{},
				},
			}))
		}
		const failed, waits = postern.DeliveryExhausted, postern.DeliveryPending
		look := func(ws postern.WorkspaceID, since postern.Time, want alerts.Backlog) {
			t.Helper()
			e := e
			e.WorkspaceID = ws
			b, err := alerts.Of(s).Backlog(t.Context(), e, since, now+2)
			if failing := b.FailingSince > 0; failing != (want.Waiting > 0) {
				t.Errorf("it fails since %d, %d events wait", b.FailingSince, b.Waiting)
			}
			if b.FailingSince = 0; err != nil || b != want {
				t.Errorf("from %d on: %+v, %v; want %+v", since-now, b, err, want)
			}
		}
		look("ws_1", 0, alerts.Backlog{}) // nothing was attempted
		attempt(t, s, e, failed, waits, postern.DeliverySucceeded, failed, waits)
		look("ws_1", 0, alerts.Backlog{Waiting: 2, Older: 1, WaitingSince: now + 1, Failed: 2, FailedSince: now})
		retriable := func(want int) {
			t.Helper()
			if n, err := alerts.Of(s).Retriable(t.Context(), "ws_1", e.ID, now); n != want || err != nil {
				t.Errorf("another attempt can be made of %d, %v; want %d", n, err, want)
			}
		}
		retriable(2)
		_, _, err := s.Deliveries.RetryWaiting(t.Context(), "ws_1", e.ID, now, 0)
		check(t, err)
		retriable(0) // they are due already, and have not arrived
		look("ws_1", now+1, alerts.Backlog{Waiting: 2, Older: 1, WaitingSince: now + 1, Failed: 1, FailedSince: now + 3})
		look("ws_1", now+4, alerts.Backlog{Waiting: 2, Older: 1, WaitingSince: now + 1})
		look("ws_2", 0, alerts.Backlog{})
		e.Events = []string{"device.*"} // it no longer wants what has failed
		look("ws_1", 0, alerts.Backlog{Waiting: 2, Older: 1, WaitingSince: now + 1})
	})
}
