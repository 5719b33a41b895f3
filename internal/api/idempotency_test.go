package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

func TestIdempotency(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	device := connected(mine)
	unlinked := mine.device("other", postern.Unlinked)
	for target, bodies := range map[string][2]string{
		"/v1/devices": {`{"name":"a"}`, `{"name":"b"}`},
		"/v1/devices/" + string(unlinked) + "/link": {``, `{}`},
		"/v1/messages": {`{"deviceId":"` + device + `","to":"+15551234567","body":"a"}`, `{"deviceId":"` + device + `","to":"+15551234567","body":"b"}`},
		"/v1/webhooks": {`{"url":"https://hooks.test/a"}`, `{"url":"https://hooks.test/b"}`},
	} {
		first := mine.do("POST", target, bodies[0], "Idempotency-Key", "key-1")
		if first.Code != http.StatusCreated && first.Code != http.StatusAccepted ||
			first.Header().Get("Idempotent-Replayed") != "" {
			t.Fatalf("POST %s: %d %v %s", target, first.Code, first.Header(), first.Body)
		}
		again := mine.with(mine.newKey(gateway.NewKey{})).do("POST", target, bodies[0], "Idempotency-Key", `"key-1"`)
		if again.Code != first.Code || again.Body.String() != first.Body.String() ||
			again.Header().Get("Idempotent-Replayed") != "true" {
			t.Errorf("POST %s again: %d %v\n got %s\nwant %s", target, again.Code, again.Header(), again.Body,
				first.Body)
		}
		mine.do("POST", target, bodies[1], "Idempotency-Key", "key-1").want(http.StatusUnprocessableEntity,
			postern.IdempotencyReused)
		if narrow := mine.newKey(gateway.NewKey{Scopes: []postern.Scope{postern.UsageRead}}); narrow != "" {
			mine.with(narrow).do("POST", target, bodies[0], "Idempotency-Key", "key-1").want(http.StatusForbidden,
				postern.MissingScope)
		}
	}
	if again := mine.do("POST", "/v1/devices", `{"name":"a"}`, "Idempotency-Key",
		"key-2"); again.Header().Get("Idempotent-Replayed") != "" {
		t.Error("another key replayed")
	}
}

func TestIdempotencyKeysBelongToAPath(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	for range 2 {
		id := string(mine.device("d", postern.Unlinked))
		a := mine.do("POST", "/v1/devices/"+id+"/link", "", "Idempotency-Key", "k")
		a.want(http.StatusCreated, "")
		if a.member("deviceId") != id {
			t.Errorf("the link attempt of %s is %s", id, a.Body)
		}
	}
}

// TestARefusalMayBeRetried shows that only what happened is remembered.
func TestARefusalMayBeRetried(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	id := mine.device("d", postern.Unlinked)
	body := `{"deviceId":"` + string(id) + `","to":"+15551234567","body":"a"}`
	mine.do("POST", "/v1/messages", body, "Idempotency-Key", "k").want(http.StatusConflict, postern.DeviceNotConnected)
	mine.set(id, postern.Connected)
	a := mine.do("POST", "/v1/messages", body, "Idempotency-Key", "k")
	a.want(http.StatusAccepted, "")
	if a.Header().Get("Idempotent-Replayed") != "" {
		t.Error("a refusal was remembered")
	}
}

// TestReplayHonoursTheDeviceList shows that a key never sees by a replay what
// it may not see itself.
func TestReplayHonoursTheDeviceList(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	body := `{"deviceId":"` + connected(mine) + `","to":"+15551234567","body":"a"}`
	mine.do("POST", "/v1/messages", body, "Idempotency-Key", "k").want(http.StatusAccepted, "")
	limited := mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{mine.device("x", postern.Unlinked)}}))
	limited.do("POST", "/v1/messages", body, "Idempotency-Key", "k").want(http.StatusForbidden,
		postern.ResourceNotAllowed)
}

func TestManyPostsWithOneKeyMakeOneMessage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	body := `{"deviceId":"` + connected(mine) + `","to":"+15551234567","body":"a"}`
	answers := make([]*answerT, 100)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = mine.do("POST", "/v1/messages", body, "Idempotency-Key", "k") })
	}
	wg.Wait()
	ids, fresh := map[string]bool{}, 0
	for _, a := range answers {
		switch {
		case a.Code == http.StatusConflict:
			a.want(http.StatusConflict, postern.IdempotencyRunning)
			continue
		case a.Header().Get("Idempotent-Replayed") == "":
			fresh++
		}
		a.want(http.StatusAccepted, "")
		ids[a.member("id")] = true
	}
	rows, err := s.g.Messages.List(t.Context(), mine.caller(), gateway.MessageQuery{Page: paging.Page{Limit: 200}})
	if err != nil || len(rows.Data) != 1 || len(ids) != 1 || fresh != 1 {
		t.Errorf("100 posts made %d messages with %d ids, %d answers were first; %v", len(rows.Data), len(ids), fresh,
			err)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	for _, key := range []string{
		" ", `"`, `""`, `"a`, `a b`, `"a b"`, `"a"b`, `"a"; x=1`, `"a\b"`, `"a\"`, "ä", "a\x7f",
		strings.Repeat("a", 256), `"` + strings.Repeat("a",
			256) + `"`,
	} {
		a := mine.do("POST", "/v1/devices", `{"name":"`+canary+`"}`, "Idempotency-Key", key)
		a.what = key
		a.want(http.StatusBadRequest, postern.MalformedRequest)
	}
	for _, key := range []string{
		"!", `a"b`, strings.Repeat("~", 255), `"` + strings.Repeat("a", 255) + `"`,
		`"a\\b\"c"`,
	} {
		a := mine.do("POST", "/v1/devices", `{"name":"a"}`, "Idempotency-Key", key)
		a.what = key
		a.want(http.StatusCreated, "")
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/devices",
		strings.NewReader(`{"name":"a"}`))
	req.Header = http.Header{
		"Authorization": {"Bearer " + mine.key}, "Content-Type": {"application/json"},
		"Idempotency-Key": {"a", "a"},
	}
	mine.send(req).want(http.StatusBadRequest, postern.MalformedRequest)
	a := mine.do("POST", "/v1/devices", `{"name":"a"}`, "Idempotency-Key", `a\b"c`) // the same key, bare
	if a.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("a quoted and a bare key differ: %d %s", a.Code, a.Body)
	}
	list, err := s.g.Devices.List(t.Context(), mine.caller(), paging.Page{})
	if err != nil || len(list.Data) != 5 {
		t.Errorf("%d devices, want 5: %v", len(list.Data), err)
	}
}
