package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzRequest sends requests of any form with a good key: none may be answered
// with 5xx or panic. D in a path or a body is a connected device.
func FuzzRequest(f *testing.F) {
	s := newServer(f)
	var tenants []*tenant // many, so that the rate is not all that answers
	var devices []string
	for range 40 {
		tenants = append(tenants, s.tenant("enterprise"))
		devices = append(devices, connected(tenants[len(tenants)-1]))
	}
	n := 0
	for _, b := range badBodies() {
		if len(b.body) < 10_000 {
			f.Add("POST", "/v1/messages", "application/json", "*/*", "", b.body)
		}
	}
	for _, r := range routes() {
		f.Add(r.method, "/v1/devices/D/link", "application/json", "", "k", `{"method":"qr"}`)
	}
	for _, target := range []string{
		"/v1/devices?limit=1&cursor=x", "/v1/messages?since=2026-01-01T00:00:00Z&status=sent",
		"/v1/webhooks/x/deliveries?status=pending",
		"/v1/sandbox/devices/D/phone",
		"/v1/devices/%00%ff/link/qr.svg", "/v1//x", "/v1/devices/D/link/stream", "/v1/openapi.json",
	} {
		f.Add("GET", target, "", "a;,b", `"k"`, "")
	}
	f.Add("POST", "/v1/webhooks", "application/json", "", "k",
		`{"url":"https://x.test","events":["*"],"deviceIds":["D"],"headers":{"X-A":"b"},"maxInFlight":3}`)
	f.Add("POST", "/v1/sandbox/devices/D/inbound", "application/json", "", "", `{"from":"+15551234567","body":"x"}`)
	f.Add("POST", "/v1/sandbox/devices/D/faults", "application/json", "", "", `{"kind":"drop"}`)
	f.Fuzz(func(t *testing.T, method, target, contentType, accept, key, body string) {
		n = (n + 1) % len(tenants)
		mine, device := tenants[n], devices[n]
		s.log.Reset()
		target, body = strings.ReplaceAll(target, "D", device), strings.ReplaceAll(body, `"D"`, `"`+device+`"`)
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.HasSuffix(u.Path, "/scan") || strings.HasSuffix(u.Path, "/stream") {
			return // not HTTP; or waits for a code
		}
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		req.URL = u
		req.Method = method
		req.Header = http.Header{
			"Authorization": {"Bearer " + mine.key}, "Content-Type": {contentType},
			"Accept": {accept}, "Idempotency-Key": {key},
		}
		rec := httptest.NewRecorder()
		mine.handler.ServeHTTP(rec, req)
		if rec.Code >= 500 {
			t.Errorf("%s %s: %d %s", method, target, rec.Code, rec.Body)
		}
		if rec.Code >= 400 && rec.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d of type %s", method, target, rec.Code, rec.Header().Get("Content-Type"))
		}
	})
}
