package store

import (
	"encoding/json"
	"testing"

	"postern/internal/postern"
)

// noticesOf returns the deliveries of an endpoint that are notices.
func noticesOf(t *testing.T, db *Store, id postern.EndpointID) (list []DueDelivery) {
	t.Helper()
	due, err := db.Deliveries.Due(t.Context(), id, testNow.Add(1e15), true, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range due {
		if count(t, db, `SELECT position FROM delivery WHERE id = $1`, d.ID) < 0 {
			list = append(list, d)
		}
	}
	return list
}

func TestDisabledEndpointIsToldToThoseThatAskByName(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, dying := on.endpoint(t)
		other := newDevice(t, db, d.WorkspaceID, postern.Connected)
		hook := func(ws postern.WorkspaceID, devices []postern.DeviceID, events ...string) postern.EndpointID {
			e := newEndpoint(t, db, ws, events...)
			change(t, db, e, func(e *postern.Endpoint) { e.DeviceIDs, e.Status = devices, postern.EndpointPending })
			if err := db.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
				t.Fatal(err)
			}
			return e.ID
		}
		ws := d.WorkspaceID
		change(t, db, dying, func(e *postern.Endpoint) {
			e.DeviceIDs, e.Description = []postern.DeviceID{d.ID},
				"orders"
		})
		asks := []postern.EndpointID{
			hook(ws, nil, "webhook.disabled"),
			hook(ws, []postern.DeviceID{d.ID, other.ID}, "message.*", "webhook.disabled"),
		}
		quiet := []postern.EndpointID{
			hook(ws, nil, "*"), hook(ws, nil, "message.*"),
			hook(ws, []postern.DeviceID{other.ID}, "webhook.disabled"),
			hook(newWorkspace(t, db), nil, "webhook.disabled"), dying.ID,
		}
		receiveN(t, db, d, 1)
		due, err := db.Deliveries.Due(t.Context(), dying.ID, testNow, true, 1)
		if err != nil || len(due) != 1 {
			t.Fatal(due, err)
		}
		a := Attempt{
			DeliveryID: due[0].ID, Row: due[0].Row, EndpointID: dying.ID, Number: 1, At: testNow,
			Ended:      testNow,
			HTTPStatus: 410, Reason: "status", Status: postern.DeliveryPending, DueAt: testNow, Disable: "gone",
		}
		if err := db.Deliveries.FinishAttempt(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		seen := map[postern.EventID]bool{}
		for _, id := range asks {
			list := noticesOf(t, db, id)
			if len(list) != 1 {
				t.Fatalf("%d notices, want 1", len(list))
			}
			seen[list[0].EventID] = true
			var n struct {
				EventID, Type, Timestamp string
				DeviceID                 *string
				Webhook                  struct{ ID, Description, Status, StatusReason string }
			}
			if err := json.Unmarshal(list[0].Body, &n); err != nil {
				t.Fatal(err)
			}
			if n.EventID != string(list[0].EventID) || n.Type != "webhook.disabled" || n.DeviceID == nil ||
				*n.DeviceID != "" ||
				n.Webhook.ID != string(dying.ID) || n.Webhook.Status != "disabled" ||
				n.Webhook.StatusReason != "gone" ||
				n.Webhook.Description != "orders" {
				t.Errorf("notice = %s", list[0].Body)
			}
		}
		for i, id := range quiet {
			if list := noticesOf(t, db, id); len(list) != 0 {
				t.Errorf("endpoint %d that did not ask got %s", i, list[0].Body)
			}
		}
		if len(seen) != 1 || count(t, db, `SELECT count(*) FROM event WHERE type = 'webhook.disabled'`) != 0 {
			t.Errorf("%d eventIds, want one, and none in the log", len(seen))
		}
		if err := db.Deliveries.FinishAttempt(t.Context(),
			Attempt{
				DeliveryID: due[0].ID, Row: due[0].Row, EndpointID: dying.ID, Number: 2, At: testNow,
				Ended:      testNow,
				HTTPStatus: 410, Reason: "status", Status: postern.DeliveryPending, DueAt: testNow,
				Disable: "gone",
			}); err != nil {
			t.Fatal(err)
		}
		if list := noticesOf(t, db, asks[0]); len(list) != 1 {
			t.Errorf("one that was in flight meanwhile told it again: %d notices", len(list))
		}
	})
}
