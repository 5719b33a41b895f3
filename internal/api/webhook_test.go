package api_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
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
	if err := t.db.Endpoints.Activate(t.t.Context(), postern.EndpointID(id), postern.TimeOf(time.Now())); err != nil {
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
	mine.patch(hook, `{}`).members(map[string]string{
		"url": `"https://hooks.test/a"`, "description": `"first"`,
		"events": `["message.*"]`, "headers": `["X-A"]`, "ordered": "true", "deviceIds": "null",
		"status": `"active"`,
	})
	mine.patch(hook, `{"description":"","events":["*"],"headers":null,"ordered":false,"maxInFlight":3,"deviceIds":["`+d+`"]}`).
		members(map[string]string{
			"description": `""`, "events": `["*"]`, "headers": "[]", "ordered": "false",
			"maxInFlight": "3", "deviceIds": `["` + d + `"]`,
		})
	mine.patch(hook, `{"deviceIds":null}`).members(map[string]string{"deviceIds": "null", "maxInFlight": "3"})
	mine.patch(hook, `{"url":"https://hooks.test/b"}`).members(map[string]string{
		"url":        `"https://hooks.test/a"`,
		"pendingUrl": `"https://hooks.test/b"`, "status": `"active"`,
	})
	mine.patch(hook, `{"url":"https://hooks.test/a"}`).members(map[string]string{
		"url":        `"https://hooks.test/a"`,
		"pendingUrl": "null", "status": `"active"`,
	})
	for body, pointer := range map[string]string{
		`{"url":"ftp://x"}`: "/url", `{"url":null}`: "/url", `{"events":[]}`: "/events",
		`{"events":["nothing"]}`: "/events/0", `{"deviceIds":[]}`: "/deviceIds",
		`{"maxInFlight":65}`:             "/maxInFlight",
		`{"headers":{"Webhook-Id":"x"}}`: "/headers/Webhook-Id", `{"secret":"x"}`: "/secret", `{"status":"active"}`: "/status",
		`{"description":null}`: "/description",
	} {
		p := mine.do("PATCH", hook, body).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
			t.Errorf("%s: errors %v, want one at %s", body, p.Errors, pointer)
		}
	}
	mine.do("PATCH", hook, `{"deviceIds":["dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"]}`).want(http.StatusNotFound,
		postern.NotFound)
}

// Only the names of an endpoint's own headers are ever shown; a change keeps those that it
// does not name.
func TestHeadersOfAnEndpointAreNamedOnly(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	box, err := seal.NewBox(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	const made = `{"url":"https://hooks.test/a","headers":{"x-tenant":"canary-1","Authorization":"Bearer canary-2"}}`
	a := mine.do("POST", "/v1/webhooks", made)
	a.want(http.StatusCreated, "")
	a.members(map[string]string{"headers": `["Authorization","X-Tenant"]`})
	id := postern.EndpointID(a.member("id"))
	hook := "/v1/webhooks/" + string(id)
	headers := func(change, names, values string) {
		t.Helper()
		a := mine.patch(hook, change)
		a.members(map[string]string{"headers": names})
		e, err := mine.db.Endpoints.ForDelivery(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		if len(e.HeaderValues) > 0 {
			got, err = box.Open(e.HeaderValues, e.ID.HeadersPlace())
		}
		if err != nil || string(got) != values {
			t.Errorf("after %s: %s (%v), want %s", change, got, err, values)
		}
		for _, text := range []string{
			a.Body.String(), mine.do("GET", hook, "").Body.String(),
			mine.do("GET", "/v1/webhooks", "").Body.String(),
		} {
			if strings.Contains(text, "canary") {
				t.Errorf("after %s: a value is shown in %s", change, text)
			}
		}
	}
	const both = `{"Authorization":"Bearer canary-2","X-Tenant":"canary-1"}`
	headers(`{}`, `["Authorization","X-Tenant"]`, both)
	headers(`{"headers":{}}`, `["Authorization","X-Tenant"]`, both)
	headers(`{"headers":{"X-TENANT":"canary-3"}}`, `["Authorization","X-Tenant"]`,
		`{"Authorization":"Bearer canary-2","X-Tenant":"canary-3"}`)
	headers(`{"headers":{"authorization":null,"X-B":"b"}}`, `["X-B","X-Tenant"]`, `{"X-B":"b","X-Tenant":"canary-3"}`)
	headers(`{"url":"https://hooks.test/b"}`, `["X-B","X-Tenant"]`, `{"X-B":"b","X-Tenant":"canary-3"}`)
	for _, change := range []string{
		`{"url":"https://thief.test/"}`, `{"url":"http://hooks.test/"}`,
		`{"url":"https://hooks.test:444/"}`, `{"url":"https://thief.test/","headers":{"X-B":"c"}}`,
	} {
		p := mine.do("PATCH", hook, change).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != "/headers" && p.Errors[0].Pointer != "/url" {
			t.Errorf("%s: errors %v", change, p.Errors)
		}
	}
	headers(`{"url":"https://other.test/","headers":{"X-B":"c","X-Tenant":null}}`, `["X-B"]`, `{"X-B":"c"}`)
	headers(`{"headers":null}`, `[]`, ``)
	var many []string
	for i := range 11 {
		many = append(many, fmt.Sprintf(`"X-%d":"v"`, i))
	}
	mine.patch(hook, `{"headers":{`+strings.Join(many[:6], ",")+`}}`)
	mine.do("PATCH", hook, `{"headers":{`+strings.Join(many[6:], ",")+`}}`).
		want(http.StatusUnprocessableEntity, postern.ValidationFailed)
	mine.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/b","headers":{`+strings.Join(many, ",")+`}}`).
		want(http.StatusUnprocessableEntity, postern.ValidationFailed)
	var swap []string // six are removed, and five others are set
	for i := range 6 {
		swap = append(swap, fmt.Sprintf(`"X-%d":null`, i))
	}
	mine.patch(hook, `{"headers":{`+strings.Join(append(swap, many[6:]...), ",")+`}}`).
		members(map[string]string{"headers": `["X-10","X-6","X-7","X-8","X-9"]`})
}

// A key that may not read must not have what it may not read sent elsewhere.
func TestNewURLNeedsTheScopesToRead(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	hook := mine.active(`{"url":"https://hooks.test/a"}`)
	for _, scopes := range [][]postern.Scope{
		{postern.WebhooksWrite},
		{postern.WebhooksWrite, postern.MessagesRead},
		{postern.WebhooksWrite, postern.EventsRead},
	} {
		k := mine.with(mine.newKey(gateway.NewKey{Scopes: scopes}))
		k.do("PATCH", hook, `{"url":"https://hooks.test/b"}`).want(http.StatusForbidden, postern.MissingScope)
		k.do("PATCH", hook, `{"description":"b"}`).want(http.StatusOK, "")
	}
	k := mine.with(mine.newKey(gateway.NewKey{Scopes: []postern.Scope{
		postern.WebhooksWrite, postern.MessagesRead,
		postern.EventsRead,
	}}))
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
	mine.patch(hook, `{"url":"https://hooks.test/b"}`).members(map[string]string{
		"url":        `"https://hooks.test/b"`,
		"pendingUrl": "null", "status": `"paused"`,
	})
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

// stored is an endpoint as the dispatcher reads it.
func (t *tenant) stored(target string) postern.Endpoint {
	t.t.Helper()
	e, err := t.db.Endpoints.ForDelivery(t.t.Context(), postern.EndpointID(strings.TrimPrefix(target, "/v1/webhooks/")))
	if err != nil {
		t.t.Fatal(err)
	}
	return e
}

func TestRotationOfASecret(t *testing.T) {
	onEachEngine(t, func(t *testing.T, url func(testing.TB) string) {
		mine := newServerOn(t, url(t), fakeSandbox{}).tenant("enterprise")
		hook := mine.active(`{"url":"https://hooks.test/a"}`)
		before := mine.stored(hook)
		a := mine.do("POST", hook+"/rotate-secret", "", "Idempotency-Key", "k")
		a.want(http.StatusOK, "")
		secret := a.member("secret")
		if !strings.HasPrefix(secret, "whsec_") || a.member("secretLastFour") != secret[len(secret)-4:] {
			t.Errorf("the answer is %s", a.Body)
		}
		again := mine.do("POST", hook+"/rotate-secret", "", "Idempotency-Key", "k")
		again.want(http.StatusOK, "")
		if again.member("secret") != secret || again.Header().Get("Idempotent-Replayed") != "true" {
			t.Errorf("the same key again: %s", again.Body)
		}
		now := postern.TimeOf(time.Now())
		e := mine.stored(hook)
		if len(e.OldSecrets) != 1 || !bytes.Equal(e.OldSecrets[0].Secret, before.Secret) ||
			e.OldSecrets[0].Until > now.Add(24*time.Hour) ||
			e.OldSecrets[0].Until < now.Add(24*time.Hour-time.Minute) {
			t.Errorf("old secrets = %+v, want the first one for a day", e.OldSecrets)
		}
		if got := mine.do("GET", hook, ""); got.member("secretLastFour") != secret[len(secret)-4:] ||
			strings.Contains(got.Body.String(),
				secret) {
			t.Errorf("the endpoint is %s", got.Body)
		}
		const own = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
		a = mine.do("POST", hook+"/rotate-secret", `{"secret":"`+own+`","overlapSeconds":60}`)
		a.want(http.StatusOK, "")
		if a.member("secret") != own {
			t.Errorf("the answer is %s", a.Body)
		}
		if e = mine.stored(hook); len(e.OldSecrets) != 2 || e.OldSecrets[1].Until > now.Add(2*time.Minute) {
			t.Errorf("old secrets = %+v, want two for a minute", e.OldSecrets)
		}
		mine.do("POST", hook+"/rotate-secret", `{"overlapSeconds":0}`).want(http.StatusOK, "")
		if e = mine.stored(hook); len(e.OldSecrets) != 0 {
			t.Errorf("old secrets = %+v, want none", e.OldSecrets)
		}
		for range 15 {
			mine.do("POST", hook+"/rotate-secret", "").want(http.StatusOK, "")
		}
		if e = mine.stored(hook); len(e.OldSecrets) != 9 {
			t.Errorf("%d old secrets sign, want at most 9", len(e.OldSecrets))
		}
		for body, pointer := range map[string]string{
			`{"secret":"whsec_AAAA"}`:    "/secret",
			`{"overlapSeconds":-1}`:      "/overlapSeconds",
			`{"overlapSeconds":2592001}`: "/overlapSeconds",
		} {
			p := mine.do("POST", hook+"/rotate-secret", body).want(http.StatusUnprocessableEntity,
				postern.ValidationFailed)
			if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
				t.Errorf("%s: errors %v", body, p.Errors)
			}
		}
	})
}

func TestPublicKeyComesAndGoesWithItsSignature(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	hook := mine.active(`{"url":"https://hooks.test/a"}`)
	mine.patch(hook, `{}`).members(map[string]string{"signatures": `["v1"]`, "publicKey": "null"})
	a := mine.patch(hook, `{"signatures":["v1","v1a"]}`)
	public := a.member("publicKey")
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(public, "whpk_")); err != nil ||
		len(raw) != ed25519.PublicKeySize {
		t.Errorf("the public key is %s (%v)", public, err)
	}
	if again := mine.patch(hook, `{"signatures":["v1","v1a"]}`); again.member("publicKey") != public {
		t.Error("the same signatures again made another key")
	}
	rotated := mine.do("POST", hook+"/rotate-secret", "")
	if rotated.want(http.StatusOK, ""); rotated.member("publicKey") == public ||
		len(mine.stored(hook).OldSecrets[0].SigningKey) == 0 {
		t.Errorf("a rotation: %s", rotated.Body)
	}
	mine.patch(hook, `{"signatures":["v1"]}`).members(map[string]string{"signatures": `["v1"]`, "publicKey": "null"})
	if e := mine.stored(hook); len(e.SigningKey)+len(e.OldSecrets[0].SigningKey) != 0 {
		t.Error("ed25519 keys are left")
	}
	made := mine.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/a","signatures":["v1","v1a"]}`)
	if made.want(http.StatusCreated, ""); !strings.HasPrefix(made.member("publicKey"), "whpk_") {
		t.Errorf("a new endpoint: %s", made.Body)
	}
	for _, bad := range []string{`[]`, `["v1a"]`, `["v1a","v1"]`, `["v1","v1"]`, `["v2"]`} {
		mine.do("PATCH", hook, `{"signatures":`+bad+`}`).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
	}
}

// A pause keeps an endpoint where it has answered; a new URL that never did has
// its turn after that.
func TestPauseForgetsNoVerifiedURL(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	hook := mine.active(`{"url":"https://hooks.test/a"}`)
	mine.patch(hook, `{"url":"https://hooks.test/dead"}`)
	mine.do("POST", hook+"/pause", "").want(http.StatusOK, "")
	mine.do("POST", hook+"/resume", "").want(http.StatusOK, "")
	if e := mine.stored(hook); e.URL != "https://hooks.test/a" || e.PendingURL != "https://hooks.test/dead" ||
		e.Status != postern.EndpointPending {
		t.Errorf("resumed, it is %s at %s, then %s", e.Status, e.URL, e.PendingURL)
	}
	mine.activate(strings.TrimPrefix(hook, "/v1/webhooks/"))
	if e := mine.stored(hook); e.Status != postern.EndpointActive || e.DueAt == 0 {
		t.Errorf("active again, it is %s, and asks the new URL at %s", e.Status, e.DueAt)
	}
}

// A key's list may name a device that was deleted since.
func TestKeyWithADeletedDeviceMakesEndpoints(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	gone, left := postern.DeviceID(connected(mine)), postern.DeviceID(connected(mine))
	mine.key = mine.newKey(gateway.NewKey{Scopes: postern.Scopes(), Devices: []postern.DeviceID{gone, left}})
	mine.do("DELETE", "/v1/devices/"+string(gone), "").want(http.StatusNoContent, "")
	var at store.PurgePlace
	for range 10 {
		if p, err := mine.db.Devices.Purge(t.Context(), gone, &at); err != nil {
			t.Fatal(p, err)
		}
	}
	hook := mine.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/a"}`)
	hook.want(http.StatusCreated, "")
	mine.patch("/v1/webhooks/"+hook.member("id"), `{"deviceIds":null}`)
	mine.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/a","deviceIds":["`+string(gone)+`"]}`).want(http.StatusNotFound, postern.NotFound)
}

func TestHeadersAndSecretsHaveOneReading(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	for _, body := range []string{
		`{"url":"https://hooks.test/a","headers":{"X-B":"1","x-b":"2"}}`,
		`{"url":"https://hooks.test/a","secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\nMfKQ9r8GKYo="}`,
	} {
		mine.do("POST", "/v1/webhooks", body).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
	}
	hook := mine.active(`{"url":"https://hooks.test/a"}`)
	mine.do("POST", hook+"/replay", `{"until":"1970-01-01T00:00:00Z"}`).members(map[string]string{
		"matched": "0",
		"until":   `"1970-01-01T00:00:00.001Z"`,
	})
}
