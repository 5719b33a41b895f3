package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
)

// attempt records an attempt of the only delivery that is due.
func (t *tenant) attempt(hook string, status int, outcome postern.DeliveryStatus) postern.DeliveryID {
	t.t.Helper()
	id := postern.EndpointID(strings.TrimPrefix(hook, "/v1/webhooks/"))
	now := postern.TimeOf(time.Now())
	due, err := t.db.Deliveries.Due(t.t.Context(), id, now.Add(time.Hour), true, 10)
	if err != nil || len(due) != 1 {
		t.t.Fatalf("%d deliveries are due (%v), want 1", len(due), err)
	}
	d := due[0]
	o := store.Attempt{
		DeliveryID: d.ID, Row: d.Row, EndpointID: id, Number: d.Attempts + 1, At: now,
		Ended: now.Add(7 * time.Millisecond), HTTPStatus: status, Answer: fmt.Sprint("answer ", status),
		Status: outcome, DueAt: now.Add(time.Minute),
	}
	if status != 200 {
		o.Reason = "status"
	}
	if err := t.db.Deliveries.FinishAttempt(t.t.Context(), o); err != nil {
		t.t.Fatal(err)
	}
	return d.ID
}

type shownDelivery struct {
	postern.Delivery
	AttemptLog []struct {
		Number, Status, DurationMs int
		Reason                     *string
		Answer, At                 string
	} `json:"attemptLog"`
	Event *struct{ EventID, Type string } `json:"event"`
}

func (t *tenant) shown(id postern.DeliveryID) (d shownDelivery) {
	t.t.Helper()
	a := t.do("GET", "/v1/deliveries/"+string(id), "")
	a.want(http.StatusOK, "")
	if err := json.Unmarshal(a.Body.Bytes(), &d); err != nil {
		t.t.Fatalf("%v in %s", err, a.Body)
	}
	return d
}

func TestDeliveryIsShownAttemptByAttemptAndRetried(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url func(testing.TB) string) {
		mine := newServerOn(t, url(t), fakeSandbox{}).tenant("enterprise")
		hook := "/v1/webhooks/" + delivery(mine)
		id := mine.attempt(hook, 503, postern.DeliveryPending)
		mine.do("POST", "/v1/deliveries/"+string(id)+"/retry", "").want(http.StatusAccepted,
			"") // it waited for a minute
		if d := mine.shown(id); d.NextAttemptAt > postern.TimeOf(time.Now()) || d.Attempts != 1 {
			t.Errorf("a pending delivery that is retried: %+v", d)
		}
		mine.attempt(hook, 500, postern.DeliveryExhausted)
		d := mine.shown(id)
		if d.Status != postern.DeliveryExhausted || len(d.AttemptLog) != 2 || d.AttemptLog[0].Number != 2 ||
			d.AttemptLog[1].Status != 503 || d.AttemptLog[0].Answer != "answer 500" ||
			*d.AttemptLog[0].Reason != "status" ||
			d.AttemptLog[0].DurationMs != 7 || d.AttemptLog[0].At == "" || d.Event == nil ||
			d.Event.EventID != string(d.EventID) {
			t.Errorf("delivery = %+v", d)
		}
		first := mine.do("POST", "/v1/deliveries/"+string(id)+"/retry", "", "Idempotency-Key", "again")
		first.want(http.StatusAccepted, "")
		first.members(map[string]string{"status": `"pending"`, "attempts": "2", "completedAt": "null"})
		due, err := mine.db.Deliveries.Due(t.Context(), d.EndpointID, postern.TimeOf(time.Now()), true, 10)
		if err != nil || len(due) != 1 || due[0].Attempts != 2 || due[0].Earlier != 2 || due[0].FirstAttemptAt != 0 ||
			due[0].EventID != d.EventID {
			t.Errorf("due = %+v (%v), want a new round", due, err)
		}
		mine.attempt(hook, 200, postern.DeliverySucceeded)
		if again := mine.do("POST", "/v1/deliveries/"+string(id)+"/retry", "", "Idempotency-Key",
			"again"); again.Body.String() != first.Body.String() {
			t.Errorf("the same key again: %s", again.Body)
		}
		d = mine.shown(id)
		if d.Status != postern.DeliverySucceeded || len(d.AttemptLog) != 3 || d.AttemptLog[0].Number != 3 ||
			d.AttemptLog[0].Reason != nil {
			t.Errorf("delivery = %+v", d)
		}
		mine.do("POST", "/v1/deliveries/"+string(id)+"/retry", "").want(http.StatusAccepted, "") // also after success
		mine.do("POST", hook+"/pause", "").want(http.StatusOK, "")
		mine.do("POST", "/v1/deliveries/"+string(id)+"/retry", "").want(http.StatusConflict, postern.EndpointNotActive)
	})
}

func TestBodyOfADeliveryNeedsTheScopesToRead(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	id := postern.DeliveryID(oneDelivery(mine))
	for _, tt := range []struct {
		scopes []postern.Scope
		shown  bool
	}{
		{[]postern.Scope{postern.WebhooksRead}, false},
		{[]postern.Scope{postern.WebhooksRead, postern.EventsRead}, false},
		{[]postern.Scope{postern.WebhooksRead, postern.MessagesRead}, false},
		{[]postern.Scope{postern.WebhooksRead, postern.MessagesRead, postern.EventsRead}, true},
	} {
		d := mine.with(mine.newKey(gateway.NewKey{Scopes: tt.scopes})).shown(id)
		if (d.Event != nil) != tt.shown || d.AttemptLog == nil {
			t.Errorf("with %v: %+v", tt.scopes, d)
		}
	}
}

// An endpoint may have had more devices when a delivery was made than it has
// now.
func TestLimitedKeySeesNoDeliveryOfAnotherDevice(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	hook := "/v1/webhooks/" + delivery(mine)
	id := mine.do("GET", hook+"/deliveries", "").list().Data[0].ID
	other := connected(mine)
	mine.patch(hook, `{"deviceIds":["`+other+`"]}`)
	limited := mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{postern.DeviceID(other)}}))
	if l := limited.do("GET", hook+"/deliveries", "").list(); len(l.Data) != 0 {
		t.Errorf("it is in the list: %v", l.Data)
	}
	limited.do("GET", "/v1/deliveries/"+id, "").want(http.StatusForbidden, postern.ResourceNotAllowed)
	limited.do("POST", "/v1/deliveries/"+id+"/retry", "").want(http.StatusForbidden, postern.ResourceNotAllowed)
	if l := mine.do("GET", hook+"/deliveries", "").list(); len(l.Data) != 1 {
		t.Errorf("a key for all devices sees %d", len(l.Data))
	}
}

func TestFiltersOfDeliveries(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url func(testing.TB) string) {
		mine := newServerOn(t, url(t), fakeSandbox{}).tenant("enterprise")
		hook := "/v1/webhooks/" + delivery(mine)
		for query, want := range map[string]int{
			"": 1, "status=pending": 1, "status=exhausted": 0, "type=message.received": 1, "type=device.linked,message.*": 1, "type=device.*": 0, "type=*": 1, "type=webhook.*": 0,
			"since=2020-01-01T00:00:00Z": 1, "since=2099-01-01T00:00:00Z": 0, "until=2020-01-01T00:00:00Z": 0, "until=2099-01-01T00:00:00Z&status=pending": 1,
		} {
			if l := mine.do("GET", hook+"/deliveries?"+query, "").list(); len(l.Data) != want {
				t.Errorf("%s: %d deliveries, want %d", query, len(l.Data), want)
			}
		}
		for _, bad := range []string{"status=x", "type=x", "since=x", "until=x"} {
			mine.do("GET", hook+"/deliveries?"+bad, "").want(http.StatusUnprocessableEntity, postern.ValidationFailed)
		}
		if l := mine.do("GET", "/v1/events?type=webhook.*", "").list(); len(l.Data) != 0 {
			t.Errorf("a family that is never logged gives %d events", len(l.Data))
		}
	})
}

func TestTestEvent(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url func(testing.TB) string) {
		mine := newServerOn(t, url(t), fakeSandbox{}).tenant("enterprise")
		hook := mine.active(`{"url":"https://hooks.test/a","events":["device.linked"]}`)
		a := mine.do("POST", hook+"/test", "", "Idempotency-Key", "k")
		a.want(http.StatusAccepted, "")
		a.members(map[string]string{"type": `"webhook.test"`, "deviceId": `""`, "status": `"pending"`, "attempts": "0"})
		if again := mine.do("POST", hook+"/test", "", "Idempotency-Key", "k"); again.Body.String() != a.Body.String() {
			t.Errorf("the same key again: %s", again.Body)
		}
		mine.do("POST", hook+"/test", "").want(http.StatusAccepted, "")
		for query, want := range map[string]int{
			"": 2, "?type=webhook.test": 2, "?type=webhook.*": 2,
			"?type=message.*": 0, "?type=*": 2, "?type=webhook.disabled": 0,
		} {
			if l := mine.do("GET", hook+"/deliveries"+query, "").list(); len(l.Data) != want {
				t.Errorf("%s: %d deliveries, want %d", query, len(l.Data), want)
			}
		}
		if l := mine.do("GET", "/v1/events", "").list(); len(l.Data) != 0 {
			t.Errorf("%d events are in the log, want none", len(l.Data))
		}
		if d := mine.shown(postern.DeliveryID(a.member("id"))); d.Event == nil || d.Event.Type != "webhook.test" ||
			d.Event.EventID != a.member("eventId") {
			t.Errorf("the delivery is %+v", d)
		}
		limited := mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{postern.DeviceID(connected(mine))}}))
		limited.do("POST", hook+"/test", "").want(http.StatusForbidden, postern.ResourceNotAllowed)
		mine.do("POST", hook+"/pause", "").want(http.StatusOK, "")
		mine.do("POST", hook+"/test", "").want(http.StatusConflict, postern.EndpointNotActive)
	})
}

func TestVerificationIsADeliveryThatIsNotRetried(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url func(testing.TB) string) {
		mine := newServerOn(t, url(t), fakeSandbox{}).tenant("enterprise")
		made := mine.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/a","events":["*"]}`)
		made.want(http.StatusCreated, "")
		id := postern.EndpointID(made.member("id"))
		at := postern.TimeOf(time.Now())
		event := postern.NewEventID()
		o := store.FinishHandshake{EndpointID: id, URL: "https://hooks.test/a", Attempts: 1, Post: store.HandshakePost{
			EventID: event, Body: []byte(`{"eventId":"` + event + `","type":"webhook.verification"}`), Number: 1,
			At: at, Ended: at + 42, HTTPStatus: 200, Reason: "challenge", Answer: "welcome",
		}}
		if err := mine.db.Endpoints.FinishHandshake(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		hook := "/v1/webhooks/" + string(id)
		for query, want := range map[string]int{
			"": 1, "?type=webhook.verification": 1, "?type=webhook.*": 1, "?type=webhook.test": 0, "?type=message.*": 0,
			"?status=exhausted": 1, "?status=pending": 0,
		} {
			if l := mine.do("GET", hook+"/deliveries"+query, "").list(); len(l.Data) != want {
				t.Errorf("%s: %d deliveries, want %d", query, len(l.Data), want)
			}
		}
		d := mine.shown(postern.DeliveryID(mine.do("GET", hook+"/deliveries", "").list().Data[0].ID))
		if d.Type != postern.WebhookVerification || d.LastReason != "challenge" || d.Event == nil ||
			d.Event.EventID != string(event) || len(d.AttemptLog) != 1 {
			t.Fatalf("the delivery is %+v", d)
		}
		if a := d.AttemptLog[0]; a.Number != 1 || a.Status != 200 || a.DurationMs != 42 || a.Answer != "welcome" ||
			*a.Reason != "challenge" {
			t.Errorf("its attempt is %+v", a)
		}
		retry := mine.do("POST", "/v1/deliveries/"+string(d.ID)+"/retry", "")
		if p := retry.want(http.StatusConflict, postern.NotRetriable); !strings.Contains(p.Detail, "verify the endpoint") {
			t.Errorf("the refusal says %q", p.Detail)
		}
	})
}

func TestReplay(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url func(testing.TB) string) {
		mine := newServerOn(t, url(t), fakeSandbox{}).tenant("enterprise")
		hook := "/v1/webhooks/" + delivery(mine)
		a := mine.do("POST", hook+"/replay",
			`{"since":"2026-01-01T00:00:00Z","until":"2099-01-01T00:00:00+01:00","types":["message.*"],"onlyFailed":true}`, "Idempotency-Key", "k")
		a.want(http.StatusAccepted, "")
		a.members(map[string]string{
			"status": `"running"`, "since": `"2026-01-01T00:00:00.000Z"`, "until": `"2098-12-31T23:00:00.000Z"`, "types": `["message.*"]`, "onlyFailed": "true",
			"matched": "0", "delivered": "0", "failed": "0", "endedAt": "null",
		})
		target := "/v1/replays/" + a.member("id")
		if !strings.HasPrefix(target, "/v1/replays/rpl_") {
			t.Errorf("the id is %s", a.member("id"))
		}
		if again := mine.do("POST", hook+"/replay",
			`{"since":"2026-01-01T00:00:00Z","until":"2099-01-01T00:00:00+01:00","types":["message.*"],"onlyFailed":true}`, "Idempotency-Key", "k"); again.Body.String() != a.Body.String() {
			t.Errorf("the same key again: %s", again.Body)
		}
		if ids, err := mine.db.Replays.Running(t.Context(), ""); err != nil || len(ids) != 1 {
			t.Errorf("%d replays run (%v), want 1", len(ids), err)
		}
		mine.do("DELETE", target, "").want(http.StatusNoContent, "")
		mine.do("GET", target, "").members(map[string]string{"status": `"stopped"`})
		mine.do("DELETE", target, "").want(http.StatusNoContent, "")
		mine.do("POST", hook+"/replay", "").members(map[string]string{
			"since": "null", "until": "null", "types": "null",
			"onlyFailed": "false",
		})
		for body, pointer := range map[string]string{
			`{"since":"x"}`: "/since", `{"until":"yesterday"}`: "/until", `{"types":[]}`: "/types",
			`{"types":["x"]}`: "/types/0",
			`{"since":"2026-01-02T00:00:00Z","until":"2026-01-02T00:00:00Z"}`: "/until",
			`{"status":"stopped"}`: "/status",
		} {
			p := mine.do("POST", hook+"/replay", body).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
			if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
				t.Errorf("%s: errors %v, want one at %s", body, p.Errors, pointer)
			}
		}
		limited := mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{postern.DeviceID(connected(mine))}}))
		limited.do("POST", hook+"/replay", "").want(http.StatusForbidden, postern.ResourceNotAllowed)
		limited.do("GET", target, "").want(http.StatusForbidden, postern.ResourceNotAllowed)
		limited.do("DELETE", target, "").want(http.StatusForbidden, postern.ResourceNotAllowed)
		mine.do("POST", hook+"/pause", "").want(http.StatusOK, "")
		mine.do("POST", hook+"/replay", "").want(http.StatusConflict, postern.EndpointNotActive)
	})
}
