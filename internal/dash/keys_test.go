package dash

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"postern/internal/access"
	"postern/internal/postern"
)

// forgets makes it long ago that a user entered the password.
func (s *site) forgets(email string) {
	s.t.Helper()
	list, err := s.accounts().SignIns.List(s.t.Context(), s.member(email), 0, 10)
	if err != nil || len(list) == 0 {
		s.t.Fatalf("%d sessions: %v", len(list), err)
	}
	for _, in := range list {
		data, err := decode(in.Data)
		if err != nil {
			s.t.Fatal(err)
		}
		data.Values[keyEntered], data.Values[keySure] = "2026-01-01T00:00:00Z", ""
		if in.Data, err = json.Marshal(data); err != nil {
			s.t.Fatal(err)
		}
		if err := s.accounts().SignIns.Update(s.t.Context(), in); err != nil {
			s.t.Fatal(err)
		}
	}
}

// keys counts the keys of the first workspace that work, and the others.
func (s *site) keys() (working, revoked int) {
	s.t.Helper()
	list, err := s.g.Keys.ListForOperator(s.t.Context(), access.Operator(), s.workspace())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, k := range list {
		if k.RevokedAt != 0 {
			revoked++
		}
	}
	return len(list) - revoked, revoked
}

func newKeyForm(more ...string) url.Values {
	form := url.Values{"name": {"ci"}, "scope": {"devices:read"}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form
}

// A stranger who finds a browser that is signed in gets no key that outlives the session.
func TestT4NewKeyAsksForThePasswordAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	const field = `autocomplete="current-password"`
	if p := c.get("/keys/new"); strings.Contains(p.body, field) {
		t.Error("the password is asked for right after it was entered")
	}
	c.want(c.post("/keys", newKeyForm()), http.StatusCreated, "")
	s.forgets(email)
	c.says("/keys/new", field)
	for _, wrong := range []url.Values{newKeyForm(), newKeyForm("password", "not this one")} {
		c.sees(c.want(c.post("/keys", wrong), http.StatusUnprocessableEntity, ""), `value="ci"`, `id="password-error"`)
	}
	id := regexp.MustCompile(`/keys/(key_[0-9A-Z]+)/rotate`).FindString(c.get("/keys").body)
	c.sees(c.want(c.post(id, url.Values{"overlap": {"1h"}}), http.StatusForbidden, ""), field)
	if working, _ := s.keys(); working != 1 {
		t.Errorf("%d keys work, want the one from before", working)
	}
	c.want(c.post("/keys", newKeyForm("password", password)), http.StatusCreated, "")
	c.want(c.post("/keys", newKeyForm()), http.StatusCreated, "")
	s.forgets(email)
	c.want(c.post("/account/second", url.Values{"password": {password}, "next": {"/keys"}}), http.StatusSeeOther, "/keys")
	c.want(c.post(id, url.Values{"overlap": {"1h"}}), http.StatusCreated, "")
}

// A user who has no password signs in at the provider again: the sign-in there may have been without
// anything to enter.
func TestNewKeyWithoutAPasswordNeedsTheProviderAgain(t *testing.T) {
	t.Parallel()
	s, _, bob := withoutPassword(t)
	const again = "/account/again?next=%2Fkeys%2Fnew"
	bob.asked(bob.get("/keys/new"), http.StatusOK, `href="`+again+`"`)
	bob.want(bob.post("/keys", newKeyForm("password", password)), http.StatusUnprocessableEntity, "")
	if working, _ := s.keys(); working != 0 {
		t.Errorf("%d keys were created", working)
	}
	bob.want(bob.through(again), http.StatusSeeOther, "/keys/new")
	bob.want(bob.post("/keys", newKeyForm()), http.StatusCreated, "")
}

// The keys of a member who is removed stay, unless it is asked that they end too.
func TestT17KeysOfARemovedMemberAreRevokedOnRequest(t *testing.T) {
	t.Parallel()
	for _, revoke := range []bool{false, true} {
		s := newSite(t)
		ada := s.setUp()
		bob := s.joins(ada.invites(guest, postern.Developer))
		ada.want(ada.post("/keys", newKeyForm()), http.StatusCreated, "")
		for range 2 {
			bob.want(bob.post("/keys", newKeyForm()), http.StatusCreated, "")
		}
		ada.says("/people", "Also revoke the 2 API keys that they created", "Also revoke the 1 API key that you created")
		form, want := url.Values{}, 0
		if revoke {
			form, want = url.Values{"keys": {"revoke"}}, 2
		}
		ada.want(ada.post("/people/"+string(s.member(guest))+"/remove", form), http.StatusSeeOther, "/people")
		if working, revoked := s.keys(); revoked != want || working != 3-want {
			t.Errorf("revoke %v: %d keys were revoked and %d work", revoke, revoked, working)
		}
		if log := ada.get("/people/audit").body; strings.Count(log, "Revoked an API key") != want {
			t.Errorf("revoke %v: the audit log does not say so", revoke)
		}
	}
}

// Failed attempts at an account are in the audit log, and those at no account are nowhere.
func TestT16FailedSignInsAreWrittenDown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	phone, _ := s.setUp().withApp()
	c := s.browser()
	for _, who := range []string{email, "nobody@example.com"} {
		c.want(c.post("/signin", url.Values{"email": {who}, "password": {"no"}}), http.StatusUnauthorized, "")
	}
	in := url.Values{"email": {email}, "password": {password}}
	c.want(c.post("/signin", in), http.StatusSeeOther, "/signin/second?next=%2F")
	c.want(c.post("/signin/second", url.Values{"code": {"none"}}), http.StatusUnprocessableEntity, "")
	c.want(c.post("/signin/second", url.Values{"code": {phone.code(1)}}), http.StatusSeeOther, "/")
	c.want(c.post("/account/second", url.Values{"password": {"no"}}), http.StatusUnprocessableEntity, "")
	c.want(c.post("/account/sessions", url.Values{"end": {"others"}}), http.StatusSeeOther, "/account")
	seen := map[string]int{}
	for _, a := range s.didIn("", email) {
		seen[a]++
	}
	for _, act := range []string{"user.sign-in-failed", "user.second-step-failed", "user.password-refused"} {
		if seen[act] != 1 {
			t.Errorf("%s is recorded %d times, want once; the log has %v", act, seen[act], seen)
		}
	}
	for _, path := range []string{"/account", "/operator/activity", "/operator/activity?who=" + url.QueryEscape(email)} {
		c.says(path, "Entered a wrong password at sign-in", "Entered a wrong code at sign-in",
			"Entered a wrong password to confirm a change", "Ended signed-in sessions", "192.0.2.1")
	}
	c.saysNot("/operator/activity?who="+url.QueryEscape(guest), "Entered a wrong password")
}
