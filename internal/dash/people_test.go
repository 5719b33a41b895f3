package dash

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"postern/internal/access"
	"postern/internal/people"
	"postern/internal/postern"
)

const guest = "bob@example.com"

// invites makes an invitation and gives the path of its link.
func (c *client) invites(email string, role postern.Role) string {
	c.t.Helper()
	p := c.post("/people/invitations", url.Values{"email": {email}, "role": {string(role)}})
	link := regexp.MustCompile(`https://api\.example\.com(/join/[0-9A-Za-z_-]{43})<`).FindStringSubmatch(p.body)
	if p.status != http.StatusCreated || link == nil {
		c.t.Fatalf("status %d, and no link", p.status)
	}
	return link[1]
}

// joins lets a new browser join by a link.
func (s *site) joins(link string) *client {
	s.t.Helper()
	c := s.browser()
	c.want(c.post(link, url.Values{"password": {password}}), http.StatusSeeOther, "/")
	return c
}

func (c *client) sees(p answer, texts ...string) {
	c.t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			c.t.Errorf("the page does not say %q", text)
		}
	}
}

func (s *site) member(email string) postern.UserID {
	s.t.Helper()
	u, _, ok, err := s.accounts().Users.ByEmail(s.t.Context(), email)
	if err != nil || !ok {
		s.t.Fatalf("there is no %s: %v", email, err)
	}
	return u.ID
}

func TestFromAnInvitationToAMember(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ada := s.setUp()
	link := ada.invites(guest, postern.Viewer)
	p := ada.get("/people")
	ada.sees(p, guest, "Open invitations")
	if strings.Contains(p.body, "/join/") {
		t.Error("the link is shown again")
	}
	bob := s.browser()
	bob.sees(bob.want(bob.get(link), http.StatusOK, ""), "acme", guest, "Viewer")
	if p := bob.post(link, url.Values{"password": {"short"}}); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, "password") {
		t.Errorf("a short password: %d", p.status)
	}
	bob = s.joins(link)
	p = bob.want(bob.get("/"), http.StatusOK, "")
	bob.sees(p, "acme", "You are now a member of this workspace")
	if strings.Contains(p.body, `href="/people"`) {
		t.Error("a viewer is shown the way to the people")
	}
	for _, path := range []string{"/keys", "/people", "/people/audit"} {
		bob.want(bob.get(path), http.StatusForbidden, "")
	}
	id := "/people/" + string(s.member(guest))
	for _, path := range []string{
		id + "/role", id + "/remove", "/people/invitations", "/people/invitations/inv_1/revoke",
	} {
		bob.want(bob.post(path, url.Values{"role": {"owner"}, "email": {"eve@example.com"}}), http.StatusForbidden, "")
	}
	ada.want(ada.post(id+"/role", url.Values{"role": {"developer"}}), http.StatusSeeOther, "/people")
	bob.want(bob.get("/keys"), http.StatusOK, "")
	ada.want(ada.post(id+"/remove", nil), http.StatusSeeOther, "/people")
	bob.sees(bob.want(bob.get("/devices"), http.StatusForbidden, ""), "You are no longer a member of any workspace")
	bob.want(bob.get("/devices"), http.StatusSeeOther, "/signin?next=%2Fdevices")
	ada.sees(
		ada.want(ada.get("/people/audit"), http.StatusOK, ""), "Invited", guest+" as viewer", "Joined",
		"Changed the role to developer", "Removed a member", email, "192.0.2.1",
	)
}

// T17: every link that is over, or another's, is refused, and no form gives a role.
func TestT17LinksLetInWhomTheyAreFor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ada := s.setUp()
	link := ada.invites(guest, postern.Viewer)
	for _, p := range []answer{ada.get(link), ada.post(link, url.Values{"password": {password}})} {
		if p.status != http.StatusForbidden || !strings.Contains(p.body, "You are signed in as") {
			t.Errorf("another who is signed in: %d", p.status)
		}
	}
	bob := s.browser()
	bob.want(
		bob.post(link, url.Values{"password": {password}, "role": {"owner"}, "email": {"eve@example.com"}}),
		http.StatusSeeOther, "/",
	)
	bob.want(bob.get("/keys"), http.StatusForbidden, "")
	for _, c := range []*client{bob, s.browser()} {
		c.want(c.get(link), http.StatusNotFound, "")
		c.want(c.post(link, url.Values{"password": {password}}), http.StatusNotFound, "")
	}
	ada.want(ada.post("/people/"+string(s.member(guest))+"/remove", nil), http.StatusSeeOther, "/people")
	bob.want(bob.post(link, nil), http.StatusNotFound, "")

	// An account that is there keeps its password.
	link = ada.invites(guest, postern.Viewer)
	stranger := s.browser()
	stranger.sees(stranger.get(link), "/signin?next=%2Fjoin%2F")
	stranger.sees(stranger.post(link, url.Values{"password": {"five plain words are here"}}), "/signin?next=%2Fjoin%2F")
	bob.want(bob.post(link, nil), http.StatusSeeOther, "/")
	bob.want(bob.get("/devices"), http.StatusOK, "")

	link = ada.invites("eve@example.com", postern.Viewer)
	id := regexp.MustCompile(`/people/invitations/(inv_[0-9A-Z]+)/revoke`).FindString(ada.get("/people").body)
	ada.want(ada.post(id, nil), http.StatusSeeOther, "/people")
	stranger.want(stranger.get(link), http.StatusNotFound, "")
	stranger.want(stranger.post(link, url.Values{"password": {password}}), http.StatusNotFound, "")
}

func TestT17TwentyBrowsersWithOneLink(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ada := s.setUp()
	link := ada.invites(guest, postern.Viewer)
	var all sync.WaitGroup
	var mu sync.Mutex
	by := map[int]int{}
	for range 20 {
		all.Go(func() {
			c := s.browser()
			p := c.post(link, url.Values{"password": {password}})
			mu.Lock()
			defer mu.Unlock()
			by[p.status]++
		})
	}
	all.Wait()
	if by[http.StatusSeeOther] != 1 {
		t.Errorf("answers by status: %v", by)
	}
	for status := range by {
		if status != http.StatusSeeOther && status != http.StatusNotFound && status != http.StatusForbidden &&
			status != http.StatusOK && status != http.StatusTooManyRequests { // the queue of the network is short
			t.Errorf("answers by status: %v", by)
		}
	}
	list, err := s.p.Members.Memberships(t.Context(), access.Self{ID: s.member(guest)})
	if err != nil || len(list) != 1 {
		t.Errorf("memberships = %v, %v", list, err)
	}
}

func TestWhatIsWrongWithAChangeOfPeopleIsSaid(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ada := s.setUp()
	for _, tt := range []struct {
		path, email, role, says string
	}{
		{"/people/invitations", "bob", "viewer", "Enter an email address"},
		{"/people/invitations", guest, "", "The role must be one of"},
		{"/people/invitations", email, "viewer", "Belongs to a member"},
		{"/people/" + string(s.member(email)) + "/role", "", "viewer", "at least one owner"},
		{"/people/" + string(s.member(email)) + "/remove", "", "", "at least one owner"},
	} {
		p := ada.post(tt.path, url.Values{"email": {tt.email}, "role": {tt.role}})
		if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, tt.says) {
			t.Errorf("%+v: %d", tt, p.status)
		}
	}
	s.as(postern.Admin)
	if p := ada.get("/people"); strings.Contains(p.body, `value="owner"`) {
		t.Error("an admin is offered to make owners")
	}
}

func TestPeopleAreChangedFromThisSiteByThoseWhoAreSignedIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ada, nobody := s.setUp(), s.browser()
	link := ada.invites(guest, postern.Viewer)
	id := "/people/" + string(s.member(email))
	for _, path := range []string{
		"/people/invitations", "/people/invitations/inv_1/revoke", id + "/role", id + "/remove",
	} {
		nobody.want(nobody.post(path, nil), http.StatusSeeOther, "/signin")
		ada.want(ada.do(http.MethodPost, path, nil, "Origin", "https://evil.example"), http.StatusForbidden, "")
	}
	nobody.want(
		nobody.do(http.MethodPost, link, url.Values{"password": {password}}, "Origin", "https://evil.example"),
		http.StatusForbidden, "",
	)
	for _, path := range []string{"/people", "/people/audit"} {
		nobody.want(nobody.get(path), http.StatusSeeOther, "/signin?next="+url.QueryEscape(path))
	}
}

func TestNewPasswordByTheOperatorsLink(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ada := s.setUp()
	_, token, err := s.p.PasswordLinks.Reset(t.Context(), access.Operator(), people.Reset{Email: email})
	if err != nil {
		t.Fatal(err)
	}
	c := s.browser()
	c.sees(c.want(c.get("/join/"+token), http.StatusOK, ""), "Choose a password", email)
	c.want(c.post("/join/"+token, url.Values{"password": {"five plain words are here"}}), http.StatusSeeOther, "/")
	c.want(c.get("/people"), http.StatusOK, "")
	ada.want(ada.get("/people"), http.StatusSeeOther, "/signin?next=%2Fpeople")
	c.want(c.get("/join/"+token), http.StatusNotFound, "")
}

func TestActsAreSaidInWords(t *testing.T) {
	t.Parallel()
	for act, want := range map[string]string{
		"key.created": "Created an API key", "member.made-owner": "Changed the role to owner",
		"webhook.set-up": "Webhook set up", "": "",
	} {
		if got := actWords(act); got != want {
			t.Errorf("%q is %q, want %q", act, got, want)
		}
	}
}

// An agent reads and answers, and changes nothing else.
func TestAgentsAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	s.comes(d, contact, "Ada", "hello")
	s.as(postern.Agent)
	talk := "/messages/chats/" + string(d.ID) + "/" + contact
	c.says(talk, "hello", `name="body"`)
	c.want(c.post(talk, url.Values{"key": {c.form(talk)}, "body": {"Good morning"}}), http.StatusSeeOther, talk)
	c.says(talk, "Good morning")
	c.says("/webhooks", "No webhooks yet")
	for _, path := range []string{"/devices/new", "/webhooks/new", "/keys", "/people", string("/devices/" + d.ID + "/settings")} {
		c.want(c.get(path), http.StatusForbidden, "")
	}
	c.want(c.post("/devices/"+string(d.ID)+"/pause", nil), http.StatusForbidden, "")
}
