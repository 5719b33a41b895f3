package dash

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/problem"
	"postern/internal/store"
)

// Pages say in a sentence why a device has its status, for every reason that there is.
func TestReasonsAreSentences(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	for _, reason := range problem.SessionReasons() {
		if err := s.db.Devices.SetState(t.Context(), store.SetDeviceState{
			WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Status: postern.Restricted, Reason: reason, At: 1,
			Until: postern.TimeOf(time.Date(2027, 1, 2, 3, 4, 0, 0, time.UTC)),
		}); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/devices", pathOf(d.ID)} {
			p := c.says(path, "2 Jan 2027, 03:04 UTC")
			said := regexp.MustCompile(`<bdi class="soft few[^>]*>([^<]*)</bdi>`).FindStringSubmatch(p.body)
			if said == nil || strings.Contains(said[1], "reason") || !regexp.MustCompile(`^[A-Z][^_]+ [^_]+\.$`).MatchString(said[1]) {
				t.Errorf("%s explains %q as %q", path, reason, said)
			}
		}
	}
}

// A device that is down is named the same, with its button, while it tries to connect.
func TestDeviceThatTriesToConnectIsNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	for _, status := range []postern.Status{postern.Disconnected, postern.Connecting} {
		if err := s.db.Devices.SetState(t.Context(), store.SetDeviceState{
			WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Status: status, At: 1,
		}); err != nil {
			t.Fatal(err)
		}
		c.says("/health?home=1", "Support is not connected", `action="`+pathOf(d.ID)+`/resume"`, "Reconnect now")
	}
}

// A device that does not connect again by itself is named at once.
func TestDeviceThatStaysDownIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	if err := s.db.Devices.SetState(t.Context(), store.SetDeviceState{
		WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Status: postern.Conflict, At: s.db.Now().Add(time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	c.says("/health?home=1", "Support is connected elsewhere")
}

func TestWhatBecameOfADevice(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	path := c.post("/devices", url.Values{"name": {"Support"}}).header.Get("Location")
	c.says(path, "Health history", "No changes yet")
	id := s.link(path)
	for n := range 30 {
		for _, state := range []gateway.SessionState{
			{Status: postern.Disconnected, Reason: "socket-closed-" + strconv.Itoa(n)}, {Status: postern.Connected},
		} {
			if err := s.g.Sessions.SetState(t.Context(), id, state); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.want(c.post(path+"/pause", nil), http.StatusSeeOther, path)
	p := c.says(
		path, "The device was paused.", "The connection was lost", "socket-closed-29", "socket-closed-28",
		`href="`+path+`/health"`,
	)
	if strings.Contains(p.body, "socket-closed-27") {
		t.Error("the page of the device shows more than the newest changes")
	}
	p = c.says(path+"/health", "The device was paused.", "socket-closed-6", "Older changes")
	older := regexp.MustCompile(`href="([^"]+/health\?after=[^"]+)"`).FindStringSubmatch(p.body)
	if older == nil {
		t.Fatal("there is no way to the older ones")
	}
	p = c.says(older[1], "socket-closed-0")
	if strings.Contains(p.body, "Older changes") || strings.Contains(p.body, "socket-closed-29") {
		t.Error("the last page has more behind it, or begins anew")
	}
	other := c.post("/devices", url.Values{"name": {"Sales"}}).header.Get("Location")
	if p := c.get(other + "/health?after=" + older[1][strings.Index(older[1], "=")+1:]); p.status >= 500 ||
		p.status < 400 {
		t.Errorf("the cursor of another device is answered %d", p.status)
	}
	c.want(c.get(s.device()+"/health"), http.StatusNotFound, "")
	s.as(postern.Viewer)
	c.says(path+"/health", "The device was paused.")
}

// seen is with what the form of a page is filled.
func (c *client) seen(path string) string {
	c.t.Helper()
	m := regexp.MustCompile(`name="seen" value="([0-9a-f]+)"`).FindStringSubmatch(c.get(path).body)
	if m == nil {
		c.t.Fatalf("%s has no form that says with what it is filled", path)
	}
	return m[1]
}

// outdated posts a form that somebody else has made old, and then once more to replace what they did.
func (c *client) outdated(path string, form url.Values) {
	c.t.Helper()
	p := c.post(path, form)
	if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, "Somebody else has changed this") {
		c.t.Errorf("an old form of %s is answered %d", path, p.status)
	}
	again := regexp.MustCompile(`name="seen" value="([0-9a-f]+)"`).FindStringSubmatch(p.body)
	if again == nil {
		c.t.Fatalf("%s cannot be saved again", path)
	}
	form = maps.Clone(form)
	form.Set("seen", again[1])
	if p := c.post(path, form); p.status != http.StatusSeeOther {
		c.t.Errorf("the form of %s that is posted again is answered %d", path, p.status)
	}
}

// The settings of a device are changed in a form, which says what is wrong and never shows the proxy.
func TestDeviceSettings(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.linked(s.workspace(), "Support")
	path := "/devices/" + string(d.ID)
	settings := path + "/settings"
	c.says(path, `href="`+settings+`"`)
	c.says(settings, `value="Support"`, "Direct chats")
	proxy := "socks5://user:secret@proxy.test:1080"
	form := url.Values{
		"name": {"Sales"}, "perMinute": {"30"}, "newChats": {""}, "receive": {"direct", "status"}, "media": {"lazy"}, "proxy": {proxy},
	}
	c.want(c.post(settings, form), http.StatusSeeOther, path)
	one, err := s.db.Devices.ForEngine(t.Context(), d.ID)
	want := postern.Receive{Direct: true, Status: true, Media: postern.MediaLazy}
	if err != nil || one.Name != "Sales" || one.Pace == nil || *one.Pace != (postern.Pace{PerMinute: 30}) || one.Receive != want ||
		len(one.Proxy) == 0 {
		t.Errorf("the device is %+v, %v", one, err)
	}
	c.says(settings, `value="30"`)
	c.saysNot(settings, "secret", proxy)
	for field, wrong := range map[string]struct{ value, says string }{
		"name": {"", "Enter a name."}, "perMinute": {"0", "Enter a number from 1 to 1,000"}, "newChats": {"x", "Enter a number"},
		"proxy": {"nowhere", "Nothing was changed."}, "noProxy": {"on", "Enter a proxy, or choose"},
	} {
		bad := maps.Clone(form)
		bad.Set(field, wrong.value)
		if p := c.post(settings, bad); p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, wrong.says) {
			t.Errorf("%s: %d, want %q", field, p.status, wrong.says)
		}
	}
	old := c.seen(settings)
	form.Set("seen", old)
	form.Set("proxy", "")
	form.Set("noProxy", "on")
	form.Set("perMinute", "")
	c.want(c.post(settings, form), http.StatusSeeOther, path)
	if one, err = s.db.Devices.ForEngine(t.Context(), d.ID); err != nil || len(one.Proxy) > 0 || one.Pace != nil {
		t.Errorf("the device is %+v, %v", one, err)
	}
	c.outdated(settings, form)
	s.as(postern.Viewer)
	if p := c.post(settings, form); p.status != http.StatusForbidden {
		t.Errorf("a viewer's change is answered %d", p.status)
	}
}
