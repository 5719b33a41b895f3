package people

import (
	"fmt"
	"testing"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

// onStarter is an office on the plan Starter.
func onStarter(t *testing.T, g *server) (office, postern.Caps) {
	t.Helper()
	o := newOffice(t, g)
	if err := g.Workspaces.SetPlan(t.Context(), access.Operator(), o.ws, "starter"); err != nil {
		t.Fatal(err)
	}
	plan, _ := postern.PlanByName("starter")
	return o, plan.Caps
}

// created counts how often something can be created until the plan's limit refuses it.
func (o office) created(what string, want int, create func(i int) error) {
	o.t.Helper()
	for i := range 1000 {
		switch err := create(i); {
		case err == nil:
		case i == want && postern.ReasonOf(err) == postern.ResourceLimit:
			return
		default:
			o.t.Errorf("%s: number %d is refused with %v, want %d of them", what, i+1, err, want)
			return
		}
	}
	o.t.Errorf("%s: no limit, want %d", what, want)
}

func TestEverythingThatIsCreatedHasALimit(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o, caps := onStarter(t, g)
		ctx := t.Context()
		caller, err := g.Workspaces.Caller(ctx, access.Operator(), o.ws)
		if err != nil {
			t.Fatal(err)
		}
		device := func(int) error {
			_, err := g.Devices.Create(ctx, caller, gateway.NewDevice{Name: "d"}, nil)
			return err
		}
		o.created("devices", caps.Devices, device)
		list, err := g.Devices.List(ctx, caller, paging.Page{})
		if err != nil || len(list.Data) != caps.Devices {
			t.Fatalf("%d devices: %v", len(list.Data), err)
		}
		if err := g.Devices.Delete(ctx, caller, list.Data[0].ID); err != nil {
			t.Fatal(err)
		}
		o.created("devices after one was deleted", 1, device)
		o.created("invitations", caps.Invitations, func(i int) error {
			_, _, err := g.Invitations.Create(
				ctx, o.owner, o.ws, NewInvitation{Email: fmt.Sprintf("u%d@example.com", i), Role: postern.Viewer},
			)
			return err
		})
		o.created("stored files", 10, func(i int) error {
			file := postern.Media{
				ID: postern.NewMediaID(), Size: caps.Bytes / 10, SHA256: fmt.Sprint(i), Status: postern.MediaReady,
			}
			return g.db.Media.Add(ctx, store.MediaRow{Media: file, WorkspaceID: o.ws}, nil)
		})
		o.created("sessions of a person", 0, func(int) error {
			for i := range 2 * postern.MaxSignIns {
				s := sessionOf(g, postern.User{ID: o.owner.Member.UserID})
				s.TokenHash, s.ExpiresAt = fmt.Sprint(i), s.ExpiresAt+postern.Time(i)
				if err := g.SignIns.Create(ctx, s); err != nil {
					return err
				}
			}
			if list, err := g.accounts.SignIns.List(ctx, o.owner.Member.UserID, 0, 1000); err != nil ||
				len(list) != postern.MaxSignIns || list[0].TokenHash != fmt.Sprint(2*postern.MaxSignIns-1) {
				return fmt.Errorf("%d sessions: %w", len(list), err)
			}
			return postern.Errorf(postern.ResourceLimit, "")
		})
	})
}

func TestKeysHaveALimit(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o, caps := onStarter(t, g)
		var ids []postern.KeyID
		create := func(int) error {
			key, _, err := g.Keys.Create(t.Context(), o.owner, o.ws, gateway.NewKey{Name: "k"})
			if err == nil {
				ids = append(ids, key.ID)
			}
			return err
		}
		o.created("keys", caps.Keys, create)
		o.created("successors", caps.Keys, func(i int) error {
			key, _, err := g.Keys.Rotate(t.Context(), o.owner, o.ws, ids[0], gateway.Rotation{Overlap: 1e12})
			if err == nil {
				ids = append(ids, key.ID)
			}
			return err
		})
		revoke := func(id postern.KeyID) {
			if err := g.Keys.Revoke(t.Context(), o.owner, o.ws, id); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range ids {
			revoke(id)
		}
		o.created("keys of a day", 4*caps.Keys-len(ids), func(i int) error {
			if err := create(i); err != nil {
				return err
			}
			revoke(ids[len(ids)-1])
			return nil
		})
	})
}

func TestMembersAndMembershipsHaveALimit(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o, caps := onStarter(t, g)
		late := o.invite(o.owner, "late@example.com", postern.Viewer)
		o.created("members", caps.Members-1, func(i int) error { // besides the owner
			_, _, err := g.Users.Create(t.Context(), access.Operator(), o.ws, NewUser{
				Email: fmt.Sprintf("u%d@example.com", i), Role: postern.Viewer,
			})
			return err
		})
		o.refused("an invitation to a full workspace", late, postern.ResourceLimit)
		if _, _, err := g.Invitations.Create(
			t.Context(), o.owner, o.ws, NewInvitation{Email: "more@example.com", Role: postern.Viewer},
		); postern.ReasonOf(err) != postern.ResourceLimit {
			t.Errorf("an invitation to a full workspace: %v", err)
		}
		o.created("workspaces of a person", postern.MaxMemberships-1, func(i int) error {
			ws, err := g.Workspaces.Create(t.Context(), access.Operator(), gateway.NewWorkspace{
				Name: fmt.Sprint(i), Plan: "free",
			})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = g.Users.Create(t.Context(), access.Operator(), ws.ID, NewUser{
				Email: "ada@example.com", Role: postern.Viewer, Existing: true,
			})
			return err
		})
	})
}
