package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/web"
)

func TestRoutesThatAreNone(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	for _, target := range []string{
		"/", "/v1", "/v1/", "/v2/devices", "/v1/devices/", "/v1//devices", "/v1/./devices", "/v1/x/../devices",
		"//v1/devices", "/v1/Devices",
		"/v1/devices/a/link/qr.gif", "/v1/devices/a/b", "/openapi.json", "/docs/", "/docs/x", "/problems", "/problems/",
		"/problems/x", "/problems/Not-Found", "/problems/not-found/x", "/v1/openapi.yaml", "/schemas/Device.json",
		"/v1/" + canary,
	} {
		a := mine.do("GET", target, "")
		a.what = target
		a.want(http.StatusNotFound, postern.NotFound)
		if strings.Contains(a.Body.String(), canary) || a.Header().Get("Location") != "" {
			t.Errorf("%s: %v %s", target, a.Header(), a.Body)
		}
	}
	for target, allow := range map[string]string{
		"/v1/devices": "GET, HEAD, POST", "/v1/devices/a": "DELETE, GET, HEAD, PATCH", "/v1/devices/a/unlink": "POST", "/v1/devices/a/link/qr.svg": "GET, HEAD", "/v1/openapi.json": "GET, HEAD",
	} {
		for _, method := range []string{"PUT", "PATCH", "OPTIONS", "TRACE", canary} {
			if strings.Contains(allow, method) {
				continue
			}
			a := mine.do(method, target, "")
			a.want(http.StatusMethodNotAllowed, postern.MethodNotAllowed)
			if got := a.Header().Get("Allow"); got != allow || strings.Contains(a.Body.String(), canary) {
				t.Errorf("%s %s: Allow %q, want %q", method, target, got, allow)
			}
		}
	}
	if log := mine.log.String(); strings.Contains(log, canary) {
		t.Error("the log repeats the method or the path")
	}
	for _, r := range []*http.Request{
		{Method: "CONNECT", URL: &url.URL{Host: "x.test"}, Host: "x.test"},
		{Method: "OPTIONS", URL: &url.URL{Path: "*"}, RequestURI: "*"},
		{Method: "GET", URL: &url.URL{Opaque: "x"}},
	} {
		r.Header = http.Header{}
		mine.send(r.WithContext(t.Context())).want(http.StatusNotFound, postern.NotFound)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	srv := httptest.NewServer(mine.handler)
	defer srv.Close()
	id := linking(mine)
	for _, path := range []string{"/v1/devices", "/v1/devices/" + id + "/link/stream", "/v1/openapi.json"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodHead, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+mine.key)
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("HEAD %s: %d", path, resp.StatusCode)
		}
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	svg := "/v1/devices/" + linking(mine) + "/link/qr.svg"
	for _, tt := range []struct {
		target, accept string
		status         int
	}{
		{"/v1/devices", "", 200},
		{"/v1/devices", "application/json", 200},
		{"/v1/devices", "Application/JSON; charset=utf-8", 200},
		{"/v1/devices", "text/html, application/*;q=0.1", 200},
		{"/v1/devices", "*/*", 200},
		{"/v1/devices", "application/json;,a", 200},
		{"/v1/devices", "*/*;q", 200},
		{"/v1/devices", "a;", 406},
		{"/v1/devices", ";,;q=,", 406},
		{"/v1/devices", "text/html", 406},
		{"/v1/devices", "application/json;q=0", 406},
		{"/v1/devices", "application/json;q=0, */*", 406},
		{"/v1/devices", "*/*;q=0, application/json", 200},
		{"/v1/devices", canary, 406},
		{svg, "application/json", 406},
		{svg, "image/svg+xml", 200},
		{svg, "image/*", 200},
		{"/v1/openapi.json", "text/html", 200},
	} {
		a := mine.do("GET", tt.target, "", "Accept", tt.accept)
		a.what += " accepting " + tt.accept
		if tt.status == 200 {
			a.want(200, "")
			continue
		}
		a.want(406, postern.NotAcceptable)
		if strings.Contains(a.Body.String(), canary) {
			t.Errorf("%s: %s", a.what, a.Body)
		}
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/devices", nil)
	req.Header = http.Header{"Authorization": {"Bearer " + mine.key}, "Accept": {"text/html", "application/json"}}
	mine.send(req).want(200, "")
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	const body = `{"name":"` + canary + `"}`
	for _, headers := range [][]string{
		{"Content-Type", ""},
		{"Content-Type", "text/plain"},
		{"Content-Type", "application/x-www-form-urlencoded"},
		{"Content-Type", "application/merge-patch+json"},
		{"Content-Type", "application/json; charset=utf-16"},
		{"Content-Type", "application/json/"},
		{"Content-Type", canary},
		{"Content-Encoding", "gzip"},
		{"Content-Encoding", "identity, gzip"},
	} {
		a := mine.do("POST", "/v1/devices", body, headers...)
		a.want(http.StatusUnsupportedMediaType, postern.UnsupportedMediaType)
		if strings.Contains(a.Body.String(), canary) {
			t.Errorf("%v: %s", headers, a.Body)
		}
	}
	for _, headers := range [][]string{
		{"Content-Encoding", "identity"},
		{"Content-Type", "application/json;charset=utf-8"},
	} {
		mine.do("POST", "/v1/devices", body, headers...).want(http.StatusCreated, "")
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/devices", strings.NewReader(body))
	req.Header = http.Header{
		"Authorization": {"Bearer " + mine.key},
		"Content-Type":  {"application/json", "text/plain"},
	}
	mine.send(req).want(http.StatusUnsupportedMediaType, postern.UnsupportedMediaType)
}

func TestHeadersTooLarge(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	mine.do("GET", "/v1/devices", "", "X-A", strings.Repeat("a", web.HeaderLimit-300)).want(http.StatusOK, "")
	mine.do("GET", "/v1/devices", "", "X-A",
		strings.Repeat("a", web.HeaderLimit)).want(http.StatusRequestHeaderFieldsTooLarge,
		postern.HeadersTooLarge)
	mine.do("GET", "/v1/devices/"+strings.Repeat("a", web.HeaderLimit), "").want(http.StatusRequestHeaderFieldsTooLarge,
		postern.HeadersTooLarge)

	srv := httptest.NewUnstartedServer(mine.handler)
	srv.Config.MaxHeaderBytes = web.MaxHeaderBytes
	srv.Start()
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/devices", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-A", strings.Repeat("a", 2*web.HeaderLimit))
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge ||
		resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("32 KiB of headers over the wire: %d %v", resp.StatusCode, resp.Header)
	}
}

func TestTwoAuthorizationHeaders(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/devices", nil)
	req.Header["Authorization"] = []string{"Bearer " + mine.key, "Bearer " + mine.key}
	mine.send(req).want(http.StatusUnauthorized, postern.Unauthorized)
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	s := newServerWithoutTime(t)
	mine, other := s.tenant("starter"), s.tenant("starter")
	a := mine.do("GET", "/v1/devices", "")
	a.want(http.StatusOK, "")
	if got := a.Header().Get("RateLimit-Policy"); got != `"default";q=300;w=60` {
		t.Errorf("RateLimit-Policy: %s", got)
	}
	if got := a.Header().Get("RateLimit"); got != `"default";r=299;t=1` {
		t.Errorf("RateLimit: %s", got)
	}
	second := mine.with(mine.newKey(gateway.NewKey{Scopes: []postern.Scope{postern.UsageRead}}))
	if got := mine.with(mine.newKey(gateway.NewKey{})).do("GET", "/v1/devices",
		"").Header().Get("RateLimit"); !strings.HasPrefix(got,
		`"default";r=298;`) {
		t.Errorf("RateLimit of another key of the workspace: %s", got)
	}
	for range 290 {
		mine.answer(mine.request("GET", "/v1/devices", "", "Authorization", "Bearer "+mine.key)).want(http.StatusOK, "")
	}
	limited := 0
	for range 20 {
		if a := mine.do("GET", "/v1/devices", ""); a.Code == http.StatusTooManyRequests {
			limited++
			a.want(http.StatusTooManyRequests, postern.RateLimited)
			wait, err := strconv.Atoi(a.Header().Get("Retry-After"))
			if err != nil || wait < 1 || wait > 60 ||
				!strings.HasPrefix(a.Header().Get("RateLimit"),
					`"default";r=0;t=`) {
				t.Fatalf("headers of a 429: %v", a.Header())
			}
		}
	}
	if limited != 12 {
		t.Errorf("of 312 requests at once %d were refused, want 12", limited)
	}
	// A missing scope is told first, even when too much was asked.
	second.do("GET", "/v1/devices", "").want(http.StatusForbidden, postern.MissingScope)
	third := mine.with(mine.newKey(gateway.NewKey{}))
	served := 0
	for a = third.do("GET", "/v1/devices", ""); a.Code == http.StatusOK; a = third.do("GET", "/v1/devices", "") {
		served++
	}
	a.want(http.StatusTooManyRequests, postern.RateLimited)
	if served > 200 {
		t.Errorf("another key of a workspace that used its rate up was served %d times", served)
	}
	other.do("GET", "/v1/devices", "").want(http.StatusOK, "")
}
