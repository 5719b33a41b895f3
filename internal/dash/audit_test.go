package dash

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/store"
)

// acts are what the log holds of a kind, the oldest first: what and to what.
func (s *site) acts(kind string) (list []string) {
	s.t.Helper()
	found, err := s.p.Audit.List(s.t.Context(), access.Operator(), s.workspace(), people.ActQuery{Kind: kind})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, a := range found.Data {
		if a.Email != email || a.Address != "192.0.2.1" || a.Subject == "" {
			s.t.Errorf("%s is written down as %+v", a.Act, a)
		}
		list = append([]string{a.Act + " " + a.Name}, list...)
	}
	return list
}

func (s *site) recorded(kind string, want ...string) {
	s.t.Helper()
	if got := s.acts(kind); strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.t.Errorf("written down are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatIsDoneToADeviceIsWrittenDown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	path := c.post("/devices", url.Values{"name": {"Support"}}).header.Get("Location")
	settings := url.Values{"name": {"Support"}, "receive": {"direct", "groups"}, "media": {"eager"}}
	c.want(c.post(path+"/settings", settings), http.StatusSeeOther, path)
	c.want(c.post(path+"/settings", settings), http.StatusSeeOther, path) // changes nothing
	settings.Set("proxy", "socks5://postern:secret@proxy.test:1080")
	settings.Set("perMinute", "20")
	c.want(c.post(path+"/settings", settings), http.StatusSeeOther, path)
	for _, act := range []string{"/link", "/link/page"} {
		c.post(path+act, nil)
	}
	c.want(c.post(path+"/link", nil), http.StatusConflict, "") // refused: no act
	c.want(c.post(path+"/link/cancel", nil), http.StatusSeeOther, path)
	s.link(path)
	for _, act := range []string{
		"/pause", "/pause", "/resume", "/resume", "/unlink",
	} { // the second of each changes nothing
		c.want(c.post(path+act, nil), http.StatusSeeOther, path)
	}
	c.want(c.post(path+"/delete", url.Values{"password": {password}}), http.StatusSeeOther, "/devices")
	s.recorded(
		"device", "device.created Support", "device.changed Support (receive)", "device.changed Support (pace, proxyUrl)",
		"device.link-opened Support", "device.link-shared Support",
		"device.link-canceled Support", "device.paused Support", "device.resumed Support", "device.unlinked Support",
		"device.deleted Support",
	)

	_, err := s.g.Devices.Create(t.Context(), s.caller("ci"), gateway.NewDevice{Name: "by a key"}, nil)
	if got := s.acts("device"); err != nil || len(got) != 10 {
		t.Errorf("what a key does is written down: %v, %v", got, err)
	}
}

// caller authenticates with a new API key.
func (s *site) caller(name string) access.Caller {
	s.t.Helper()
	_, secret, err := s.g.Keys.Create(s.t.Context(), access.Operator(), s.workspace(), gateway.NewKey{Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := s.g.Keys.Authenticate(s.t.Context(), "Bearer "+secret)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// A webhook receives the messages of the workspace. The audit log says who added or changed
// it: a key, or the operator.
func TestWebhooksOfKeysAndOfTheOperatorAreWrittenDown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	op, err := s.g.Workspaces.Caller(t.Context(), access.Operator(), s.workspace())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.g.Webhooks.Create(t.Context(), op, gateway.NewEndpoint{URL: hookURL}, nil); err != nil {
		t.Fatal(err)
	}
	if p := c.says("/people/audit?kind=webhook", "Added a webhook", "The operator"); strings.Contains(p.body, "(key_") {
		t.Error("the operator is shown as a key")
	}
	key := s.caller("ci")
	made, err := s.g.Webhooks.Create(t.Context(), key, gateway.NewEndpoint{URL: hookURL + "/2"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := made.Value.Endpoint
	s.activate(e)
	note := "orders"
	acts := []func() error{
		func() error {
			_, err := s.g.Webhooks.Change(t.Context(), key, e.ID, gateway.EndpointChange{Description: &note})
			return err
		},
		func() error {
			_, err := s.g.Webhooks.RotateSecret(t.Context(), key, e.ID, gateway.NewSecret{}, nil)
			return err
		},
		func() error {
			_, err := s.g.Replays.Create(t.Context(), key, e.ID, gateway.NewReplay{}, nil)
			return err
		},
		func() error { _, err := s.g.Webhooks.Verify(t.Context(), key, e.ID); return err },
		func() error { _, err := s.g.Webhooks.Pause(t.Context(), key, e.ID); return err },
		func() error { _, err := s.g.Webhooks.Resume(t.Context(), key, e.ID); return err },
		func() error { return s.g.Webhooks.Delete(t.Context(), key, e.ID) },
	}
	for i, act := range acts {
		if err := act(); err != nil {
			t.Fatalf("act %d: %v", i, err)
		}
	}
	found, err := s.p.Audit.List(t.Context(), access.Operator(), s.workspace(), people.ActQuery{Kind: "webhook"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range found.Data[:len(found.Data)-1] { // the oldest is the operator's
		if a.KeyID != key.Key.ID || a.KeyName != "ci" || a.UserID != "" || a.Name != e.URL {
			t.Errorf("%s is written down as %+v", a.Act, a)
		}
		got = append(got, strings.TrimPrefix(a.Act, "webhook."))
	}
	want := "deleted resumed paused verified-again replayed secret-rotated changed created"
	if strings.Join(got, " ") != want {
		t.Errorf("written down are %q, want %q", got, want)
	}
	c.says("/people/audit", "API key ci ("+string(key.Key.ID)+")")
}

// The log shows to whom a member has written, until that person is erased.
func TestAuditLogForgetsErasedPeople(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	const ada = "+15551234567"
	s.comes(d, ada, "Ada", "hello")
	c.sends(d, ada, "hi")
	c.post("/messages/chats/"+string(d.ID)+"/"+ada, url.Values{"do": {"read"}})
	c.says("/people/audit?kind=message", "Sent a message from the dashboard", ada)
	key := s.caller("ci")
	known, err := s.g.Contacts.List(t.Context(), key, gateway.ContactQuery{})
	if err != nil || len(known.Data) != 1 {
		t.Fatalf("contacts %+v, %v", known, err)
	}
	if err := s.g.Contacts.Erase(t.Context(), key, known.Data[0].ID); err != nil {
		t.Fatal(err)
	}
	c.says("/people/audit", "Sent a message from the dashboard")
	c.saysNot("/people/audit", ada)
}

// link makes a device linked, as the session engine would.
func (s *site) link(path string) postern.DeviceID {
	s.t.Helper()
	id := postern.DeviceID(strings.TrimPrefix(path, "/devices/"))
	o := store.SetDeviceState{
		WorkspaceID: s.workspace(), DeviceID: id, Status: postern.Connected, Desired: postern.WantConnect, At: 1,
	}
	if err := s.db.Devices.SetState(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
	return id
}

func TestWhatIsDoneToAWebhookIsWrittenDown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	e, _ := c.addWebhook(hookURL)
	s.activate(e)
	path := "/webhooks/" + string(e.ID)
	change := url.Values{"url": {hookURL}, "event": {"*"}, "description": {"orders"}}
	c.want(c.post(path, change), http.StatusSeeOther, path)
	c.want(c.post(path, change), http.StatusSeeOther, path) // changes nothing
	c.want(c.post(path+"/secret", url.Values{"password": {"not this one"}}), http.StatusUnprocessableEntity, "")
	c.want(c.post(path+"/secret", url.Values{"password": {password}}), http.StatusOK, "")
	c.want(c.post(path+"/rotate", url.Values{"overlap": {"1h"}}), http.StatusCreated, "")
	if p := c.post(path+"/replay", url.Values{"since": {"2026-11-20T09:00"}}); p.status != http.StatusSeeOther {
		t.Errorf("a replay is answered %d", p.status)
	}
	for _, act := range []string{"/pause", "/pause", "/resume"} {
		c.want(c.post(path+act, nil), http.StatusSeeOther, path)
	}
	c.want(c.post(path+"/delete", nil), http.StatusSeeOther, "/webhooks")
	c.want(c.post(path+"/delete", nil), http.StatusNotFound, "")
	var want []string
	for _, act := range []string{
		"created", "changed", "secret-revealed", "secret-rotated", "replayed", "paused", "resumed", "deleted",
	} {
		want = append(want, "webhook."+act+" "+hookURL)
	}
	s.recorded("webhook", want...)
}

func TestAuditLogComesInPagesAndIsNarrowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	for range 60 {
		c.post("/devices", url.Values{"name": {"Support"}})
	}
	c.addWebhook(hookURL)
	p := c.says("/people/audit", "Older actions", "Added a webhook", hookURL)
	if n := strings.Count(p.body, "Added a device"); n != 49 {
		t.Errorf("%d devices on the first page", n)
	}
	more := regexp.MustCompile(`href="(/people/audit\?after=[^"]+)"`).FindStringSubmatch(p.body)
	if more == nil {
		t.Fatal("there is no way to the next page")
	}
	p = c.says(strings.ReplaceAll(more[1], "&amp;", "&"), "Set up the server")
	if n := strings.Count(p.body, "Added a device"); n != 11 || strings.Contains(p.body, "Older actions") {
		t.Errorf("%d devices on the last page", n)
	}
	p = c.says(
		"/people/audit?kind=webhook&who="+url.QueryEscape(email), hookURL, `value="`+email+`"`,
		`value="webhook" selected`,
	)
	if strings.Contains(p.body, "Added a device") {
		t.Error("what is done to devices is shown among webhooks")
	}
	c.says("/people/audit?who=nobody@example.com", "No matching actions")
	c.says("/people/audit?kind=none", "Added a webhook")
	for _, after := range []string{"x", "%00", "bm90LW91cnM"} {
		if p := c.get("/people/audit?after=" + after); p.status != http.StatusUnprocessableEntity &&
			p.status != http.StatusBadRequest {
			t.Errorf("the cursor %s is answered %d", after, p.status)
		}
	}
}

func TestKeysComeInPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	for range 51 {
		if _, _, err := s.g.Keys.Create(
			t.Context(), access.Operator(), s.workspace(), gateway.NewKey{Name: "ci"},
		); err != nil {
			t.Fatal(err)
		}
	}
	more := regexp.MustCompile(`href="(/keys\?after=[^"]+)"`).FindStringSubmatch(c.says("/keys", "More keys").body)
	if more == nil {
		t.Fatal("there is no way to the next page")
	}
	if p := c.says(more[1], "ci"); strings.Count(p.body, `scope="row"`) != 1 || strings.Contains(p.body, "More keys") {
		t.Error("the last page does not have the one key that is left")
	}
	if p := c.get("/keys?after=x"); p.status >= 500 || p.status < 400 {
		t.Errorf("an invalid cursor is answered %d", p.status)
	}
}
