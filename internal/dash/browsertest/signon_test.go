package browsertest

import (
	"strings"
	"testing"

	"postern/internal/oidc/oidctest"
	"postern/internal/testkit"
)

// Ada connects her account and signs in by the provider; Bob accepts an invitation by
// it, and shows again who he is where others enter a password.
func TestSignInByOIDC(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	p := oidctest.Start(t)
	p.WithButton()
	k.Stop()
	k.Config.SignOn.Issuer, k.Config.SignOn.ClientID, k.Config.SignOn.ClientSecret, k.Config.SignOn.Name = p.URL,
		oidctest.ClientID, oidctest.Secret,
		"Example SSO"
	k.Boot()
	ada := open(t, k.URL())
	ada.allow(p.URL)
	ada.setUp(k)
	ada.goTo("/account")
	ada.picture("signon-account")
	ada.usable()
	ada.press(`a[href="/account/identities"]`)
	ada.picture("signon-sure")
	ada.usable()
	ada.fill("#password", password)
	ada.press(`form[action="/account/second"] button:not([type])`)
	ada.picture("signon-none")
	ada.usable()
	ada.atProvider(p, `a[href="/account/identities/connect"]`)
	ada.sees("subject-of-ada")
	ada.picture("signon-connected")
	ada.usable()

	link := ada.invites(guest)
	ada.goTo("/account")
	ada.press(`button[name="end"][value="all"]`)
	ada.goTo("/signin?next=/account")
	ada.picture("signon-signin")
	ada.usable()
	ada.atProvider(p, `a[href^="/signin/oidc"]`)
	if path := ada.path(); path != "/account" {
		t.Fatalf("after the provider the browser is at %s", path)
	}

	p.SignIn(oidctest.Person{Subject: "subject-of-bob", Email: guest, Verified: true})
	bob := open(t, k.URL())
	bob.allow(p.URL)
	bob.goTo(link)
	bob.picture("signon-join")
	bob.usable()
	bob.atProvider(p, `a[href$="/oidc"]`)
	bob.sees("Welcome")
	bob.goTo("/account")
	bob.picture("signon-account-without")
	bob.usable()
	bob.press(`a[href="/account/identities"]`)
	bob.picture("signon-again")
	bob.usable()
	bob.atProvider(p, `a[href^="/account/again"]`)
	bob.sees("subject-of-bob")
	bob.picture("signon-keep")
	bob.usable()
	bob.goTo("/account")
	bob.picture("signon-choose")
	bob.usable()

	p.SignIn(oidctest.Person{Subject: "somebody else"})
	stranger := open(t, k.URL())
	stranger.allow(p.URL)
	stranger.goTo("/signin")
	stranger.atProvider(p, `a[href^="/signin/oidc"]`)
	stranger.sees("No account here is connected")
	stranger.picture("signon-unknown")
	stranger.usable()
}

// atProvider follows a link to the provider, and says there that it is me.
func (b *browser) atProvider(p *oidctest.Provider, link string) {
	b.t.Helper()
	b.press(link)
	if at := b.path(); !strings.HasPrefix(at, p.URL+"/authorize?") {
		b.t.Fatalf("the link leads to %s", at)
	}
	b.press("button")
}

// invites makes an invitation and gives the path of its link.
func (b *browser) invites(email string) string {
	b.t.Helper()
	b.goTo("/people")
	b.fill("#email", email)
	b.press(`form[action="/people/invitations"] button:not([type])`)
	_, link, ok := strings.Cut(b.text(), b.url)
	if !ok {
		b.t.Fatalf("there is no link in %.500s", b.text())
	}
	return strings.Fields(link)[0]
}
