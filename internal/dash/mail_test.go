package dash

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"postern/internal/access"
	"postern/internal/mail"
	"postern/internal/mail/mailtest"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/seal"
)

// withMail is a dashboard beside a mail server, with what it logs.
func withMail(t *testing.T) (*site, *mailtest.Server, *log) {
	t.Helper()
	m, written := mailtest.New(t), &log{}
	server, err := mail.New(seal.Secret("smtp://" + m.Addr + "?from=postern@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	server.Trust(m.Roots)
	return newSiteWith(t, func(o *Options) {
		o.Mail, o.Log = server, slog.New(slog.NewTextHandler(written, nil))
	}), m, written
}

// log is written to by several goroutines.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// linkIn is the one in a mail.
func linkIn(t *testing.T, m mailtest.Mail) string {
	t.Helper()
	found := regexp.MustCompile(`https://api\.example\.com(/join/[0-9A-Za-z_-]{43})\n`).FindStringSubmatch(m.Text)
	if found == nil {
		t.Fatalf("there is no link in %q", m.Text)
	}
	return found[1]
}

func invitation(to string) url.Values {
	return url.Values{"email": {to}, "role": {string(postern.Viewer)}}
}

func TestInvitationGoesToItsMailboxAlone(t *testing.T) {
	t.Parallel()
	s, m, _ := withMail(t)
	ada := s.setUp()
	ada.sees(ada.get("/people"), "They get a link by email.", "Send invitation")
	ada.want(ada.post("/people/invitations", invitation(guest)), http.StatusSeeOther, "/people")
	got := m.Next(t)
	link := linkIn(t, got)
	words := email + ` invited you to the workspace “acme” with the role “viewer”.`
	if got.To != guest || got.Subject != "Invitation to acme" || !strings.Contains(got.Text, words) || !got.Encrypted {
		t.Errorf("the mail is %+v", got)
	}
	p := ada.get("/people")
	ada.sees(p, "The invitation was sent to "+guest+".", "Open invitations")
	if strings.Contains(p.body, link) {
		t.Error("who invites sees the link")
	}
	s.joins(link)
	ada.sees(ada.get("/people"), guest)
}

func TestInvitationThatCannotBeMailedIsNone(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]struct {
		status int
		says   string
	}{
		"550 no such user":    {http.StatusUnprocessableEntity, "The mail server does not accept mail for this address (550)."},
		"451 come back later": {http.StatusServiceUnavailable, "it was not created"},
	} {
		s, m, written := withMail(t)
		m.Answer("RCPT", answer)
		ada := s.setUp()
		p := ada.post("/people/invitations", invitation(guest))
		if p.status != want.status {
			t.Errorf("%s: the form is answered %d", answer, p.status)
		}
		ada.sees(p, want.says)
		if strings.Contains(ada.get("/people").body, guest) || len(m.Mails()) != 0 {
			t.Errorf("%s: there is an invitation", answer)
		}
		if !strings.Contains(written.text(), "an invitation was not mailed") ||
			strings.Contains(written.text(),
				"/join/") {
			t.Errorf("%s: the log says %s", answer, written.text())
		}
	}
}

func TestMailsAreFew(t *testing.T) {
	t.Parallel()
	s, m, _ := withMail(t)
	ada := s.setUp()
	sent := 0
	for range 10 {
		if p := ada.post("/people/invitations", invitation(guest)); p.status == http.StatusSeeOther {
			sent++
		}
	}
	if sent != 3 || len(m.Mails()) != sent { // the burst of six in an hour
		t.Errorf("one address got %d invitations at once, %d by mail", sent, len(m.Mails()))
	}
}

func TestForgottenPasswordIsChosenAnewByMail(t *testing.T) {
	t.Parallel()
	s, m, _ := withMail(t)
	s.setUp()
	c := s.browser()
	c.sees(c.get("/signin"), "/signin/forgotten")
	c.sees(c.get("/signin/forgotten"), "Send link")
	p := c.want(c.post("/signin/forgotten", url.Values{"email": {" " + strings.ToUpper(email) + " "}}), http.StatusOK,
		"")
	c.sees(p, "<title>Check your email", email)
	link := linkIn(t, m.Next(t))
	c.want(c.post(link, url.Values{"password": {"another four plain words"}}), http.StatusSeeOther, "/")
	if p := c.get(link); p.status != http.StatusNotFound {
		t.Errorf("the link is answered %d when it was used", p.status)
	}
	c = s.browser()
	c.want(c.post("/signin", url.Values{"email": {email}, "password": {"another four plain words"}}),
		http.StatusSeeOther, "/")
}

func TestT16ForgottenPasswordTellsNobodyWhoHasAnAccount(t *testing.T) {
	t.Parallel()
	s, m, _ := withMail(t)
	s.setUp()
	asks := func(email string) string {
		p := s.browser().post("/signin/forgotten", url.Values{"email": {email}})
		return strings.ReplaceAll(http.StatusText(p.status)+p.body, email, "the address")
	}
	for i := range 5 {
		if known, unknown := asks(email), asks(guest); known != unknown {
			t.Errorf("at try %d, who has an account is answered %s, who has none %s", i, known, unknown)
		}
	}
	m.Next(t)
	for range 2 {
		m.Next(t)
	}
	for _, got := range m.Mails() {
		if got.To != email {
			t.Errorf("a mail went to %s", got.To)
		}
	}
	if p := s.browser().post("/signin/forgotten",
		url.Values{"email": {"nobody"}}); p.status != http.StatusUnprocessableEntity {
		t.Errorf("what is no address is answered %d", p.status)
	}
}

// held is a mail server that takes connections, and says nothing until the test ends.
func held(t *testing.T) (*mail.Server, <-chan net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan net.Conn, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			came <- c
		}
	}()
	t.Cleanup(func() { l.Close() })
	server, err := mail.New(seal.Secret("smtp://" + l.Addr().String() + "?from=postern@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	return server, came
}

func TestT16SlowMailServerTellsNobodyWhoHasAnAccount(t *testing.T) {
	t.Parallel()
	server, came := held(t)
	written := &log{}
	s := newSiteWith(t, func(o *Options) { o.Mail, o.Log = server, slog.New(slog.NewTextHandler(written, nil)) })
	s.setUp()
	ws := s.workspace()
	asks := func(email string) {
		if p := s.browser().post("/signin/forgotten", url.Values{"email": {email}}); p.status != http.StatusOK {
			t.Errorf("who asks while others are being mailed is answered %d", p.status)
		}
	}
	for i := range mailsAtOnce {
		one := fmt.Sprintf("known%d@example.com", i)
		in := people.NewUser{Email: one, Role: postern.Viewer}
		if _, _, err := s.p.Users.Create(t.Context(), access.Operator(), ws, in); err != nil {
			t.Fatal(err)
		}
		asks(one)
		<-came
	}
	asks(guest)
	if !strings.Contains(written.text(), "too many are under way") {
		t.Errorf("the log says %s", written.text())
	}
}

func TestInvitationThatCannotBeMailedLeavesANewerOne(t *testing.T) {
	t.Parallel()
	server, came := held(t)
	s := newSiteWith(t, func(o *Options) { o.Mail = server })
	ada := s.setUp()
	answers := make(chan answer, 1)
	go func() { answers <- ada.post("/people/invitations", invitation(guest)) }()
	c := <-came
	owner, err := s.p.Members.Caller(t.Context(), access.Self{ID: s.member(email)}, s.workspace())
	if err != nil {
		t.Fatal(err)
	}
	in := people.NewInvitation{Email: guest, Role: postern.Admin}
	if _, _, err := s.p.Invitations.Create(t.Context(), access.Actor{Member: owner.Member}, s.workspace(),
		in); err != nil {
		t.Fatal(err)
	}
	c.Close()
	p := <-answers
	if p.status != http.StatusServiceUnavailable {
		t.Errorf("the older one is answered %d", p.status)
	}
	ada.sees(p, "The mail server did not accept the invitation")
	ada.sees(ada.get("/people"), guest)
}

func TestWithoutAMailServerNothingIsSent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.setUp()
	c := s.browser()
	if p := c.get("/signin"); strings.Contains(p.body, "forgotten") {
		t.Error("the sign-in offers what is not there")
	}
	if p := c.get("/signin/forgotten"); p.status != http.StatusNotFound {
		t.Errorf("the page is answered %d", p.status)
	}
}

func TestWhoIsSentAwaySeesEveryWayIn(t *testing.T) {
	t.Parallel()
	s, m, _ := withMail(t)
	ada := s.setUp()
	ada.want(ada.post("/people/invitations", invitation(guest)), http.StatusSeeOther, "/people")
	bob := s.joins(linkIn(t, m.Next(t)))
	ada.want(ada.post("/people/"+string(s.member(guest))+"/remove", url.Values{}), http.StatusSeeOther, "/people")
	p := bob.want(bob.get("/"), http.StatusForbidden, "")
	bob.sees(p, "You are no longer a member of any workspace", "/signin/forgotten")
}

// What changes how somebody can sign in is mailed to the person.
func TestT15ChangesOfAnAccountAreMailed(t *testing.T) {
	t.Parallel()
	s, m, _ := withMail(t)
	ada := s.setUp()
	told := func(subject, text string) {
		t.Helper()
		got := m.Next(t)
		if got.To != email || got.Subject != subject || !strings.Contains(got.Text, text) ||
			!strings.Contains(got.Text, "192.0.2.1") {
			t.Errorf("the mail is %+v, want %q", got, subject)
		}
	}
	other := s.signIn()
	told("New sign-in", "from a new browser")
	other.want(other.post("/signout", nil), http.StatusSeeOther, "/signin")
	other.want(other.post("/signin", url.Values{"email": {email}, "password": {password}}), http.StatusSeeOther, "/")
	ada.want(ada.post("/keys", newKeyForm()), http.StatusCreated, "")
	told("A new API key", "“ci”") // and no mail about the browser that is known
	id := regexp.MustCompile(`/keys/(key_[0-9A-Z]+)/rotate`).FindString(ada.get("/keys").body)
	ada.want(ada.post(id, url.Values{"overlap": {"1h"}}), http.StatusCreated, "")
	told("A new API key", "“ci”")
	ada.withApp()
	told("A sign-in method was added", "an authenticator app")
	ada.want(ada.post("/account/second/recovery", nil), http.StatusCreated, "")
	told("New recovery codes", "replaced")
	ada.want(ada.post("/account/second/app/remove", nil), http.StatusSeeOther, "/account/second")
	told("A sign-in method was removed", "An authenticator app was removed")
	ada.want(ada.post("/account/password", url.Values{"current": {password}, "password": {"five plain words are here"}}),
		http.StatusSeeOther, "/account")
	told("Your password was changed", "was changed")
	_, token, err := s.p.PasswordLinks.Reset(t.Context(), access.Operator(), people.Reset{Email: email})
	if err != nil {
		t.Fatal(err)
	}
	ada.want(ada.post("/signout", nil), http.StatusSeeOther, "/signin")
	ada.want(ada.post("/join/"+token, url.Values{"password": {password}}), http.StatusSeeOther, "/")
	told("Your password was changed", "was changed")
	if n := len(m.Mails()); n != 8 {
		t.Errorf("%d mails were sent, want 8", n)
	}
}
