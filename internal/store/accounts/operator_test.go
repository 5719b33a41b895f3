package accounts

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// A text is searched in a bounded part of the users for each page.
func TestTextIsSearchedInABoundedPart(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, tables Tables) {
		const many = 2000 // users of which one page searches a part
		last := fmt.Sprintf("w%05d", many+9)
		err := s.Engine().Do(t.Context(), db.Func(func(t *db.Tx) error {
			for i := range many + 10 {
				name := fmt.Sprintf("w%05d", i)
				u := postern.User{ID: postern.UserID(name), Email: name + "@example.com", CreatedAt: testNow}
				if err := insertUser(t, u, "hash"); err != nil {
					return err
				}
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		u, err := tables.Users.List(t.Context(), last, 1, store.Page{Limit: 5})
		if err != nil || len(u.List) != 0 || !u.More {
			t.Fatalf("the first page has %d users, more %t, %v", len(u.List), u.More, err)
		}
		u, err = tables.Users.List(t.Context(), last, 1, store.Page{After: u.Last, Limit: 5})
		if err != nil || len(u.List) != 1 || u.More {
			t.Errorf("the second page has %d users, more %t, %v", len(u.List), u.More, err)
		}
	})
}

func TestPersonsAreListedWithTheirWorkspaces(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, tables Tables) {
		a, b := newWorkspace(t, s), newWorkspace(t, s)
		ada := addUser(t, s, "ada@example.com", "hash", a, b)
		addUser(t, s, "bob_b@example.com", "hash")
		for i := range 3 {
			at := testNow.Add(time.Duration(i) * time.Minute)
			act := []string{"user.signed-in", "user.signed-in", "user.password-changed"}[i]
			err := s.Audit.Record(t.Context(), store.Act{At: at, UserID: ada.ID, Act: act, Subject: string(ada.ID)})
			if err != nil {
				t.Fatal(err)
			}
		}
		f, err := tables.Users.List(t.Context(), "", 1, store.Page{Limit: 9})
		list := f.List
		if err != nil || f.More || len(list) != 2 {
			t.Fatalf("there are %+v, %v", list, err)
		}
		if p := list[0]; p.ID != ada.ID || p.Workspaces != 2 || !slices.Equal(p.Names, []string{"acme"}) ||
			p.SignedIn != testNow.Add(time.Minute) || p.Second || !p.Chosen || p.Operator {
			t.Errorf("the first is %+v", p)
		}
		if p := list[1]; p.Workspaces != 0 || p.Names != nil || p.SignedIn != 0 {
			t.Errorf("the second is %+v", p)
		}
		for text, want := range map[string]int{"example": 2, "_": 1, "%": 0} {
			f, err := tables.Users.List(t.Context(), text, 1, store.Page{Limit: 9})
			if err != nil || len(f.List) != want {
				t.Errorf("%q finds %+v, %v", text, f.List, err)
			}
		}
		f, err = tables.Users.List(t.Context(), "", 1, store.Page{After: "ada@example.com", Limit: 1})
		if err != nil || len(f.List) != 1 || f.List[0].Email != "bob_b@example.com" {
			t.Errorf("after the first come %+v, %v", f.List, err)
		}
	})
}

// An operator's change is refused when the right is withdrawn before the transaction of the
// change.
func TestWhoIsNoOperatorAnyMoreChangesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, tables Tables) {
		ctx, ws := t.Context(), newWorkspace(t, s)
		ada := addUser(t, s, "ada@example.com", "hash")
		flip := func(on bool) {
			for range 2 { // the second changes nothing
				u, err := tables.Users.SetOperator(ctx, ada.Email, on,
					store.Act{At: testNow, Act: fmt.Sprint("user.operator-", on)})
				if err != nil || u.Operator != on {
					t.Fatalf("an operator: %v, %v", u.Operator, err)
				}
			}
		}
		act := store.Act{At: testNow, UserID: ada.ID, WorkspaceID: ws, Act: "workspace.changed"}
		link := PasswordLink{TokenHash: "h", ExpiresAt: testNow}
		all := map[string]func(context.Context) error{
			"plan": func(ctx context.Context) error {
				return s.Workspaces.SetPlan(ctx, ws, postern.Plan{Name: "pro"}, testNow, act)
			},
			"limits": func(ctx context.Context) error {
				_, err := s.Workspaces.ChangeLimits(ctx, ws, postern.Limits{}, testNow, act)
				return err
			},
			"new": func(ctx context.Context) error {
				return s.Workspaces.Create(ctx, postern.Workspace{ID: postern.NewWorkspaceID()}, act)
			},
			"link": func(ctx context.Context) error {
				_, err := tables.PasswordLinks.Set(ctx, ada.Email, link, act)
				return err
			},
		}
		flip(true)
		for name, do := range all {
			if err := do(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		flip(false)
		for name, do := range all {
			if err := do(ctx); postern.ReasonOf(err) != postern.NotFound {
				t.Errorf("%s without the right: %v", name, err)
			}
		}
		n := 0
		if err := s.Engine().Row(ctx, `SELECT count(*) FROM audit`, nil, &n); err != nil || n != 6 {
			t.Errorf("%d acts are written down, want 6; error %v", n, err)
		}
		_, err := tables.Users.SetOperator(ctx, "eve@example.com", true, store.Act{})
		if postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("somebody who is not there: %v", err)
		}
	})
}
