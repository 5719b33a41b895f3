package dash

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/seal"
)

// dnsError is the error of an alert to a host that nobody knows.
type dnsError struct{}

func (dnsError) Error() string  { return "post alerts: dns" }
func (dnsError) Reason() string { return "dns" }

func unreachable(context.Context, postern.Workspace, seal.Secret) error { return dnsError{} }

// An admin sets where alerts are posted to, and sees why a test does not arrive. The URL is not shown again.
func TestAlertSettings(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	const path = "/people/alerts"
	p := c.post(path+"/url", url.Values{"url": {"ftp://example.com"}})
	c.sees(c.want(p, http.StatusUnprocessableEntity, ""), "The URL needs https", `value="ftp://example.com"`)
	c.want(c.post(path+"/url", url.Values{"url": {" "}}), http.StatusUnprocessableEntity, "")
	c.want(c.post(path+"/test", nil), http.StatusUnprocessableEntity, "")
	c.want(c.post(path+"/url", url.Values{"url": {"https://hooks.example.com/canary"}}), http.StatusSeeOther, path)
	if p := c.says(path, "hooks.example.com", "Send a test"); strings.Contains(p.body, "canary") {
		t.Error("the page shows the whole URL")
	}
	c.want(c.post(path+"/test", nil), http.StatusSeeOther, path)
	c.says(path, whyAttempt("dns").What)
	c.want(c.post(path+"/remove", nil), http.StatusSeeOther, path)
	if p := c.says(path, "Chat system"); strings.Contains(p.body, "hooks.example.com is") {
		t.Error("the URL is still there")
	}
	c.says("/people/audit", "Changed the URL of alerts", "Removed the URL of alerts")
}

// An admin changes the name and the time zone of the workspace; others cannot.
func TestWorkspaceIsDescribed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	describe := func(form url.Values) {
		t.Helper()
		c.want(c.post("/people/workspace", form), http.StatusSeeOther, "/people")
	}
	describe(url.Values{"name": {" Acme & Sons "}, "timeZone": {" Europe/Berlin"}})
	c.says("/people", "The workspace was changed.", "Acme &amp; Sons", `value="Acme &amp; Sons"`, `value="Europe/Berlin"`)
	c.says("/devices", `data-time-zone="Europe/Berlin"`)
	describe(url.Values{"name": {"Acme & Sons"}})
	c.says("/devices", `data-time-zone="Europe/Berlin"`) // the form had no such field
	describe(url.Values{"name": {"Acme & Sons"}, "timeZone": {""}})
	c.says("/devices", `data-time-zone=""`)
	c.says("/people/audit", "Changed the name or time zone of the workspace")
	if p := c.post("/people/workspace", url.Values{"name": {" "}}); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, "Nothing was changed.") {
		t.Errorf("an empty name is answered %d", p.status)
	}
	for _, zone := range []string{"Local", "Mars/Olympus", "../../etc/passwd", "posix/Europe/Berlin", "Europe//Berlin"} {
		p := c.post("/people/workspace", url.Values{"name": {"Acme"}, "timeZone": {zone}})
		if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, "no such time zone") {
			t.Errorf("the time zone %s is answered %d", zone, p.status)
		}
	}
	s.as(postern.Developer)
	if p := c.post("/people/workspace", url.Values{"name": {"Mine"}}); p.status != http.StatusForbidden {
		t.Errorf("a developer's name is answered %d", p.status)
	}
}
