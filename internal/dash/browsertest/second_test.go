package browsertest

import (
	"net/url"
	"strings"
	"testing"

	"postern/internal/testkit"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// A passkey, of an authenticator inside the browser, is added, asked for at the
// next sign-in, and lets in.
func TestPasskeyAsTheSecondStep(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	named(t, k)
	b := open(t, k.URL())
	b.withAuthenticator()
	b.setUp(k)
	b.goTo("/account")
	b.press(`a[href="/account/second"]`)
	b.picture("second-sure")
	b.fill("#password", password)
	b.press(`form[action="/account/second"] button:not([type])`)
	b.picture("second-none")
	b.usable()
	b.press(`form[action="/account/second/app"] button`)
	b.sees("Scan this code with your authenticator app")
	b.picture("second-app")
	b.usable()
	b.goTo("/account/second")
	b.fill("#name", "Laptop")
	b.press(`form[data-passkey] button`)
	b.sees("Recovery codes")
	b.picture("second-recovery")
	b.usable()
	b.press(`main a[href="/account/second"]`)
	b.sees("Laptop")
	b.picture("second-passkey")
	b.usable()

	b.goTo("/account")
	b.press(`button[name="end"][value="all"]`)
	b.signIn()
	b.sees("Two-step authentication")
	b.picture("second-step")
	b.usable()
	b.goTo("/account")
	if p := b.path(); !strings.HasPrefix(p, "/signin") {
		t.Fatalf("the password alone leads to %s", p)
	}
	b.goTo("/signin/second?next=/account")
	b.press(`form[data-passkey] button`)
	if p := b.path(); p != "/account" {
		t.Fatalf("with the passkey the browser is at %s", p)
	}
	b.sees("a passkey")
}

// named restarts a gateway at a name: browsers have no passkeys for bare addresses.
func named(t *testing.T, k *testkit.Kit) {
	t.Helper()
	u, err := url.Parse(k.URL())
	if err != nil {
		t.Fatal(err)
	}
	k.Stop()
	k.Config.Addr, k.Config.BaseURL = u.Host, "http://localhost:"+u.Port()
	k.Boot()
}

// withAuthenticator gives the browser one that says yes by itself.
func (b *browser) withAuthenticator() {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{})
	b.must(err)
	_, err = chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator,
		webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		}})
	b.must(err)
}
