package store

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
)

func newEndpoint(t *testing.T, db *Store, ws postern.WorkspaceID, events ...string) postern.Endpoint {
	t.Helper()
	e := postern.Endpoint{
		ID: postern.NewEndpointID(), WorkspaceID: ws, URL: "https://example.com", Events: events,
		Status: postern.EndpointPending, Secret: []byte{1}, CreatedAt: testNow,
		MaxInFlight: 8,
		DueAt:       testNow,
	}
	if err := db.Endpoints.Create(t.Context(), e, 20, nil); err != nil {
		t.Fatal(err)
	}
	return e
}

// Events that are recorded together reach each endpoint that wants them, and no other, whatever families they are of.
func TestEventsReachThoseWhoWantThem(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		for _, types := range [][]postern.EventType{
			{postern.MessageReceived},
			{postern.DeviceConnected},
			{postern.MessageReceived, postern.MessageSent},
			{postern.MessageReceived, postern.DeviceConnected, postern.MessageSent},
		} {
			db := on.open(t)
			d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
			var hooks []postern.Endpoint
			for _, patterns := range [][]string{
				{"*"}, {"message.*"}, {"message.received"}, {"device.*"}, {"device.connected", "message.sent"}, {"webhook.disabled"},
			} {
				hooks = append(hooks, newEndpoint(t, db, d.WorkspaceID, patterns...))
				if err := db.Endpoints.Activate(t.Context(), hooks[len(hooks)-1].ID, testNow); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.db.Do(t.Context(), opFunc(func(tx *tx) error { return recordEvents(tx, eventsOf(d, types)) })); err != nil {
				t.Fatal(err)
			}
			for _, e := range hooks {
				want := len(slices.DeleteFunc(slices.Clone(types), func(kind postern.EventType) bool { return !e.Wants(kind, d.ID) }))
				if n := count(t, db, `SELECT count(*) FROM delivery WHERE endpoint_id = $1 AND position > 0`, e.ID); n != want {
					t.Errorf("of %v, %d reach the endpoint for %v, want %d", types, n, e.Events, want)
				}
			}
		}
	})
}

func eventsOf(d postern.Device, types []postern.EventType) (list []eventAt) {
	for _, kind := range types {
		list = append(list, eventAt{postern.Event{
			ID: postern.NewEventID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Type: kind, Subject: "message",
			Object: []byte(`{}`),
		}, testNow})
	}
	return list
}

func receiveN(t *testing.T, db *Store, d postern.Device, n int) {
	t.Helper()
	list := make([]RecordInbound, n)
	for i := range list {
		list[i] = inboundOf(d, postern.NewNetworkID(), "lid:1", "hi")
	}
	writeAll(t, db, list...)
}

func TestEndpointCatchesUpInOrderAndMissesNothing(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		receiveN(t, db, d, 3) // before its creation, so not delivered to it
		e := newEndpoint(t, db, d.WorkspaceID, "message.*")
		other := newEndpoint(t, db, d.WorkspaceID, "device.*")
		receiveN(t, db, d, catchUpChunk+7)
		if n := count(t, db, `SELECT count(*) FROM delivery`); n != 0 {
			t.Fatalf("%d deliveries for endpoints that are not active", n)
		}
		for _, id := range []postern.EndpointID{e.ID, other.ID} {
			if err := db.Endpoints.Activate(t.Context(), id, testNow); err != nil {
				t.Fatal(err)
			}
		}
		receiveN(t, db, d, 2)
		due, err := db.Deliveries.Due(t.Context(), e.ID, testNow, true, 10_000)
		if err != nil || len(due) != catchUpChunk+9 {
			t.Fatalf("%d deliveries (%v), want %d", len(due), err, catchUpChunk+9)
		}
		for i, want := 0, count(t, db, `SELECT min(position) FROM delivery`); i < len(due); i++ {
			if got := count(t, db, `SELECT position FROM delivery WHERE id = $1`, due[i].ID); got != want+i {
				t.Fatalf("delivery %d is event %d, want %d", i, got, want+i)
			}
		}
		if n := count(t, db, `SELECT count(*) FROM delivery WHERE endpoint_id = $1`, other.ID); n != 0 {
			t.Errorf("an endpoint for devices got %d messages", n)
		}
	})
}

func TestAttemptsMoveADeliveryAndDisableADeadEndpoint(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		e := newEndpoint(t, db, d.WorkspaceID, "*")
		if err := db.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
			t.Fatal(err)
		}
		receiveN(t, db, d, 1)
		due, err := db.Deliveries.Due(t.Context(), e.ID, testNow, true, 10)
		if err != nil || len(due) != 1 {
			t.Fatal(due, err)
		}
		at := testNow
		for n := 1; n <= 12; n++ {
			err := db.Deliveries.FinishAttempt(t.Context(), Attempt{
				DeliveryID: due[0].ID, Row: due[0].Row, EndpointID: e.ID, Number: n, At: at, Ended: at.Add(time.Second),
				HTTPStatus: 500, Reason: "status", Status: postern.DeliveryPending, DueAt: at.Add(12 * time.Hour),
			})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := db.Endpoints.ForDelivery(t.Context(),
				e.ID); (got.Status == postern.EndpointDisabled) != (n >= 12) {
				t.Fatalf("after attempt %d, %s in: %s", n, time.Duration(at-testNow)*time.Millisecond, got.Status)
			}
			at = at.Add(11 * time.Hour)
		}
		if n := count(t, db, `SELECT count(*) FROM attempt_log`); n != 12 {
			t.Errorf("%d attempts are in the log, want 12", n)
		}
		if next, ok, err := db.Deliveries.NextDue(t.Context(), e.ID, testNow); !ok || next <= testNow || err != nil {
			t.Errorf("NextDue = %v, %v, %v", next, ok, err)
		}
	})
}

func TestDeletedEndpointTakesItsLogAlong(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		e := newEndpoint(t, db, d.WorkspaceID, "*")
		if err := db.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
			t.Fatal(err)
		}
		receiveN(t, db, d, 2)
		if err := db.Endpoints.Delete(t.Context(), d.WorkspaceID, e.ID); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, `SELECT (SELECT count(*) FROM delivery) + (SELECT count(*) FROM endpoint)`); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// A page continues from the previous one even when the last delivery shown was removed, and
// one page with a filter that nothing matches does not read the whole log.
func TestDeliveriesAreListedPageByPage(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		receiveN(t, db, d, 5)
		first, err := db.Deliveries.List(t.Context(), e.WorkspaceID, e.ID, DeliveryFilter{}, 0, 2)
		if err != nil || len(first.List) != 2 || !first.More {
			t.Fatalf("%+v (%v)", first, err)
		}
		err = db.db.Do(t.Context(), opFunc(func(tx *tx) error {
			return tx.Exec(`DELETE FROM delivery
			WHERE id = $1`, first.List[1].ID)
		}))
		if err != nil {
			t.Fatal(err)
		}
		rest, err := db.Deliveries.List(t.Context(), e.WorkspaceID, e.ID, DeliveryFilter{}, first.Last, 10)
		if err != nil || len(rest.List) != 3 || rest.More {
			t.Errorf("%+v (%v), want the three before it", rest, err)
		}
		err = db.db.Do(t.Context(), opFunc(func(tx *tx) error {
			return tx.Exec(`INSERT INTO delivery (id, workspace_id, endpoint_id, event_id, position, device_id, type, status,
				attempts, due_at, created_at, first_attempt_at, last_attempt_at, last_status, last_reason, completed_at)
				WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c
				WHERE i <= $1) SELECT 'dlv_r' || i, $2, $3, 'evt_r', 1000 + i, '', 'message.received', 'succeeded', 1, 0, $4, 0, 0,
				0, '', 0 FROM c`, logScan, e.WorkspaceID, e.ID, testNow)
		}))
		if err != nil {
			t.Fatal(err)
		}
		got, err := db.Deliveries.List(t.Context(), e.WorkspaceID, e.ID, DeliveryFilter{Status: "pending"}, 0, 10)
		if err != nil || len(got.List) != 0 || !got.More {
			t.Errorf("%d, more %v (%v), want none of a bounded part, and more behind it", len(got.List), got.More, err)
		}
		got, err = db.Deliveries.List(t.Context(), e.WorkspaceID, e.ID, DeliveryFilter{Status: "pending"}, got.Last, 10)
		if err != nil || len(got.List) != 4 || got.More {
			t.Errorf("%d, more %v (%v), want four and no more", len(got.List), got.More, err)
		}
	})
}

// A page of deliveries contains small bodies only; a large one is read on its own.
func TestLargeBodiesAreReadAlone(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		e := newEndpoint(t, db, d.WorkspaceID, "*")
		if err := db.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"small", strings.Repeat("大", 65_536)} {
			in := inboundOf(d, postern.NewNetworkID(), "lid:1", text)
			if err := db.Messages.RecordInbound(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		due, err := db.Deliveries.Due(t.Context(), e.ID, testNow, true, 10)
		if err != nil || len(due) != 2 {
			t.Fatal(len(due), err)
		}
		firsts, err := db.Deliveries.First(t.Context(), e.ID, Place{}, testNow, 10)
		if err != nil || len(firsts) != 2 || !bytes.Equal(firsts[0].Body, due[0].Body) || firsts[1].Body != nil {
			t.Errorf("firsts %d, error %v", len(firsts), err)
		}
		if len(due[0].Body) != due[0].Size || due[0].Size == 0 || due[1].Body != nil || due[1].Size < 3*65_536 {
			t.Errorf("sizes %d and %d, read %d and %d", due[0].Size, due[1].Size, len(due[0].Body), len(due[1].Body))
		}
		body, err := db.Deliveries.Body(t.Context(), due[1])
		if err != nil || len(body) != due[1].Size || !bytes.Contains(body, []byte("大大")) {
			t.Errorf("a body of %d bytes, want %d; error %v", len(body), due[1].Size, err)
		}
		err = db.Deliveries.FinishAttempt(t.Context(), Attempt{
			DeliveryID: due[1].ID, Row: due[1].Row, EndpointID: e.ID,
			Number: 1, At: testNow, Ended: testNow, HTTPStatus: 200, Status: postern.DeliverySucceeded,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Deliveries.Body(t.Context(), due[1]); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("the body of an ended delivery: %v", err)
		}
	})
}

// A pending delivery of an endpoint that is not active has no time of a next attempt, which
// would be in the past.
func TestDeliveriesOfADisabledEndpointWait(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		e := newEndpoint(t, db, d.WorkspaceID, "*")
		if err := db.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
			t.Fatal(err)
		}
		receiveN(t, db, d, 2)
		next := func() (times []postern.Time) {
			t.Helper()
			page, err := db.Deliveries.List(t.Context(), d.WorkspaceID, e.ID, DeliveryFilter{Status: "pending"}, 0, 10)
			if err != nil || len(page.List) != 2 {
				t.Fatal(page.List, err)
			}
			one, _, err := db.Deliveries.Get(t.Context(), d.WorkspaceID, page.List[1].ID)
			if err != nil || one != page.List[1] {
				t.Errorf("Get returns %+v (%v), List %+v", one, err, page.List[1])
			}
			return []postern.Time{page.List[0].NextAttemptAt, page.List[1].NextAttemptAt}
		}
		if got := next(); got[0] == 0 || got[1] == 0 {
			t.Errorf("next attempts of an active endpoint: %v", got)
		}
		due, err := db.Deliveries.Due(t.Context(), e.ID, testNow, true, 1)
		if err != nil || len(due) != 1 {
			t.Fatal(due, err)
		}
		err = db.Deliveries.FinishAttempt(t.Context(), Attempt{
			DeliveryID: due[0].ID, Row: due[0].Row, EndpointID: e.ID, Number: 1, At: testNow, Ended: testNow,
			HTTPStatus: 410, Reason: "status", Status: postern.DeliveryPending, DueAt: testNow.Add(5000), Disable: "gone",
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := next(); got[0] != 0 || got[1] != 0 {
			t.Errorf("next attempts of a disabled endpoint: %v, want none", got)
		}
	})
}

func TestDeliveriesThatWaitAreHastenedOldestFirst(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		e, other := newEndpoint(t, db, d.WorkspaceID, "message.*"), newEndpoint(t, db, d.WorkspaceID, "message.*")
		for _, id := range []postern.EndpointID{e.ID, other.ID} {
			if err := db.Endpoints.Activate(t.Context(), id, testNow); err != nil {
				t.Fatal(err)
			}
		}
		receiveN(t, db, d, 4)
		later := testNow.Add(time.Hour)
		fail := func(id postern.EndpointID, now postern.Time, most int) (list []DueDelivery) {
			list, err := db.Deliveries.Due(t.Context(), id, now, true, most)
			for i, one := range list {
				err = errors.Join(err, db.Deliveries.FinishAttempt(t.Context(), Attempt{
					DeliveryID: one.ID, Row: one.Row, EndpointID: id, Number: one.Attempts + 1, At: now, Ended: now,
					Reason: "status", HTTPStatus: 500, Status: postern.DeliveryPending, DueAt: later.Add(-time.Duration(i) * time.Minute),
				}))
			}
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		hasten := func(now postern.Time, limit, want int) {
			t.Helper()
			if n, _, err := db.Deliveries.Hasten(t.Context(), e.ID, now, now, 0, limit); n != want || err != nil {
				t.Errorf("%d are hastened, want %d: %v", n, want, err)
			}
		}
		failed := fail(e.ID, testNow, 3) // the fourth waits for its first attempt
		fail(other.ID, testNow, 4)
		hasten(testNow.Add(time.Second), 2, 2)
		due, err := db.Deliveries.Due(t.Context(), e.ID, testNow.Add(time.Second), false, 10)
		if err != nil || len(due) != 2 || due[0].ID != failed[0].ID || due[1].ID != failed[1].ID ||
			due[0].Earlier != 1 {
			t.Errorf("due are %+v: %v", due, err)
		}
		hasten(testNow.Add(time.Second), 10, 1)
		hasten(testNow.Add(time.Second), 10, 0) // they are due
		fail(e.ID, testNow.Add(2*time.Second), 10)
		hasten(testNow.Add(3*time.Second), 10, 1) // half of the others' attempts were hastened
		if n := count(t, db, `SELECT count(*) FROM delivery WHERE endpoint_id = $1 AND due_at < $2`, other.ID,
			later.Add(-time.Hour/2)); n != 0 {
			t.Errorf("%d of another endpoint are due", n)
		}
	})
}
