package testkit_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"postern/internal/testkit"
)

// TestGuidesOnAPhone opens every page that the index of guides names, without JavaScript and on a small screen, and
// searches.
func TestGuidesOnAPhone(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := newBrowser(t)
	b.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	open := func(path, title string) {
		b.call("Page.navigate", map[string]any{"url": k.URL() + path}, nil)
		b.await(title)
		b.fits(path)
	}
	open("/docs/guides", "Guides")
	b.picture("guides")
	var list []struct{ Href, Text string }
	links := `JSON.stringify([...document.querySelectorAll(".guides a")].map(a => ({href: a.pathname, text: a.innerText})))`
	if err := json.Unmarshal([]byte(b.eval(links)), &list); err != nil || len(list) < 25 {
		t.Fatalf("%d guides, %v", len(list), err)
	}
	for _, guide := range list {
		open(guide.Href, guide.Text)
	}
	open("/docs", "API reference")
	b.picture("reference")
	b.eval(`for (const d of document.querySelectorAll("details")) d.open = true`)
	b.fits("/docs, with all that opens")
	for _, page := range []string{"messages", "devices", "webhook-events", "schemas"} {
		open("/docs/api/"+page, "All ")
		b.eval(`for (const d of document.querySelectorAll("details")) d.open = true`)
		b.fits(page + ", with all that opens")
	}
	b.eval(`document.querySelector("input").value = "rotate secret"; document.querySelector("form").submit()`)
	b.await("results for")
	b.fits("the results")
	b.picture("search")
	if at := b.eval("location.pathname + location.search"); at != "/docs/search?q=rotate+secret" {
		t.Errorf("the search is at %s", at)
	}
	b.eval(`document.querySelector(".results a[href*='#rotate-the-secret-key']").click()`)
	b.await("Running several servers")
	if at := b.eval("location.hash"); at != "#rotate-the-secret-key" {
		t.Errorf("the first result leads to %s", at)
	}
}

// TestGuidesAreAccessible looks at pages of each kind with axe, in light and in dark.
func TestGuidesAreAccessible(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile("../dash/browsertest/testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	k := testkit.Start(t)
	b := newBrowser(t)
	for path, title := range map[string]string{
		"/docs/guides": "Guides", "/docs/guides/moving": "Moving", "/docs/search?q=secret": "results", "/problems/not-found": "What to do",
		"/docs": "Authentication", "/docs/api/media": "Try it", "/docs/api/chats": "Objects",
	} {
		for scheme, rules := range map[string]string{
			// Browsers make what scrolls focusable by themselves, and only while it does.
			"light": `rules: {"scrollable-region-focusable": {enabled: false}}`,
			"dark":  `runOnly: ["color-contrast", "link-in-text-block"]`, // the others do not depend on colors
		} {
			b.call("Emulation.setEmulatedMedia",
				map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
			b.call("Page.navigate", map[string]any{"url": k.URL() + path}, nil)
			b.await(title)
			b.eval(`for (const d of document.querySelectorAll("details")) d.open = true; document.querySelector(".try")?.click()`)
			b.eval(string(axe))
			var out struct{ Result struct{ Value string } }
			b.call("Runtime.evaluate", map[string]any{"awaitPromise": true, "expression": `axe.run({` + rules + `,
				reporter: "no-passes", preload: {assets: ["media"]}}).then(r =>
				r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).slice(0, 2)).join("\n"))`}, &out)
			if out.Result.Value != "" {
				t.Errorf("%s in %s: %s", path, scheme, regexp.MustCompile(`\s+`).ReplaceAllString(strings.TrimSpace(out.Result.Value), " "))
			}
		}
	}
}
