package store

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	storage "postern/internal/db"
	"postern/internal/postern"
)

// recorder records the texts of the statements that a store runs.
type recorder struct {
	mu   sync.Mutex
	list []string
}

func (r *recorder) add(query string, _ []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, query)
}

// take returns what ran since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// openTraced opens a store whose statements are recorded.
func (e engine) openTraced(t *testing.T) (*Store, *recorder) {
	t.Helper()
	r, opts := &recorder{}, e.options(t)
	opts.Trace = r.add
	return reopen(t, opts), r
}

// stage is one kind of hot write in the life of messages.
type stage struct {
	name string
	of   func(i int) op
}

// stages returns the hot writes, in the order in which messages pass them. The deliveries
// that attempts is called with were queued by the stages before.
func stages(devices []postern.Device, due func() []DueDelivery) []stage {
	known := func(d postern.Device) postern.Message { // the gateway has found its contact
		m := outbound(d)
		m.ContactID = "ct_known"
		return m
	}
	sent := make([]postern.Message, len(devices))
	for i, d := range devices {
		sent[i] = known(d)
	}
	accept := func(m postern.Message, once *Once) op {
		return hot(QueueMessage{Message: m, Month: MonthOf(testNow), Once: once})
	}
	return []stage{
		{"first contact", func(i int) op { return accept(outbound(devices[i]), nil) }},
		{"accept", func(i int) op { return accept(sent[i], nil) }},
		{"accept once", func(i int) op {
			return accept(known(devices[i]),
				&Once{
					WorkspaceID: devices[i].WorkspaceID, Key: fmt.Sprint(i),
					At: testNow,
				})
		}},
		{"mark", func(i int) op { return hot(&markSending{id: sent[i].ID}) }},
		{"finish", func(i int) op {
			return hot(FinishOutbound{MessageID: sent[i].ID, Status: postern.Sent, At: testNow, SentAt: testNow})
		}},
		{"receipts", func(i int) op {
			return hot(receipts{{
				WorkspaceID: devices[i].WorkspaceID, DeviceID: devices[i].ID,
				Chats: []string{"+15551234567"}, NetworkID: sent[i].NetworkID,
				Status: postern.Delivered, At: testNow, Now: testNow,
			}})
		}},
		{"inbound", func(i int) op { return hot(inboundOf(devices[i], postern.NewNetworkID(), "lid:1", "hi")) }},
		{"session keys", func(i int) op {
			k := SessionKey{Kind: "k", Name: "x", Value: []byte{1}}
			return hot(WriteSessionKeys{Account: string(devices[i].ID), Keys: []SessionKey{k}})
		}},
		{"attempt", func(i int) op {
			d := due()[i]
			return hot(Attempt{
				DeliveryID: d.ID, Row: d.Row, EndpointID: d.EndpointID, Number: 1, At: testNow,
				Ended: testNow.Add(time.Second), HTTPStatus: 200, Status: postern.DeliverySucceeded,
			})
		}},
	}
}

// statementsOf returns the statements that a group of n writes of each stage runs, without
// the beginning and the end of its transaction.
func statementsOf(t *testing.T, on engine, n int) map[string][]string {
	t.Helper()
	db, ran := on.openTraced(t)
	ws := newWorkspace(t, db)
	devices := make([]postern.Device, n)
	for i := range devices {
		devices[i] = newDevice(t, db, ws, postern.Connected)
	}
	e := newEndpoint(t, db, ws, "*")
	if err := db.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
		t.Fatal(err)
	}
	due := func() []DueDelivery {
		list, err := db.Deliveries.Due(t.Context(), e.ID, testNow.Add(time.Hour), true, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	found := map[string][]string{}
	for _, s := range stages(devices, due) {
		found[s.name] = runStage(t, db, ran, s, n)
	}
	return found
}

func runStage(t *testing.T, db *Store, ran *recorder, s stage, n int) []string {
	t.Helper()
	ops := make([]op, n)
	for i := range ops {
		ops[i] = s.of(i)
	}
	ran.take()
	for i, err := range grouped(db, ops...) {
		if err != nil {
			t.Fatalf("%s, write %d: %v", s.name, i, err)
		}
	}
	return slices.DeleteFunc(ran.take(), func(query string) bool {
		return strings.HasPrefix(query, "BEGIN") || query == "COMMIT"
	})
}

// statements is how many statements a hot write has on SQLite, how many of them return what
// they changed, and how many there are on PostgreSQL.
type statements struct{ local, returning, remote int }

// TestEachHotWriteHasItsStatements counts the statements of a group of hot writes.
// PostgreSQL runs the same ones for five writes as for one.
func TestEachHotWriteHasItsStatements(t *testing.T) {
	t.Parallel()
	one := statementsOf(t, engine{}, 1)
	alone, five := statementsOf(t, engine{postgres: true}, 1), statementsOf(t, engine{postgres: true}, 5)
	for name, want := range map[string]statements{
		"accept": {7, 0, 6}, "accept once": {9, 0, 8}, "mark": {1, 0, 1}, "finish": {7, 2, 7}, "receipts": {8, 1, 8},
		"inbound": {9, 1, 8}, "session keys": {1, 0, 1}, "attempt": {4, 0, 4},
	} {
		got := statements{len(one[name]), returning(one[name]), len(five[name])}
		if got != want {
			t.Errorf("%s: the numbers of statements are %+v, want %+v; those of SQLite:\n%s", name, got, want,
				strings.Join(one[name], "\n"))
		}
		if !slices.Equal(five[name], alone[name]) {
			t.Errorf("%s: PostgreSQL runs for five writes:\n%s\nand for one:\n%s", name,
				strings.Join(five[name], "\n"), strings.Join(alone[name], "\n"))
		}
	}
}

// returning counts the statements that return what they changed.
func returning(list []string) (n int) {
	for _, query := range list {
		n += strings.Count(query, "RETURNING")
	}
	return n
}

// PostgreSQL keeps the plans of these statements from a time when few rows wait. Such a plan must not read all rows
// that wait, of which an outage leaves many.
func TestRowsThatWaitAreFoundByTheirKeys(t *testing.T) {
	t.Parallel()
	on := engine{postgres: true}
	statements := statementsOf(t, on, 2)
	db := on.open(t)
	ws := newWorkspace(t, db)
	d := newDevice(t, db, ws, postern.Connected)
	e := newEndpoint(t, db, ws, "*")
	if err := db.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
		t.Fatal(err)
	}
	receiveN(t, db, d, 2000)
	err := db.db.Do(t.Context(), storage.Func(func(t *tx) error {
		return errors.Join(t.Exec(`UPDATE delivery SET status = 'succeeded'`), t.Exec(`ANALYZE`))
	}))
	if err != nil {
		t.Fatal(err)
	}
	for stage, index := range map[string]string{
		"mark": "message_id_key", "finish": "message_id_key", "attempt": "delivery_(pkey|id_key)",
	} {
		for _, query := range statements[stage] {
			if strings.HasPrefix(query, "UPDATE message SET") || strings.HasPrefix(query, "UPDATE delivery") {
				query = regexp.MustCompile(`\$\d+`).ReplaceAllString(query, "NULL")
				if got := explained(t, db, query); !regexp.MustCompile("Index Scan using " + index).MatchString(got) {
					t.Errorf("%s\nhas the plan\n%s\nwithout %s", query, got, index)
				}
			}
		}
	}
}

// explained returns PostgreSQL's plan of a statement.
func explained(t *testing.T, db *Store, query string) string {
	t.Helper()
	var steps []string
	err := db.db.Rows(t.Context(), `EXPLAIN `+query, nil, func(r *sql.Rows) error {
		var step string
		err := r.Scan(&step)
		steps = append(steps, step)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(steps, "\n")
}
