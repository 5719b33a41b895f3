package testkit_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"postern/internal/store/migrated"
	"postern/internal/testkit"
)

// twoServers returns two servers that share a database.
func twoServers(t *testing.T) (first, second *testkit.Kit) {
	t.Helper()
	first = testkit.StartOn(t, migrated.URL(t))
	first.Stop()
	first.Shared = true
	first.Boot()
	return first, first.Another()
}

// Who signs in at one server is signed in at the other, and who signs out there is signed out everywhere.
func TestSignInIsKnownToAllServers(t *testing.T) {
	t.Parallel()
	first, second := twoServers(t)
	v := newVisitor(t)
	v.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	posts(t, v.http, first.SetUpURL(), url.Values{
		"workspace": {"acme"}, "email": {"a@example.com"}, "password": {"a long password of hers"},
	})
	for _, k := range []*testkit.Kit{first, second} {
		v.sees("GET", k.URL()+"/devices", 200, "acme")
	}
	posts(t, v.http, second.URL()+"/signout", nil)
	for _, k := range []*testkit.Kit{second, first} {
		testkit.Eventually(t, "the sign-out to be known", func() (bool, any) {
			status, h, _ := v.do("GET", k.URL()+"/devices")
			return status == http.StatusSeeOther && strings.Contains(h.Get("Location"), "/signin"), status
		})
	}
	posts(t, v.http, second.URL()+"/signin", url.Values{
		"email": {"a@example.com"}, "password": {"a long password of hers"},
	})
	v.sees("GET", first.URL()+"/devices", 200, "acme")
}

// A link page that was opened at one server works at the other, whichever owns the device.
func TestLinkPageWorksAtAllServers(t *testing.T) {
	t.Parallel()
	first, second := twoServers(t)
	c := first.Workspace("growth")
	d := create(c)
	c.Call("POST", path(d, "/link"), nil, 201, nil)
	p := openPage(c, d)
	there := second.URL() + strings.TrimPrefix(p.URL, first.URL())
	v, other := newVisitor(t), newVisitor(t)
	v.sees("GET", there, 200, "acme", "<button>")
	v.sees("POST", there, 200, "acme")
	testkit.Eventually(t, "the code on the page", func() (bool, any) {
		_, _, body := v.do("GET", there)
		return strings.Contains(body, "<svg"), body
	})
	v.sees("GET", p.URL, 200, "<svg")
	other.sees("GET", p.URL, 410, "not", "<svg")
	testkit.Eventually(t, "a scan of the code that is valid", func() (bool, any) {
		a := enter(c, d, map[string]any{"phoneNumber": phone})
		return a.Status == 200, string(a.Body)
	})
	c.Await(d.ID, "connected")
	for _, at := range []string{there, p.URL} {
		v.sees("GET", at, 200, "Your phone is linked", "not", "<svg")
	}
}
