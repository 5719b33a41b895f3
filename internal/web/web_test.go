package web_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/web"
)

const baseURL = "https://postern.test"

// door is a front door with texts behind it.
type door struct {
	*web.Door

	t   *testing.T
	log *bytes.Buffer
}

func newDoor(t *testing.T, transport web.Transport) *door {
	t.Helper()
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(text))
		})
	}
	d := &door{t: t, log: &bytes.Buffer{}}
	d.Door = web.New(web.Options{
		Log: slog.New(slog.NewJSONHandler(d.log, nil)), BaseURL: baseURL, Transport: transport,
		API: says("the API"), LinkPages: says("a link page"), Dashboard: says("the dashboard"),
		Document: func() ([]byte, error) { return os.ReadFile("../api/spec/openapi.json") },
	})
	return d
}

func (d *door) send(req *http.Request) *httptest.ResponseRecorder {
	d.t.Helper()
	a := httptest.NewRecorder()
	d.ServeHTTP(a, req)
	if !strings.HasPrefix(a.Header().Get("Request-Id"), "req_") ||
		a.Header().Get("X-Content-Type-Options") != "nosniff" {
		d.t.Errorf("%s: headers %v", req.URL.Path, a.Header())
	}
	return a
}

// get asks from this machine. Headers follow as name, value.
func (d *door) get(path string, headers ...string) *httptest.ResponseRecorder {
	d.t.Helper()
	req := httptest.NewRequestWithContext(d.t.Context(), http.MethodGet, path, nil)
	req.RemoteAddr = "127.0.0.1:1"
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return d.send(req)
}

// pages are the paths of the documentation and of the pages about problems.
func (d *door) pages() []string {
	d.t.Helper()
	list, err := web.Pages(func() ([]byte, error) { return os.ReadFile("../api/spec/openapi.json") })
	if err != nil {
		d.t.Fatal(err)
	}
	return list
}

// reason is that of a problem document, "" of anything else.
func (d *door) reason(a *httptest.ResponseRecorder) postern.Reason {
	var p struct{ Type, RequestID string }
	if json.Unmarshal(a.Body.Bytes(), &p) != nil || p.RequestID != a.Header().Get("Request-Id") {
		return ""
	}
	reason, _ := strings.CutPrefix(p.Type, baseURL+"/problems/")
	return postern.Reason(reason)
}

// logLine is the one line of a request.
func (d *door) logLine(id string) string {
	d.t.Helper()
	var found []string
	for line := range strings.SplitSeq(d.log.String(), "\n") {
		if strings.Contains(line, id) && strings.Contains(line, `"msg":"request"`) {
			found = append(found, line)
		}
	}
	if len(found) != 1 {
		d.t.Fatalf("%d lines of %s", len(found), id)
	}
	return found[0]
}

// TestEachPathHasItsPart: the parts of the server share one address.
func TestEachPathHasItsPart(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	for path, want := range map[string]string{
		"/v1/devices": "the API", "/v1": "the API", "/link/x": "a link page", "/": "the dashboard", "/devices": "the dashboard", "/v12": "the dashboard",
	} {
		if a := d.get(path); a.Code != http.StatusOK || a.Body.String() != want {
			t.Errorf("%s is answered %d %q, want %q", path, a.Code, a.Body, want)
		}
	}
	for path, want := range map[string]postern.Reason{
		"/docs/x": postern.NotFound, "/problems/x": postern.NotFound, "/v1//devices": postern.NotFound, "/v1/../docs": postern.NotFound, "/docs/": postern.NotFound,
		"/v1/" + strings.Repeat("a", web.HeaderLimit): postern.HeadersTooLarge,
	} {
		if a := d.get(path); d.reason(a) != want {
			t.Errorf("%.40s is answered %d %s, want %s", path, a.Code, a.Body, want)
		}
	}
}

// A handler that neither writes nor sets a status answers 200, as does one that flushes.
func TestAnswerWithoutAStatusIs200(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"nothing": func(http.ResponseWriter, *http.Request) {},
		"flush": func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("flush: %v", err)
			}
		},
	} {
		d := &door{t: t, log: &bytes.Buffer{}}
		d.Door = web.New(web.Options{
			Log: slog.New(slog.NewJSONHandler(d.log, nil)), BaseURL: baseURL, Dashboard: handler,
			API: http.NotFoundHandler(), LinkPages: http.NotFoundHandler(),
			Announce: func(_ *http.Request, _ netip.Addr, h http.Header) { h.Set("RateLimit", "told") },
		})
		a := d.get("/messages.csv")
		line := d.logLine(a.Header().Get("Request-Id"))
		if got := a.Result().Header.Get("RateLimit"); got != "told" || !strings.Contains(line, `"status":200`) {
			t.Errorf("%s: announced %q, logged %s", name, got, line)
		}
	}
}
