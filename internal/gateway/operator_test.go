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
		"plan":       o.SetPlan(ctx, by, o.ws, "free"),
		"limits":     failedOf(o.ChangeLimits(ctx, by, o.ws, postern.Limits{Devices: new(1)})),
		"workspace":  failedBoth(o.OpenWorkspace(ctx, by, NewWorkspace{Name: "mine", Plan: "pro"})),
		"link":       failedBoth(o.ResetPassword(ctx, by, Reset{Email: by.Member.Email})),
		"own link":   failedBoth(o.ResetPasswordByPassword(ctx, by, by.Member.UserID, false, goodPassword)),
		"figures":    failedOf(o.System(ctx, by)),
		"workspaces": failedOf(o.WorkspacesUsed(ctx, by, "", Page{})),
		"one":        failedOf(o.WorkspaceUsed(ctx, by, o.ws)),
		"devices":    failedOf(o.DevicesOf(ctx, by, o.ws, Page{})),
		"beyond":     failedOf(o.Beyond(ctx, by, o.ws, 0)),
		"users":      failedOf(o.Persons(ctx, by, "", Page{})),
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
		if _, err := g.AsOperator(t.Context(), bob.Member.UserID, ""); !errors.Is(err, errNoPage) {
			t.Errorf("an owner is an operator: %v", err)
		}
		if _, err := g.AsOperator(t.Context(), "usr_none", ""); !errors.Is(err, errNoPage) {
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
		other, err := g.CreateWorkspace(ctx, "other", "growth")
		if err != nil {
			t.Fatal(err)
		}
		bob := o.hire("bob@example.com", postern.Viewer)
		if _, err := g.SetOperator(ctx, OperatorChange{Email: "Bob@example.com"}); err != nil {
			t.Fatal(err)
		}
		by, err := g.AsOperator(ctx, bob.Member.UserID, "192.0.2.3")
		if err != nil {
			t.Fatal(err)
		}
		o.hire("carol@example.com", postern.Viewer)
		_, mine, err := g.ResetPassword(ctx, Operator(), Reset{Email: "carol@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		_, link, err := g.ResetPassword(ctx, by, Reset{Email: "ada@example.com", Alone: true})
		if err != nil {
			t.Fatal(err)
		}
		_, token, err := g.Invite(ctx, by, other.ID, NewInvitation{Email: "eve@example.com", Role: postern.Owner})
		if err := errors.Join(err, g.SetPlan(ctx, by, other.ID, "pro")); err != nil {
			t.Fatal(err)
		}
		if _, err := g.SetOperator(ctx, OperatorChange{Email: "bob@example.com", Remove: true}); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"plan":   g.SetPlan(ctx, by, other.ID, "free"),
			"limits": failedOf(g.ChangeLimits(ctx, by, other.ID, postern.Limits{Devices: new(1)})),
			"new":    failedBoth(g.OpenWorkspace(ctx, by, NewWorkspace{Name: "mine", Plan: "pro"})),
			"link":   failedBoth(g.ResetPassword(ctx, by, Reset{Email: "ada@example.com"})),
			"invite": failedBoth(g.Invite(ctx, by, other.ID, NewInvitation{Email: "mallory@example.com", Role: postern.Owner})),
		} {
			if err == nil {
				t.Errorf("%s goes on without the flag", name)
			}
		}
		for name, token := range map[string]string{"invitation": token, "link for a password": link} {
			if _, err := g.JoinLink(ctx, token); err == nil {
				t.Errorf("the %s outlives the flag", name)
			}
		}
		if _, err := g.JoinLink(ctx, mine); err != nil {
			t.Error("a link that another made goes with the flag:", err)
		}
	})
}
