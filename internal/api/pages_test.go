package api_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/problem"
)

// TestTheTypeOfAProblemLeadsToItsPage follows the type of a refusal, and looks
// at the page of each reason.
func TestTheTypeOfAProblemLeadsToItsPage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := s.do("GET", "/v1/devices", "").want(http.StatusUnauthorized, postern.Unauthorized)
	path, ours := strings.CutPrefix(p.Type, baseURL)
	if a := s.do("GET", path, ""); !ours || a.Code != http.StatusOK || !strings.Contains(a.Body.String(), "<h1>Unauthorized</h1>") {
		t.Errorf("%s leads to %d %s", p.Type, a.Code, a.Body)
	}
	for reason := range described().Components.Examples {
		code := problem.Of(postern.Reason(reason)).Code
		a := s.do("GET", "/problems/"+reason, "") // without a key
		a.want(http.StatusOK, "")
		for _, words := range []string{"<code>" + reason + "</code>", "<code>" + code + "</code>", "<h2>When</h2>", "<h2>What to do</h2>"} {
			if !strings.Contains(a.Body.String(), words) {
				t.Errorf("the page of %s has no %s", reason, words)
			}
		}
	}
	s.do("GET", "/problems/sorrow", "").want(http.StatusNotFound, postern.NotFound)
	s.do("POST", "/problems/not-found", "{}").want(http.StatusMethodNotAllowed, postern.MethodNotAllowed)
}

// TestPagesAreForThisServerOnly looks at the headers of everything under /docs.
func TestPagesAreForThisServerOnly(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for path, kind := range map[string]string{
		"/docs": "text/html", "/docs/changelog": "text/html", "/docs/style.css": "text/css", "/docs/docs.js": "text/javascript",
		"/docs/scalar.js": "text/javascript", "/docs/scalar.licences.txt": "text/plain", "/problems/internal": "text/html",
	} {
		a := s.do("GET", path, "")
		a.want(http.StatusOK, "")
		policy := a.Header().Get("Content-Security-Policy")
		if a.Header().Get("Content-Type") != kind+"; charset=utf-8" || !strings.HasPrefix(policy, "default-src 'none'; ") || strings.ContainsAny(policy, "*:/") && !strings.Contains(policy, "data:") || strings.Contains(policy, "unsafe-eval") {
			t.Errorf("%s: headers %v", path, a.Header())
		}
		if again := s.do("GET", path, "", "If-None-Match", a.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s a second time: %d and %d bytes", path, again.Code, again.Body.Len())
		}
		packed := s.do("GET", path, "", "Accept-Encoding", "br, gzip")
		if packed.Header().Get("Content-Encoding") != "gzip" {
			continue
		}
		z, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || string(text) != a.Body.String() {
			t.Errorf("%s compressed is something else: %v", path, err)
		}
	}
}

func TestChangelogIsShown(t *testing.T) {
	t.Parallel()
	page := newServer(t).do("GET", "/docs/changelog", "").Body.String()
	for _, words := range []string{"<h2>0.1.0 (unreleased)</h2>", "<li>", "<code>GET /v1/usage</code>"} {
		if !strings.Contains(page, words) {
			t.Errorf("the changelog has no %s", words)
		}
	}
	if strings.Contains(page, "api:") || strings.Contains(page, "<!--") {
		t.Error("the changelog shows what only tests read")
	}
}

// TestTheScriptOfTheDocsIsTheOneThatIsPinned compares the copy with the lock
// file of its package.
func TestTheScriptOfTheDocsIsTheOneThatIsPinned(t *testing.T) {
	t.Parallel()
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	raw, err := os.ReadFile("../../tools/scalar/package-lock.json")
	if err == nil {
		err = json.Unmarshal(raw, &lock)
	}
	if err != nil {
		t.Fatal(err)
	}
	pinned := lock.Packages["node_modules/@scalar/api-reference"]
	script := newServer(t).do("GET", "/docs/scalar.js", "").Body.String()
	if pinned.Integrity == "" || !strings.Contains(script[:1000], "@scalar/api-reference "+pinned.Version+"\n") {
		t.Errorf("the lock file has %q: run make docs-assets", pinned.Version)
	}
}
