package dash

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/seal"
)

// hook is the workspace's newest endpoint as it is kept.
func (c *client) hook(id postern.EndpointID) postern.Endpoint {
	c.t.Helper()
	e, err := c.db.Endpoints.Get(c.t.Context(), c.workspace(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return e
}

// headers are the own headers of an endpoint with their values, as JSON.
func (c *client) headers(e postern.Endpoint) string {
	c.t.Helper()
	if len(e.HeaderValues) == 0 {
		return ""
	}
	box, err := seal.NewBox(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		c.t.Fatal(err)
	}
	text, err := box.Open(e.HeaderValues, e.ID.HeadersPlace())
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

func TestWebhookHasDevicesHeadersAndSignatures(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	device := strings.TrimPrefix(c.post("/devices", url.Values{"name": {"Support"}}).header.Get("Location"),
		"/devices/")
	c.says("/webhooks/new", `value="`+device+`"`, "Custom headers")
	made, _ := c.addWebhook(hookURL)
	own := "/webhooks/" + string(made.ID)
	form := url.Values{
		"url": {hookURL}, "event": {"*"}, "device": {device},
		"headers": {"X-Tenant: acme\r\n\r\n Authorization:Bearer a:b \r\n"}, "inFlight": {"3"}, "v1a": {"on"},
		"ordered": {"on"},
	}
	c.want(c.post(own, form), http.StatusSeeOther, own)
	e := c.hook(made.ID)
	if len(e.DeviceIDs) != 1 || string(e.DeviceIDs[0]) != device ||
		c.headers(e) != `{"Authorization":"Bearer a:b","X-Tenant":"acme"}` ||
		e.MaxInFlight != 3 || !e.Ordered || e.PublicKey == "" {
		t.Errorf("the endpoint is %+v", e)
	}
	p := c.says(own, `href="/devices/`+device+`"><bdi>Support</bdi>`, "Authorization, X-Tenant", "whpk_")
	if strings.Contains(p.body, "Bearer") {
		t.Error("the page shows what a header holds")
	}
	p = c.says(own+"/edit", "Authorization:\nX-Tenant:\n", `value="3"`)
	if strings.Contains(p.body, "Bearer") {
		t.Error("the form shows what a header holds")
	}
	if n := len(regexp.MustCompile(`name="(device|v1a|ordered)"[^>]* checked`).FindAllString(p.body, -1)); n != 3 {
		t.Errorf("%d of what is chosen is shown as chosen, want 3", n)
	}

	form.Set("headers", "authorization:\r\nX-B: b")
	form.Set("signed", "on")
	form.Set("seen", c.seen(own+"/edit"))
	c.want(c.post(own, form), http.StatusSeeOther, own)
	c.outdated(own, form)
	form.Del("seen")
	now := c.hook(made.ID)
	if got := c.headers(now); got != `{"Authorization":"Bearer a:b","X-B":"b"}` ||
		now.Handshake != postern.HandshakeSigned {
		t.Errorf("an empty value, a new header and a removed one make %s", got)
	}
	c.says(own, "Must be signed")
	delete(form, "device")
	delete(form, "signed")
	form.Set("headers", "")
	form.Set("inFlight", "")
	c.want(c.post(own, form), http.StatusSeeOther, own)
	if now := c.hook(made.ID); now.DeviceIDs != nil || len(now.Headers) != 0 || c.headers(now) != "" || now.MaxInFlight != 3 ||
		now.PublicKey != e.PublicKey || now.PendingURL != "" {
		t.Errorf("with nothing chosen the endpoint is %+v", now)
	}
	delete(form, "v1a")
	c.want(c.post(own, form), http.StatusSeeOther, own)
	if now := c.hook(made.ID); now.PublicKey != "" || !slices.Equal(now.Signatures, []string{"v1"}) {
		t.Errorf("without v1a the endpoint is %+v", now)
	}
}

// The form is short: event types are behind their families until one is chosen.
func TestWebhookFormShowsEventTypesOnRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	types := func(path string) (before, open, inside string) {
		body := c.says(path, "Choose single event types").body
		m := regexp.MustCompile(`(?s)^(.*)<details class="mt-3"( open)?>(.*?)</details>`).FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("%s has no event types", path)
		}
		return m[1], m[2], m[3]
	}
	before, open, inside := types("/webhooks/new")
	for _, p := range eventPatterns() {
		where := inside
		if strings.HasSuffix(p, "*") {
			where = before
		}
		if open != "" || !strings.Contains(where, `name="event" value="`+p+`"`) {
			t.Errorf("%s is not where it is looked for, or the types are open", p)
		}
	}
	made, _ := c.addWebhook(hookURL)
	own := "/webhooks/" + string(made.ID)
	c.want(c.post(own, url.Values{"url": {hookURL}, "event": {"device.*", "message.sent"}}), http.StatusSeeOther, own)
	if _, open, inside := types(own + "/edit"); open == "" || !strings.Contains(inside, `value="message.sent" checked`) {
		t.Error("a chosen type is hidden")
	}
}

// What the API refuses of these the form refuses, says at the field, and shows again.
func TestWebhookFormRefusesWhatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	eleven := ""
	for i := range 11 {
		eleven += fmt.Sprintf("X-%d: x\n", i)
	}
	for _, tt := range []struct{ field, value, says string }{
		{"headers", eleven, "Add at most 10 headers"},
		{"headers", "Webhook-Id: mine", "cannot be replaced"},
		{"headers", "content-type: text/plain", "cannot be replaced"},
		{"headers", "no colon", "on its own line"},
		{"headers", "X-A: 1\nX-A: 2", "on its own line"},
		{"headers", "X-A: 1\nx-a: 2", "on its own line"},
		{"headers", "X A: 1", "letters, digits and hyphens"},
		{"headers", ": empty", "letters, digits and hyphens"},
		{"headers", "X-A: \x1b[31m", "visible ASCII"},
		{"headers", "X-A: <b>é</b>", "visible ASCII"},
		{"inFlight", "0", "from 1 to 64"},
		{"inFlight", "-1", "from 1 to 64"},
		{"inFlight", "65", "rom 1 to 64"},
		{"inFlight", "many", "from 1 to 64"},
		{"inFlight", "99999999999999999999", "from 1 to 64"},
	} {
		form := url.Values{"url": {hookURL}, "event": {"*"}, tt.field: {tt.value}}
		p := c.post("/webhooks", form)
		if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, tt.says) ||
			!strings.Contains(p.body, `href="#`+tt.field+`"`) ||
			!strings.Contains(p.body,
				"<details class=\"space-y-6\" open") {
			t.Errorf(
				"%s %q is answered %d, without %q: %s", tt.field, tt.value, p.status, tt.says,
				regexp.MustCompile(`(?s)<div role="alert".*?</div>`).FindString(p.body),
			)
		}
	}
	c.want(
		c.post("/webhooks", url.Values{"url": {hookURL}, "event": {"*"}, "device": {"dev_none"}}), http.StatusNotFound,
		"",
	)
	c.says("/webhooks", "No webhooks yet")
}

func TestReplaysAreListedPageByPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	e, _ := c.addWebhook(hookURL)
	s.activate(e)
	own := "/webhooks/" + string(e.ID)
	c.says(own+"/replays", "No replays", own+`/replay"`)
	for range 51 {
		at := c.post(own+"/replay", url.Values{"type": {"message.*"}}).header.Get("Location")
		c.want(c.post(at+"/stop", nil), http.StatusSeeOther, at)
	}
	last := c.post(own+"/replay", url.Values{"failed": {"on"}}).header.Get("Location")
	c.says(own, own+"/replays")
	c.says(own+"/replays", last, "Running", "failed events only", "Stopped", "message.*")
	seen, pages := map[string]bool{}, 0
	for path := own + "/replays"; path != "" && pages < 5; pages++ {
		p := c.says(path)
		for _, id := range regexp.MustCompile(`replays/rpl_[0-9A-Z]{26}`).FindAllString(p.body, -1) {
			seen[id] = true
		}
		path = ""
		if next := regexp.MustCompile(`href="([^"]*after=[^"]*)"`).FindStringSubmatch(p.body); next != nil {
			path = next[1]
		}
	}
	if len(seen) != 52 || pages != 2 {
		t.Errorf("%d replays on %d pages, want 52 on 2", len(seen), pages)
	}
	if p := c.get(own + "/replays?after=x"); p.status < 400 || p.status >= 500 {
		t.Errorf("an invalid cursor is answered %d", p.status)
	}
}
