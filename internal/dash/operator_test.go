package dash

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/people"
	"postern/internal/postern"
)

// operatorPages are the routes of operators as the source names them, with ids that
// are there.
func (s *site) operatorPages() (list [][2]string) {
	s.t.Helper()
	text, err := os.ReadFile("routes.go")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`d\.operatorPage\("(GET|POST) ([^"]+)"`).FindAllStringSubmatch(string(text),
		-1) {
		id := string(s.workspace())
		if strings.Contains(m[2], "people") {
			id = string(s.member(email))
		}
		list = append(list, [2]string{m[1], strings.ReplaceAll(m[2], "{id}", id)})
	}
	if len(list) < 10 {
		s.t.Fatalf("the routes are %v", list)
	}
	return list
}

// operates makes the first user an operator, or takes that back.
func (s *site) operates(is bool) {
	s.t.Helper()
	if _, err := s.p.Operators.Set(
		s.t.Context(), access.Operator(), people.OperatorChange{Email: email, Remove: !is},
	); err != nil {
		s.t.Fatal(err)
	}
}

// valid is a form that each route of operators would take.
func valid() url.Values {
	return url.Values{
		"name": {"mine"}, "plan": {"enterprise"}, "devices": {"1000"}, "password": {password}, "owner": {"eve@example.com"},
	}
}

// To everybody but operators the pages of operators are like pages that are not there.
func TestOperatorPagesAreForOperatorsAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ada := s.setUp()
	guest := s.joins(ada.invites(guest, postern.Owner))
	ada.says("/", `href="/operator"`)
	guest.saysNot("/", `href="/operator"`)
	nothing := guest.get("/nothing")
	check := func(who string, c *client, want int) {
		t.Helper()
		for _, route := range s.operatorPages() {
			p := c.do(route[0], route[1], valid())
			if p.status != want || want == http.StatusNotFound && p.body != nothing.body {
				t.Errorf("%s: %v is answered %d, or not like a page that is not there", who, route, p.status)
			}
		}
	}
	check("an owner", guest, http.StatusNotFound)
	check("nobody", s.browser(), http.StatusSeeOther)
	s.operates(false)
	check("a former operator", ada, http.StatusNotFound)
	ada.saysNot("/", `href="/operator"`)
	s.as(postern.Viewer)
	check("a viewer", ada, http.StatusNotFound)
	list, err := s.g.Workspaces.List(t.Context(), access.Operator())
	if err != nil || len(list) != 1 || list[0].Plan != "enterprise" || list[0].Limits != (postern.Limits{}) {
		t.Errorf("the workspaces are %+v, %v", list, err)
	}
	s.operates(true) // a viewer who runs the server
	for _, route := range s.operatorPages() {
		p := ada.do(route[0], route[1], valid(), "Origin", "https://evil.example")
		if route[0] == http.MethodPost && p.status != http.StatusForbidden || p.status == http.StatusNotFound {
			t.Errorf("%v from another site is answered %d", route, p.status)
		}
		if p := ada.do(route[0], route[1], valid()); p.status >= 400 {
			t.Errorf("an operator: %v is answered %d", route, p.status)
		}
	}
	if err := s.p.Members.Remove(
		t.Context(), access.Operator(), list[0].ID, s.member(email), people.Removal{},
	); err != nil {
		t.Fatal(err)
	}
	ada.want(ada.get("/"), http.StatusSeeOther, "/operator") // and is not signed out for belonging to no workspace
	ada.want(ada.get("/operator"), http.StatusOK, "")
	s.operates(false)
	ada.want(ada.get("/"), http.StatusForbidden, "")
}

// An operator who belongs to no workspace has an account like others: with sessions, a password and second factors.
func TestOperatorWithoutAWorkspaceHasAnAccount(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ada := s.setUp()
	s.joins(ada.invites(guest, postern.Owner))
	s.operates(true)
	user := s.member(email)
	if err := s.p.Members.Remove(t.Context(), access.Operator(), s.workspace(), user, people.Removal{}); err != nil {
		t.Fatal(err)
	}
	other := s.signIn()
	ada.says("/account", email)
	ada.want(ada.post("/account/sessions", url.Values{"end": {"others"}}), http.StatusSeeOther, "/account")
	other.want(other.get("/operator"), http.StatusSeeOther, "/signin?next=%2Foperator")
	const changed = "five plain words are here"
	ada.want(ada.post("/account/password", url.Values{"current": {password}, "password": {changed}}),
		http.StatusSeeOther, "/account")
	s.forgets(email)
	ada.want(ada.post("/account/second/app", nil), http.StatusSeeOther, "/account/second")
	ada.want(ada.post("/account/second", url.Values{"password": {changed}}), http.StatusSeeOther, "/account/second")
	ada.want(ada.post("/account/second/app", nil), http.StatusSeeOther, "/account/second/app")
	ada.says("/account/second/app", `name="code"`)
	s.operates(false)
	ada.want(ada.get("/account"), http.StatusForbidden, "")
}

func TestOperatorSeesTheServer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	c.sends(d, "+15551234567", "a text that is nobody's business")
	c.sends(d, "+15551234567", "another")
	p := c.says(
		"/operator", "SQLite 3.", "Messages to send", ">2<", "Connected", "Pending deliveries", `hx-get="/operator"`,
	)
	if strings.Contains(p.body, "nobody&#39;s business") || strings.Contains(p.body, "Goroutines") {
		t.Error("it shows a text, or figures that nobody gave it")
	}
}

func TestOperatorChangesAPlanAndAsksBeforeDevicesArePaused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	ws, err := s.g.Workspaces.Create(t.Context(), access.Operator(),
		gateway.NewWorkspace{
			Name: "tenant",
			Plan: "growth",
		})
	if err != nil {
		t.Fatal(err)
	}
	first, second := s.connected(ws.ID, "The first"), s.connected(ws.ID, "The second")
	path := "/operator/workspaces/" + string(ws.ID)
	c.says("/operator/workspaces?q=TEN", "tenant", "Growth", "2 of 5")
	c.says(path, "tenant", "The first", "The second", "No members.", `value="growth" checked`)

	small := url.Values{"plan": {"free"}}
	p := c.want(c.post(path+"/plan", small), http.StatusOK, "")
	c.sees(
		p, "1 device will be paused", "API keys will be refused", "The second", `name="confirm" value="1 true"`,
		`name="plan" value="free"`,
	)
	if strings.Contains(p.body, "The first") || s.plan(ws.ID) != "growth" {
		t.Error("it names a device that stays, or did not wait for the answer")
	}
	small.Set("confirm", "0 true") // of another time
	c.want(c.post(path+"/plan", small), http.StatusOK, "")
	small.Set("confirm", "1 true")
	c.want(c.post(path+"/plan", small), http.StatusSeeOther, path)
	c.says(path, "The plan is now Free.", "Changed the plan", email, "Paused", "The plan allows fewer linked devices")
	if s.status(first) != postern.Connected || s.status(second) != postern.Paused || s.plan(ws.ID) != "free" {
		t.Errorf("the devices are %s and %s", s.status(first), s.status(second))
	}
	c.want(c.post(path+"/plan", url.Values{"plan": {"pro"}}), http.StatusSeeOther,
		path) // a larger one is not asked for
	if s.status(second) != postern.Connecting {
		t.Errorf("with a larger plan the device is %s", s.status(second))
	}
	if p := c.post(path+"/plan", url.Values{"plan": {"of-yesterday"}}); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, `id="plan-error"`) {
		t.Errorf("an unknown plan is answered %d", p.status)
	}
	acts, err := s.p.Audit.List(t.Context(), access.Operator(), ws.ID, people.ActQuery{Kind: "workspace"})
	if err != nil || len(acts.Data) != 3 || acts.Data[0].Email != email || acts.Data[0].Address != "192.0.2.1" ||
		acts.Data[0].Name != "pro" || acts.Data[2].UserID != "" {
		t.Errorf("written down are %+v, %v", acts.Data, err)
	}
}

func (s *site) plan(id postern.WorkspaceID) string {
	s.t.Helper()
	ws, err := s.db.Workspaces.Get(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return ws.Plan
}

func (s *site) status(d postern.Device) postern.Status {
	s.t.Helper()
	got, err := s.db.Devices.ForEngine(s.t.Context(), d.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return got.Status
}

func TestOperatorGivesAWorkspaceFiguresOfItsOwnAndTakesThemBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	path := "/operator/workspaces/" + string(s.workspace())
	s.connected(s.workspace(), "Support")
	limits := func() postern.Limits {
		ws, err := s.db.Workspaces.Get(t.Context(), s.workspace())
		if err != nil {
			t.Fatal(err)
		}
		return ws.Limits
	}
	c.want(
		c.post(path+"/limits", url.Values{"messages": {"1,234"}, "eventDays": {" 7 "}, "devices": {"3"}, "storageMiB": {"2,048"}}),
		http.StatusSeeOther, path,
	)
	if l := limits(); *l.Messages != 1234 || *l.EventDays != 7 || *l.Devices != 3 || l.MessageDays != nil ||
		*l.StorageMiB != 2048 {
		t.Errorf("the figures are %+v", l)
	}
	c.says(
		path, `value="1234"`, "0 of 1,234", "1 of 3", "0 bytes of 2 GiB", "MiB of stored files 2048",
		"messages 1234, devices 3, days of events 7, days of messages reset",
	)
	for name, form := range map[string]url.Values{
		"messages": {"messages": {"many"}}, "devices": {"devices": {"-1"}}, "eventDays": {"eventDays": {"0"}},
		"messageDays": {"messageDays": {"99999999999999999999"}}, "storageMiB": {"storageMiB": {"-1"}},
	} {
		p := c.post(path+"/limits", form)
		if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, `id="`+name+`-error"`) ||
			!strings.Contains(p.body, `value="`+form.Get(name)+`"`) {
			t.Errorf("%v is answered %d", form, p.status)
		}
	}
	outdated := url.Values{"messages": {"many"}, "devices": {""}, "seen": {stateOf(postern.Limits{})}}
	c.sees(c.post(path+"/limits", outdated), `name="seen" value="`+outdated.Get("seen")+`"`) // it is still outdated
	outdated.Set("messages", "1")
	c.sees(c.want(c.post(path+"/limits", outdated), http.StatusUnprocessableEntity, ""), "Somebody else has changed this")
	if l := limits(); *l.Devices != 3 {
		t.Errorf("an outdated form has changed the figures: %+v", l)
	}
	p := c.want(c.post(path+"/limits", url.Values{"devices": {"0"}, "messages": {"5"}}), http.StatusOK, "")
	c.sees(
		p, "1 device will be paused", `name="devices" value="0"`, `name="messages" value="5"`,
		`name="eventDays" value=""`,
		`name="confirm" value="1 false"`,
	)
	c.want(c.post(path+"/limits", url.Values{}), http.StatusSeeOther, path)
	if l := limits(); l != (postern.Limits{}) {
		t.Errorf("after all are given back the figures are %+v", l)
	}
	c.want(c.post("/operator/workspaces/ws_none/limits", nil), http.StatusNotFound, "")
	c.want(c.post("/operator/workspaces/ws_none/plan", url.Values{"plan": {"pro"}}), http.StatusNotFound, "")
}

func TestOperatorMakesAWorkspaceForSomebody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	form := url.Values{"name": {"tenant"}, "plan": {"pro"}, "owner": {"not an address"}}
	if p := c.post("/operator/workspaces", form); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, `id="owner-error"`) {
		t.Errorf("an invalid address is answered %d", p.status)
	}
	if list, err := s.g.Workspaces.List(t.Context(), access.Operator()); err != nil || len(list) != 1 {
		t.Errorf("a refused form makes a workspace: %v, %v", list, err)
	}
	form.Set("owner", guest)
	p := c.want(c.post("/operator/workspaces", form), http.StatusCreated, "")
	link := regexp.MustCompile(`/join/[0-9A-Za-z_-]{43}`).FindString(p.body)
	c.sees(p, "tenant", guest, "https://api.example.com"+link)
	owner := s.joins(link)
	owner.says("/", "tenant")
	owner.says("/people/audit", "Created the workspace", email)
	c.saysNot("/", "tenant") // the operator does not belong to it

	form.Set("owner", "late@example.com")
	late := regexp.MustCompile(`/join/[0-9A-Za-z_-]{43}`).FindString(c.post("/operator/workspaces", form).body)
	s.operates(false)
	if p := s.browser().get(late); p.status != http.StatusNotFound {
		t.Errorf("an invitation of who is no operator any more is answered %d", p.status)
	}
}

func TestOperatorMakesAPasswordLinkWithTheOwnPassword(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	bob := s.joins(c.invites(guest, postern.Viewer))
	c.says("/operator/people?q="+url.QueryEscape(guest), guest, "acme", "Off")
	c.saysNot("/operator/people?q=bob", ">"+email+"</bdi>\n<span")
	path := "/operator/people/" + string(s.member(guest)) + "/password"
	c.says(path, guest, "Your password")
	if p := c.post(path, url.Values{"password": {"not this one"}}); p.status != http.StatusUnprocessableEntity ||
		strings.Contains(p.body, "/join/") {
		t.Errorf("a wrong password is answered %d", p.status)
	}
	p := c.want(c.post(path, url.Values{"password": {password}}), http.StatusCreated, "")
	link := regexp.MustCompile(`/join/[0-9A-Za-z_-]{43}`).FindString(p.body)
	again := s.browser()
	again.want(again.post(link, url.Values{"password": {"five plain words are here"}}), http.StatusSeeOther, "/")
	bob.want(bob.get("/devices"), http.StatusSeeOther, "/signin?next=%2Fdevices")
	c.want(c.get("/operator/people/usr_none/password"), http.StatusNotFound, "")
	c.want(c.post("/operator/people/usr_none/password", url.Values{"password": {password}}), http.StatusNotFound, "")
	acts, err := s.p.Audit.List(t.Context(), access.Operator(), "", people.ActQuery{Email: email, Kind: "user"})
	if err != nil || len(acts.Data) != 2 || acts.Data[1].Act != "user.password-refused" || // the wrong one
		acts.Data[0].Act != "user.password-reset" ||
		acts.Data[0].Subject != string(s.member(guest)) {
		t.Errorf("written down are %+v, %v", acts.Data, err)
	}
}

func TestOperatorsListsComeInPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	for _, ws := range s.belongs(51) {
		if _, _, err := s.p.Users.Create(t.Context(), access.Operator(), ws.ID, people.NewUser{
			Email: ws.Name[5:] + "@example.com", Role: postern.Viewer,
		}); err != nil {
			t.Fatal(err)
		}
	}
	for path, last := range map[string]string{"/operator/workspaces": "team 050", "/operator/people": email} {
		p := c.says(path)
		more := regexp.MustCompile(`href="(` + path + `\?after=[^"]+)"`).FindStringSubmatch(p.body)
		if more == nil || strings.Count(p.body, `scope="row"`) != 50 {
			t.Fatalf("%s has %d rows, or no next page", path, strings.Count(p.body, `scope="row"`))
		}
		p = c.says(strings.ReplaceAll(more[1], "&amp;", "&"), last)
		if n := strings.Count(p.body, `scope="row"`); n != 2 {
			t.Errorf("the last page of %s has %d rows", path, n)
		}
		for _, after := range []string{"x", "%00", "bm90LW91cnM"} {
			if p := c.get(path + "?q=%25%00&after=" + after); p.status < 400 || p.status >= 500 {
				t.Errorf("the cursor %s of %s is answered %d", after, path, p.status)
			}
		}
		c.says(path+"?q=%00%25%5C_", "on this page match.")
	}
	c.says("/operator/people?q="+email, "team 000, team 001, and 49 more")
	one := "/operator/workspaces/" + string(s.workspace())
	for _, query := range []string{"?devices=x", "?acts=%00"} {
		if p := c.get(one + query); p.status < 400 || p.status >= 500 {
			t.Errorf("%s is answered %d", query, p.status)
		}
	}
}

func TestSizesAndAgesAreWrittenWithTheirUnits(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1536: "1.5 KiB", 3 << 30: "3 GiB", 5 << 50: "5120 TiB",
	} {
		if got := postern.BytesWords(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min 1 s",
		3*time.Hour + time.Minute: "3 h 1 min",
		49 * time.Hour:            "2 days 1 h",
	} {
		if got := ageWords(d); got != want {
			t.Errorf("%s is written %s, want %s", d, got, want)
		}
	}
}
