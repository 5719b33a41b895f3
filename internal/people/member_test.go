package people

import (
	"sync"
	"testing"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
)

func TestNobodyChangesSomebodyMightier(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		admin, other, viewer := o.hire("bob@example.com", postern.Admin), o.hire(
			"carl@example.com",
			postern.Admin,
		), o.hire("eve@example.com", postern.Viewer)
		for _, tt := range []struct {
			by   access.Actor
			of   postern.UserID
			role postern.Role // "" removes
			want postern.Reason
		}{
			{admin, o.owner.Member.UserID, postern.Viewer, postern.MissingScope},
			{admin, o.owner.Member.UserID, "", postern.MissingScope},
			{admin, viewer.Member.UserID, postern.Owner, postern.MissingScope},
			{admin, admin.Member.UserID, postern.Owner, postern.MissingScope},
			{viewer, viewer.Member.UserID, postern.Admin, postern.MissingScope},
			{viewer, other.Member.UserID, "", postern.MissingScope},
			{o.owner, o.owner.Member.UserID, postern.Admin, postern.ValidationFailed}, // the last one
			{o.owner, o.owner.Member.UserID, "", postern.ValidationFailed},
			{access.Operator(), o.owner.Member.UserID, "", postern.ValidationFailed},
			{admin, viewer.Member.UserID, "root", postern.ValidationFailed},
			{admin, "usr_none", postern.Viewer, postern.NotFound},
			{admin, viewer.Member.UserID, postern.Admin, ""},
			{admin, viewer.Member.UserID, postern.Viewer, ""},
			{admin, other.Member.UserID, "", ""},
			{other, viewer.Member.UserID, postern.Developer, postern.MissingScope}, // who was just removed
			{o.owner, viewer.Member.UserID, postern.Owner, ""},
			{o.owner, o.owner.Member.UserID, postern.Admin, ""},
		} {
			var err error
			if tt.role == "" {
				err = g.Members.Remove(t.Context(), tt.by, o.ws, tt.of, Removal{})
			} else {
				err = g.Members.ChangeRole(t.Context(), tt.by, o.ws, tt.of, tt.role)
			}
			if reasonOrNone(err) != tt.want {
				t.Errorf("%s makes %s %q: %v, want %q", tt.by.Member.Email, tt.of, tt.role, err, tt.want)
			}
		}
		acts, err := g.Audit.List(t.Context(), access.Operator(), o.ws, ActQuery{})
		if err != nil || acts.Data[0].Act != "member.made-admin" || acts.Data[2].Act != "member.removed" ||
			acts.Data[2].Email != "bob@example.com" ||
			acts.Data[2].Name != "carl@example.com" {
			t.Errorf("the audit log has %+v, %v", acts, err)
		}
		stranger := viewer
		stranger.Member.WorkspaceID = "ws_other"
		if _, err := g.Members.List(t.Context(), stranger, o.ws); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("a stranger sees the members: %v", err)
		}
	})
}

func TestTwoOwnersWhoLeaveAtOnceLeaveOne(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		bob := o.hire("bob@example.com", postern.Owner)
		var race sync.WaitGroup
		for _, a := range []access.Actor{o.owner, bob} {
			race.Go(func() {
				if err := g.Members.Remove(t.Context(), a, o.ws, a.Member.UserID, Removal{}); err != nil &&
					postern.ReasonOf(err) != postern.ValidationFailed {
					t.Errorf("leave: %v", err)
				}
			})
		}
		race.Wait()
		if got := o.members(); len(got) != 1 {
			t.Errorf("the members are %v", got)
		}
	})
}

func TestOperatorLetsPeopleIn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		ws, err := g.Workspaces.Create(
			t.Context(), access.Operator(), gateway.NewWorkspace{Name: "acme", Plan: "growth"},
		)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []NewUser{{Email: "bob", Role: postern.Owner}, {Email: "bob@example.com", Role: "root"}} {
			if _, _, err := g.Users.Create(
				t.Context(), access.Operator(), ws.ID, in,
			); postern.ReasonOf(err) != postern.ValidationFailed {
				t.Errorf("%+v: %v", in, err)
			}
		}
		if _, _, err := g.Users.Create(
			t.Context(), access.Operator(), "ws_none", NewUser{Email: "bob@example.com", Role: postern.Owner},
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("in no workspace: %v", err)
		}
		setUp, err := g.Users.OpenSetUp(t.Context(), access.Operator())
		if err != nil {
			t.Fatal(err)
		}
		u, token, err := g.Users.Create(
			t.Context(), access.Operator(), ws.ID, NewUser{Email: "Bob@example.com", Role: postern.Owner},
		)
		if err != nil || token == "" {
			t.Fatal(err)
		}
		if open, err := g.Users.IsSetUpOpen(t.Context(), setUp); open || err != nil {
			t.Errorf("there is a user, and the set-up link is open: %v", err)
		}
		if _, err := g.signIn(t, "192.0.2.1", "bob@example.com", ""); postern.ReasonOf(err) != postern.Unauthorized {
			t.Errorf("without a password: %v", err)
		}
		if _, _, err := g.Invitations.Join(
			t.Context(), token, "", "short",
		); postern.ReasonOf(err) != postern.ValidationFailed {
			t.Errorf("a short password: %v", err)
		}
		if got, _, err := g.Invitations.Join(t.Context(), token, "", goodPassword); err != nil || got.ID != u.ID {
			t.Errorf("with the link: %v, %v", got, err)
		}
		if _, _, err := g.Invitations.Join(
			t.Context(), token, "", goodPassword,
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("again: %v", err)
		}
		if _, _, err := g.Users.Create(
			t.Context(), access.Operator(), ws.ID, NewUser{Email: "bob@example.com", Role: postern.Viewer},
		); postern.ReasonOf(err) != postern.ValidationFailed {
			t.Errorf("twice: %v", err)
		}
		other, err := g.Workspaces.Create(
			t.Context(), access.Operator(), gateway.NewWorkspace{Name: "other", Plan: "growth"},
		)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.Users.Create(
			t.Context(), access.Operator(), other.ID, NewUser{Email: "bob@example.com", Role: postern.Viewer},
		); postern.ReasonOf(err) != postern.ValidationFailed {
			t.Errorf("an account that anybody may have made is taken for the person's: %v", err)
		}
		if got, token, err := g.Users.Create(
			t.Context(), access.Operator(), other.ID,
			NewUser{Email: "bob@example.com", Role: postern.Viewer, Existing: true},
		); err != nil ||
			got.ID != u.ID ||
			token != "" {
			t.Errorf("in another workspace: %v, a link: %t, %v", got, token != "", err)
		}
	})
}

func TestNewPasswordByALinkEndsAllSessions(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		u, _ := first(t, g)
		if _, _, err := g.PasswordLinks.Reset(
			t.Context(), access.Operator(), Reset{Email: "eve@example.com"},
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("of nobody: %v", err)
		}
		_, older, err := g.PasswordLinks.Reset(t.Context(), access.Operator(), Reset{Email: u.Email})
		if err != nil {
			t.Fatal(err)
		}
		_, token, err := g.PasswordLinks.Reset(t.Context(), access.Operator(), Reset{Email: u.Email})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.SignIns.Create(t.Context(), sessionOf(g, u)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.Invitations.Join(
			t.Context(), older, "", "five plain words are here",
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("by the older link: %v", err)
		}
		if _, ok, err := g.SignIns.Get(t.Context(), "token"); !ok || err != nil {
			t.Errorf("the session has ended before the link was used: %v", err)
		}
		if _, err := g.Invitations.JoinAs(
			t.Context(), access.Self{ID: u.ID}, token,
		); postern.ReasonOf(err) != postern.ResourceNotAllowed {
			t.Errorf("joins with it: %v", err)
		}
		if _, _, err := g.Invitations.Join(t.Context(), token, "", "five plain words are here"); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := g.SignIns.Get(t.Context(), "token"); ok || err != nil {
			t.Errorf("the session goes on: %v", err)
		}
		if _, err := g.signIn(t, "", u.Email, goodPassword); postern.ReasonOf(err) != postern.Unauthorized {
			t.Errorf("the old password: %v", err)
		}
		_, token, err = g.PasswordLinks.Reset(t.Context(), access.Operator(), Reset{Email: u.Email})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Users.ChangePassword(
			t.Context(), access.Self{ID: u.ID}, "five plain words are here", goodPassword,
		); err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.Invitations.Join(
			t.Context(), token, "", goodPassword,
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("a link from before the password was changed: %v", err)
		}
	})
}
