package dash

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/oidc"
	"postern/internal/oidc/oidctest"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/store"
)

// withProvider is a dashboard beside a provider at which ada is signed in.
func withProvider(t *testing.T) (*site, *oidctest.Provider) {
	t.Helper()
	p := oidctest.Start(t)
	return newSiteWith(t, func(o *Options) {
		o.SignOn = oidc.New(oidc.Options{
			Issuer: p.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.Secret, Name: "Example",
			Redirect: "https://gateway.example" + SignOnPath,
		})
	}), p
}

// out follows a link to the provider, and gives the address to which that sends the
// browser back.
func (c *client) out(path string) string {
	c.t.Helper()
	p := c.get(path)
	if p.status != http.StatusSeeOther || !strings.Contains(p.header.Get("Location"), "/authorize?") {
		c.t.Fatalf("%s is answered %d to %q", path, p.status, p.header.Get("Location"))
	}
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, p.header.Get("Location"), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil {
		c.t.Fatalf("the provider answers %s", res.Status)
	}
	return back.RequestURI()
}

// through goes to the provider and comes back, as a browser does that another site
// sends.
func (c *client) through(path string) answer {
	c.t.Helper()
	return c.comeBack(c.out(path))
}

func (c *client) comeBack(path string) answer {
	c.t.Helper()
	return c.do(
		http.MethodGet, path, nil, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest",
		"document",
	)
}

// connect connects the account of a browser with the one that is signed in at the provider.
func (c *client) connect() {
	c.t.Helper()
	c.want(
		c.post("/account/second", url.Values{"password": {password}, "next": {"/account/identities"}}),
		http.StatusSeeOther,
		"/account/identities",
	)
	c.want(c.through("/account/identities/connect"), http.StatusSeeOther, "/account/identities")
}

// asked fails when a page does not say something.
func (c *client) asked(p answer, status int, text string) {
	c.t.Helper()
	if p.status != status || !strings.Contains(p.body, text) {
		c.t.Errorf(
			"answered %d, want %d with %q in %.600s", p.status, status, text,
			p.body[max(0, strings.Index(p.body,
				"<h1")):],
		)
	}
}

// didIn is what the audit log has of a user, the oldest first.
func (s *site) didIn(ws postern.WorkspaceID, email string) (list []string) {
	s.t.Helper()
	acts, err := s.db.Audit.List(s.t.Context(), ws, store.ActFilter{Email: email, Limit: 100})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, a := range slices.Backward(acts) {
		list = append(list, a.Act)
	}
	return list
}

func TestWithoutAProviderNobodyIsSentThere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	for _, path := range []string{
		"/signin/oidc", SignOnPath, "/join/x/oidc", "/account/again", "/account/identities/connect",
	} {
		if p := c.get(path); p.status != http.StatusNotFound {
			t.Errorf("%s is answered %d", path, p.status)
		}
	}
	if p := s.browser().get("/signin"); strings.Contains(p.body, "oidc") {
		t.Error("the sign-in offers a provider")
	}
}

func TestConnectedIdentitySignsIn(t *testing.T) {
	t.Parallel()
	s, _ := withProvider(t)
	c := s.setUp()
	c.connect()
	c.asked(c.get("/account/identities"), http.StatusOK, "subject-of-ada")

	b := s.browser()
	b.asked(b.get("/signin?next=%2Fkeys"), http.StatusOK, `href="/signin/oidc?next=%2Fkeys"`)
	path := b.out("/signin/oidc?next=%2Fkeys")
	before := b.token()
	b.want(b.comeBack(path), http.StatusSeeOther, "/keys")
	if b.token() == before {
		t.Error("the session is the one from before the sign-in")
	}
	b.want(b.get("/keys"), http.StatusOK, "")
	b.want(b.get("/signin/oidc?next=//evil.example"), http.StatusSeeOther, "/") // signed in already
	if got := s.didIn("", email); !slices.Equal(got, []string{"user.identity-connected", "user.signed-in"}) {
		t.Errorf("the audit log has %q", got)
	}
	other := s.browser()
	other.want(other.through("/signin/oidc?next=//evil.example"), http.StatusSeeOther, "/")
}

// The same address at the provider proves nothing: some providers let people write
// any address into their profile.
func TestUnknownIdentityIsNobodyWhateverItsAddress(t *testing.T) {
	t.Parallel()
	s, _ := withProvider(t)
	s.setUp()
	b := s.browser()
	b.asked(b.through("/signin/oidc"), http.StatusUnauthorized, "No account here is connected")
	b.want(b.get("/account"), http.StatusSeeOther, "/signin?next=%2Faccount")
}

func TestSecondStepIsAskedForAfterTheProvider(t *testing.T) {
	t.Parallel()
	s, _ := withProvider(t)
	c := s.setUp()
	phone, _ := c.withApp()
	c.connect()
	b := s.browser()
	b.want(b.through("/signin/oidc?next=%2Fkeys"), http.StatusSeeOther, "/signin/second?next=%2Fkeys")
	b.want(b.get("/keys"), http.StatusSeeOther, "/signin?next=%2Fkeys")
	b.want(b.post("/signin/second", url.Values{"code": {phone.code(1)}, "next": {"/keys"}}), http.StatusSeeOther,
		"/keys")
}

// What the provider, or somebody on the way, does wrong lets nobody in, and takes
// nothing down.
func TestWrongAnswersOfTheProviderSignNobodyIn(t *testing.T) {
	t.Parallel()
	s, p := withProvider(t)
	s.setUp().connect()
	for fault, want := range map[oidctest.Fault]int{
		oidctest.WrongNonce: http.StatusBadRequest, oidctest.WrongAudience: http.StatusBadRequest,
		oidctest.WrongIssuer: http.StatusBadRequest, oidctest.OtherParty: http.StatusBadRequest,
		oidctest.Expired: http.StatusBadRequest, oidctest.AlgNone: http.StatusBadRequest,
		oidctest.OtherKey: http.StatusBadRequest, oidctest.NoSubject: http.StatusBadRequest,
		oidctest.NoToken: http.StatusBadRequest, oidctest.OtherState: http.StatusBadRequest,
		oidctest.Denied: http.StatusForbidden, oidctest.Broken: http.StatusServiceUnavailable,
	} {
		p.Fail(fault)
		b := s.browser()
		path := b.out("/signin/oidc")
		if got := b.comeBack(path); got.status != want || strings.Contains(got.body, "code=") {
			t.Errorf("%s is answered %d, want %d", fault, got.status, want)
		}
		b.want(b.get("/"), http.StatusSeeOther, "/signin")
	}
}

func TestProviderThatIsAwayIsSaidToBe(t *testing.T) {
	t.Parallel()
	s, p := withProvider(t)
	c := s.setUp()
	p.Fail(oidctest.Away)
	b := s.browser()
	b.asked(b.get("/signin"), http.StatusOK, "Sign in with")
	b.asked(b.get("/signin/oidc"), http.StatusServiceUnavailable, "Example cannot be reached")
	c.want(c.get("/account"), http.StatusOK, "")
}

// An answer is for the browser that asked, once.
func TestAnswerIsForWhoAskedOnce(t *testing.T) {
	t.Parallel()
	s, _ := withProvider(t)
	c := s.setUp()
	c.connect()
	b, victim := s.browser(), s.browser()
	path := b.out("/signin/oidc")
	victim.want(victim.comeBack(path), http.StatusBadRequest, "") // without a session
	victim.out("/signin/oidc")
	victim.want(victim.comeBack(path), http.StatusBadRequest, "") // with one of its own
	b.want(b.comeBack(SignOnPath+"?state=x&code=y"), http.StatusBadRequest, "")
	b.want(b.comeBack(SignOnPath), http.StatusBadRequest, "")
	b.want(b.comeBack(path), http.StatusSeeOther, "/") // which took nothing away
	b.want(b.comeBack(path), http.StatusBadRequest, "")
	third := s.browser()
	third.want(third.comeBack(path), http.StatusBadRequest, "")
}

func TestAnIdentityIsOneUsers(t *testing.T) {
	t.Parallel()
	s, p := withProvider(t)
	c := s.setUp()
	c.want(c.get("/account/identities/connect"), http.StatusSeeOther, "/account/identities")
	c.asked(c.get("/account/identities"), http.StatusOK, "Your password")
	c.want(
		c.post("/account/identities/disconnect", url.Values{"issuer": {p.URL}, "subject": {"subject-of-ada"}}),
		http.StatusSeeOther, "/account/identities",
	)
	c.want(
		c.post("/account/second", url.Values{"password": {"not this one"}, "next": {"/account/identities"}}),
		http.StatusUnprocessableEntity, "",
	)
	c.connect()

	link := c.invites(guest, postern.Viewer)
	b := s.browser()
	b.want(b.post(link, url.Values{"password": {password}}), http.StatusSeeOther, "/")
	b.want(b.post("/account/second", url.Values{"password": {password}}), http.StatusSeeOther, "/account/second")
	b.asked(b.through("/account/identities/connect"), http.StatusForbidden, "connected with an account already")
	// another's
	b.want(
		b.post("/account/identities/disconnect", url.Values{"issuer": {p.URL}, "subject": {"subject-of-ada"}}),
		http.StatusNotFound, "",
	)
	p.SignIn(oidctest.Person{Subject: "subject-of-bob", Email: "other@example.com"})
	b.want(b.through("/account/identities/connect"), http.StatusSeeOther, "/account/identities") // whatever the address
	p.SignIn(oidctest.Person{Subject: "another-of-bob"})
	b.want(b.through("/account/identities/connect"), http.StatusSeeOther, "/account/identities")
	if p := b.get("/account/identities"); strings.Count(p.body, "-of-bob</bdi>") != 2 {
		t.Error("the page does not show both")
	}
}

// Another site must not begin what connects the account with the one that is signed in at
// the provider.
func TestOtherSitesBeginNothingThatConnects(t *testing.T) {
	t.Parallel()
	s, p := withProvider(t)
	c := s.setUp()
	link := c.invites(guest, postern.Viewer)
	c.want(c.post("/account/second", url.Values{"password": {password}}), http.StatusSeeOther, "/account/second")
	p.SignIn(oidctest.Person{Subject: "evil"})
	for _, site := range []string{"cross-site", "same-site"} {
		c.want(
			c.do(http.MethodGet, "/account/identities/connect", nil, "Sec-Fetch-Site", site), http.StatusSeeOther,
			"/account/identities",
		)
		c.want(c.do(http.MethodGet, "/account/again?next=/keys", nil, "Sec-Fetch-Site", site), http.StatusSeeOther,
			"/keys")
		b := s.browser()
		b.want(b.do(http.MethodGet, link+"/oidc", nil, "Sec-Fetch-Site", site), http.StatusSeeOther, link)
	}
}

// Disconnecting ends what the identity opened.
func TestDisconnectedIdentityOpensNothing(t *testing.T) {
	t.Parallel()
	s, p := withProvider(t)
	c := s.setUp()
	c.connect()
	b := s.browser()
	b.want(b.through("/signin/oidc"), http.StatusSeeOther, "/")
	c.want(
		c.post("/account/identities/disconnect", url.Values{"issuer": {p.URL}, "subject": {"subject-of-ada"}}),
		http.StatusSeeOther, "/account/identities",
	)
	b.want(b.get("/account"), http.StatusSeeOther, "/signin?next=%2Faccount")
	b.want(b.through("/signin/oidc"), http.StatusUnauthorized, "")
	c.want(c.get("/account"), http.StatusOK, "")
	if got := s.didIn("", email); got[len(got)-1] != "user.identity-disconnected" {
		t.Errorf("the audit log has %q", got)
	}
}

// Who was signed out while the provider was asked connects nothing.
func TestSessionThatEndedConnectsNothing(t *testing.T) {
	t.Parallel()
	s, p := withProvider(t)
	s.setUp()
	err := s.p.Identities.Connect(
		t.Context(), access.Self{ID: s.member(email), Token: "of a session that ended", Sure: true},
		people.Identity{Issuer: p.URL, Subject: "x"},
	)
	if postern.ReasonOf(err) != postern.Unauthorized {
		t.Errorf("it is answered %v", err)
	}
}

func TestInvitationIsAcceptedByTheProvidersWord(t *testing.T) {
	t.Parallel()
	s, p := withProvider(t)
	c := s.setUp()
	link := c.invites(guest, postern.Viewer)
	path := link + "/oidc"
	b := s.browser()
	b.asked(b.get(link), http.StatusOK, `href="`+path+`"`)
	for _, who := range []oidctest.Person{
		{Subject: "subject-of-bob", Email: guest, Verified: false},
		{Subject: "subject-of-bob", Email: guest},
		{Subject: "subject-of-bob", Email: "other@example.com", Verified: true},
		{Subject: "subject-of-bob", Verified: true},
		{Subject: "subject-of-bob", Email: guest + ".evil.example", Verified: true},
	} {
		p.SignIn(who)
		b.asked(b.through(path), http.StatusForbidden, "does not confirm")
		b.want(b.get("/account"), http.StatusSeeOther, "/signin?next=%2Faccount")
	}
	p.SignIn(oidctest.Person{Subject: "subject-of-bob", Email: "Bob@Example.COM", Verified: true})
	b.want(b.through(path), http.StatusSeeOther, "/")
	b.asked(b.get("/account"), http.StatusOK, guest)
	list, err := s.p.Members.Memberships(t.Context(), access.Self{ID: s.member(guest)})
	if err != nil || len(list) != 1 || list[0].Role != postern.Viewer {
		t.Fatalf("the memberships are %+v, %v", list, err)
	}
	if got := s.didIn(list[0].WorkspaceID, guest); !slices.Equal(got, []string{"invitation.accepted"}) {
		t.Errorf("the audit log has %q", got)
	}
	b.want(b.get(path), http.StatusNotFound, "") // used up
	again := s.browser()
	again.want(again.through("/signin/oidc?next=%2Faccount"), http.StatusSeeOther, "/account")
	for _, guess := range []string{"", " ", password} {
		none := s.browser()
		none.want(none.post("/signin", url.Values{"email": {guest}, "password": {guess}}), http.StatusUnauthorized, "")
	}
}

// Letters that turn into those of ASCII in lower case make another address.
func TestAddressesThatLookAlikeAreOthers(t *testing.T) {
	t.Parallel()
	s, p := withProvider(t)
	link := s.setUp().invites("mike@example.com", postern.Viewer)
	p.SignIn(oidctest.Person{Subject: "x", Email: "mi\u212ae@example.com", Verified: true})
	b := s.browser()
	b.asked(b.through(link+"/oidc"), http.StatusForbidden, "does not confirm")
}

// An identity that has an account joins with that, and an account that is there by
// signing in.
func TestJoiningTakesNoAccountOver(t *testing.T) {
	t.Parallel()
	s, p := withProvider(t)
	c := s.setUp()
	c.connect()
	p.SignIn(oidctest.Person{Subject: "subject-of-ada", Email: guest, Verified: true})
	link := c.invites(guest, postern.Viewer)
	b := s.browser()
	b.asked(b.through(link+"/oidc"), http.StatusForbidden, "connected with an account already")
	path := b.out(link + "/oidc")
	other := s.browser()
	other.want(other.post(link, url.Values{"password": {password}}), http.StatusSeeOther, "/")
	p.SignIn(oidctest.Person{Subject: "subject-of-bob", Email: guest, Verified: true})
	b.want(b.comeBack(path), http.StatusNotFound, "") // it was used meanwhile
}

func TestConnectedAccountJoinsBySigningIn(t *testing.T) {
	t.Parallel()
	s, p := withProvider(t)
	c := s.setUp()
	b := s.joins(c.invites(guest, postern.Viewer))
	p.SignIn(oidctest.Person{Subject: "subject-of-bob"})
	b.connect()
	c.want(c.post("/people/"+string(s.member(guest))+"/remove", nil), http.StatusSeeOther, "/people")
	link := c.invites(guest, postern.Admin)

	b = s.browser()
	b.asked(b.get(link), http.StatusOK, "Sign in to join")
	b.want(b.get(link+"/oidc"), http.StatusSeeOther, link)
	b.want(b.through("/signin/oidc?next="+url.QueryEscape(link)), http.StatusSeeOther, link)
	b.want(b.post(link, nil), http.StatusSeeOther, "/")
	b.asked(b.get("/account"), http.StatusOK, "Admin")
}

// bob joins by the provider, and has no password.
func withoutPassword(t *testing.T) (s *site, p *oidctest.Provider, bob *client) {
	t.Helper()
	s, p = withProvider(t)
	c := s.setUp()
	p.SignIn(oidctest.Person{Subject: "subject-of-bob", Email: guest, Verified: true})
	bob = s.browser()
	bob.want(bob.through(c.invites(guest, postern.Admin)+"/oidc"), http.StatusSeeOther, "/")
	return s, p, bob
}

// Where others enter the password again, who has none signs in at the provider again:
// right now, and as the same.
func TestSigningInAgainStandsForThePassword(t *testing.T) {
	t.Parallel()
	_, p, bob := withoutPassword(t)
	e, _ := bob.addWebhook(hookURL)
	page := "/webhooks/" + string(e.ID) + "/secret"
	again := "/account/again?next=" + url.QueryEscape(page)
	for _, guess := range []string{"", password} {
		bob.want(bob.post(page, url.Values{"password": {guess}}), http.StatusUnprocessableEntity, "")
	}
	bob.asked(bob.get(page), http.StatusOK, `href="`+again+`"`)

	p.Fail(oidctest.NotAsked)
	bob.asked(bob.through(again), http.StatusForbidden, "did not ask you")
	p.Fail("")
	p.SignIn(oidctest.Person{Subject: "subject-of-ada", Email: guest, Verified: true})
	bob.asked(bob.through(again), http.StatusForbidden, "a different person")
	if p := bob.post(page, nil); strings.Contains(p.body, "whsec_") {
		t.Error("the secret is shown before the sign-in")
	}
	p.SignIn(oidctest.Person{Subject: "subject-of-bob"})
	p.Fail(oidctest.NoAuthTime) // not all say it
	bob.want(bob.through(again), http.StatusSeeOther, page)
	bob.asked(bob.get(page), http.StatusOK, "so you do not need to enter one")
	bob.asked(bob.post(page, nil), http.StatusOK, "whsec_")
	device := bob.post("/devices", url.Values{"name": {"Support"}}).header.Get("Location")
	bob.asked(bob.get(device+"/delete"), http.StatusOK, "so you do not need to enter one")
	bob.want(bob.post(device+"/delete", nil), http.StatusSeeOther, "/devices")
}

// A user with a password gets no such mark: the password is entered each time.
func TestWhoHasAPasswordEntersIt(t *testing.T) {
	t.Parallel()
	s, _ := withProvider(t)
	c := s.setUp()
	c.connect()
	e, _ := c.addWebhook(hookURL)
	page := "/webhooks/" + string(e.ID) + "/secret"
	c.asked(c.through("/account/again?next="+url.QueryEscape(page)), http.StatusForbidden, "enter it instead")
	c.want(c.post(page, nil), http.StatusUnprocessableEntity, "")
	c.asked(c.post(page, url.Values{"password": {password}}), http.StatusOK, "whsec_")
}

func TestWhoHasNoPasswordChoosesOneAndDisconnects(t *testing.T) {
	t.Parallel()
	s, p, bob := withoutPassword(t)
	const chosen = "five plain words are here"
	identity := url.Values{"issuer": {p.URL}, "subject": {"subject-of-bob"}}
	bob.want(bob.post("/account/password", url.Values{"password": {chosen}}), http.StatusUnprocessableEntity, "")
	bob.asked(bob.get("/account/identities"), http.StatusOK, "Sign in again with")
	bob.want(bob.through("/account/again?next=%2Faccount%2Fidentities"), http.StatusSeeOther, "/account/identities")
	bob.asked(bob.get("/account/identities"), http.StatusOK, "You have no Postern password. Set one on the")
	bob.want(bob.post("/account/identities/disconnect", identity), http.StatusForbidden, "")
	bob.want(bob.post("/account/password", url.Values{"password": {"short"}}), http.StatusUnprocessableEntity, "")
	bob.want(bob.post("/account/password", url.Values{"password": {chosen}}), http.StatusSeeOther, "/account")
	bob.want(
		bob.post("/account/password", url.Values{"password": {"six plain words are now here"}}),
		http.StatusUnprocessableEntity, "",
	)
	bob.want(bob.post("/account/second", url.Values{"password": {chosen}}), http.StatusSeeOther, "/account/second")
	bob.want(bob.post("/account/identities/disconnect", identity), http.StatusSeeOther, "/account/identities")
	b := s.browser()
	b.want(b.through("/signin/oidc"), http.StatusUnauthorized, "")
	b.want(b.post("/signin", url.Values{"email": {guest}, "password": {chosen}}), http.StatusSeeOther, "/")
}

// Owners who get their account back from somebody else must be alone in it.
func TestPasswordOfTheOperatorDisconnects(t *testing.T) {
	t.Parallel()
	s, _, bob := withoutPassword(t)
	_, token, err := s.p.PasswordLinks.Reset(t.Context(), access.Operator(), people.Reset{Email: guest})
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser()
	b.want(b.post("/join/"+token, url.Values{"password": {password}}), http.StatusSeeOther, "/")
	bob.want(bob.get("/account"), http.StatusSeeOther, "/signin?next=%2Faccount")
	bob.want(bob.through("/signin/oidc"), http.StatusUnauthorized, "")
}

// An account that somebody uses is not given away, with or without a password.
func TestOperatorDoesNotTakeAnAccountWithAnIdentityForAnEmptyOne(t *testing.T) {
	t.Parallel()
	s, _, _ := withoutPassword(t)
	ws, err := s.g.Workspaces.Create(t.Context(), access.Operator(), gateway.NewWorkspace{Name: "second", Plan: "free"})
	if err != nil {
		t.Fatal(err)
	}
	if _, token, err := s.p.Users.Create(t.Context(), access.Operator(), ws.ID, people.NewUser{
		Email: guest, Role: postern.Viewer,
	}); postern.ReasonOf(err) != postern.ValidationFailed ||
		token != "" {
		t.Errorf("it is answered %v", err)
	}
}

// Each start of an anonymous browser keeps something: they are counted.
func TestSignOnsAreCounted(t *testing.T) {
	t.Parallel()
	s, _ := withProvider(t)
	s.setUp()
	for n := range 700 {
		if p := s.browser().get("/signin/oidc"); p.status == http.StatusTooManyRequests {
			return
		} else if p.status != http.StatusSeeOther {
			t.Fatalf("start %d is answered %d", n, p.status)
		}
	}
	t.Error("700 starts are let through")
}
