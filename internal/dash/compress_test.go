package dash

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	pages "postern/internal/dash/page"
	"postern/internal/postern"
	"postern/internal/web"

	"github.com/andybalholm/brotli"
)

// behindTheDoor returns a server whose front door compresses what it may.
func behindTheDoor(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(web.New(web.Options{Dashboard: h}))
	t.Cleanup(srv.Close)
	return srv
}

// paths are the patterns of routes.go with ids that are there.
func paths(t *testing.T, ids map[string]string) (list []string) {
	t.Helper()
	text, err := os.ReadFile("routes.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"(?:GET|POST) (/[^"]*)"`).FindAllStringSubmatch(string(text), -1) {
		path := m[1]
		for prefix, id := range ids {
			if strings.HasPrefix(path, prefix) {
				path = strings.Replace(path, "{id}", id, 1)
			}
		}
		if path != "/live" { // a stream, which is open for minutes
			list = append(list, strings.TrimSuffix(path, "{$}"))
		}
	}
	return list
}

// TestPagesOfPeopleAreNeverCompressed asks for the path of every route, as an owner who
// operates the server and as nobody.
func TestPagesOfPeopleAreNeverCompressed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	s.operates(true)
	device := s.connected(s.workspace(), "Support")
	message := s.comes(device, "+15551234567", "Eve", "chosen by a stranger")
	hook, _ := c.addWebhook("https://hooks.example.com/a")
	list := paths(t, map[string]string{
		"/devices": string(device.ID), "/messages": string(message.ID), "/webhooks": string(hook.ID),
		"/operator/workspaces": string(s.workspace()), "/operator/people": string(s.member(email)),
	})
	srv := behindTheDoor(t, s.serve)
	c.url = srv.URL
	shown := 0
	for _, path := range list {
		for who, b := range map[string]*client{"an owner": c, "nobody": s.browser()} {
			p := b.do(http.MethodGet, path, nil, "Accept-Encoding", "gzip, br")
			if p.header.Get("Content-Encoding") != "" {
				t.Errorf("%s: %s is compressed: %v", who, path, p.header)
			}
			if who == "an owner" && p.status == http.StatusOK && len(p.body) > 1<<10 {
				shown++
			}
		}
	}
	if shown < 30 {
		t.Errorf("only %d of %d pages are shown", shown, len(list))
	}
}

// TestPagesWithASecretAreNeverCompressed shows each secret that is shown only once.
func TestPagesWithASecretAreNeverCompressed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	s.operates(true)
	s.joins(c.invites(guest, postern.Viewer))
	srv := behindTheDoor(t, s.serve)
	path := c.post("/devices", url.Values{"name": {"Support"}}).header.Get("Location")
	c.want(c.post(path+"/link", nil), http.StatusSeeOther, path)
	s.code(path)
	hook, _ := c.addWebhook("https://hooks.example.com/a")
	c.url = srv.URL
	for _, tt := range []struct {
		method, path string
		form         url.Values
		shows        string
	}{
		{"POST", "/keys", url.Values{"name": {"ci"}, "scope": {"devices:read"}, "expiry": {"24h"}}, "pst_"},
		{"GET", path, nil, `class="qr"`},
		{"POST", path + "/link/page", nil, "/link/"},
		{"POST", "/webhooks/" + string(hook.ID) + "/secret", url.Values{"password": {password}}, "whsec_"},
		{"POST", "/webhooks/" + string(hook.ID) + "/rotate", url.Values{"overlap": {"0"}}, "whsec_"},
		{"POST", "/people/invitations", url.Values{"email": {"b@example.com"}, "role": {"viewer"}}, "/join/"},
		{"POST", "/operator/people/" + string(s.member(guest)) + "/password", url.Values{"password": {password}}, "/join/"},
	} {
		p := c.do(tt.method, tt.path, tt.form, "Accept-Encoding", "br, gzip")
		if !strings.Contains(p.body, tt.shows) || p.header.Get("Content-Encoding") != "" {
			t.Errorf("%s %s is answered %d without %q, or compressed: %v", tt.method, tt.path, p.status, tt.shows, p.header)
		}
	}
}

// TestAssetsAreCompressed reads each in every coding.
func TestAssetsAreCompressed(t *testing.T) {
	t.Parallel()
	srv := behindTheDoor(t, Handler(Options{}))
	for _, name := range []string{"app.css", "app.js", "htmx.min.js", "theme.js", "licences.txt"} {
		_, plain := fetch(t, srv.URL+pages.Asset(name), "identity")
		for _, coding := range []string{"gzip", "br"} {
			got, body := fetch(t, srv.URL+pages.Asset(name), coding)
			if got != coding || len(body) >= len(plain) || string(expanded(t, coding, body)) != string(plain) {
				t.Errorf("%s: %d bytes in the coding %q", name, len(body), got)
			}
		}
	}
}

func fetch(t *testing.T, address, accept string) (coding string, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", accept)
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.Header.Get("Content-Encoding"), body
}

func expanded(t *testing.T, coding string, body []byte) []byte {
	t.Helper()
	from := io.Reader(brotli.NewReader(strings.NewReader(string(body))))
	if coding == "gzip" {
		z, err := gzip.NewReader(strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		from = z
	}
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
