package web_test

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"postern/internal/web"
)

var (
	resultPattern = regexp.MustCompile(`<li><a href="([^"]*)">[^<]*</a>( <small>|\n)`)
	markPattern   = regexp.MustCompile(`<mark>([^<]*)</mark>`)
)

// search returns the addresses of the results, and the page.
func (d *door) search(query string) (list []string, page string) {
	d.t.Helper()
	a := d.get("/docs/search?q=" + url.QueryEscape(query))
	if a.Code != http.StatusOK || !strings.Contains(a.Header().Get("Content-Security-Policy"), "form-action 'self'") {
		d.t.Fatalf("the search for %q is answered %d %v", query, a.Code, a.Header())
	}
	_, results, _ := strings.Cut(a.Body.String(), `<ol class="results">`)
	for _, m := range resultPattern.FindAllStringSubmatch(results, -1) {
		list = append(list, m[1])
	}
	return list, a.Body.String()
}

// TestSearchFindsTheDocumentation looks for something of each kind. What has the words in its title comes first.
func TestSearchFindsTheDocumentation(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	for query, first := range map[string]string{
		"mention somebody":             "/docs/guides/text#mention-somebody",
		"ROTATE the secret Key":        "/docs/operations#rotate-the-secret-key",
		"device not connected":         "/problems/device-not-connected",
		"message.received":             "/docs/api/webhook-events#message.received",
		"get /v1/messages/{id} status": "/docs/api/messages#getMessage",
		"NewMessageText":               "/docs/api/schemas#NewMessageText",
	} {
		list, page := d.search(query)
		if len(list) == 0 || list[0] != first {
			t.Errorf("%q finds %q, want %s first", query, list, first)
		}
		for _, m := range markPattern.FindAllStringSubmatch(page, -1) {
			if !strings.Contains(strings.ToLower(query), strings.ToLower(m[1])) {
				t.Errorf("%q marks %q", query, m[1])
			}
		}
	}
	if _, page := d.search("mention"); !strings.Contains(page, "<mark>mention</mark>") {
		t.Error("what was found is not marked")
	}
	if _, page := d.search("port"); strings.Contains(page, "sup<mark>") || !strings.Contains(page, "<mark>port</mark>") {
		t.Error("port is found inside of other words")
	}
	if list, page := d.search("nosuchword"); len(list) != 0 || !strings.Contains(page, "Nothing was found") {
		t.Errorf("nosuchword finds %q", list)
	}
}

// TestSearchIsBounded: a page has at most 30 results, and of a long query only the start counts.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	list, page := d.search("the")
	if len(list) != 30 || !strings.Contains(page, "The first 30 of ") {
		t.Errorf("a frequent word finds %d results", len(list))
	}
	long := "mention somebody" + strings.Repeat(" ", 100) + "nosuchword"
	if list, page := d.search(long); len(list) == 0 || strings.Contains(page, "nosuchword") {
		t.Errorf("a long query finds %q", list)
	}
	if _, page := d.search(strings.Repeat("ä", 1000)); strings.Count(page, "ä") != 2*50 {
		t.Errorf("a long word is shown with %d characters", strings.Count(page, "ä"))
	}
}

// TestSearchShowsHostileInputAsText: nothing of a query becomes HTML, and none is an error.
func TestSearchShowsHostileInputAsText(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	_, none := d.search("")
	_, plain := d.search("nosuchword")
	tags := []int{strings.Count(none, "<"), strings.Count(plain, "<")}
	for _, query := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'onfocus='alert(1)`, `</title><b>`, `&lt;b&gt;`,
		`{{.}}`, `(`, `[a-`, `\`, `(?i)(a+)+$ nosuch`, "a\x00b\x1f", "\xff\xfe\xc0", "\u202e\u2066", "İ ẞ ǅ K",
		`javascript:alert(1)`, `%s%n`, `../../../etc/passwd`, "nosuch <mark>",
	} {
		list, page := d.search(query)
		if len(list) == 0 && !slices.Contains(tags, strings.Count(page, "<")) {
			t.Errorf("%q becomes HTML: %s", query, page)
		}
		for _, bad := range []string{"<script", "<img", "<b>", "onfocus='", "\x00b", "\xff"} {
			if strings.Contains(page, bad) {
				t.Errorf("the page for %q contains %q", query, bad)
			}
		}
	}
	for _, target := range []string{"/docs/search", "/docs/search?q=", "/docs/search?q=+", "/docs/search?q=%zz", "/docs/search?q=a;b"} {
		if a := d.get(target); a.Code != http.StatusOK || strings.Contains(a.Body.String(), `<ol class="results">`) {
			t.Errorf("%s is answered %d %s", target, a.Code, a.Body)
		}
	}
}

// TestSearchWithoutItsDocument fails as an internal error.
func TestSearchWithoutItsDocument(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	d.Door = web.New(web.Options{BaseURL: baseURL, Document: func() ([]byte, error) { return nil, errors.New("away") }})
	if a := d.get("/docs/search?q=text"); a.Code != http.StatusInternalServerError {
		t.Errorf("answered %d %s", a.Code, a.Body)
	}
}
