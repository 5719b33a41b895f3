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

// TestEveryAnswerTellsARate asks for what needs no key, for what is not there,
// and with keys that are refused, from an address that is counted.
func TestEveryAnswerTellsARate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine, free := s.tenant("starter"), s.tenant("free")
	proxied := s.behind(web.Transport{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	for _, tt := range []struct {
		method, target, key string
		status              int
		policy, left        string
	}{
		{"GET", "/v1/openapi.json", "", 200, "address", "600"},
		{"GET", "/v1/nothing", "", 404, "address", "600"},
		{"PATCH", "/v1/webhooks", "", 405, "address", "600"},
		{"GET", "/v1//devices", mine.key, 404, "address", "600"},
		{"GET", "/v1/devices?" + strings.Repeat("a", web.HeaderLimit), "", 431, "address", "600"},
		{"GET", "/v1/devices", "", 401, "address", "599"},
		{"GET", "/v1/devices", "pst_x", 401, "address", "598"},
		{"GET", "/v1/devices", free.key, 403, "address", "598"}, // accepted, and no business of the plan's rate: it has none
		{"GET", "/v1/nothing", "", 404, "address", "598"},       // looking costs nothing
		{"GET", "/v1/devices", mine.key, 200, "default", "299"},
		{"GET", "/v1/devices?x=1", mine.key, 422, "default", "298"},
	} {
		req := httptest.NewRequestWithContext(t.Context(), tt.method, tt.target, nil)
		req.RemoteAddr = "10.1.2.3:1"
		req.Header = http.Header{"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Proto": {"https"}}
		if tt.key != "" {
			req.Header.Set("Authorization", "Bearer "+tt.key)
		}
		a := proxied.send(req)
		q := map[string]string{"address": "600", "default": "300"}[tt.policy]
		if a.Code != tt.status || a.Header().Get("RateLimit-Policy") != strconv.Quote(tt.policy)+";q="+q+";w=60" ||
			!strings.HasPrefix(a.Header().Get("RateLimit"), strconv.Quote(tt.policy)+";r="+tt.left+";t=") {
			t.Errorf("%s %.40s is answered %d with %q %q, want %d and %s left", tt.method, tt.target, a.Code, a.Header()["Ratelimit-Policy"], a.Header()["Ratelimit"], tt.status, tt.left)
		}
	}
}

// TestARefusalOnATLSPortIsLikeAnyOther reads what is written to a connection
// that speaks no TLS.
func TestARefusalOnATLSPortIsLikeAnyOther(t *testing.T) {
	t.Parallel()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(newServer(t).handler.PlainRefusal())), nil)
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
	if !resp.Close || a.Header().Get("RateLimit") != `"address";r=600;t=0` || a.Header().Get("RateLimit-Policy") != `"address";q=600;w=60` {
		t.Errorf("headers %v", resp.Header)
	}
}
