package dash

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/store"
)

// belongs makes workspaces that the first user belongs to, each at a later time than the last:
// lists are in the order of creation.
func (s *site) belongs(n int) (list []postern.Workspace) {
	s.t.Helper()
	for i := range n {
		for before := postern.TimeOf(time.Now()); postern.TimeOf(time.Now()) == before; {
			runtime.Gosched()
		}
		ws, err := s.g.Workspaces.Create(s.t.Context(), access.Operator(), gateway.NewWorkspace{
			Name: fmt.Sprintf("team %03d", i), Plan: "growth",
		})
		if err != nil {
			s.t.Fatal(err)
		}
		if _, _, err := s.p.Users.Create(s.t.Context(), access.Operator(), ws.ID, people.NewUser{
			Email: email, Role: postern.Owner, Existing: true,
		}); err != nil {
			s.t.Fatal(err)
		}
		list = append(list, ws)
	}
	return list
}

func TestWorkspaceWithAnUnknownPlanLeavesTheOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	acme := s.workspace()
	other := s.belongs(1)[0]
	c.want(c.post("/workspace", url.Values{"workspace": {string(acme)}}), http.StatusSeeOther, "/")
	if err := s.db.Workspaces.SetPlan(t.Context(), acme, postern.Plan{Name: "of-yesterday"}, 1); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/devices?after=x", "/keys"} {
		c.sees(c.want(c.get(path), http.StatusForbidden, ""), "This workspace is unavailable", "acme", "team 000",
			"Sign out")
	}
	c.want(c.post("/devices", url.Values{"name": {"Support"}}), http.StatusForbidden, "")
	c.want(c.post("/workspace", url.Values{"workspace": {string(other.ID)}}), http.StatusSeeOther, "/")
	c.says("/", "team 000")
	c.want(c.post("/workspace", url.Values{"workspace": {string(acme)}}), http.StatusSeeOther, "/")
	c.want(c.get("/"), http.StatusForbidden, "")
	c.want(c.post("/signout", nil), http.StatusSeeOther, "/signin")
	c.want(c.get("/workspaces"), http.StatusSeeOther, "/signin?next=%2Fworkspaces")
}

func TestNewPasswordLeavesTheWorkspace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	other := s.belongs(1)[0]
	c.want(c.post("/workspace", url.Values{"workspace": {string(other.ID)}}), http.StatusSeeOther, "/")
	c.want(c.post("/account/password", url.Values{
		"current": {password}, "password": {"five plain words are here"},
	}), http.StatusSeeOther, "/account")
	c.post("/devices", url.Values{"name": {"Support"}})
	list, err := s.db.Devices.List(t.Context(), other.ID, nil, store.Page{Limit: 10})
	if err != nil || len(list) != 1 {
		t.Errorf("the device is not in the workspace that was chosen: %+v, %v", list, err)
	}
}

func TestEachOfManyWorkspacesCanBeReached(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	if p := c.get("/"); strings.Contains(p.body, `href="/workspaces"`) {
		t.Error("a member of one workspace is led to all")
	}
	all := s.belongs(130)
	c.says("/", "team 000", `href="/workspaces"`)
	seen, button := map[string]bool{}, regexp.MustCompile(`name="workspace" value="([^"]+)"`)
	for next := "/workspaces"; next != ""; {
		p := c.want(c.get(next), http.StatusOK, "")
		for _, found := range button.FindAllStringSubmatch(p.body, -1) {
			seen[found[1]] = true
		}
		next = ""
		if more := regexp.MustCompile(`href="(/workspaces\?after=[^"]+)"`).FindStringSubmatch(p.body); more != nil {
			next = more[1]
		}
	}
	for _, ws := range all {
		if !seen[string(ws.ID)] {
			t.Errorf("%s is on no page", ws.Name)
		}
	}
	last := all[len(all)-1]
	c.want(c.post("/workspace", url.Values{"workspace": {string(last.ID)}}), http.StatusSeeOther, "/")
	c.says("/", last.Name)
	c.want(c.post("/workspace", url.Values{"workspace": {"ws_of_others"}}), http.StatusSeeOther, "/")
	c.says("/", "acme")
	if p := c.get("/workspaces?after=x"); p.status >= 500 || p.status < 400 {
		t.Errorf("an invalid cursor is answered %d", p.status)
	}
}

// A form of a tab that shows one workspace does nothing in another one, which was
// chosen in another tab.
func TestFormOfATabThatIsElsewhereDoesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	other := s.belongs(1)[0]
	form := c.get("/keys/new").body
	at := regexp.MustCompile(`name="at" value="([^"]+)"`).FindStringSubmatch(form)
	if at == nil || at[1] != string(s.workspace()) {
		t.Fatalf("the form does not say where it is: %v", at)
	}
	c.want(c.post("/workspace", url.Values{"workspace": {string(other.ID)}}), http.StatusSeeOther, "/")
	key := url.Values{"name": {"ci"}, "scope": {"devices:read"}, "at": {at[1]}}
	if p := c.want(c.post("/keys", key), http.StatusConflict, ""); !strings.Contains(p.body, "Nothing was changed") {
		t.Error("the page does not say that nothing was done")
	}
	key.Set("at", string(other.ID))
	c.want(c.post("/keys", key), http.StatusCreated, "")
	c.want(c.post("/workspace", url.Values{"workspace": {at[1]}}), http.StatusSeeOther, "/")
	if p := c.get("/keys"); strings.Contains(p.body, "pst_…") {
		t.Error("a key was made in the workspace of the tab")
	}
}
