package testkit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/testkit"
)

var pictures = flag.String("pictures", "", "a directory to put pictures of the pages in")

// visit is what a browser made of a page.
type visit struct {
	dom        string
	asked      []string // addresses that the page asked for
	complaints string   // of the browser about the page
}

// browse opens a page in Chromium, which keeps a log of every request and
// resolves no name.
func browse(t *testing.T, page, picture string, more ...string) (v visit) {
	t.Helper()
	netLog := filepath.Join(t.TempDir(), "net.json")
	args := append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
		"--window-size=1280,1800",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--log-net-log=" + netLog, "--enable-logging=stderr", "--virtual-time-budget=30000", "--dump-dom",
	}, more...)
	if *pictures != "" {
		args = append(args, "--screenshot="+filepath.Join(*pictures, picture))
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "chromium", append(args, page)...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &log, 5*time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium (scripts/deps installs it): %v\n%s", err, log.String())
	}
	v.dom, v.asked = out.String(), askedFor(t, netLog)
	for line := range strings.SplitSeq(log.String(), "\n") {
		if strings.Contains(line, ":CONSOLE") &&
			(strings.Contains(line, "Security Policy") || strings.Contains(line, "ERROR:CONSOLE") ||
				strings.Contains(line, "Uncaught")) {
			v.complaints += line + "\n"
		}
	}
	return v
}

// askedFor reads the requests that a page made, and not the browser for itself,
// from a log of Chromium's.
func askedFor(t *testing.T, file string) (list []string) {
	t.Helper()
	var log struct {
		Constants struct{ LogEventTypes map[string]int }
		Events    []struct {
			Type   int
			Params struct{ URL, Initiator string }
		}
	}
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &log)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range log.Events {
		if e.Type == log.Constants.LogEventTypes["URL_REQUEST_START_JOB"] && e.Params.Initiator != "" &&
			e.Params.Initiator != "not an origin" {
			list = append(list, e.Params.URL)
		}
	}
	return list
}

// TestReferenceAsksNoOtherHost opens the documentation in a real browser, in
// light and dark, and records everything it asks for.
func TestReferenceAsksNoOtherHost(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	asked := map[string]bool{}
	for picture, tt := range map[string]struct {
		path string
		dark bool
		want []string
	}{
		"docs-light.png":      {"/docs", false, []string{"light-mode", "List devices", "webhooks"}},
		"message-dark.png":    {"/docs#tag/messages/POST/v1/messages", true, []string{"dark-mode", "Send a message", "whenDisconnected"}},
		"changelog-light.png": {"/docs/changelog", false, []string{"<h1>Changelog</h1>", "<code>GET /v1/usage</code>"}},
		"problem-dark.png":    {"/problems/device-not-connected", true, []string{"<h1>Device not connected</h1>"}},
	} {
		scheme := "--blink-settings=preferredColorScheme=1"
		if tt.dark {
			scheme = "--blink-settings=preferredColorScheme=0"
		}
		v := browse(t, k.URL()+tt.path, picture, scheme)
		for _, words := range tt.want {
			if !strings.Contains(v.dom, words) {
				t.Errorf("%s does not show %q (%d bytes)", tt.path, words, len(v.dom))
			}
		}
		if v.complaints != "" {
			t.Errorf("%s: the browser complains:\n%s", tt.path, v.complaints)
		}
		for _, u := range v.asked {
			asked[u] = true
		}
	}
	for u := range asked {
		if !strings.HasPrefix(u, k.URL()+"/") && !strings.HasPrefix(u, "data:") &&
			!strings.HasPrefix(u, "blob:"+k.URL()+"/") {
			t.Errorf("another host was asked: %s", u)
		}
	}
	for _, path := range []string{"/docs/scalar.js", "/docs/docs.js", "/v1/openapi.json", "/docs/style.css"} {
		if !asked[k.URL()+path] {
			t.Errorf("%s was not asked for: %v", path, asked)
		}
	}
}

// TestTheBrowserTellsOfOtherHosts shows it a page that asks for what the
// reference must not.
func TestTheBrowserTellsOfOtherHosts(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/strict" {
			w.Header().Set("Content-Security-Policy", "default-src 'self'")
		}
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w,
			`<!doctype html><link rel="icon" href="data:,"><img src="http://fonts.example.com/a.png"><script src="https://cdn.example.com/a.js"></script>`)
	}))
	defer site.Close()
	v := browse(t, site.URL+"/open", "none.png")
	for _, u := range []string{"http://fonts.example.com/a.png", "https://cdn.example.com/a.js"} {
		if !slices.Contains(v.asked, u) {
			t.Errorf("%s is not among %v", u, v.asked)
		}
	}
	if v := browse(t, site.URL+"/strict", "none.png"); !strings.Contains(v.complaints, "fonts.example.com") {
		t.Errorf("the browser refused without a word: %q", v.complaints)
	}
}
