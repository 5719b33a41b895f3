package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"postern/internal/web"
)

var (
	hrefPattern   = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
	anchorPattern = regexp.MustCompile(` id="([^"]*)"`)
)

// TestEveryLinkOfEveryPageLeadsSomewhere follows the links of all pages, to the pages and to the headings.
func TestEveryLinkOfEveryPageLeadsSomewhere(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	anchors, links := map[string]bool{}, map[string][]string{}
	for _, path := range append(d.pages(), "/docs/search") {
		a := d.get(path)
		anchors[path] = a.Code == http.StatusOK
		if !strings.HasPrefix(a.Header().Get("Content-Type"), "text/html") {
			continue
		}
		page := a.Body.String()
		if strings.Contains(page, "<!--") {
			t.Errorf("%s contains HTML that is left out", path)
		}
		for _, m := range anchorPattern.FindAllStringSubmatch(page, -1) {
			if anchors[path+"#"+m[1]] {
				t.Errorf("%s has two elements with the id %q", path, m[1])
			}
			anchors[path+"#"+m[1]] = true
		}
		for _, m := range hrefPattern.FindAllStringSubmatch(page, -1) {
			links[path] = append(links[path], m[1])
		}
	}
	if len(links["/docs/guides/text"]) < 10 {
		t.Errorf("the links of a guide were not found: %q", links["/docs/guides/text"])
	}
	for path, list := range links {
		for _, link := range list {
			if !leads(anchors, path, link) {
				t.Errorf("%s has a link to %s, which is nowhere", path, link)
			}
		}
	}
	for _, link := range []string{"/docs/guides/nothing", "/docs/guides#nothing", "#nothing", "text.md"} {
		if leads(anchors, "/docs/guides", link) {
			t.Errorf("%s would not be noticed", link)
		}
	}
}

// leads tells whether a link on a page leads to a page or a heading of this server, or to another site.
func leads(anchors map[string]bool, path, link string) bool {
	switch {
	case strings.HasPrefix(link, "https://"), link == "data:,", link == "/v1/openapi.json":
		return true
	case strings.HasPrefix(link, "#"):
		return anchors[path+link]
	}
	return anchors[link]
}
