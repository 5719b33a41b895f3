package browsertest

import (
	"net/http"
	"strings"
	"testing"

	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
)

const (
	email    = "ada@example.com"
	password = "four plain words here"
)

// setUp makes the first user.
func (b *browser) setUp(link string) {
	b.t.Helper()
	b.do(chromedp.Navigate(link))
	b.picture("set-up")
	b.usable()
	b.fill("#workspace", "Acme", "#email", email, "#password", password)
	b.press("main form button:not([type])")
}

func (b *browser) signIn() {
	b.t.Helper()
	b.goTo("/signin")
	b.fill("#email", email, "#password", password)
	b.press("main form button:not([type])")
}

func TestFromTheSetUpLinkToTheFirstCall(t *testing.T) {
	k := testkit.Start(t)
	b := open(t, k.URL())
	b.setUp(k.SetUpURL())
	b.sees("Acme")
	b.picture("overview")
	b.usable()
	b.goTo("/keys/new")
	b.picture("key-new")
	b.usable()
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
	b.usable()
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
	k := testkit.Start(t)
	here, there := open(t, k.URL()), open(t, k.URL())
	here.setUp(k.SetUpURL())
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
