package dash

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
)

// code puts a code on the open attempt of a device, as the session engine would.
func (s *site) code(path string) {
	s.t.Helper()
	id := postern.DeviceID(strings.TrimPrefix(path, "/devices/"))
	l, ok, err := s.db.Links.Latest(s.t.Context(), s.workspace(), id)
	if err != nil || !ok {
		s.t.Fatal(ok, err)
	}
	changes := s.g.Sessions.WatchLink(id)
	defer changes.Close()
	s.g.Sessions.ShowCode(l, "2@code,of,the,attempt", postern.TimeOf(time.Now().Add(time.Minute)))
	<-changes.C()
}

// T18: the code is shown to those who may link a phone to the device, and to
// nobody else.
func TestT18CodeIsShownToThoseWhoMayLink(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	path := c.post("/devices", url.Values{"name": {"Support"}}).header.Get("Location")
	c.want(c.post(path+"/link", nil), http.StatusSeeOther, path)
	s.code(path)
	shows := func(c *client, status int, want bool) {
		t.Helper()
		p := c.want(c.get(path), status, "")
		if got := strings.Contains(p.body, `class="qr"`); got != want || strings.Contains(p.body, "2@code") {
			t.Errorf("the code is shown: %v, want %v", got, want)
		}
		if p.header.Get("Cache-Control") != "no-store" {
			t.Errorf("the page may be kept: %v", p.header["Cache-Control"])
		}
	}
	shows(c, http.StatusOK, true)
	s.as(postern.Viewer)
	shows(c, http.StatusOK, false)
	s.as(postern.Developer)
	shows(c, http.StatusOK, true)

	other := s.belongs(1)[0] // the same person, in another workspace
	c.want(c.post("/workspace", url.Values{"workspace": {string(other.ID)}}), http.StatusSeeOther, "/")
	shows(c, http.StatusNotFound, false)
	c.want(c.post(path+"/link/page", nil), http.StatusNotFound, "")
	stranger := s.browser()
	stranger.want(stranger.get(path), http.StatusSeeOther, "/signin?next="+url.QueryEscape(path))
}

// T18: who opened the attempt, and from where, can be read later.
func TestT18LinkAttemptIsWrittenDownAndLimited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	path := c.post("/devices", url.Values{"name": {"Support"}}).header.Get("Location")
	made := 0
	for range 20 {
		p := c.post(path+"/link", nil)
		if p.status == http.StatusTooManyRequests {
			if c.sees(p, "Too many link attempts"); p.header.Get("Retry-After") == "" {
				t.Error("nobody says how long to wait")
			}
			break
		}
		c.want(p, http.StatusSeeOther, path)
		c.want(c.post(path+"/link/cancel", nil), http.StatusSeeOther, path)
		made++
	}
	if made < 5 || made == 20 {
		t.Errorf("%d attempts are let through", made)
	}
	if got := s.acts("device"); len(got) != 2*made+1 ||
		got[1] != "device.link-opened Support" { // acts checks who, and from where
		t.Errorf("written down are %v", got)
	}
}
