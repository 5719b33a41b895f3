package browsertest

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"postern/internal/testkit"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	email    = "ada@example.com"
	password = "four plain words here"
)

// setUp makes the first user, whom the browser then knows: the form of the set-up link is sent without it, because
// that takes a fifth of the time.
func (b *browser) setUp(k *testkit.Kit) {
	b.t.Helper()
	form := url.Values{"workspace": {"Acme"}, "email": {email}, "password": {password}}
	here := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := here.PostForm(k.SetUpURL(), form)
	b.must(err)
	b.must(res.Body.Close())
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) == 0 {
		b.t.Fatalf("setting up is answered %s, with %d cookies", res.Status, len(res.Cookies()))
	}
	for _, c := range res.Cookies() {
		_, err = chromedp.Call(b.ctx, network.SetCookie, network.SetCookieParams{
			Name: c.Name, Value: c.Value, URL: b.url, HTTPOnly: &c.HttpOnly, SameSite: network.CookieSameSiteLax,
		})
		b.must(err)
	}
}

func (b *browser) signIn() {
	b.t.Helper()
	b.goTo("/signin")
	b.fill("#email", email, "#password", password)
	b.press("main form button:not([type])")
}

func TestFromTheSetUpLinkToTheFirstCall(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.do(chromedp.Navigate(k.SetUpURL()))
	b.looks("set-up")
	b.fill("#workspace", "Acme", "#email", email, "#password", password)
	b.press("main form button:not([type])")
	b.sees("Acme")
	b.picture("overview")
	b.usable()
	b.goTo("/keys/new")
	b.picture("key-new")
	b.fill("#name", "shop backend")
	b.press("main form button:not([type])")
	b.picture("key-shown")
	b.usable()
	secret := ""
	for word := range strings.FieldsSeq(b.text()) {
		if strings.HasPrefix(word, "pst_") && len(word) == 42 {
			secret = word
		}
	}
	if status := call(t, k.URL(), secret); status != http.StatusOK {
		t.Fatalf("the key %q is answered %d", secret, status)
	}
	b.goTo("/keys")
	b.sees("shop backend")
	b.sees("…" + secret[len(secret)-4:])
	b.picture("keys")
	for _, path := range []string{"/devices", "/account", "/nothing"} {
		b.goTo(path)
		b.picture(strings.Trim(path, "/"))
		b.usable()
	}
}

// call makes the first call of the API.
func call(t *testing.T, url, secret string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/devices", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

func TestSignOutEverywhereReachesAnotherBrowser(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	here, there := open(t, k.URL()), open(t, k.URL())
	here.setUp(k)
	there.signIn()
	there.goTo("/devices")
	there.sees("Devices")
	here.goTo("/account")
	here.press(`button[name="end"][value="all"]`)
	if p := here.path(); p != "/signin" {
		t.Errorf("this browser is at %s", p)
	}
	there.goTo("/devices")
	if p := there.path(); !strings.HasPrefix(p, "/signin") {
		t.Errorf("the other browser is at %s", p)
	}
	there.usable()
	there.picture("sign-in")
}

// A phone is linked by the code on the screen, as a camera sees it, and the page
// says so by itself.
func TestLinkingByTheCodeOnTheScreen(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	b.goTo("/devices")
	b.picture("devices-empty")
	b.press(`main a[href="/devices/new"]`)
	b.fill("#name", "Support")
	b.press("main form button:not([type])")
	b.picture("device-new")
	b.usable()
	b.press(`form[action$="/link"] button`)
	b.do(chromedp.WaitVisible(chromedp.CSS(".qr svg")))
	b.picture("device-link")
	b.usable()
	shot, err := chromedp.Run(b.ctx, chromedp.Screenshot(chromedp.CSS(".qr")))
	b.must(err)
	if err := k.VendorOfSetUp().Scan(t.Context(), read(t, shot), "+15550001111"); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.WaitVisible(chromedp.CSS(".state.badge-success")))
	b.sees("+15550001111")
	b.picture("device-linked")
	b.usable()
	b.press(`a[href$="/phone"]`)
	b.fill("#body", "<b>Hello</b> from a contact")
	b.press(`form[action$="/write"] button`)
	b.sees("<b>Hello</b> from a contact")
	b.picture("phone")
	b.usable()
	b.press(`button[value="logout"]`)
	b.goTo(strings.TrimSuffix(b.path(), "/phone"))
	b.do(chromedp.WaitVisible(chromedp.CSS(".state.badge-error")))
	b.picture("device-logged-out")
}

// read decodes a QR code from a picture.
func read(t *testing.T, picture []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "screen.png")
	if err := os.WriteFile(file, picture, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "zbarimg", "--quiet", "--raw", file).Output()
	if err != nil {
		t.Fatalf("no code is seen on the screen: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// A user without a mouse signs in, gets past the navigation, and opens a dialog and
// leaves it.
func TestByKeyboardAlone(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	b.goTo("/keys/new")
	b.fill("#name", "ci")
	b.press("main form button:not([type])")
	b.goTo("/account")
	b.press(`button[name="end"][value="all"]`)
	b.focuses("email")
	b.do(chromedp.KeyEvent(email), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(password))
	b.enter()
	if p := b.path(); p != "/" {
		t.Fatalf("signed in by keyboard, the browser is at %s", p)
	}
	b.do(chromedp.KeyEvent(kb.Tab))
	if got := b.focused(); !strings.Contains(got, "Skip") {
		t.Errorf("the first stop is %q, want the way past the navigation", got)
	}
	b.goTo("/keys")
	for range 40 {
		if b.do(chromedp.KeyEvent(kb.Tab)); b.focused() == "Revoke" {
			break
		}
	}
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitReady(chromedp.CSS("dialog[open]")))
	b.picture("keys-revoke")
	b.usable()
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.WaitNotPresent(chromedp.CSS("dialog[open]")))
	if got := b.focused(); got != "Revoke" {
		t.Errorf("after the dialog the focus is on %q", got)
	}
	b.goTo("/account")
	b.sees("Ended signed-in sessions")
	b.picture("account")
	b.usable()
}

// A page that finds its session ended while one of its forms is on its way leaves the next page to the form.
func TestTheEndOfASessionLeavesAFormItsWay(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k)
	b.goTo("/account")
	b.settle()
	reloads, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`(async () => {
		let reloads = false
		navigation.addEventListener('navigate', (e) => { reloads ||= e.navigationType === 'reload' })
		const told = new Promise((ok) => document.addEventListener('htmx:before:response', (e) => {
			if (e.detail.ctx.response.raw.redirected) ok()
		}))
		const form = document.querySelector('form[action="/account/sessions"]')
		form.dataset.sent = '1'
		const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
		const ended = await fetch(form.action, { method: 'POST', body: 'end=all', headers })
		if (!ended.ok) throw new Error(ended.status)
		document.body.dispatchEvent(new Event('news'))
		await told
		return reloads
	})()`, chromedp.EvalAwaitPromise))
	if b.must(err); reloads {
		t.Error("the page is loaded again while its form is on its way")
	}
}
