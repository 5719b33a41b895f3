package testkit_test

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"postern/internal/testkit"
)

var pictures = flag.String("pictures", "", "a directory to put pictures of the pages in")

// visits is a browser that keeps a log of every request and resolves no name.
type visits struct {
	*browser

	netLog string
}

func newVisits(t *testing.T) *visits {
	t.Helper()
	netLog := filepath.Join(t.TempDir(), "net.json")
	return &visits{startBrowser(t, "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--log-net-log="+netLog,
		"--enable-logging=stderr"), netLog}
}

// open opens a page in a color scheme, lets half a minute of the page's own time pass, and returns
// what it is then.
func (v *visits) open(url, scheme, name string) (dom string) {
	v.t.Helper()
	v.newPage()
	v.call("Page.enable", nil, nil)
	v.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": 1280, "height": 1800, "deviceScaleFactor": 1, "mobile": false}, nil)
	v.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	v.call("Page.navigate", map[string]any{"url": url}, nil)
	v.happens("Page.loadEventFired")
	v.call("Emulation.setVirtualTimePolicy", map[string]any{
		"policy": "pauseIfNetworkFetchesPending", "budget": 30_000, "maxVirtualTimeTaskStarvationCount": 9999,
	}, nil)
	v.happens("Emulation.virtualTimeBudgetExpired")
	if *pictures != "" {
		var shot struct{ Data string }
		v.call("Page.captureScreenshot", nil, &shot)
		png, err := base64.StdEncoding.DecodeString(shot.Data)
		if err == nil {
			err = os.WriteFile(filepath.Join(*pictures, name), png, 0o600)
		}
		if err != nil {
			v.t.Fatal(err)
		}
	}
	dom = v.eval("document.documentElement.outerHTML")
	v.call("Page.close", nil, nil)
	return dom
}

// over ends the browser, and returns the addresses that the pages asked for and what it complains
// about.
func (v *visits) over() (asked, complaints []string) {
	v.t.Helper()
	v.end()
	for line := range strings.SplitSeq(v.log.String(), "\n") {
		if strings.Contains(line, ":CONSOLE") &&
			(strings.Contains(line, "Security Policy") || strings.Contains(line, "ERROR:CONSOLE") ||
				strings.Contains(line, "Uncaught")) {
			complaints = append(complaints, line)
		}
	}
	return askedFor(v.t, v.netLog), complaints
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
	v := newVisits(t)
	for picture, tt := range map[string]struct {
		path, scheme string
		want         []string
	}{
		"docs-light.png": {"/docs", "light", []string{"List devices", "Webhook events"}},
		"message-dark.png": {
			"/docs#tag/messages/POST/v1/messages", "dark", []string{"<h1>Messages</h1>", "Try it", "whenDisconnected"},
		},
		"old-event-light.png":  {"/docs#tag/webhooks/webhook/POST/messagereceived", "light", []string{"<h1>Webhook events</h1>"}},
		"old-object-light.png": {"/docs#model/newmessagetext", "light", []string{"<h1>Objects</h1>"}},
		"changelog-light.png": {
			"/docs/changelog", "light", []string{"<h1>Changelog</h1>", "<code>GET /v1/usage</code>"},
		},
		"guide-light.png":  {"/docs/guides/text", "light", []string{"<h1>Text</h1>", `<h2 id="send-text">`}},
		"search-dark.png":  {"/docs/search?q=mention", "dark", []string{"<mark>mention</mark>"}},
		"problem-dark.png": {"/problems/device-not-connected", "dark", []string{"<h1>Device not connected</h1>"}},
	} {
		dom := v.open(k.URL()+tt.path, tt.scheme, picture)
		for _, words := range tt.want {
			if !strings.Contains(dom, words) {
				t.Errorf("%s does not show %q (%d bytes)", tt.path, words, len(dom))
			}
		}
	}
	asked, complaints := v.over()
	for _, line := range complaints {
		t.Errorf("the browser complains: %s", line)
	}
	for _, u := range asked {
		if !strings.HasPrefix(u, k.URL()+"/") && !strings.HasPrefix(u, "data:") &&
			!strings.HasPrefix(u, "blob:"+k.URL()+"/") {
			t.Errorf("another host was asked: %s", u)
		}
	}
	for _, path := range []string{"/docs/api.js", "/docs/api.css", "/docs/api/messages#sendMessage", "/docs/style.css"} {
		if !slices.Contains(asked, k.URL()+path) {
			t.Errorf("%s was not asked for: %v", path, asked)
		}
	}
}

// TestTheBrowserTellsOfOtherHosts shows it pages that ask for what the
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
	v := newVisits(t)
	for _, path := range []string{"/open", "/strict"} {
		v.open(site.URL+path, "light", "none.png")
	}
	asked, complaints := v.over()
	for _, u := range []string{"http://fonts.example.com/a.png", "https://cdn.example.com/a.js"} {
		if !slices.Contains(asked, u) {
			t.Errorf("%s is not among %v", u, asked)
		}
	}
	if !slices.ContainsFunc(complaints, func(line string) bool {
		return strings.Contains(line, "fonts.example.com") && strings.Contains(line, "Security Policy")
	}) {
		t.Errorf("the browser refused without a word: %q", complaints)
	}
}
