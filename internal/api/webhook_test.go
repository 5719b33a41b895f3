package api_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
)

// active makes an endpoint whose handshake is taken as done.
func (t *tenant) active(body string) string {
	t.t.Helper()
	a := t.do("POST", "/v1/webhooks", body)
	a.want(http.StatusCreated, "")
	id := a.member("id")
	t.activate(id)
	return "/v1/webhooks/" + id
}

func (t *tenant) activate(id string) {
	t.t.Helper()
	if err := t.db.Activate(t.t.Context(), postern.EndpointID(id), postern.TimeOf(time.Now())); err != nil {
		t.t.Fatal(err)
	}
}

func (t *tenant) patch(target, body string) *answerT {
	t.t.Helper()
	a := t.do("PATCH", target, body)
	a.want(http.StatusOK, "")
	return a
}

// members compares members of an answer with what they should be, as JSON.
func (a *answerT) members(want map[string]string) {
	a.t.Helper()
	var have map[string]json.RawMessage
	if err := json.Unmarshal(a.Body.Bytes(), &have); err != nil {
		a.t.Fatalf("%s: %v in %s", a.what, err, a.Body)
	}
	for name, value := range want {
		if got := string(have[name]); got != value {
			a.t.Errorf("%s: %s is %s, want %s", a.what, name, got, value)
		}
	}
}

func TestChangeOfAnEndpoint(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	d := connected(mine)
	hook := mine.active(`{"url":"https://hooks.test/a","description":"first","events":["message.*"],"headers":{"X-A":"1"},"ordered":true}`)
	mine.patch(hook, `{}`).members(map[string]string{"url": `"https://hooks.test/a"`, "description": `"first"`, "events": `["message.*"]`, "headers": `{"X-A":"1"}`, "ordered": "true", "deviceIds": "null", "status": `"active"`})
	mine.patch(hook, `{"description":"","events":["*"],"headers":{},"ordered":false,"maxInFlight":3,"deviceIds":["`+d+`"]}`).
		members(map[string]string{"description": `""`, "events": `["*"]`, "headers": "{}", "ordered": "false", "maxInFlight": "3", "deviceIds": `["` + d + `"]`})
	mine.patch(hook, `{"deviceIds":null}`).members(map[string]string{"deviceIds": "null", "maxInFlight": "3"})
	mine.patch(hook, `{"url":"https://hooks.test/b"}`).members(map[string]string{"url": `"https://hooks.test/a"`, "pendingUrl": `"https://hooks.test/b"`, "status": `"active"`})
	mine.patch(hook, `{"url":"https://hooks.test/a"}`).members(map[string]string{"url": `"https://hooks.test/a"`, "pendingUrl": "null", "status": `"active"`})
	for body, pointer := range map[string]string{
		`{"url":"ftp://x"}`: "/url", `{"url":null}`: "/url", `{"events":[]}`: "/events", `{"events":["nothing"]}`: "/events", `{"deviceIds":[]}`: "/deviceIds", `{"maxInFlight":65}`: "/maxInFlight",
		`{"headers":{"Webhook-Id":"x"}}`: "/headers", `{"secret":"x"}`: "/secret", `{"status":"active"}`: "/status", `{"description":null}`: "/description",
	} {
		p := mine.do("PATCH", hook, body).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
			t.Errorf("%s: errors %v, want one at %s", body, p.Errors, pointer)
		}
	}
	mine.do("PATCH", hook, `{"deviceIds":["dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"]}`).want(http.StatusNotFound, postern.NotFound)
}

// A key that may not read must not have what it may not read sent elsewhere.
func TestNewURLNeedsTheScopesToRead(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	hook := mine.active(`{"url":"https://hooks.test/a"}`)
	for _, scopes := range [][]postern.Scope{{postern.WebhooksWrite}, {postern.WebhooksWrite, postern.MessagesRead}, {postern.WebhooksWrite, postern.EventsRead}} {
		k := mine.with(mine.newKey(gateway.NewKey{Scopes: scopes}))
		k.do("PATCH", hook, `{"url":"https://hooks.test/b"}`).want(http.StatusForbidden, postern.MissingScope)
		k.do("PATCH", hook, `{"description":"b"}`).want(http.StatusOK, "")
	}
	k := mine.with(mine.newKey(gateway.NewKey{Scopes: []postern.Scope{postern.WebhooksWrite, postern.MessagesRead, postern.EventsRead}}))
	k.patch(hook, `{"url":"https://hooks.test/b"}`).members(map[string]string{"pendingUrl": `"https://hooks.test/b"`})
}

func TestLimitedKeyCannotWidenAnEndpoint(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	a, b := connected(mine), connected(mine)
	hook := mine.active(`{"url":"https://hooks.test/a","deviceIds":["` + a + `"]}`)
	limited := mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{postern.DeviceID(a)}}))
	for _, ids := range []string{`["` + b + `"]`, `["` + a + `","` + b + `"]`} {
		limited.do("PATCH", hook, `{"deviceIds":`+ids+`}`).want(http.StatusForbidden, postern.ResourceNotAllowed)
	}
	limited.patch(hook, `{"deviceIds":null}`).members(map[string]string{"deviceIds": `["` + a + `"]`})
	mine.patch(hook, `{"deviceIds":null}`)
	for _, what := range []string{"", "/verify", "/pause", "/resume"} {
		method, body := "POST", ""
		if what == "" {
			method, body = "PATCH", `{"description":"x"}`
		}
		limited.do(method, hook+what, body).want(http.StatusForbidden, postern.ResourceNotAllowed)
	}
}

func TestPauseResumeAndVerify(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	hook := mine.active(`{"url":"https://hooks.test/a"}`)
	step := func(what, status, reason string) {
		t.Helper()
		a := mine.do("POST", hook+what, "")
		a.want(http.StatusOK, "")
		a.members(map[string]string{"status": `"` + status + `"`, "statusReason": reason})
	}
	step("/resume", "active", "null")
	step("/pause", "paused", `"user"`)
	step("/pause", "paused", `"user"`)
	mine.do("POST", hook+"/verify", "").want(http.StatusConflict, postern.EndpointIsPaused)
	mine.patch(hook, `{"url":"https://hooks.test/b"}`).members(map[string]string{"url": `"https://hooks.test/b"`, "pendingUrl": "null", "status": `"paused"`})
	step("/resume", "pending", "null")
	step("/pause", "paused", `"user"`)
	step("/resume", "pending", "null")
	step("/verify", "pending", "null")
	mine.activate(hook[len("/v1/webhooks/"):])
	mine.patch(hook, `{"url":"https://hooks.test/c"}`)
	step("/verify", "active", "null") // the new URL alone is asked
	mine.patch(hook, `{"url":"https://hooks.test/b"}`)
	step("/verify", "pending", "null")
}
