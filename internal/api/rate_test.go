package api_test

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/web"
)

// behind returns a server of other settings over the same store.
func (s *server) behind(transport web.Transport) *server {
	s.t.Helper()
	other := *s
	other.open(transport, false)
	return &other
}

// TestEveryAnswerTellsARate asks for what needs no key, for what is not there,
// and with keys that are refused, from an address that is counted.
func TestEveryAnswerTellsARate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine, free := s.tenant("starter"), s.tenant("free")
	proxied := s.behind(web.Transport{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	proxied.api.StopRates()
	for _, tt := range []struct {
		method, target, key string
		status              int
		policy, left        string
	}{
		{"GET", "/v1/openapi.json", "", 200, "address", "600"},
		{"GET", "/v1/nothing", "", 404, "address", "600"},
		{"PATCH", "/v1/webhooks", "", 405, "address", "600"},
		{"GET", "/v1//devices", mine.key, 404, "default", "300"},
		{"GET", "/v1/nothing", mine.key, 404, "default", "300"}, // looking costs nothing
		{"PATCH", "/v1/webhooks", mine.key, 405, "default", "300"},
		{"GET", "/v1/openapi.json", mine.key, 200, "default", "300"},
		{"GET", "/devices", mine.key, 404, "default", "300"},
		{"GET", "/v1/devices?" + strings.Repeat("a", web.HeaderLimit), mine.key, 431, "default", "300"},
		{"GET", "/v1/devices?" + strings.Repeat("a", web.HeaderLimit), "", 431, "address", "600"},
		{"GET", "/v1/devices", "", 401, "address", "599"},
		{"GET", "/v1/devices", "pst_x", 401, "address", "598"},
		{"GET", "/v1/devices", free.key, 403, "none", "0"}, // its plan allows no requests
		{"GET", "/v1/nothing", free.key, 404, "none", "0"},
		{"GET", "/v1/nothing", "", 404, "address", "598"}, // looking costs nothing
		{"GET", "/v1/devices", mine.key, 200, "default", "299"},
		{"GET", "/v1/devices?x=1", mine.key, 422, "default", "298"},
		{"GET", "/v1/nothing", mine.key, 404, "default", "298"},
		{"GET", "/v1/nothing", "pst_x", 404, "address", "597"}, // a key is not tried for nothing
	} {
		req := httptest.NewRequestWithContext(t.Context(), tt.method, tt.target, nil)
		req.RemoteAddr = "10.1.2.3:1"
		req.Header = http.Header{"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Proto": {"https"}}
		if tt.key != "" {
			req.Header.Set("Authorization", "Bearer "+tt.key)
		}
		a := proxied.send(req)
		q := map[string]string{"address": "600", "default": "300", "none": "0"}[tt.policy]
		tt.policy = strings.Replace(tt.policy, "none", "default", 1)
		if a.Code != tt.status || a.Header().Get("RateLimit-Policy") != strconv.Quote(tt.policy)+";q="+q+";w=60" ||
			!strings.HasPrefix(a.Header().Get("RateLimit"), strconv.Quote(tt.policy)+";r="+tt.left+";t=") {
			t.Errorf("%s %.40s is answered %d with %q %q, want %d and %s left", tt.method, tt.target, a.Code,
				a.Header()["Ratelimit-Policy"], a.Header()["Ratelimit"], tt.status,
				tt.left)
		}
	}
}

// TestARefusalOnATLSPortIsLikeAnyOther reads what is written to a connection
// that speaks no TLS.
func TestARefusalOnATLSPortIsLikeAnyOther(t *testing.T) {
	t.Parallel()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(newServer(t).door.PlainRefusal())), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &answerT{t, "a plain request to a TLS port", httptest.NewRecorder()}
	defer resp.Body.Close()
	for name, values := range resp.Header {
		a.Header()[name] = values
	}
	a.Code = resp.StatusCode
	if _, err := a.Body.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	a.want(http.StatusForbidden, postern.InsecureTransport)
	if !resp.Close || a.Header().Get("RateLimit") != `"address";r=600;t=0` ||
		a.Header().Get("RateLimit-Policy") != `"address";q=600;w=60` {
		t.Errorf("headers %v", resp.Header)
	}
}

// TestRefusedCredentialsAreCountedByAddress uses the address that a trusted
// proxy names.
func TestRefusedCredentialsAreCountedByAddress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	proxied := s.behind(web.Transport{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	proxied.api.StopRates()
	request := func(client, key string) *http.Request {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/usage", nil)
		req.RemoteAddr = "10.1.2.3:1"
		req.Header = http.Header{
			"Authorization": {"Bearer " + key}, "X-Forwarded-For": {client},
			"X-Forwarded-Proto": {"https"},
		}
		return req
	}
	send := func(client, key string) *answerT { return proxied.send(request(client, key)) }
	send("203.0.113.9", "pst_x").want(http.StatusUnauthorized, postern.Unauthorized)
	for range 590 {
		proxied.answer(request("203.0.113.9", "pst_x")).want(http.StatusUnauthorized, postern.Unauthorized)
	}
	limited := 0
	for range 20 {
		if a := send("203.0.113.9", "pst_x"); a.Code == http.StatusTooManyRequests {
			limited++
			a.want(http.StatusTooManyRequests, postern.RateLimited)
			if a.Header().Get("Retry-After") == "" {
				t.Fatalf("headers %v", a.Header())
			}
		}
	}
	if limited != 11 {
		t.Errorf("of 611 refused credentials of one address %d were refused for their number, want 11", limited)
	}
	send("203.0.113.9", mine.key).want(http.StatusOK, "") // who has a key is served
	send("203.0.113.10", "pst_x").want(http.StatusUnauthorized, postern.Unauthorized)
	for range 610 { // this machine has no number
		s.answer(s.request("GET", "/v1/usage", "", "Authorization", "Bearer pst_x")).want(http.StatusUnauthorized,
			postern.Unauthorized)
	}
}
