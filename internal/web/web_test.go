package web_test

import (
	"bytes"
	"encoding/json"
	"errors"
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

// A handler that ends its response early because the client has left is no panic in the log, and the connection ends.
func TestHandlerMayAbort(t *testing.T) {
	t.Parallel()
	d := &door{t: t, log: &bytes.Buffer{}}
	d.Door = web.New(web.Options{
		Log: slog.New(slog.NewJSONHandler(d.log, nil)), BaseURL: baseURL, API: http.NotFoundHandler(),
		Dashboard: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("a part"))
			panic(http.ErrAbortHandler)
		}),
	})
	func() {
		defer func() {
			if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("the server gets %v", err)
			}
		}()
		d.get("/messages.csv")
	}()
	if log := d.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "ERROR") {
		t.Errorf("the log has %s", log)
	}
}

// A network may ask for so many pages that need no sign-in, and others are not affected.
func TestVisitsAreLimited(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{Insecure: true})
	ask := func(from, path string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		req.RemoteAddr = from + ":1"
		return d.send(req)
	}
	a := ask("192.0.2.1", "/link/x")
	for asked := 1; a.Code == http.StatusOK && asked < 100_000; asked++ {
		a = ask("192.0.2.1", "/link/x")
	}
	if d.reason(a) != postern.RateLimited || a.Header().Get("Retry-After") == "" {
		t.Errorf("a network that asks too often is answered %d %s, Retry-After %q", a.Code, a.Body,
			a.Header().Get("Retry-After"))
	}
	for _, free := range [][2]string{{"10.0.0.1", "/link/x"}, {"198.51.100.1", "/link/x"}, {"192.0.2.1", "/v1/devices"}} {
		if a := ask(free[0], free[1]); a.Code != http.StatusOK {
			t.Errorf("%s from %s is answered %d", free[1], free[0], a.Code)
		}
	}
}
