package people

import (
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
)

func TestPasswordByMailLeavesALinkThatDoesMore(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		u, _ := first(t, g)
		const address = "192.0.2.1"
		opens := func(token string) bool {
			l, err := g.Invitations.Get(t.Context(), token)
			return err == nil && l.Email == u.Email
		}
		mailed := func() string {
			token, err := g.PasswordLinks.ByMail(t.Context(), address, u.Email)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		_, operators, err := g.PasswordLinks.Reset(t.Context(), access.Operator(), Reset{Email: u.Email})
		if err != nil {
			t.Fatal(err)
		}
		one := mailed()
		if two := mailed(); !opens(two) || opens(one) || opens(operators) {
			t.Error("the newest link is not the one that opens")
		}
		_, more, err := g.PasswordLinks.Reset(t.Context(), access.Operator(), Reset{Email: u.Email, Alone: true})
		if err != nil {
			t.Fatal(err)
		}
		if token := mailed(); token != "" || !opens(more) {
			t.Error("a link that also removes the second step was replaced")
		}
		g.now = func() time.Time { return time.Now().Add(joinTime + time.Minute) }
		token := mailed()
		if !opens(token) || opens(more) {
			t.Error("a link that is over was not replaced")
		}
		g.now = func() time.Time { return time.Now().Add(joinTime + mailTime + 2*time.Minute) }
		if opens(token) {
			t.Error("a link by mail is good for longer than its hour")
		}
		if token, err := g.PasswordLinks.ByMail(t.Context(), address, "nobody@example.com"); token != "" || err != nil {
			t.Errorf("nobody's address gives %q, %v", token, err)
		}
	})
}

func TestMailsAreCountedByWhoAsksAndByMailbox(t *testing.T) {
	g := PasswordLinks{&core{mails: newMails()}}
	limited := func(address, email string) bool {
		_, err := g.Forgot(t.Context(), address, email)
		return postern.ReasonOf(err) == postern.RateLimited
	}
	for i := range mailsTo / 2 {
		if limited("192.0.2.1", "ada@example.com") {
			t.Errorf("mail %d is refused", i)
		}
	}
	if !limited("198.51.100.1", "ADA@example.com") {
		t.Error("another network goes on with the same mailbox")
	}
	if limited("192.0.2.1", "bob@example.com") {
		t.Error("another mailbox is refused")
	}
	refused := 0
	for i := range mailsBy {
		if limited("192.0.2.1", string(rune('a'+i))+"x@example.com") {
			refused++
		}
	}
	if refused < mailsBy/2 {
		t.Errorf("one network is refused %d of %d mails", refused, mailsBy)
	}
}

func TestStrangersDoNotUseUpTheMailOfInvitations(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		const guest = "guest@example.com"
		for range mailsTo {
			_, _ = g.PasswordLinks.Forgot(t.Context(), "192.0.2.1", guest)
		}
		in := NewInvitation{Email: guest, Role: postern.Viewer, ByMail: true}
		if _, _, err := g.Invitations.Create(t.Context(), o.owner, o.ws, in); err != nil {
			t.Errorf("an address that strangers ask for is invited: %v", err)
		}
		for range mailsTo {
			_, _, _ = g.Invitations.Create(t.Context(), o.owner, o.ws, in)
		}
		if _, _, err := g.Invitations.Create(
			t.Context(), o.owner, o.ws, in,
		); postern.ReasonOf(err) != postern.RateLimited {
			t.Errorf("one address is invited without end: %v", err)
		}
	})
}
