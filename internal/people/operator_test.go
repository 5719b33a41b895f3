package people

import (
	"errors"
	"testing"

	"postern/internal/access"
	"postern/internal/db"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

// refusedAsNoPage tells which of all that operators may do an actor is not refused.
func (o office) refusedAsNoPage(by access.Actor) {
	o.t.Helper()
	ctx := o.t.Context()
	for name, err := range map[string]error{
		"plan":       o.Workspaces.SetPlan(ctx, by, o.ws, "free"),
		"limits":     failedOf(o.Workspaces.ChangeLimits(ctx, by, o.ws, postern.Limits{Devices: new(1)})),
		"workspace":  failedOf(o.Workspaces.Create(ctx, by, gateway.NewWorkspace{Name: "mine", Plan: "pro"})),
		"link":       failedBoth(o.PasswordLinks.Reset(ctx, by, Reset{Email: by.Member.Email})),
		"own link":   failedBoth(o.PasswordLinks.ResetByPassword(ctx, by, by.Member.UserID, false, goodPassword)),
		"figures":    failedOf(o.Statistics.System(ctx, by)),
		"workspaces": failedOf(o.Workspaces.ListWithUsage(ctx, by, "", paging.Page{})),
		"one":        failedOf(o.Workspaces.GetWithUsage(ctx, by, o.ws)),
		"devices":    failedOf(o.Workspaces.Devices(ctx, by, o.ws, paging.Page{})),
		"beyond":     failedOf(o.Workspaces.Beyond(ctx, by, o.ws, 0)),
		"caller":     failedOf(o.Workspaces.Caller(ctx, by, o.ws)),
		"users":      failedOf(o.Operators.Users(ctx, by, "", paging.Page{})),
	} {
		if !errors.Is(err, access.NoPage()) {
			o.t.Errorf("%s: %v", name, err)
		}
	}
}

func failedOf[T any](_ T, err error) error { return err }

func failedBoth[T, U any](_ T, _ U, err error) error { return err }

func TestWhoOwnsAWorkspaceIsNoOperator(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		bob := o.hire("bob@example.com", postern.Owner)
		o.refusedAsNoPage(bob)
		o.refusedAsNoPage(access.Actor{})
		if _, err := g.Operators.Actor(t.Context(), access.Self{ID: bob.Member.UserID}); !errors.Is(
			err, access.NoPage(),
		) {
			t.Errorf("an owner is an operator: %v", err)
		}
		if _, err := g.Operators.Actor(t.Context(), access.Self{ID: "usr_none"}); !errors.Is(
			err, access.NoPage(),
		) {
			t.Errorf("nobody is an operator: %v", err)
		}
	})
}

// An operator without a password signs in again instead of entering it.
func TestOperatorWithoutAPasswordCreatesLinks(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		ctx := t.Context()
		bob := o.hire("bob@example.com", postern.Viewer)
		if _, err := g.Operators.Set(ctx, access.Operator(), OperatorChange{Email: "bob@example.com"}); err != nil {
			t.Fatal(err)
		}
		if err := g.db.Engine().Do(ctx, db.Func(func(tx *db.Tx) error {
			return tx.Exec(`UPDATE users SET password_hash = '' WHERE id = $1`, bob.Member.UserID)
		})); err != nil {
			t.Fatal(err)
		}
		for _, sure := range []bool{true, false} {
			by, err := g.Operators.Actor(ctx, access.Self{ID: bob.Member.UserID, Address: "192.0.2.3", Sure: sure})
			if err != nil {
				t.Fatal(err)
			}
			_, link, err := g.PasswordLinks.ResetByPassword(ctx, by, o.owner.Member.UserID, false, "")
			if (link != "") != sure {
				t.Errorf("sure: %v, link: %v, %v", sure, link != "", err)
			}
		}
	})
}

// A user who was an operator when the request came, but no longer when it is carried out, does
// nothing.
func TestRightsOfAnOperatorEndWithTheFlag(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		ctx := t.Context()
		other, err := g.Workspaces.Create(ctx, access.Operator(), gateway.NewWorkspace{Name: "other", Plan: "growth"})
		if err != nil {
			t.Fatal(err)
		}
		bob := o.hire("bob@example.com", postern.Viewer)
		if _, err := g.Operators.Set(ctx, access.Operator(), OperatorChange{Email: "Bob@example.com"}); err != nil {
			t.Fatal(err)
		}
		by, err := g.Operators.Actor(ctx, access.Self{ID: bob.Member.UserID, Address: "192.0.2.3"})
		if err != nil {
			t.Fatal(err)
		}
		o.hire("carol@example.com", postern.Viewer)
		_, mine, err := g.PasswordLinks.Reset(ctx, access.Operator(), Reset{Email: "carol@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		_, link, err := g.PasswordLinks.ResetByPassword(ctx, by, o.owner.Member.UserID, true, goodPassword)
		if err != nil {
			t.Fatal(err)
		}
		_, token, err := g.Invitations.Create(
			ctx, by, other.ID, NewInvitation{Email: "eve@example.com", Role: postern.Owner},
		)
		if err := errors.Join(err, g.Workspaces.SetPlan(ctx, by, other.ID, "pro")); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Operators.Set(
			ctx, access.Operator(), OperatorChange{Email: "bob@example.com", Remove: true},
		); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"plan":   g.Workspaces.SetPlan(ctx, by, other.ID, "free"),
			"limits": failedOf(g.Workspaces.ChangeLimits(ctx, by, other.ID, postern.Limits{Devices: new(1)})),
			"new":    failedOf(g.Workspaces.Create(ctx, by, gateway.NewWorkspace{Name: "mine", Plan: "pro"})),
			"link": failedBoth(
				g.PasswordLinks.ResetByPassword(ctx, by, o.owner.Member.UserID, false, goodPassword),
			),
			"invite": failedBoth(g.Invitations.Create(ctx, by, other.ID,
				NewInvitation{Email: "mallory@example.com", Role: postern.Owner})),
		} {
			if err == nil {
				t.Errorf("%s goes on without the flag", name)
			}
		}
		for name, token := range map[string]string{"invitation": token, "link for a password": link} {
			if _, err := g.Invitations.Get(ctx, token); err == nil {
				t.Errorf("the %s outlives the flag", name)
			}
		}
		if _, err := g.Invitations.Get(ctx, mine); err != nil {
			t.Error("a link that another made goes with the flag:", err)
		}
	})
}

// Someone who takes over the browser of an operator gets neither other accounts nor other
// workspaces.
func TestOperatorInABrowserIsNotTheSocket(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		by := access.AsOperator(postern.User{ID: o.owner.Member.UserID}, "192.0.2.3")
		for name, err := range map[string]error{
			"a link for a password": failedBoth(g.PasswordLinks.Reset(t.Context(), by, Reset{Email: "ada@example.com"})),
			"every scope":           failedOf(g.Workspaces.Caller(t.Context(), by, o.ws)),
			"another operator":      failedOf(g.Operators.Set(t.Context(), by, OperatorChange{Email: "ada@example.com"})),
		} {
			if !errors.Is(err, access.NoPage()) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
