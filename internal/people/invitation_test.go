package people

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store/accounts"
)

// office is a workspace with its owner.
type office struct {
	*server
	t     *testing.T
	ws    postern.WorkspaceID
	owner access.Actor
}

func newOffice(t *testing.T, g *server) office {
	t.Helper()
	g.hashing.params.Memory, g.hashing.params.Iterations = 8, 1 // what is tested is who gets in
	_, m := first(t, g)
	return office{g, t, m.WorkspaceID, access.Actor{Member: m, Address: "192.0.2.1", Recent: true}}
}

// invite makes an invitation and gives its token.
func (o office) invite(by access.Actor, email string, role postern.Role) string {
	o.t.Helper()
	_, token, err := o.Invitations.Create(o.t.Context(), by, o.ws, NewInvitation{Email: email, Role: role})
	if err != nil {
		o.t.Fatal(err)
	}
	return token
}

// joins lets somebody join by a link.
func (o office) joins(token string) postern.User {
	o.t.Helper()
	u, ws, err := o.Invitations.Join(o.t.Context(), token, "192.0.2.2", goodPassword)
	if err != nil || ws != o.ws {
		o.t.Fatalf("joined %q: %v", ws, err)
	}
	return u
}

// hire invites somebody who joins.
func (o office) hire(email string, role postern.Role) access.Actor {
	o.t.Helper()
	return o.as(o.joins(o.invite(o.owner, email, role)))
}

func (o office) as(u postern.User) access.Actor {
	o.t.Helper()
	m, err := accounts.Of(o.db).Members.Get(o.t.Context(), o.ws, u.ID)
	if err != nil {
		o.t.Fatal(err)
	}
	return access.Actor{Member: m, Address: "192.0.2.2", Recent: true}
}

// refused fails when a link lets somebody in.
func (o office) refused(why, token string, want postern.Reason) {
	o.t.Helper()
	if _, _, err := o.Invitations.Join(o.t.Context(), token, "", goodPassword); reasonOrNone(err) != want {
		o.t.Errorf("%s: %v, want %q", why, err, want)
	}
}

// members are the roles by address.
func (o office) members() map[string]postern.Role {
	o.t.Helper()
	list, err := o.Members.List(o.t.Context(), access.Operator(), o.ws)
	if err != nil {
		o.t.Fatal(err)
	}
	roles := map[string]postern.Role{}
	for _, m := range list {
		roles[m.Email] = m.Role
	}
	if len(roles) != len(list) {
		o.t.Errorf("somebody is a member twice: %v", list)
	}
	return roles
}

// T17: a link is good once, for one address, for three days, and for no more than
// its inviter may give.
func TestT17InvitationIsUsedOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		token := o.invite(o.owner, " Bob@Example.com", postern.Viewer)
		bob := o.joins(token)
		if got := o.members()["bob@example.com"]; got != postern.Viewer {
			t.Errorf("the role is %q", got)
		}
		o.refused("again", token, postern.NotFound)
		o.refused("the hash of it", hashToken(token), postern.NotFound)
		o.refused("none", "", postern.NotFound)
		if _, err := g.Invitations.JoinAs(
			t.Context(), access.Self{ID: bob.ID}, token,
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("again, signed in: %v", err)
		}
		if u, err := g.signIn(t, "192.0.2.2", "bob@example.com", goodPassword); err != nil ||
			u.ID != bob.ID {
			t.Errorf("sign in = %v, %v", u, err)
		}
		acts, err := g.Audit.List(t.Context(), o.owner, o.ws, ActQuery{})
		if err != nil || len(acts.Data) != 3 || acts.Data[0].Act != "invitation.accepted" ||
			acts.Data[0].Email != "bob@example.com" ||
			acts.Data[1].Act != "invitation.created" ||
			acts.Data[1].Name != "bob@example.com as viewer" ||
			acts.Data[1].Email != "ada@example.com" {
			t.Errorf("the audit log has %+v, %v", acts, err)
		}
	})
}

func TestT17TwentyBrowsersMakeOneMember(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		token := o.invite(o.owner, "bob@example.com", postern.Viewer)
		var in atomic.Int32
		race := func(join func() error) {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					err := join()
					if err == nil {
						in.Add(1)
					} else if r := postern.ReasonOf(err); r != postern.NotFound && r != postern.ResourceNotAllowed &&
						r != postern.RateLimited { // the queue of the network is short
						t.Errorf("join: %v", err)
					}
				})
			}
			all.Wait()
		}
		race(func() error {
			_, _, err := g.Invitations.Join(t.Context(), token, "", goodPassword)
			return err
		})
		if got := o.members(); in.Load() != 1 || len(got) != 2 {
			t.Errorf("%d have joined, the members are %v", in.Load(), got)
		}
		other, err := g.Workspaces.Create(
			t.Context(), access.Operator(), gateway.NewWorkspace{Name: "other", Plan: "growth"},
		)
		if err != nil {
			t.Fatal(err)
		}
		bob, _, _, err := g.accounts.Users.ByEmail(t.Context(), "bob@example.com")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.Users.Create(
			t.Context(), access.Operator(), other.ID, NewUser{Email: "eve@example.com", Role: postern.Owner},
		); err != nil {
			t.Fatal(err)
		}
		eve, _, _, err := g.accounts.Users.ByEmail(t.Context(), "eve@example.com")
		if err != nil {
			t.Fatal(err)
		}
		o.ws = other.ID
		token = o.invite(o.as(eve), "bob@example.com", postern.Viewer)
		in.Store(0)
		race(func() error {
			_, err := g.Invitations.JoinAs(t.Context(), access.Self{ID: bob.ID}, token)
			return err
		})
		if got := o.members(); in.Load() != 1 || len(got) != 2 {
			t.Errorf("with an account %d have joined, the members are %v", in.Load(), got)
		}
	})
}

func TestT17InvitationIsForOneAddress(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		bob := o.hire("bob@example.com", postern.Admin)
		if err := g.Members.Remove(t.Context(), o.owner, o.ws, bob.Member.UserID, Removal{}); err != nil {
			t.Fatal(err)
		}
		token := o.invite(o.owner, "eve@example.com", postern.Viewer)
		if _, err := g.Invitations.JoinAs(
			t.Context(), access.Self{ID: bob.Member.UserID}, token,
		); postern.ReasonOf(err) != postern.ResourceNotAllowed {
			t.Errorf("the link of another: %v", err)
		}
		token = o.invite(o.owner, "bob@example.com", postern.Viewer)
		o.refused("a new password for an account that is there", token, postern.ResourceNotAllowed)
		if _, err := g.signIn(t, "", "bob@example.com", goodPassword); err != nil {
			t.Errorf("the password of the account: %v", err)
		}
		if _, err := g.Invitations.JoinAs(t.Context(), access.Self{ID: bob.Member.UserID}, token); err != nil ||
			o.members()["bob@example.com"] != postern.Viewer {
			t.Errorf("with the account: %v, %v", err, o.members())
		}
	})
}

func TestT17NobodyGivesMoreThanTheyHave(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		admin, developer := o.hire("bob@example.com", postern.Admin), o.hire("dev@example.com", postern.Developer)
		for _, tt := range []struct {
			by   access.Actor
			role postern.Role
			want postern.Reason
		}{
			{admin, postern.Owner, postern.MissingScope},
			{admin, "root", postern.ValidationFailed},
			{admin, "", postern.ValidationFailed},
			{admin, postern.Admin, ""},
			{developer, postern.Viewer, postern.MissingScope},
			{access.Actor{}, postern.Viewer, postern.NotFound},
		} {
			if _, _, err := g.Invitations.Create(
				t.Context(), tt.by, o.ws, NewInvitation{Email: "eve@example.com", Role: tt.role},
			); reasonOrNone(err) != tt.want {
				t.Errorf("%s invites as %q: %v, want %q", tt.by.Member.Role, tt.role, err, tt.want)
			}
		}
		if err := g.Members.ChangeRole(t.Context(), o.owner, o.ws, admin.Member.UserID, postern.Viewer); err != nil {
			t.Fatal(err)
		}
		// A request that was under way when the role was taken away.
		if _, _, err := g.Invitations.Create(
			t.Context(), admin, o.ws, NewInvitation{Email: "eve@example.com", Role: postern.Viewer},
		); postern.ReasonOf(err) != postern.MissingScope {
			t.Errorf("an admin of before invites: %v", err)
		}
	})
}

func TestT17InvitationEndsWithWhatItRestsOn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		bob := o.hire("bob@example.com", postern.Owner)
		asOwner, asViewer := o.invite(bob, "a@example.com", postern.Owner), o.invite(
			bob,
			"b@example.com",
			postern.Viewer,
		)
		if err := g.Members.ChangeRole(t.Context(), o.owner, o.ws, bob.Member.UserID, postern.Admin); err != nil {
			t.Fatal(err)
		}
		o.refused("of an owner who is an admin now", asOwner, postern.NotFound)
		second := o.invite(o.owner, "c@example.com", postern.Viewer)
		third := o.invite(o.owner, "c@example.com", postern.Viewer)
		o.refused("one that another has followed", second, postern.NotFound)
		if _, _, err := g.Users.Create(
			t.Context(), access.Operator(), o.ws, NewUser{Email: "c@example.com", Role: postern.Developer},
		); err != nil {
			t.Fatal(err)
		}
		o.refused("of one who became a member otherwise", third, postern.NotFound)
		if err := g.Members.Remove(t.Context(), o.owner, o.ws, bob.Member.UserID, Removal{}); err != nil {
			t.Fatal(err)
		}
		o.refused("of one who was removed", asViewer, postern.NotFound)

		late := o.invite(o.owner, "d@example.com", postern.Viewer)
		gone, token, err := g.Invitations.Create(
			t.Context(), o.owner, o.ws, NewInvitation{Email: "e@example.com", Role: postern.Viewer},
		)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Invitations.Revoke(t.Context(), o.owner, o.ws, gone.ID); err != nil {
			t.Fatal(err)
		}
		if err := g.Invitations.Revoke(t.Context(), o.owner, o.ws, gone.ID); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("revoked twice: %v", err)
		}
		o.refused("a revoked one", token, postern.NotFound)
		if list, err := g.Invitations.List(t.Context(), o.owner, o.ws); err != nil || len(list) != 1 ||
			list[0].Email != "d@example.com" ||
			list[0].Inviter != "ada@example.com" {
			t.Errorf("open are %+v, %v", list, err)
		}
		g.now = func() time.Time { return time.Now().Add(joinTime + time.Second) }
		o.refused("an expired one", late, postern.NotFound)
		if got, want := fmt.Sprint(o.members()), "map[ada@example.com:owner c@example.com:developer]"; got != want {
			t.Errorf("the members are %s, want %s", got, want)
		}
	})
}

func TestT17WhoWasRemovedDoesNotComeBack(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		token := o.invite(o.owner, "bob@example.com", postern.Admin)
		u := o.joins(token)
		bob := o.as(u)
		if _, _, err := g.Invitations.Create(
			t.Context(), o.owner, o.ws, NewInvitation{Email: "bob@example.com", Role: postern.Admin},
		); postern.ReasonOf(err) != postern.ValidationFailed {
			t.Errorf("a member is invited: %v", err)
		}
		if err := g.Members.Remove(t.Context(), o.owner, o.ws, u.ID, Removal{}); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Invitations.JoinAs(
			t.Context(), access.Self{ID: u.ID}, token,
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("by the link of before: %v", err)
		}
		if _, err := g.Members.Caller(
			t.Context(), access.Self{ID: u.ID}, o.ws,
		); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("as a caller: %v", err)
		}
		if _, _, err := g.Invitations.Create(
			t.Context(), bob, o.ws, NewInvitation{Email: "bob2@example.com", Role: postern.Viewer},
		); postern.ReasonOf(err) != postern.MissingScope {
			t.Errorf("invites from a request under way: %v", err)
		}
		if got := o.members(); len(got) != 1 {
			t.Errorf("the members are %v", got)
		}
	})
}

func TestInvitationsAreNotEndless(t *testing.T) {
	t.Parallel()
	o := newOffice(t, open(t, ""))
	for i := range maxInvitations {
		o.invite(o.owner, fmt.Sprintf("u%d@example.com", i), postern.Viewer)
	}
	if _, _, err := o.Invitations.Create(
		t.Context(), o.owner, o.ws, NewInvitation{Email: "more@example.com", Role: postern.Viewer},
	); postern.ReasonOf(err) != postern.ResourceLimit {
		t.Errorf("one more: %v", err)
	}
	o.invite(o.owner, "u7@example.com", postern.Developer)
}
