package web_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/problem"
	"postern/internal/web"
)

// TestTheTypeOfAProblemLeadsToItsPage follows the type of a refusal, and reads the
// page of each reason.
func TestTheTypeOfAProblemLeadsToItsPage(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	if reason := d.reason(d.get("/docs/nothing")); d.get("/problems/"+string(reason)).Code != http.StatusOK {
		t.Errorf("the reason %q leads nowhere", reason)
	}
	for reason, k := range problem.All() {
		a := d.get("/problems/" + string(reason))
		if a.Code != http.StatusOK {
			t.Errorf("the page of %s is answered %d", reason, a.Code)
		}
		for _, words := range []string{
			"<h1>" + html.EscapeString(k.Title) + "</h1>",
			"<code>" + string(reason) + "</code>", "<code>" + k.Code + "</code>", "<h2>When</h2>",
			"<h2>What to do</h2>",
		} {
			if !strings.Contains(a.Body.String(), words) {
				t.Errorf("the page of %s has no %s", reason, words)
			}
		}
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/problems/not-found", strings.NewReader("{}"))
	req.RemoteAddr = "127.0.0.1:1"
	if a := d.send(req); d.reason(a) != postern.MethodNotAllowed || a.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("a POST is answered %d %v %s", a.Code, a.Header(), a.Body)
	}
}

// TestEveryReasonOfAStateHasAPage that says what to do.
func TestEveryReasonOfAStateHasAPage(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	for reason, s := range problem.States() {
		a := d.get("/problems/" + reason)
		for _, words := range []string{
			"<h1>" + html.EscapeString(s.Title) + "</h1>", "<code>" + reason + "</code>",
			"<h2>What to do</h2>", "statusReason",
		} {
			if a.Code != http.StatusOK || !strings.Contains(a.Body.String(), words) {
				t.Errorf("the page of %s is answered %d without %s", reason, a.Code, words)
			}
		}
		if strings.Contains(a.Body.String(), "<dt>status</dt>") {
			t.Errorf("the page of %s shows the status of a refusal", reason)
		}
	}
}

// TestPagesAreForThisServerOnly looks at the headers of everything under /docs.
func TestPagesAreForThisServerOnly(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	for path, kind := range map[string]string{
		"/docs": "text/html", "/docs/guides": "text/html", "/docs/operations": "text/html", "/docs/deploy/proxy/nginx.conf": "text/plain",
		"/docs/changelog": "text/html", "/docs/style.css": "text/css", "/docs/api.js": "text/javascript",
		"/docs/api.css": "text/css", "/docs/api/messages": "text/html", "/problems/internal": "text/html",
	} {
		a := d.get(path)
		if a.Code != http.StatusOK {
			t.Errorf("%s is answered %d", path, a.Code)
		}
		policy := a.Header().Get("Content-Security-Policy")
		if a.Header().Get("Content-Type") != kind+"; charset=utf-8" || !strings.HasPrefix(policy,
			"default-src 'none'; ") || strings.ContainsAny(policy, "*:/") && !strings.Contains(policy, "data:") ||
			strings.Contains(policy, "unsafe") {
			t.Errorf("%s: headers %v", path, a.Header())
		}
		if again := d.get(path, "If-None-Match", a.Header().Get("ETag")); again.Code != http.StatusNotModified ||
			again.Body.Len() > 0 {
			t.Errorf("%s a second time: %d and %d bytes", path, again.Code, again.Body.Len())
		}
	}
}

func TestChangelogIsShown(t *testing.T) {
	t.Parallel()
	page := newDoor(t, web.Transport{}).get("/docs/changelog").Body.String()
	for _, words := range []string{`<h2 id="unreleased">`, `<h2 id="010-2026-11-27">`, "<li>", "<code>GET /v1/usage</code>"} {
		if !strings.Contains(page, words) {
			t.Errorf("the changelog has no %s", words)
		}
	}
	if strings.Contains(page, "api:") || strings.Contains(page, "<!--") {
		t.Error("the changelog shows what only tests read")
	}
}

// TestReferenceLoadsLittle: a page of the reference, with the style sheets and the script, is at most 100 kB as it
// travels. Its largest was 40 kB with gzip.
func TestReferenceLoadsLittle(t *testing.T) {
	t.Parallel()
	d, seen := newDoor(t, web.Transport{}), 0
	size := func(path, coding string) int {
		a := d.get(path, "Accept-Encoding", coding)
		if a.Code != http.StatusOK || a.Header().Get("Content-Encoding") != coding {
			t.Errorf("%s is answered %d %v", path, a.Code, a.Header())
		}
		return a.Body.Len()
	}
	for _, coding := range []string{"br", "gzip"} {
		files := size("/docs/style.css", coding) + size("/docs/api.css", coding) + size("/docs/api.js", coding)
		for _, path := range d.pages() {
			if path != "/docs" && !strings.HasPrefix(path, "/docs/api/") {
				continue
			}
			seen++
			if n := files + size(path, coding); n < 5_000 || n > 100_000 {
				t.Errorf("%s takes %d bytes as %s", path, n, coding)
			}
		}
	}
	if seen < 2*10 {
		t.Errorf("only %d pages were seen", seen)
	}
}

// TestUnknownPageOfTheReference is not found, also without a document.
func TestUnknownPageOfTheReference(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	for _, path := range []string{"/docs/api", "/docs/api/nothing", "/docs/api/messages/x", "/docs/api/%2e%2e"} {
		if a := d.get(path); d.reason(a) != postern.NotFound {
			t.Errorf("%s is answered %d %s", path, a.Code, a.Body)
		}
	}
	d.Door = web.New(web.Options{BaseURL: baseURL})
	if a := d.get("/docs"); d.reason(a) != postern.NotFound {
		t.Errorf("without a document, the reference is answered %d %s", a.Code, a.Body)
	}
}
