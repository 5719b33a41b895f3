package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dashboard "postern/internal/dash/page"
	"postern/internal/testkit"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// alarm is run before anything of a page is, also in its frames. It tells the console
// what foreign text must not get done.
const alarm = `(() => {
	const tell = what => console.error("T13: " + what);
	for (const name of ["alert", "confirm", "prompt", "print", "open"]) window[name] = () => tell(name + " was called");
	Object.defineProperty(window, "marker", {set: () => tell("the marker was set")});
	addEventListener("securitypolicyviolation", e => tell("the policy refused " + e.violatedDirective + " " + e.blockedURI + " " + e.sample), true);
})()`

// inspection gives all that a page says, also in its fields, and what should not be in
// it: elements and attributes that can run, addresses that leave, and long texts with kerning, which take seconds to
// lay out.
const inspection = `(() => {
	const wrongs = [], said = [document.documentElement.textContent];
	const leaves = value => { try { const u = new URL(value, location.href); return u.origin !== location.origin || !u.protocol.startsWith("http") } catch { return true } };
	for (const e of document.querySelectorAll("*")) {
		if (/^(iframe|object|embed|base|style|math|foreignobject|marquee|xmp|plaintext|template|video|audio|animate|set)$/i.test(e.localName)) wrongs.push("<" + e.localName + ">");
		if (e.localName === "script" && (e.textContent !== "" || !(e.getAttribute("src") || "").startsWith("/assets/"))) wrongs.push("a script");
		if (e.localName === "meta" && e.httpEquiv) wrongs.push("<meta http-equiv>");
		for (const a of e.attributes) {
			if (/^(on|hx-on|data-hx|srcdoc|style$|hx-vals|hx-headers|hx-ext)/i.test(a.name)) wrongs.push(e.localName + " " + a.name + "=" + a.value.slice(0, 100));
			if (/^(href|src|action|formaction|xlink:href|srcset|poster|data|hx-get|hx-post)$/i.test(a.name) && leaves(a.value)) wrongs.push(e.localName + " " + a.name + "=" + a.value.slice(0, 100));
		}
		if ("value" in e && typeof e.value === "string") said.push(e.value);
	}
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let text; text = texts.nextNode();) {
		const e = text.parentElement;
		if (text.length < 1000 || !e.checkVisibility()) continue;
		const s = getComputedStyle(e);
		if (s.fontKerning !== "none" && s.fontFamily.includes("Inter")) {
			wrongs.push("a long text that is slow to break, in " + e.localName);
		}
	}
	return JSON.stringify({path: location.pathname + location.search, wrongs, said: said.join("\n")});
})()`

// watched is a browser that also notes what foreign text gets done.
func watched(t *testing.T, url string) *browser {
	t.Helper()
	b := open(t, url)
	b.watch()
	return b
}

func (b *browser) watch() {
	b.t.Helper()
	b.must(chromedp.Listen(b.ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			// When a page is left, htmx reports the requests that this cancels as failed. Chromium logs every other
			// request that fails, and saw notes those.
			said := strings.TrimSpace(said(e))
			if e.Type == runtime.ConsoleAPICalledTypeError && said != `"htmx: htmx:error: Failed to fetch"` {
				b.note("the console says: " + said)
			}
		case *page.EventJavascriptDialogOpening:
			b.note("a dialog opened: " + e.Message)
			go func() { // not from within the listener
				_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog,
					page.HandleJavaScriptDialogParams{Accept: false})
			}()
		}
	}))
	_, err := chromedp.Call(
		b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: alarm},
	)
	b.must(err)
}

func said(e *runtime.EventConsoleAPICalled) (s string) {
	for _, a := range e.Args {
		s += string(a.Value) + " "
	}
	return s
}

// visit goes to a page, inspects it, and gives what it says.
func (b *browser) visit(path string) string {
	b.t.Helper()
	b.goTo(path)
	return b.inspect()
}

func (b *browser) inspect() string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](inspection))
	b.must(err)
	var got struct {
		Path, Said string
		Wrongs     []string
	}
	b.must(json.Unmarshal([]byte(text), &got))
	for _, w := range got.Wrongs {
		b.note(fmt.Sprintf("%.100s holds %s", got.Path, w))
	}
	return got.Said
}

// A watch that cannot bark proves nothing: pages of a server that writes texts as they
// are have it bark, with our policy and without one.
func TestWatchedBrowserBarksAtRawText(t *testing.T) {
	t.Parallel()
	raw := map[string]string{
		"script": `<script>alert(1)</script>`, "marker": `<script>window.marker=1</script>`,
		"image": `<img src=x onerror=alert(1)>`, "svg": `<svg onload=alert(1)>`,
		"frame": `<iframe srcdoc="<script>alert(1)</script>"></iframe>`, "style": `<p style="background:red">x</p>`,
		"host":    `<img src=//evil.example/p.gif>`,
		"refresh": `<meta http-equiv=refresh content="0;url=//evil.example/">`, "link": `<a href="javascript:alert(1)">x</a>`,
		"form":      `<form action=//evil.example/></form>`,
		"attribute": `<p onmouseover="alert(1)">x</p>`, "htmx": `<div hx-on::load="alert(1)"></div>`,
		"kerning":  "<font face=Inter>" + strings.Repeat("W", 1000) + "</font>",
		"base":     `<base href=//evil.example/>`,
		"mutation": `<noscript><p title="</noscript><img src=x onerror=alert(1)>">`,
	}
	one := start(t, "")
	for _, policy := range []string{dashboard.Policy, ""} {
		for name, text := range raw {
			t.Run(fmt.Sprintf("%s with policy %t", name, policy != ""), func(t *testing.T) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Security-Policy", policy)
					w.Header().Set("Content-Type", "text/html; charset=utf-8")
					_, _ = fmt.Fprintf(w, "<!DOCTYPE html><title>raw</title><main>%s</main>", text)
				}))
				t.Cleanup(server.Close)
				b := tabIn(t, one.ctx, server.URL)
				b.watch()
				_, _ = chromedp.Run(b.ctx, chromedp.Navigate(b.url+"/")) // it may lead away
				b.barks()
				t.Logf("noted: %.200s", b.noted()[0])
			})
		}
	}
}

// barks inspects a page that may be about to leave, and waits until something was noted.
func (b *browser) barks() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	inspected := make(chan struct{})
	go func() {
		defer close(inspected)
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string](inspection))
		if err == nil && !strings.Contains(text, `"wrongs":[]`) {
			b.note("the page holds what it must not: " + text)
		}
	}()
	testkit.Eventually(b.t, "a bark", func() (bool, any) { return len(b.noted()) > 0, nil })
	cancel()
	<-inspected
}
