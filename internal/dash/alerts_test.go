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

// An admin renames the workspace; others cannot.
func TestWorkspaceIsRenamed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	c.want(c.post("/people/workspace", url.Values{"name": {" Acme & Sons "}}), http.StatusSeeOther, "/people")
	c.says("/people", "The workspace was renamed.", "Acme &amp; Sons", `value="Acme &amp; Sons"`)
	c.says("/people/audit", "Renamed the workspace")
	if p := c.post("/people/workspace", url.Values{"name": {" "}}); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, "Nothing was changed.") {
		t.Errorf("an empty name is answered %d", p.status)
	}
	s.as(postern.Developer)
	if p := c.post("/people/workspace", url.Values{"name": {"Mine"}}); p.status != http.StatusForbidden {
		t.Errorf("a developer's name is answered %d", p.status)
	}
}
