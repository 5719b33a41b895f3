package store

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
)

// script returns a day of a gateway as groups of operations, with the same ids in each run.
// The groups contain repetitions, refusals, refunds and failures.
func script(marks *[]*markSending) (devices []postern.Device, endpoint postern.Endpoint, groups [][]op) {
	const ws = "ws_1"
	for i := range 3 {
		devices = append(devices, postern.Device{
			ID: postern.DeviceID(fmt.Sprint("dev_", i)), WorkspaceID: ws,
			Status:   []postern.Status{postern.Connected, postern.Connected, postern.Paused}[i],
			Metadata: map[string]string{},
		})
	}
	endpoint = postern.Endpoint{
		ID: "whk_1", WorkspaceID: ws, Events: []string{"message.*"},
		Status: postern.EndpointPending, Secret: []byte{1},
	}
	send := func(n, device int, when, key string) op {
		m := outbound(devices[device])
		m.ID, m.NetworkID = postern.MessageID(fmt.Sprint("msg_", n)), fmt.Sprint("N", n)
		o := QueueMessage{Message: m, Month: MonthOf(testNow), WhenDisconnected: when}
		if key != "" {
			o.Once = &Once{WorkspaceID: ws, Method: "POST", Path: "/", Key: key, Answer: []byte(m.ID), At: testNow}
		}
		return hot(o)
	}
	ask := func(n int, p postern.Priority, chat string) op {
		m := outbound(devices[0])
		m.ID, m.NetworkID = postern.MessageID(fmt.Sprint("msg_", n)), fmt.Sprint("N", n)
		m.Priority, m.ChatID = p, chat
		return hot(QueueMessage{Message: m, Month: MonthOf(testNow)})
	}
	inbound := func(n int, network string, dark bool) op {
		o := inboundOf(devices[n%2], network, "lid:1", "hi")
		if o.Message.ID = postern.MessageID(fmt.Sprint("msg_in", n)); dark {
			o.Undecryptable, o.Type, o.Message.Content.Text = true, postern.MessageUndecryptable, ""
		}
		return hot(o)
	}
	finish := func(n int, s postern.MessageStatus, refund bool) op {
		o := FinishOutbound{
			MessageID: postern.MessageID(fmt.Sprint("msg_", n)), Status: s, Refund: refund,
			At: testNow.Add(time.Second),
		}
		if s == postern.Sent {
			o.SentAt = testNow.Add(time.Minute)
		} else {
			o.Failure = postern.Failure{Code: postern.Unconfirmed, Detail: "d"}
		}
		return hot(o)
	}
	chats := []string{"+15551234567"}
	receipt := func(n int, s postern.MessageStatus) Receipt {
		return Receipt{
			WorkspaceID: ws, DeviceID: devices[0].ID, NetworkID: fmt.Sprint("N", n), Chats: chats, Status: s,
			At: testNow.Add(time.Hour), Now: testNow.Add(2 * time.Second),
		}
	}
	mark := func(n int) op {
		o := &markSending{id: postern.MessageID(fmt.Sprint("msg_", n))}
		*marks = append(*marks, o)
		return hot(o)
	}
	put := func(name string, size int) SessionKey {
		k := SessionKey{Kind: "k", Name: name, At: testNow}
		if size > 0 {
			k.Value = make([]byte, size)
		}
		return k
	}
	keys := func(list ...SessionKey) op { return hot(WriteSessionKeys{Account: "a", Keys: list}) }
	return devices, endpoint, [][]op{
		{
			keys(put("x", 1), put("y", 2), put("z", 3)), keys(), keys(put("y", 0), put("x", 4), put("x", 5)), keys(put("w", 0)),
			keys(put("y", 6)), keys(put("z", 0), put("v", 7)),
		},
		{keys(put("y", 8)), keys(put("v", 0))},
		{
			send(1, 0, "", ""), send(2, 0, "", "a"), send(3, 1, "", "b"), send(4, 2, "", ""), send(5, 2, "queue", ""),
			send(6, 0, "", "c"), send(7, 0, "", "d"),
		},
		{send(8, 0, "", "e"), send(9, 0, "", "a"), send(10, 0, "", "f"), send(11, 0, "", "g")}, // a comes again
		{send(12, 0, "", "h"), send(13, 0, "", "h"), send(14, 0, "", "")},                      // h comes twice in one group
		{send(15, 0, "", "i"), send(16, 0, "", ""), send(17, 0, "", "j"), send(18, 0, "", "")}, // the quota is 12
		{
			inbound(1, "A", false), inbound(2, "B", true), inbound(3, "A", false), inbound(4, "B", false),
			inbound(5, "C", false), inbound(6, "B", true),
		},
		{inbound(7, "C", false), inbound(8, "D", false), inbound(9, "\x00", false)},
		{mark(1), mark(2), mark(6), mark(1), mark(99)},
		{
			finish(1, postern.Sent, false), finish(2, postern.Failed, false), finish(3, postern.Failed, true),
			finish(6, postern.Sent, false), finish(6, postern.Failed, false), finish(99, postern.Sent, false),
		},
		{
			hot(receipts{
				receipt(98, postern.Read), receipt(3, postern.Read), receipt(1, postern.Delivered),
				receipt(1, postern.Read),
			}), hot(receipts{receipt(1, postern.Delivered)}),
			hot(receipts{receipt(2, postern.Delivered)}), hot(receipts{}), hot(receipts{receipt(7, postern.Read)}),
		},
		{
			mark(8), inbound(10, "E", false), send(19, 0, "", "k"), finish(10, postern.Sent, false),
			opFunc(func(*tx) error { panic("boom") }), hot(receipts{receipt(6, postern.Read)}), inbound(11, "F", true),
		},
		{opFunc(func(tx *tx) error { return tx.Exec(`UPDATE workspace SET message_limit = 1000`) })},
		{
			ask(31, postern.LowPriority, "+1"), ask(32, postern.LowPriority, "+1"), ask(33, "", "+2"),
			ask(34, postern.HighPriority, "+1"), ask(35, postern.LowPriority, "+3"),
		},
		{ask(36, postern.LowPriority, "+2"), ask(37, postern.HighPriority, "+2"), ask(38, "", "+1"), ask(39, "", "+3")},
	}
}

// attempts returns the attempts that the dispatcher would report for the queued deliveries.
func attempts(t *testing.T, db *Store) (list []op) {
	t.Helper()
	due, err := db.Deliveries.Due(t.Context(), "whk_1", testNow.Add(time.Hour), true, 1000)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(due, func(a, b DueDelivery) int { return strings.Compare(kindOf(a), kindOf(b)) })
	for i, d := range due {
		o := Attempt{
			DeliveryID: d.ID, Row: d.Row, EndpointID: d.EndpointID, Number: 1, At: testNow,
			Ended: testNow.Add(time.Second), HTTPStatus: 200, Answer: "ok", Status: postern.DeliverySucceeded,
		}
		if i >= len(due)-3 { // the last ones fail: a group does not order successes and failures
			o.HTTPStatus, o.Reason, o.Status, o.DueAt = 500, "status", postern.DeliveryPending, testNow.Add(time.Minute)
		}
		list = append(list, hot(o))
	}
	return append(list, list[0])
}

func kindOf(d DueDelivery) string {
	member := func(name string) string {
		_, rest, _ := strings.Cut(string(d.Body), `"`+name+`":"`)
		value, _, _ := strings.Cut(rest, `"`)
		return value
	}
	_, object, _ := strings.Cut(string(d.Body), `"sequence":`)
	_, object, _ = strings.Cut(object, ",")
	return member("type") + member("deviceId") + object
}

// state returns the contents of a database, without values that are drawn at random.
func state(t *testing.T, db *Store) string {
	t.Helper()
	var lines []string
	for _, query := range []string{
		`SELECT 'message ' || id, status || ' ' || error_code || ' ' || lane || ' ' || body || ' ' || network_id, sent_at, delivered_at,
			read_at, frame_left, undecryptable FROM message ORDER BY id`,
		`SELECT 'event', type || ' ' || device_id, created_at, count(*), 0, 0, 0 FROM event
			GROUP BY type, device_id, created_at ORDER BY 2, 3`,
		`SELECT 'delivery', type || ' ' || status || ' ' || last_reason, attempts, due_at, completed_at, last_status, count(*)
			FROM delivery GROUP BY type, status, last_reason, attempts, due_at, completed_at, last_status ORDER BY 2, 3`,
		`SELECT 'attempt', reason || ' ' || answer, number, at, duration, status, count(*) FROM attempt_log
			GROUP BY reason, answer, number, at, duration, status ORDER BY 2`,
		`SELECT 'usage', month, messages, 0, 0, 0, 0 FROM usage`,
		`SELECT 'message hour ' || hour, '', accepted, sent, delivered, failed, received FROM message_hour ORDER BY hour`,
		`SELECT 'device usage ' || device_id, month, messages, 0, 0, 0, 0 FROM device_usage ORDER BY device_id`,
		`SELECT 'session key ' || name, account || kind, at, length(value), 0, 0, 0 FROM session_key ORDER BY name`,
		`SELECT 'endpoint', status, failures, failing_since, 0, 0, 0 FROM endpoint`,
		`SELECT 'key ' || key, '', created_at, length(answer), 0, 0, 0 FROM idempotency ORDER BY key`,
		`SELECT 'device ' || id, status, sequence, last_event_at, 0, 0, 0 FROM device ORDER BY id`,
	} {
		err := db.db.Rows(t.Context(), query, nil, func(r *sql.Rows) error {
			var a, b string
			var n [5]int64
			err := r.Scan(&a, &b, &n[0], &n[1], &n[2], &n[3], &n[4])
			lines = append(lines, fmt.Sprint(a, " ", b, " ", n))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(lines, "\n")
}

// play runs the script, in groups or one operation at a time, and returns the outcomes.
func play(t *testing.T, db *Store, inGroups bool) (outcomes []string) {
	t.Helper()
	var marks []*markSending
	devices, endpoint, groups := script(&marks)
	if err := db.Workspaces.Create(t.Context(), postern.Workspace{ID: "ws_1", Plan: "growth"}); err != nil {
		t.Fatal(err)
	}
	limitMessages(t, db, "ws_1", 12)
	for _, d := range devices {
		if err := db.Devices.Create(t.Context(), d, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Endpoints.Create(t.Context(), endpoint, 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Endpoints.Activate(t.Context(), endpoint.ID, testNow); err != nil {
		t.Fatal(err)
	}
	run := func(group []op) {
		if inGroups {
			for _, err := range grouped(db, group...) {
				outcomes = append(outcomes, outcomeOf(err))
			}
			return
		}
		for _, o := range group {
			outcomes = append(outcomes, outcomeOf(db.db.Do(t.Context(), o)))
		}
	}
	for _, group := range groups {
		run(group)
	}
	for _, m := range marks {
		outcomes = append(outcomes, fmt.Sprint(m.ok))
	}
	run(attempts(t, db))
	for _, d := range devices {
		eventTypes(t, db, d.ID) // checks the sequences
	}
	return outcomes
}

func outcomeOf(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// TestGroupDoesWhatItsOpsDoOneByOne checks that both engines, and the statements that write
// many operations at once, have the same outcome.
func TestGroupDoesWhatItsOpsDoOneByOne(t *testing.T) {
	t.Parallel()
	type result struct{ outcomes, state string }
	results := map[string]result{}
	for name, on := range map[string]engine{"sqlite": {}, "postgres": {postgres: true}} {
		for how, inGroups := range map[string]bool{"groups": true, "one by one": false} {
			db := on.open(t)
			outcomes := play(t, db, inGroups)
			results[name+", "+how] = result{strings.Join(outcomes, "\n"), state(t, db)}
		}
	}
	want := results["sqlite, one by one"]
	for _, name := range slices.Sorted(maps.Keys(results)) {
		if got := results[name]; got != want {
			t.Errorf("%s differs from SQLite, one by one:\n%s", name,
				difference(got.outcomes+"\n"+got.state, want.outcomes+"\n"+want.state))
		}
	}
	if !strings.Contains(want.outcomes, "are used up") || !strings.Contains(want.outcomes, ErrAlreadyDone.Error()) ||
		!strings.Contains(want.outcomes, "boom") {
		t.Errorf("the script lost what it was written for:\n%s", want.outcomes)
	}
}

func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	var lines []string
	for i := range max(len(g), len(w)) {
		a, b := at(g, i), at(w, i)
		if a != b {
			lines = append(lines, "  got "+a, " want "+b)
		}
	}
	return strings.Join(lines, "\n")
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}
