package gateway

import (
	"errors"
	"testing"

	"postern/internal/postern"
)

// refusedAsNoPage tells which of all that operators may do an actor is not refused.
func (o office) refusedAsNoPage(by Actor) {
	o.t.Helper()
	ctx := o.t.Context()
	for name, err := range map[string]error{
		"plan":       o.Operators.SetPlan(ctx, by, o.ws, "free"),
		"limits":     failedOf(o.Operators.ChangeLimits(ctx, by, o.ws, postern.Limits{Devices: new(1)})),
		"workspace":  failedBoth(o.Operators.OpenWorkspace(ctx, by, NewWorkspace{Name: "mine", Plan: "pro"})),
		"link":       failedBoth(o.PasswordLinks.Reset(ctx, by, Reset{Email: by.Member.Email})),
		"own link":   failedBoth(o.PasswordLinks.ResetByPassword(ctx, by, by.Member.UserID, false, goodPassword)),
		"figures":    failedOf(o.Operators.System(ctx, by)),
		"workspaces": failedOf(o.Operators.WorkspacesWithUsage(ctx, by, "", Page{})),
		"one":        failedOf(o.Operators.WorkspaceWithUsage(ctx, by, o.ws)),
		"devices":    failedOf(o.Operators.Devices(ctx, by, o.ws, Page{})),
		"beyond":     failedOf(o.Operators.Beyond(ctx, by, o.ws, 0)),
		"users":      failedOf(o.Operators.Users(ctx, by, "", Page{})),
	} {
		if !errors.Is(err, errNoPage) {
			o.t.Errorf("%s: %v", name, err)
		}
	}
}

func failedOf[T any](_ T, err error) error { return err }

func failedBoth[T, U any](_ T, _ U, err error) error { return err }

func TestWhoOwnsAWorkspaceIsNoOperator(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		o := newOffice(t, g)
		bob := o.hire("bob@example.com", postern.Owner)
		o.refusedAsNoPage(bob)
		o.refusedAsNoPage(Actor{})
		if _, err := g.Operators.Actor(t.Context(), bob.Member.UserID, ""); !errors.Is(err, errNoPage) {
			t.Errorf("an owner is an operator: %v", err)
		}
		if _, err := g.Operators.Actor(t.Context(), "usr_none", ""); !errors.Is(err, errNoPage) {
			t.Errorf("nobody is an operator: %v", err)
		}
	})
}

// Who was an operator when the request came, and is none when it is carried out, does
// nothing.
func TestRightsOfAnOperatorEndWithTheFlag(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		o := newOffice(t, g)
		ctx := t.Context()
		other, err := g.Operators.CreateWorkspace(ctx, "other", "growth")
		if err != nil {
			t.Fatal(err)
		}
		bob := o.hire("bob@example.com", postern.Viewer)
		if _, err := g.Operators.Set(ctx, OperatorChange{Email: "Bob@example.com"}); err != nil {
			t.Fatal(err)
		}
		by, err := g.Operators.Actor(ctx, bob.Member.UserID, "192.0.2.3")
		if err != nil {
			t.Fatal(err)
		}
		o.hire("carol@example.com", postern.Viewer)
		_, mine, err := g.PasswordLinks.Reset(ctx, Operator(), Reset{Email: "carol@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		_, link, err := g.PasswordLinks.Reset(ctx, by, Reset{Email: "ada@example.com", Alone: true})
		if err != nil {
			t.Fatal(err)
		}
		_, token, err := g.Invitations.Create(ctx, by, other.ID, NewInvitation{Email: "eve@example.com", Role: postern.Owner})
		if err := errors.Join(err, g.Operators.SetPlan(ctx, by, other.ID, "pro")); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Operators.Set(ctx, OperatorChange{Email: "bob@example.com", Remove: true}); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"plan":   g.Operators.SetPlan(ctx, by, other.ID, "free"),
			"limits": failedOf(g.Operators.ChangeLimits(ctx, by, other.ID, postern.Limits{Devices: new(1)})),
			"new":    failedBoth(g.Operators.OpenWorkspace(ctx, by, NewWorkspace{Name: "mine", Plan: "pro"})),
			"link":   failedBoth(g.PasswordLinks.Reset(ctx, by, Reset{Email: "ada@example.com"})),
			"invite": failedBoth(g.Invitations.Create(ctx, by, other.ID, NewInvitation{Email: "mallory@example.com", Role: postern.Owner})),
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
