package people

import (
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// signIn signs in from a browser that is not known.
func (g *server) signIn(t *testing.T, address, email, password string) (postern.User, error) {
	t.Helper()
	return g.Users.SignIn(t.Context(), Credentials{Address: address, Email: email, Password: password})
}

// sessionOf is a session of a user that lasts.
func sessionOf(g *server, u postern.User) SignIn {
	return SignIn{TokenHash: "token", UserID: u.ID, Epoch: u.Epoch, Data: []byte("x"), ExpiresAt: g.time().Add(1e12)}
}

// A password may be checked, and be another one before the session is there.
func TestSessionOfAPasswordOfBeforeIsRefused(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		first(t, g)
		in := func(password string) postern.User {
			u, err := g.signIn(t, "", "ada@example.com", password)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
		early := in(goodPassword)
		now, err := g.Users.ChangePassword(
			t.Context(), access.Self{ID: early.ID}, goodPassword, "five plain words are here",
		)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.SignIns.Create(t.Context(), sessionOf(g, early)); postern.ReasonOf(err) != postern.Unauthorized {
			t.Errorf("with the password of before: %v", err)
		}
		if err := g.SignIns.Create(t.Context(), sessionOf(g, now)); err != nil {
			t.Errorf("with the new one: %v", err)
		}
		early = in("five plain words are here")
		if err := g.SignIns.EndOthers(t.Context(), access.Self{ID: now.ID, Token: "token"}); err != nil {
			t.Fatal(err)
		}
		late := sessionOf(g, early)
		late.TokenHash = "late"
		if err := g.SignIns.Create(t.Context(), late); postern.ReasonOf(err) != postern.Unauthorized {
			t.Errorf("checked before all others were signed out: %v", err)
		}
		if _, ok, err := g.SignIns.Get(t.Context(), "token"); !ok || err != nil {
			t.Errorf("the one that was to go on: %v", err)
		}
	})
}

func TestSessionsThatHaveEndedAreRemoved(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		u, _ := first(t, g)
		for token, life := range map[string]int64{"ended": -1, "open": 3600_000} {
			if err := g.SignIns.Create(
				t.Context(),
				SignIn{TokenHash: token, UserID: u.ID, Data: []byte(token), ExpiresAt: g.time() + postern.Time(life)},
			); err != nil {
				t.Fatal(err)
			}
		}
		if s, ok, err := g.SignIns.Get(t.Context(), "ended"); ok || err != nil {
			t.Errorf("a session that has ended gives %q, %v", s.Data, err)
		}
		if err := g.Maintenance.RemoveOld(
			t.Context(), gateway.Retention{Events: time.Hour, Messages: time.Hour, Audit: time.Hour},
		); err != nil {
			t.Fatal(err)
		}
		list, err := g.accounts.SignIns.List(t.Context(), u.ID, 0, 10)
		if err != nil || len(list) != 1 || list[0].TokenHash != "open" {
			t.Errorf("kept are %+v, %v", list, err)
		}
		if err := g.SignIns.EndAll(t.Context(), access.Self{ID: u.ID}); err != nil {
			t.Fatal(err)
		}
		if err := g.SignIns.Update(
			t.Context(), SignIn{TokenHash: "open", UserID: u.ID, ExpiresAt: g.time() + 3600_000},
		); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := g.SignIns.Get(t.Context(), "open"); ok || err != nil {
			t.Errorf("a request that was under way has brought it back: %v", err)
		}
	})
}

func TestNewPasswordEndsAllSessions(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		u, _ := first(t, g)
		if err := g.SignIns.Create(t.Context(), sessionOf(g, u)); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Users.ChangePassword(
			t.Context(), access.Self{ID: u.ID}, "not this one", "five plain words are here",
		); postern.ReasonOf(err) != postern.ValidationFailed {
			t.Errorf("with a wrong one: %v", err)
		}
		if _, ok, err := g.SignIns.Get(t.Context(), "token"); !ok || err != nil {
			t.Errorf("the session has ended: %v", err)
		}
		if _, err := g.Users.ChangePassword(
			t.Context(), access.Self{ID: u.ID}, goodPassword, "five plain words are here",
		); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := g.SignIns.Get(t.Context(), "token"); ok || err != nil {
			t.Errorf("the session goes on: %v", err)
		}
		if _, err := g.signIn(t, "", u.Email, goodPassword); postern.ReasonOf(err) != postern.Unauthorized {
			t.Errorf("the old password: %v", err)
		}
		if _, err := g.signIn(t, "", u.Email, "five plain words are here"); err != nil {
			t.Errorf("the new password: %v", err)
		}
	})
}
