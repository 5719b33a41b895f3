package people

import (
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

// A request that was let in with a role does nothing when the role is gone by the
// time of its change.
func TestKeysAreChangedByThoseWhoStillHaveTheRole(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		removed, lowered := o.hire("bob@example.com", postern.Developer), o.hire("carl@example.com", postern.Developer)
		kept, _, err := g.Keys.Create(t.Context(), lowered, o.ws, gateway.NewKey{Name: "kept"})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Members.Remove(t.Context(), o.owner, o.ws, removed.Member.UserID, Removal{}); err != nil {
			t.Fatal(err)
		}
		if err := g.Members.ChangeRole(t.Context(), o.owner, o.ws, lowered.Member.UserID, postern.Viewer); err != nil {
			t.Fatal(err)
		}
		for _, by := range []access.Actor{removed, lowered} { // as the request found them before
			key, _, err := g.Keys.Create(t.Context(), by, o.ws, gateway.NewKey{Name: "late"})
			if postern.ReasonOf(err) != postern.MissingScope {
				t.Errorf("%s makes %s: %v", by.Member.Email, key.ID, err)
			}
			if _, _, err := g.Keys.Rotate(
				t.Context(), by, o.ws, kept.ID, gateway.Rotation{},
			); postern.ReasonOf(err) != postern.MissingScope {
				t.Errorf("%s rotates: %v", by.Member.Email, err)
			}
			if err := g.Keys.Revoke(t.Context(), by, o.ws, kept.ID); postern.ReasonOf(err) != postern.MissingScope {
				t.Errorf("%s revokes: %v", by.Member.Email, err)
			}
		}
		list, err := g.Keys.ListForOperator(t.Context(), access.Operator(), o.ws)
		if err != nil || len(list) != 1 || list[0].RevokedAt != 0 || list[0].ExpiresAt != 0 {
			t.Errorf("the keys are %+v, %v", list, err)
		}
	})
}

func TestRevokingTwiceIsWrittenDownOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		key, _, err := g.Keys.Create(t.Context(), o.owner, o.ws, gateway.NewKey{Name: "k"})
		if err != nil {
			t.Fatal(err)
		}
		i, _, err := g.Invitations.Create(
			t.Context(), o.owner, o.ws, NewInvitation{Email: "bob@example.com", Role: postern.Viewer},
		)
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range []postern.Reason{"", postern.NotFound} {
			if err := g.Keys.Revoke(t.Context(), o.owner, o.ws, key.ID); err != nil {
				t.Errorf("time %d: %v", n, err)
			}
			if err := g.Invitations.Revoke(t.Context(), o.owner, o.ws, i.ID); reasonOrNone(err) != want {
				t.Errorf("time %d: %v", n, err)
			}
		}
		for kind, want := range map[string]int{"key": 2, "invitation": 2} {
			acts, err := g.Audit.List(t.Context(), o.owner, o.ws, ActQuery{Kind: kind})
			if err != nil || len(acts.Data) != want {
				t.Errorf("of the kind %s: %+v, %v", kind, acts.Data, err)
			}
		}
	})
}

func TestKeysAndActsComeInPages(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		o := newOffice(t, g)
		bob := o.hire("bob@example.com", postern.Developer)
		for range 5 {
			if _, _, err := g.Keys.Create(t.Context(), bob, o.ws, gateway.NewKey{Name: "k"}); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[postern.KeyID]bool{}
		p := paging.Page{Limit: 2}
		for range 3 {
			list, err := g.Keys.List(t.Context(), bob, o.ws, p)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range list.Data {
				seen[k.ID] = true
			}
			p.Cursor = list.Next
		}
		if len(seen) != 5 || p.Cursor != "" {
			t.Errorf("%d keys, and the rest at %q", len(seen), p.Cursor)
		}
		q, found := ActQuery{Page: paging.Page{Limit: 2}, Email: " Bob@example.com", Kind: "key"}, 0
		for range 3 {
			list, err := g.Audit.List(t.Context(), o.owner, o.ws, q)
			if err != nil {
				t.Fatal(err)
			}
			found += len(list.Data)
			q.Cursor = list.Next
		}
		if found != 5 || q.Cursor != "" {
			t.Errorf("%d acts, and the rest at %q", found, q.Cursor)
		}
		for _, q := range []ActQuery{{Email: "nobody@example.com"}, {Kind: "none"}} {
			if list, err := g.Audit.List(t.Context(), o.owner, o.ws, q); err != nil || len(list.Data) != 0 {
				t.Errorf("%+v gives %+v, %v", q, list.Data, err)
			}
		}
		if _, err := g.Audit.List(
			t.Context(), o.owner, o.ws, ActQuery{Page: paging.Page{Cursor: "x"}},
		); postern.ReasonOf(err) != postern.MalformedRequest {
			t.Errorf("an invalid cursor: %v", err)
		}
	})
}

// A member's key that was to end has a successor that ends as late after its start.
func TestSuccessorLivesAsLong(t *testing.T) {
	t.Parallel()
	g := open(t, "")
	_, m := first(t, g)
	by := access.Actor{Member: m, Recent: true}
	for _, life := range []time.Duration{0, time.Hour} {
		in := gateway.NewKey{Name: "k"}
		if life > 0 {
			in.ExpiresAt = g.time().Add(life)
		}
		old, _, err := g.Keys.Create(t.Context(), by, m.WorkspaceID, in)
		if err != nil {
			t.Fatal(err)
		}
		next, _, err := g.Keys.Rotate(t.Context(), by, m.WorkspaceID, old.ID, gateway.Rotation{})
		if err != nil {
			t.Fatal(err)
		}
		if life == 0 && next.ExpiresAt != 0 ||
			life > 0 && next.ExpiresAt-next.CreatedAt != old.ExpiresAt-old.CreatedAt {
			t.Errorf("a life of %s is followed by one until %d from %d", life, next.ExpiresAt, next.CreatedAt)
		}
	}
}
