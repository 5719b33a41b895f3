package store

import (
	"testing"
	"time"

	"postern/internal/postern"
)

func (e engine) endpoint(t *testing.T) (*Store, postern.Device, postern.Endpoint) {
	t.Helper()
	db := e.open(t)
	d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
	ep := newEndpoint(t, db, d.WorkspaceID, "*")
	if err := db.Endpoints.Activate(t.Context(), ep.ID, testNow); err != nil {
		t.Fatal(err)
	}
	return db, d, ep
}

func change(t *testing.T, db *Store, e postern.Endpoint, change func(*postern.Endpoint)) postern.Endpoint {
	t.Helper()
	got, err := db.Endpoints.Change(t.Context(), e.WorkspaceID, e.ID, nil, func(e *postern.Endpoint) error {
		change(e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (db *Store) mustEndpoint(t *testing.T, id postern.EndpointID) postern.Endpoint {
	t.Helper()
	e, err := db.Endpoints.ForDelivery(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestNewURLIsUsedOnceItHasAnswered(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, _, e := on.endpoint(t)
		move := func(url string) {
			change(t, db, e, func(e *postern.Endpoint) {
				e.PendingURL, e.DueAt, e.Attempts = postern.Maybe(url),
					testNow, 0
			})
		}
		move("https://example.com/1")
		if list, err := db.Endpoints.PendingHandshakes(t.Context()); err != nil || len(list) != 1 ||
			list[0].PendingURL != "https://example.com/1" {
			t.Errorf("pending handshakes = %+v (%v)", list, err)
		}
		fail := func(url string, attempts int, due postern.Time) {
			t.Helper()
			if err := db.Endpoints.FinishHandshake(t.Context(),
				FinishHandshake{
					EndpointID: e.ID, URL: url, Attempts: attempts, DueAt: due,
					Post: HandshakePost{Number: attempts, Reason: "status"},
				}); err != nil {
				t.Fatal(err)
			}
		}
		fail("https://example.com/1", 1, testNow.Add(1000))
		if got := db.mustEndpoint(t, e.ID); got.Status != postern.EndpointActive || got.URL != e.URL ||
			got.StatusReason != "status" || got.Attempts != 1 {
			t.Errorf("after a failed try: %+v", got)
		}
		move("https://example.com/2") // while an attempt at the previous URL is in progress
		fail("https://example.com/1", 2, 0)
		if err := db.Endpoints.Verified(t.Context(), e.ID, "https://example.com/1", HandshakePost{Ended: testNow}); err != nil {
			t.Fatal(err)
		}
		if got := db.mustEndpoint(t, e.ID); got.URL != e.URL || got.PendingURL != "https://example.com/2" ||
			got.Attempts != 0 || got.DueAt != testNow {
			t.Errorf("an answer for a URL that is wanted no more changed it to %+v", got)
		}
		for n := range 4 {
			fail("https://example.com/2", n+1, map[bool]postern.Time{true: testNow.Add(1000)}[n < 3])
		}
		if got := db.mustEndpoint(t, e.ID); got.Status != postern.EndpointActive || got.URL != e.URL ||
			got.PendingURL == "" || got.StatusReason != "status" {
			t.Errorf("after the last try: %+v, want the old URL active and the reason told", got)
		}
		if list, err := db.Endpoints.PendingHandshakes(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("after the last try there are handshakes: %+v (%v)", list, err)
		}
		move("https://example.com/3")
		if err := db.Endpoints.Verified(t.Context(), e.ID, "https://example.com/3", HandshakePost{Ended: testNow.Add(5000)}); err != nil {
			t.Fatal(err)
		}
		if got := db.mustEndpoint(t, e.ID); got.URL != "https://example.com/3" || got.PendingURL != "" ||
			got.StatusReason != "" || got.VerifiedAt != testNow.Add(5000) {
			t.Errorf("after its answer: %+v", got)
		}
	})
}

func TestEndpointThatStopsBeingActiveCatchesUpFromThere(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		receiveN(t, db, d, 2)
		change(t, db, e, func(e *postern.Endpoint) { e.Events = []string{"device.*"} })
		receiveN(t, db, d, 4) // not subscribed at the time, so never delivered
		change(t, db, e, func(e *postern.Endpoint) { e.Status = postern.EndpointPaused })
		receiveN(t, db, d, 3)
		change(t, db, e, func(e *postern.Endpoint) { e.Events = []string{"*"} })
		if n := count(t, db, `SELECT count(*) FROM delivery`); n != 2 {
			t.Errorf("%d deliveries before it is resumed, want 2", n)
		}
		change(t, db, e, func(e *postern.Endpoint) { e.Status = postern.EndpointPending })
		if err := db.Endpoints.Verified(t.Context(), e.ID, "https://other.example.com", HandshakePost{Ended: testNow}); err != nil {
			t.Fatal(err)
		}
		if got := db.mustEndpoint(t, e.ID); got.Status != postern.EndpointPending {
			t.Errorf("another URL's answer made it %s", got.Status)
		}
		if err := db.Endpoints.Verified(t.Context(), e.ID, e.URL, HandshakePost{Ended: testNow}); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, `SELECT count(*) FROM delivery WHERE position > 0`); n != 5 {
			t.Errorf("%d deliveries of events, want the 2 before and the 3 of the pause", n)
		}
	})
}

func TestForeignEndpointCannotBeChanged(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, _, e := on.endpoint(t)
		_, err := db.Endpoints.Change(t.Context(), newWorkspace(t, db), e.ID, nil, func(*postern.Endpoint) error {
			t.Error("it was shown")
			return nil
		})
		if postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("error = %v, want not-found", err)
		}
	})
}

// An endpoint that has failed for long at its old URL is not disabled because of that.
func TestFailuresAtTheOldURLDisableNothing(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		receiveN(t, db, d, 1)
		due, _ := db.Deliveries.Due(t.Context(), e.ID, testNow.Add(1e12), true, 10)
		failed := Attempt{
			DeliveryID: due[0].ID, Row: due[0].Row, EndpointID: e.ID, URL: e.URL, Number: 1, At: testNow,
			Ended: testNow, HTTPStatus: 500, Reason: "status", Status: postern.DeliveryPending, DueAt: testNow.Add(time.Second),
		}
		attempt := func(want int) {
			t.Helper()
			if err := db.Deliveries.FinishAttempt(t.Context(), failed); err != nil {
				t.Fatal(err)
			}
			if n := count(t, db, `SELECT failures FROM endpoint WHERE id = $1`, e.ID); n != want {
				t.Errorf("%d failures count, want %d", n, want)
			}
			failed.Number++
		}
		for n := 1; n < DisableFailures; n++ {
			attempt(n)
		}
		moved := testNow.Add(2 * disableAfter)
		change(t, db, e, func(e *postern.Endpoint) { e.PendingURL, e.DueAt = "https://example.com/new", testNow })
		if err := db.Endpoints.Verified(t.Context(), e.ID, "https://example.com/new", HandshakePost{Ended: moved}); err != nil {
			t.Fatal(err)
		}
		failed.At, failed.Ended = moved, moved
		attempt(DisableFailures - 1) // begun before the move
		failed.URL = "https://example.com/new"
		attempt(DisableFailures)
		if got := db.mustEndpoint(t, e.ID); got.Status != postern.EndpointActive {
			t.Errorf("the new URL was verified, and the endpoint is %s (%s)", got.Status, got.StatusReason)
		}
	})
}

func TestLate410OfTheOldURLLeavesTheNewOne(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		receiveN(t, db, d, 1)
		due, _ := db.Deliveries.Due(t.Context(), e.ID, testNow.Add(1e12), true, 10)
		change(t, db, e, func(e *postern.Endpoint) { e.PendingURL, e.DueAt = "https://example.com/new", testNow })
		if err := db.Endpoints.Verified(t.Context(), e.ID, "https://example.com/new", HandshakePost{Ended: testNow}); err != nil {
			t.Fatal(err)
		}
		o := Attempt{
			DeliveryID: due[0].ID, Row: due[0].Row, EndpointID: e.ID, URL: e.URL, Number: 1, At: testNow,
			Ended: testNow, HTTPStatus: 410, Reason: "status", Status: postern.DeliveryPending,
			DueAt: testNow.Add(5_000_000_000), Disable: "gone",
		}
		if err := db.Deliveries.FinishAttempt(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if got := db.mustEndpoint(t, e.ID); got.Status != postern.EndpointActive {
			t.Errorf("the new URL %s was verified, and is %s (%s) because of the old one", got.URL, got.Status,
				got.StatusReason)
		}
	})
}

func TestHandshakesAreInTheDeliveryLog(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, _, e := on.endpoint(t)
		other := newEndpoint(t, db, e.WorkspaceID, "*")
		failed := HandshakePost{
			EventID: postern.NewEventID(), Body: []byte("{}"), Number: 1, At: testNow, Ended: testNow.Add(7 * time.Millisecond),
			HTTPStatus: 200, Reason: "challenge", Answer: "hello",
		}
		o := FinishHandshake{EndpointID: other.ID, URL: other.URL, Attempts: 1, DueAt: testNow.Add(time.Second), Post: failed}
		if err := db.Endpoints.FinishHandshake(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		right := HandshakePost{
			EventID: postern.NewEventID(), Body: []byte("{}"), Number: 2, At: testNow.Add(time.Second),
			Ended: testNow.Add(2 * time.Second), HTTPStatus: 200,
		}
		if err := db.Endpoints.Verified(t.Context(), other.ID, other.URL, right); err != nil {
			t.Fatal(err)
		}
		p, err := db.Deliveries.List(t.Context(), e.WorkspaceID, other.ID,
			DeliveryFilter{Types: []postern.EventType{postern.WebhookVerification}}, 0, 10)
		if err != nil || len(p.List) != 2 {
			t.Fatalf("the log is %+v (%v), want two verifications", p.List, err)
		}
		last, first := p.List[0], p.List[1]
		if last.Status != postern.DeliverySucceeded || last.Attempts != 2 || last.CompletedAt != right.Ended ||
			last.EventID != right.EventID || last.LastReason != "" {
			t.Errorf("the verification that succeeded is %+v", last)
		}
		if first.Status != postern.DeliveryExhausted || first.Attempts != 1 || first.LastReason != "challenge" ||
			first.LastStatus != 200 || first.CreatedAt != testNow || first.NextAttemptAt != 0 {
			t.Errorf("the verification that failed is %+v", first)
		}
		want := postern.Attempt{Number: 1, At: testNow, DurationMs: 7, Status: 200, Reason: "challenge", Answer: "hello"}
		attempts, err := db.Deliveries.Attempts(t.Context(), e.WorkspaceID, first.ID)
		if err != nil || len(attempts) != 1 || attempts[0] != want {
			t.Errorf("its attempts are %+v (%v), want %+v", attempts, err, want)
		}
		if _, body, err := db.Deliveries.Get(t.Context(), e.WorkspaceID, first.ID); err != nil || string(body) != "{}" {
			t.Errorf("its body is %q (%v), want what was posted", body, err)
		}
		if n := count(t, db, `SELECT count(*) FROM endpoint_hour`); n != 0 {
			t.Errorf("%d hours have statistics, want none of verifications", n)
		}
		_, err = db.Deliveries.Retry(t.Context(), e.WorkspaceID, first.ID, testNow, nil)
		if postern.ReasonOf(err) != postern.NotRetriable {
			t.Errorf("a retry gives %v, want %s", err, postern.NotRetriable)
		}
		if more, err := db.Deliveries.RemoveNotices(t.Context(), e.WorkspaceID, testNow+1); err != nil || more {
			t.Fatal(more, err)
		}
		if n := count(t, db, `SELECT count(*) FROM delivery WHERE endpoint_id = $1`, other.ID); n != 1 {
			t.Errorf("%d verifications after the retention, want the one that is younger", n)
		}
	})
}

// What an ordered endpoint has missed waits in the same chats as what it would have been sent at once.
func TestMissedEventsAreInTheirChats(t *testing.T) {
	t.Parallel()
	d := postern.Device{ID: postern.NewDeviceID(), WorkspaceID: postern.NewWorkspaceID()}
	m := postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, ChatID: "+15551234567", From: "+15551234567",
		Direction: postern.Inbound, Content: postern.Text("x"),
	}
	call := m
	call.Content = postern.Content{Kind: postern.KindCall}
	group := postern.GroupEvent{Type: postern.GroupUpdated}
	group.Object.ChatID = "group:120363000000000001"
	person := postern.IdentifiedContact{}
	person.ChatID = m.ChatID
	for _, made := range []func() (postern.Event, error){
		func() (postern.Event, error) { return m.Event(postern.MessageReceived) },
		func() (postern.Event, error) { return call.Event(postern.CallReceived) },
		func() (postern.Event, error) { return group.Event(d) },
		func() (postern.Event, error) { return person.Event(d.WorkspaceID, d.ID) },
	} {
		e, err := made()
		if err != nil {
			t.Fatal(err)
		}
		if got := chatIn(e.Envelope(1, 1)); got != e.ChatID || got == "" {
			t.Errorf("%s is in the chat %q, want %q", e.Type, got, e.ChatID)
		}
	}
}
