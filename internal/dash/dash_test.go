package dash

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/access"
	pages "postern/internal/dash/page"
	"postern/internal/egress"
	"postern/internal/gateway"
	"postern/internal/media/blob"
	"postern/internal/media/library"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/accounts"
	"postern/internal/store/migrated"
)

const (
	email    = "ada@example.com"
	password = "four plain words here"
)

// site is a dashboard over a real store.
type site struct {
	t   *testing.T
	g   *gateway.Gateway
	p   *people.People
	db  *store.Store
	url string

	serve   http.Handler
	devices int // that were connected
}

func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteWith(t, func(*Options) {})
}

// newSiteWith is a dashboard with options of its own.
func newSiteWith(t *testing.T, set func(*Options)) *site {
	t.Helper()
	return newSiteOn(t, store.Options{Dir: migrated.Dir(t, "")}, set)
}

// newSiteOn is newSiteWith on a database.
func newSiteOn(t *testing.T, database store.Options, set func(*Options)) *site {
	t.Helper()
	return newSiteAt(t, database, nil, set)
}

// newSiteAt is newSiteOn with a simulated vendor.
func newSiteAt(t *testing.T, database store.Options, sandbox gateway.Sandbox, set func(*Options)) *site {
	t.Helper()
	db, err := store.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.NewBox(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	p := people.New(people.Options{
		DB: db, Box: box, PasswordMemory: 64, CheckURL: publicURL, TestAlert: unreachable,
	})
	network := egress.NewClient(egress.Options{})
	t.Cleanup(network.Close)
	s := &site{t: t, db: db, p: p, g: gateway.New(gateway.Options{
		DB: db, Box: box, Library: shelves(t, db), Sandbox: sandbox, Log: slog.New(slog.DiscardHandler),
		CheckURL: publicURL, CheckProxy: network.CheckProxy, Confirm: p.Users.Confirm,
	})}
	opts := Options{
		Gateway: s.g, People: s.p, Log: slog.New(slog.DiscardHandler), BaseURL: "https://api.example.com",
		Kept: gateway.Retention{
			Events: 30 * 24 * time.Hour, Messages: 90 * 24 * time.Hour,
			Audit: 365 * 24 * time.Hour,
		},
		Address: func(*http.Request) string { return "192.0.2.1" },
	}
	set(&opts)
	s.serve = Handler(opts)
	srv := httptest.NewServer(s.serve)
	s.url = srv.URL
	t.Cleanup(func() {
		srv.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// shelves are an empty library.
func shelves(t *testing.T, db *store.Store) *library.Library {
	t.Helper()
	blobs, err := blob.OpenDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := library.Open(blobs, t.TempDir(), db.Blobs)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// client is a browser: it keeps cookies, and stays where it is sent.
type client struct {
	*site
	http *http.Client
}

// transport makes the requests of the tests. It is not http.DefaultTransport because the end of
// each httptest.Server closes the idle connections of that one, which fails a POST that has
// just taken one of them.
var transport = http.DefaultTransport.(*http.Transport).Clone()

func (s *site) browser() *client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return &client{
		s,
		&http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
}

// answer is what was answered.
type answer struct {
	status int
	header http.Header
	body   string
}

// mainOf is a page without what is around it.
func mainOf(a answer) string {
	_, content, _ := strings.Cut(a.body, "<main")
	content, _, _ = strings.Cut(content, "</main>")
	return content
}

func (c *client) do(method, path string, form url.Values, header ...string) answer {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Fatal(err)
	}
	if method != http.MethodGet {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if slices.Contains(res.Header["Vary"], "Accept-Encoding") && !strings.HasPrefix(path, "/assets/") {
		c.t.Errorf("%s %s may be compressed, but people see secrets beside what strangers wrote", method, path)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

func (c *client) get(path string) answer { return c.do(http.MethodGet, path, nil) }

func (c *client) post(path string, form url.Values) answer { return c.do(http.MethodPost, path, form) }

func (c *client) want(p answer, status int, location string) answer {
	c.t.Helper()
	if p.status != status || p.header.Get("Location") != location {
		c.t.Errorf("answered %d to %q, want %d to %q", p.status, p.header.Get("Location"), status, location)
	}
	return p
}

func (c *client) token() string {
	u, err := url.Parse(c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, k := range c.http.Jar.Cookies(u) {
		if k.Name == "postern" {
			return k.Value
		}
	}
	return ""
}

// setUp makes the first user in a browser.
func (s *site) setUp() *client {
	s.t.Helper()
	token, err := s.p.Users.OpenSetUp(s.t.Context(), access.Operator())
	if err != nil {
		s.t.Fatal(err)
	}
	c := s.browser()
	c.want(
		c.post("/setup/"+token, url.Values{"workspace": {"acme"}, "email": {email}, "password": {password}}),
		http.StatusSeeOther, "/",
	)
	return c
}

func (s *site) signIn() *client {
	s.t.Helper()
	c := s.browser()
	c.want(c.post("/signin", url.Values{"email": {email}, "password": {password}}), http.StatusSeeOther, "/")
	return c
}

func TestFromTheSetUpLinkToAKeyThatWorks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	if p := c.want(c.get("/"), http.StatusOK, ""); !strings.Contains(p.body, "acme") {
		t.Error("the overview does not name the workspace")
	}
	p := c.post("/keys", url.Values{"name": {"ci"}, "scope": {"devices:read"}, "expiry": {"24h"}})
	secret := regexp.MustCompile(`pst_[0-9A-Za-z]{38}`).FindString(p.body)
	caller, err := s.g.Keys.Authenticate(t.Context(), "Bearer "+secret)
	if p.status != http.StatusCreated || err != nil || caller.Permit(postern.DevicesRead) != nil ||
		caller.Permit(postern.DevicesWrite) == nil {
		t.Fatalf("status %d, the key has %v, %v", p.status, caller.Key.Scopes, err)
	}
	list := c.get("/keys")
	if strings.Contains(list.body, secret) || !strings.Contains(list.body, secret[len(secret)-4:]) {
		t.Error("the list shows the whole secret, or not its end")
	}
	c.want(c.post("/keys/"+string(caller.Key.ID)+"/revoke", nil), http.StatusSeeOther, "/keys")
	if _, err := s.g.Keys.Authenticate(t.Context(), "Bearer "+secret); postern.ReasonOf(err) != postern.Unauthorized {
		t.Errorf("the revoked key is answered %v", err)
	}
	if p := c.get("/keys"); !strings.Contains(p.body, "The key was revoked") {
		t.Error("the page does not say what was done")
	}
	if p := c.get("/keys"); strings.Contains(p.body, "The key was revoked") {
		t.Error("it says so twice")
	}
}

// A key is limited to the devices that are chosen in the form, and the list names them.
func TestKeyIsLimitedToDevices(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	support, sales := s.connected(s.workspace(), "Support"), s.connected(s.workspace(), "Sales")
	c.says("/keys/new", `name="device" value="`+string(support.ID)+`"`, `name="device" value="`+string(sales.ID)+`"`)
	form := url.Values{"scope": {"devices:read"}, "device": {string(sales.ID)}}
	refused := c.want(c.post("/keys", form), http.StatusUnprocessableEntity, "")
	c.sees(refused, `value="`+string(sales.ID)+`" checked`)
	form.Set("name", "ci")
	made := c.want(c.post("/keys", form), http.StatusCreated, "")
	secret := regexp.MustCompile(`pst_[0-9A-Za-z]{38}`).FindString(made.body)
	caller, err := s.g.Keys.Authenticate(t.Context(), "Bearer "+secret)
	if err != nil || !slices.Equal(caller.Key.Devices, []postern.DeviceID{sales.ID}) {
		t.Errorf("the key is limited to %v, %v", caller.Key.Devices, err)
	}
	c.want(c.post("/keys", url.Values{"name": {"all"}, "scope": {"devices:read"}}), http.StatusCreated, "")
	list := c.says("/keys", "1 scope, 1 device", "Sales", "1 scope, all devices", `data-label="Created"`)
	if strings.Contains(list.body, "Support") {
		t.Error("the list names a device that no key is limited to")
	}
}

func TestAFormWithoutAScopeGivesNone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	if p := c.post("/keys", url.Values{"name": {"ci"}}); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, `value="ci"`) {
		t.Errorf("status %d; the form shows the name again: %v", p.status, strings.Contains(p.body, `value="ci"`))
	}
	if p := c.post("/keys", url.Values{
		"name": {"ci"}, "scope": {"devices:read"}, "expiry": {"-5h"},
	}); p.status != http.StatusUnprocessableEntity {
		t.Errorf("a life that is over: status %d", p.status)
	}
}

// Every page but those to come in asks for a sign-in, and every change of
// something is refused without one.
func TestWithoutASignInNothingIsShown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.setUp()
	c := s.browser()
	for _, path := range []string{"/devices", "/keys", "/keys/new", "/account"} {
		c.want(c.get(path), http.StatusSeeOther, "/signin?next="+url.QueryEscape(path))
	}
	c.want(c.get("/"), http.StatusSeeOther, "/signin")
	c.want(c.get("/live"), http.StatusUnauthorized, "")
	for _, path := range []string{
		"/keys", "/keys/key_1/rotate", "/keys/key_1/revoke", "/account/password", "/account/sessions", "/workspace",
	} {
		c.want(c.post(path, url.Values{"name": {"x"}, "scope": {"devices:read"}}), http.StatusSeeOther, "/signin")
	}
	c.want(c.get("/nothing"), http.StatusNotFound, "")
	c.want(c.get("/setup/none"), http.StatusNotFound, "")
}

func TestViewerIsRefusedWhatTheRoleDoesNotAllow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	first := []string{`href="/devices/new"`, `href="/keys/new"`, `href="/messages/new"`, `href="/webhooks/new"`}
	c.says("/", append(first, `href="/keys"`)...)
	s.as(postern.Viewer)
	c.saysNot("/", append(first, `href="/keys"`, "Getting started")...)
	c.saysNot("/devices", "/keys/new", "/devices/new")
	c.want(c.get("/devices"), http.StatusOK, "")
	for _, path := range []string{"/keys", "/keys/new"} {
		c.want(c.get(path), http.StatusForbidden, "")
	}
	c.want(c.post("/keys", url.Values{"name": {"ci"}, "scope": {"devices:read"}}), http.StatusForbidden, "")
	s.as("")
	c.want(c.get("/devices"), http.StatusForbidden, "")
}

// A member who may not link a phone does not see the code, and a device of others is
// none.
func TestDevicePagesShowWhatTheCallerMay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	if p := c.post("/devices", url.Values{"name": {""}}); p.status != http.StatusUnprocessableEntity {
		t.Errorf("a device without a name: status %d", p.status)
	}
	made := c.post("/devices", url.Values{"name": {"Support"}})
	path := made.header.Get("Location")
	c.want(made, http.StatusSeeOther, path)
	c.want(c.post(path+"/link", url.Values{}), http.StatusSeeOther, path)
	if p := c.get(path); p.status != http.StatusOK || !strings.Contains(p.body, "Requesting a code from the network") {
		t.Errorf("status %d; the attempt is not shown", p.status)
	}
	if p := c.post(path+"/link/page", nil); p.status != http.StatusCreated ||
		!strings.Contains(p.body, "https://api.example.com/link/") {
		t.Errorf("status %d; the page for the phone is not shown", p.status)
	}
	if p := c.post(path+"/link", url.Values{"number": {"12"}}); p.status != http.StatusUnprocessableEntity {
		t.Errorf("an invalid number: status %d", p.status)
	}
	s.as(postern.Viewer)
	if p := c.get(path); p.status != http.StatusOK || strings.Contains(p.body, "Asking the network") ||
		strings.Contains(p.body, "/unlink") {
		t.Errorf("a viewer is shown the attempt, or its buttons (status %d)", p.status)
	}
	for _, act := range []string{
		"/link", "/link/cancel", "/link/page", "/pause", "/resume", "/unlink", "/phone/scan", "/phone/write",
		"/phone/fault",
	} {
		c.want(c.post(path+act, url.Values{}), http.StatusForbidden, "")
	}
	s.as(postern.Owner)
	c.want(c.post(path+"/link/cancel", nil), http.StatusSeeOther, path)
	if p := c.get(path); !strings.Contains(p.body, "The link attempt was canceled") {
		t.Error("the page does not say that the attempt was stopped")
	}
	other := s.device()
	for _, act := range []string{"/link", "/link/cancel", "/link/page", "/pause", "/resume", "/unlink"} {
		c.want(c.post(other+act, url.Values{}), http.StatusNotFound, "")
	}
	c.want(c.get(other), http.StatusNotFound, "")
	c.want(c.get(path+"/phone"), http.StatusNotFound, "") // there is no sandbox
}

// device makes a device of another workspace, and gives the path of its page.
func (s *site) device() string {
	s.t.Helper()
	ws, err := s.g.Workspaces.Create(s.t.Context(), access.Operator(),
		gateway.NewWorkspace{
			Name: "other",
			Plan: "growth",
		})
	if err != nil {
		s.t.Fatal(err)
	}
	d := postern.Device{
		ID: postern.NewDeviceID(), WorkspaceID: ws.ID, Name: "d", Mode: "live", Status: postern.Unlinked,
		Desired: postern.WantIdle, Metadata: map[string]string{}, CreatedAt: ws.CreatedAt,
	}
	if err := s.db.Devices.Create(s.t.Context(), d, nil); err != nil {
		s.t.Fatal(err)
	}
	return "/devices/" + string(d.ID)
}

// T14: a page of another site can change nothing.
func TestT14AnotherSiteChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	for _, header := range [][]string{
		{"Origin", "https://evil.example"},
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "null"},
	} {
		for _, path := range []string{
			"/keys", "/keys/key_1/revoke", "/keys/key_1/rotate", "/account/password", "/account/sessions", "/workspace",
			"/signout", "/signin", "/setup/x",
		} {
			if p := c.do(
				http.MethodPost, path, url.Values{"name": {"x"}, "scope": {"devices:read"}, "end": {"all"}}, header...,
			); p.status != http.StatusForbidden {
				t.Errorf("%v: POST %s is answered %d", header, path, p.status)
			}
		}
	}
	c.want(c.get("/account"), http.StatusOK, "")
}

// T15: the token is new after a sign-in, and what was ended stays so.
func TestT15SessionsAreNewAtTheSignInAndEndEverywhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.setUp()
	second, third := s.signIn(), s.signIn()
	before := second.token()
	second.want(second.post("/signin", url.Values{"email": {email}, "password": {password}}), http.StatusSeeOther, "/")
	if second.token() == before {
		t.Error("the token is the one from before the sign-in")
	}
	old := s.browser()
	if p := old.do(http.MethodGet, "/account", nil, "Cookie", "postern="+before); p.status != http.StatusSeeOther {
		t.Errorf("the token from before the sign-in is answered %d", p.status)
	}
	first.want(first.post("/account/sessions", url.Values{"end": {"others"}}), http.StatusSeeOther, "/account")
	first.want(first.get("/account"), http.StatusOK, "")
	for _, c := range []*client{second, third} {
		c.want(c.get("/account"), http.StatusSeeOther, "/signin?next=%2Faccount")
	}
	fourth := s.signIn()
	form := url.Values{"current": {password}, "password": {"five plain words are here"}}
	first.want(first.post("/account/password", form), http.StatusSeeOther, "/account")
	first.want(first.get("/account"), http.StatusOK, "")
	fourth.want(fourth.get("/account"), http.StatusSeeOther, "/signin?next=%2Faccount")
	token := first.token()
	first.want(first.post("/signout", nil), http.StatusSeeOther, "/signin")
	if p := old.do(http.MethodGet, "/account", nil, "Cookie", "postern="+token); p.status != http.StatusSeeOther {
		t.Errorf("the token of a browser that has signed out is answered %d", p.status)
	}
}

// A page that is left open asks by itself every few seconds: that neither writes
// to the database nor keeps the browser signed in.
func TestPollsDoNotProlongASession(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	sum := sha256.Sum256([]byte(c.token()))
	hash := base64.RawURLEncoding.EncodeToString(sum[:])
	ends := func() postern.Time {
		in, ok, err := s.p.SignIns.Get(t.Context(), hash)
		if err != nil || !ok {
			t.Fatalf("there is no session: %v", err)
		}
		return in.ExpiresAt
	}
	in, _, err := s.p.SignIns.Get(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	in.ExpiresAt = in.ExpiresAt.Add(-time.Hour)
	if err := s.p.SignIns.Update(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	c.want(c.do(http.MethodGet, "/devices", nil, "HX-Request", "true"), http.StatusOK, "")
	c.want(c.get("/media/med_none"), http.StatusNotFound, "")
	if got := ends(); got != in.ExpiresAt {
		t.Error("a poll or a picture prolongs the session")
	}
	c.want(c.get("/devices"), http.StatusOK, "")
	once := ends()
	if once <= in.ExpiresAt {
		t.Error("a person does not")
	}
	c.want(c.get("/devices"), http.StatusOK, "")
	if ends() != once {
		t.Error("the session is written with every page")
	}
}

// What a form has come to is said to the person: what another tab asks for by itself
// meanwhile shows a part of its page, and does not use it up.
func TestPollsLeaveANoticeToThePerson(t *testing.T) {
	t.Parallel()
	c := newSite(t).setUp()
	p := c.post("/devices", url.Values{"name": {"shop"}})
	part := c.do(http.MethodGet, "/devices", nil, "HX-Request", "true")
	if c.want(part, http.StatusOK, ""); strings.Contains(part.body, "<nav") || !strings.Contains(part.body, `id="devices"`) {
		t.Errorf("the part is %s", part.body)
	}
	if page := c.get(p.header.Get("Location")); !strings.Contains(page.body, "The device was added") {
		t.Error("a poll took the notice")
	}
	back := c.do(http.MethodGet, "/devices", nil, "HX-Request", "true", "HX-History-Restore-Request", "true")
	if !strings.Contains(back.body, "<nav") {
		t.Error("who goes back gets only a part of a page")
	}
}

func TestWrongPasswordChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	p := c.post("/account/password", url.Values{"current": {"not this one"}, "password": {"five plain words are here"}})
	if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, "This password is not correct") {
		t.Errorf("status %d", p.status)
	}
	s.signIn()
	if p := s.browser().post("/signin", url.Values{
		"email": {email}, "password": {"not the right one"},
	}); p.status != http.StatusUnauthorized ||
		p.header.Get("Set-Cookie") != "" {
		t.Errorf("status %d, %s", p.status, p.header.Get("Set-Cookie"))
	}
}

// T19: after the sign-in a browser stays on this server.
func TestT19NextLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"": "/", "/keys?after=x": "/keys?after=x", "//evil.example": "/", `\evil.example`: "/", `/\evil.example`: "/",
		"/\t/evil.example": "/", "https://evil.example": "/",
		"javascript:alert(1)": "/", "evil.example": "/", "/ /evil.example": "/", "/%09/evil.example": "/%09/evil.example",
	} {
		if got := local(next); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
	s := newSite(t)
	s.setUp()
	c := s.browser()
	c.want(
		c.post("/signin", url.Values{"email": {email}, "password": {password}, "next": {"//evil.example"}}),
		http.StatusSeeOther, "/",
	)
	p := c.do(http.MethodGet, "/keys", nil, "X-Forwarded-Host", "evil.example")
	if strings.Contains(p.body, "evil.example") {
		t.Error("a page repeats the host that a request names")
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": pages.Policy, "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
	} {
		if p.header.Get(name) != want {
			t.Errorf("%s: %s", name, p.header.Get(name))
		}
	}
	if !strings.Contains(strings.Join(p.header["Cache-Control"], ","), "no-store") {
		t.Errorf("pages may be kept: %v", p.header["Cache-Control"])
	}
}

func TestCookieOfAServerWithTLSIsItsOwn(t *testing.T) {
	t.Parallel()
	m := newSessions(Options{Secure: true})
	if c := m.Cookie; c.Name != "__Host-postern" || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" ||
		c.SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookie is %+v", c)
	}
	for _, secure := range []bool{true, false} {
		w := httptest.NewRecorder()
		headed(secure, http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if got := w.Header().Get("Strict-Transport-Security"); (got != "") != secure {
			t.Errorf("by HTTPS %v: Strict-Transport-Security is %q", secure, got)
		}
	}
}

// accounts returns the people's accounts in the store.
func (s *site) accounts() accounts.Tables { return accounts.Of(s.db) }

// as gives the first user another role.
func (s *site) as(role postern.Role) {
	s.t.Helper()
	u, _, ok, err := s.accounts().Users.ByEmail(s.t.Context(), email)
	if err != nil || !ok {
		s.t.Fatal(err)
	}
	list, err := s.accounts().Members.Memberships(s.t.Context(), u.ID, store.Page{Limit: 1})
	if err != nil || len(list) != 1 {
		s.t.Fatal(err)
	}
	if err := s.accounts().Members.SetRole(
		s.t.Context(), list[0].WorkspaceID, u.ID, role, func(postern.Standing) error { return nil }, store.Act{},
	); err != nil {
		s.t.Fatal(err)
	}
}

// A request that is held open until its user has been signed out does nothing.
func TestRequestThatIsHeldOpenKeepsNoRights(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	body, end := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/keys", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answered := make(chan int, 1)
	go func() {
		res, err := c.http.Do(req)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		res.Body.Close()
		answered <- res.StatusCode
	}()
	if _, err := io.WriteString(end, "name=backdoor&scope=devices%3Aread"); err != nil { // it is on its way
		t.Fatal(err)
	}
	other := s.signIn()
	other.want(other.post("/account/sessions", url.Values{"end": {"all"}}), http.StatusSeeOther, "/signin")
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != http.StatusSeeOther {
		t.Errorf("the request is answered %d", status)
	}
	for _, kind := range []string{"multipart/form-data; boundary=x", "text/plain", ""} {
		if p := other.do(
			http.MethodPost, "/signin", url.Values{"email": {email}}, "Content-Type", kind,
		); p.status != http.StatusBadRequest {
			t.Errorf("a form as %q is answered %d", kind, p.status)
		}
	}
	if p := other.post("/signin", url.Values{"email": {strings.Repeat("x",
		maxForm)}}); p.status != http.StatusBadRequest {
		t.Errorf("a form that is too long is answered %d", p.status)
	}
}

// A network that sends many forms and ends none of them keeps no others from signing in.
func TestOpenFormsAreBounded(t *testing.T) {
	t.Parallel()
	const theirs, ours = "203.0.113.1", "203.0.113.2"
	s := newSiteWith(t, func(o *Options) { o.Address = func(r *http.Request) string { return r.Header.Get("X-From") } })
	post := func(from string, body io.Reader) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodPost, "/signin", body), httptest.NewRecorder()
		r.Header.Set("X-From", from)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.ContentLength = -1
		s.serve.ServeHTTP(w, r)
		return w
	}
	var open sync.WaitGroup
	ends := make([]io.Closer, formsEach)
	for i := range ends {
		body, end := io.Pipe()
		ends[i] = end
		open.Go(func() { post(theirs, body) })
		if _, err := io.WriteString(end, "email="); err != nil { // it is being read
			t.Fatal(err)
		}
	}
	for from, want := range map[string]int{theirs: http.StatusTooManyRequests, ours: http.StatusUnauthorized} {
		if got := post(from, strings.NewReader("email=x&password=y")).Code; got != want {
			t.Errorf("from %s: %d, want %d", from, got, want)
		}
	}
	for _, end := range ends {
		if err := end.Close(); err != nil {
			t.Error(err)
		}
	}
	open.Wait()
	if got := post(theirs, strings.NewReader("email=x&password=y")).Code; got == http.StatusTooManyRequests {
		t.Errorf("once the forms have ended, another one is answered %d", got)
	}
}

// An attacker who guesses passwords, even in the same network, does not lock out a browser that has
// signed in before.
func TestT16GuessesDoNotLockOutTheUsersBrowser(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	mine, stranger := s.setUp(), s.browser()
	mine.want(mine.post("/signout", nil), http.StatusSeeOther, "/signin")
	right := url.Values{"email": {email}, "password": {password}}
	var p answer
	for range 30 {
		p = stranger.post("/signin", url.Values{"email": {email}, "password": {"not this one"}})
	}
	if p.status != http.StatusTooManyRequests || p.header.Get("Retry-After") == "" {
		t.Errorf("thirty guesses are answered %d, Retry-After %q", p.status, p.header.Get("Retry-After"))
	}
	stranger.want(stranger.post("/signin", right), http.StatusTooManyRequests, "")
	mine.want(mine.post("/signin", right), http.StatusSeeOther, "/")
	mine.want(mine.get("/"), http.StatusOK, "")
}

// The cookie by which a browser is known opens nothing.
func TestCookieOfAKnownBrowserOpensNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range c.http.Jar.Cookies(u) {
		if k.Name == "postern-known" {
			p := s.browser().do(http.MethodGet, "/account", nil, "Cookie", k.Name+"="+k.Value+"; postern="+k.Value)
			c.want(p, http.StatusSeeOther, "/signin?next=%2Faccount")
			return
		}
	}
	t.Error("the browser has no such cookie")
}
