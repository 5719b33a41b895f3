package browsertest

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"postern/internal/postern"
	"postern/internal/testkit"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var pictures = flag.String("pictures", "", "write screenshots to this directory")

// axe finds what people with a screen reader or without a mouse cannot use
// (axe-core, MPL-2.0).
//
//go:embed testdata/axe.min.js
var axe string

// browser is a person's browser, with cookies of its own. Whatever leaves for
// another host, and whatever a page does wrong, fails the test.
type browser struct {
	t   *testing.T
	ctx context.Context
	url string // of the dashboard

	mu     sync.Mutex
	wrongs []string
	other  string // an address that requests may leave for too
}

// chromium is the one process of Chromium that all tests share. Each browser is a
// window in it with a profile of its own. Chromium sometimes crashes when it starts, so it has three tries.
var chromium = sync.OnceValues(func() (ctx context.Context, err error) {
	for range 3 {
		if ctx, err = launch(); err == nil {
			break
		}
	}
	return ctx, err
})

func launch() (ctx context.Context, err error) {
	const path = "/usr/bin/chromium-headless-shell"
	if _, err := os.Stat(path); err != nil {
		return nil, errors.New("there is no chromium-headless-shell; make deps installs it")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 900),
		chromedp.Flag("js-flags", "--no-maglev --no-opt"), // no page lives long enough to repay optimized code
		// The first two are those of chromedp. With a frame of its own for each page (RenderDocument), as in other
		// browsers, a load takes a sixth more of the processor.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,RenderDocument"),
		chromedp.Flag("force-prefers-reduced-motion", true)) // tests of motion override this
	if *floodedBy > 1 {
		opts = append(opts, chromedp.ModifyCmdFunc(yield))
	} else {
		opts = append(opts, chromedp.Flag("in-process-gpu", true)) // one process fewer
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, leave := chromedp.NewContext(ctx)
	quit = func() { leave(); stop() }
	if err := chromedp.Do(ctx); err != nil {
		quit()
		return nil, err
	}
	return ctx, nil
}

// yield gives a command the lowest priority, so that it has what the server leaves of the machine.
func yield(cmd *exec.Cmd) {
	cmd.Args = append([]string{"nice", "-n", "19", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/usr/bin/nice"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// quit ends Chromium if it was started.
var quit = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	quit()
	os.Exit(code)
}

// open opens a browser for a dashboard, which must do nothing wrong.
func open(t *testing.T, url string) *browser {
	t.Helper()
	b := start(t, url)
	t.Cleanup(b.judge)
	return b
}

// start opens a browser that notes what a page does wrong.
func start(t *testing.T, url string) *browser {
	t.Helper()
	shared, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	return tabIn(t, shared, url, chromedp.WithNewBrowserContext())
}

// another opens one more page in the same browser.
func (b *browser) another() *browser {
	b.t.Helper()
	tab := tabIn(b.t, b.ctx, b.url)
	b.t.Cleanup(tab.judge)
	return tab
}

// tabIn opens a page in a browser, or, with an option, in a new one.
func tabIn(t *testing.T, parent context.Context, url string, with ...chromedp.ContextOption) *browser {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, with...)
	t.Cleanup(cancel)
	if deadline, ok := t.Deadline(); ok { // of go test: a visit that hangs says where it was
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-10*time.Second))
		t.Cleanup(cancel)
	}
	b := &browser{t: t, ctx: ctx, url: strings.TrimSuffix(url, "/")}
	b.must(chromedp.Listen(ctx, b.saw))
	for _, enable := range []func() error{
		func() error {
			focus := emulation.SetFocusEmulationEnabledParams{Enabled: true}
			_, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, focus)
			return err
		},
		func() error { _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); return err },
	} {
		b.must(enable())
	}
	return b
}

func (b *browser) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// soon bounds a step: what does not come at all is not waited for until go test ends.
func (b *browser) soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, 2*testkit.Wait)
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.soon()
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.picture("failed")
		b.t.Fatalf("%v; the page says: %.500s", err, b.text())
	}
}

// saw notes what must not happen.
func (b *browser) saw(event any) {
	wrong := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, b.url+"/") && !strings.HasPrefix(url, "data:") &&
			!b.allows(url) {
			wrong = "a request left for " + url
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError &&
			!strings.Contains(e.Entry.Text, "the server responded with a status of 4") {
			wrong = "the browser says: " + e.Entry.Text
		}
	case *runtime.EventExceptionThrown:
		wrong = "a script failed: " + e.ExceptionDetails.Text
	}
	if wrong != "" {
		b.note(wrong)
	}
}

// allow lets requests leave for another address.
func (b *browser) allow(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.other = url
}

func (b *browser) allows(url string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.other != "" && strings.HasPrefix(url, b.other+"/")
}

func (b *browser) note(wrong string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrongs = append(b.wrongs, wrong)
}

func (b *browser) noted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.wrongs)
}

func (b *browser) judge() {
	for _, w := range b.noted() {
		b.t.Error(w)
	}
}

// goTo visits a page. The browser may report the end of a load while requests of the page before are still being
// dropped, so the document itself is asked, too.
func (b *browser) goTo(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + path))
	testkit.Eventually(b.t, "the page "+path, func() (bool, any) {
		ready, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](
			`document.documentElement !== null && document.readyState === "complete"`))
		return ready, err
	})
}

// press clicks on a button or a link, and waits for the page that follows.
func (b *browser) press(selector string) {
	b.t.Helper()
	ctx, cancel := b.soon()
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.WaitEvent(page.LoadEventFired, nil, click(selector))); err != nil {
		b.t.Fatalf("press %s: %v; the page says: %.500s", selector, err, b.text())
	}
}

// click waits until an element can be seen and nothing lies over it, and clicks on it.
// Both happen in one step in the page: a page that replaces a part of itself between the press and
// the release of a mouse button loses the click.
func click(selector string) chromedp.Action[chromedp.Void] {
	try := chromedp.Evaluate[bool](fmt.Sprintf(`(() => {
		const element = document.querySelector(%q)
		if (!element) return false
		element.scrollIntoView({block: "center", behavior: "instant"})
		const at = element.getClientRects()[0]
		const top = at && document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2)
		if (!top || !element.contains(top) || element.disabled) return false
		element.click()
		return true
	})()`, selector))
	return func(ctx context.Context, t *chromedp.Target) (done chromedp.Void, err error) {
		for clicked := false; !clicked && err == nil; {
			if clicked, err = try(ctx, t); !clicked && err == nil {
				err = postern.Sleep(ctx, 20*time.Millisecond)
			}
		}
		return done, err
	}
}

// fill writes into fields, each as if all but the last character were pasted: Chromium draws the page for every key.
func (b *browser) fill(fields ...string) {
	b.t.Helper()
	for i := 0; i+1 < len(fields); i += 2 {
		_, last := utf8.DecodeLastRuneInString(fields[i+1])
		pasted, typed := fields[i+1][:len(fields[i+1])-last], fields[i+1][len(fields[i+1])-last:]
		b.do(chromedp.Focus(chromedp.CSS(fields[i]), chromedp.NodeVisible))
		_, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: pasted})
		b.must(err)
		b.do(chromedp.KeyEvent(typed))
	}
}

func (b *browser) text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// sees fails when the page does not say something.
func (b *browser) sees(text string) {
	b.t.Helper()
	if got := b.text(); !strings.Contains(got, text) {
		b.picture("unseen")
		b.t.Errorf("the page does not say %q, but: %.800s", text, got)
	}
}

func (b *browser) path() string {
	url, err := chromedp.Run(b.ctx, chromedp.Location())
	b.must(err)
	return strings.TrimPrefix(url, b.url)
}

// settle brings what moves or fades to its end, and stops what has none.
func (b *browser) settle() {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`for (const a of document.getAnimations()) {
		if (a.effect.getComputedTiming().endTime === Infinity) a.cancel()
		else a.finish()
	}`))
}

// audit runs axe if the page has it. No rule that is on reads the style sheets, which it would fetch again.
const audit = `(async () => "axe" in window ? {
	Ran: true, Found: (await axe.run({reporter: "no-passes", preload: {assets: ["media"]}%s})).violations.map(v => ({
		ID: v.id, Impact: v.impact, Help: v.help, Where: v.nodes.map(n => n.html).join(" ").slice(0, 300),
	})),
} : {Ran: false, Found: []})()`

// looksRules are the rules of axe whose outcome depends on colors and on where things are.
const looksRules = `, runOnly: ["color-contrast", "link-in-text-block", "scrollable-region-focusable"]`

// usable fails when the page has what some people cannot use.
func (b *browser) usable() {
	b.t.Helper()
	b.audit(fmt.Sprintf(audit, ""))
}

// readable fails like usable, only by the rules whose outcome depends on the looks of the page.
func (b *browser) readable() {
	b.t.Helper()
	b.audit(fmt.Sprintf(audit, looksRules))
}

func (b *browser) audit(script string) {
	b.t.Helper()
	b.settle()
	type result struct {
		Ran   bool
		Found []struct{ ID, Impact, Help, Where string }
	}
	r, err := chromedp.Run(b.ctx, chromedp.Evaluate[result](script, chromedp.EvalAwaitPromise))
	if b.must(err); !r.Ran {
		b.loadAxe()
		r, err = chromedp.Run(b.ctx, chromedp.Evaluate[result](script, chromedp.EvalAwaitPromise))
		b.must(err)
	}
	if !r.Ran {
		b.t.Fatal("axe does not run")
	}
	for _, v := range r.Found {
		b.t.Errorf("%s: %s (%s, %s) at %s", b.path(), v.Help, v.ID, v.Impact, v.Where)
	}
}

// loadAxe runs axe's script, so that the page has it. The browser keeps the script for the next page of the server:
// handing over its 650 kB takes longer than running it.
func (b *browser) loadAxe() {
	b.t.Helper()
	const load = `"axe" in localStorage && (new Function(localStorage.axe)(), true)`
	loaded, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](load))
	if b.must(err); loaded {
		return
	}
	source, err := json.Marshal(axe)
	b.must(err)
	b.do(chromedp.Evaluate[chromedp.Void]("localStorage.axe = " + string(source) + "; " + load))
}

// picture keeps what the page looks like, light, dark and on a phone.
func (b *browser) picture(name string) {
	b.t.Helper()
	if *pictures == "" {
		return
	}
	for _, look := range []struct {
		name, scheme  string
		width, height int64
	}{{"light", "light", 1280, 900}, {"dark", "dark", 1280, 900}, {"phone", "light", 390, 844}, {"phone-dark", "dark", 390, 844}} {
		b.do(chromedp.EmulateViewport(look.width, look.height))
		_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}},
		})
		b.must(err)
		b.settle()
		shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		b.must(err)
		b.must(os.MkdirAll(*pictures, 0o755))
		b.must(os.WriteFile(filepath.Join(*pictures, fmt.Sprintf("%s-%s.png", name, look.name)), shot, 0o644))
	}
	b.do(chromedp.EmulateViewport(1280, 900))
}

// enter presses the key, and waits for the page that follows.
func (b *browser) enter() {
	b.t.Helper()
	ctx, cancel := b.soon()
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.WaitEvent(page.LoadEventFired, nil, chromedp.KeyEvent(kb.Enter)))
	if err != nil {
		b.t.Fatalf("after the enter key: %v", err)
	}
}

// focused is the text of what has the focus.
func (b *browser) focused() string {
	text, err := chromedp.Run(
		b.ctx, chromedp.Evaluate[string](`document.activeElement.innerText || document.activeElement.id || ""`),
	)
	b.must(err)
	return strings.TrimSpace(text)
}

// focuses waits until a page that begins with a field has the focus on it.
func (b *browser) focuses(id string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`new Promise(done => {
		const look = () => document.activeElement.id === %q ? done() : requestAnimationFrame(look);
		look();
	})`, id), chromedp.EvalAwaitPromise))
}
