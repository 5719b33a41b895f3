package accounts

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"postern/internal/postern"
	"postern/internal/store"
)

// newUser adds a user with a session, whose token's hash is the user's id.
func newUser(t *testing.T, s *store.Store, email, passwordHash string) postern.User {
	t.Helper()
	u := addUser(t, s, email, passwordHash)
	err := Of(s).SignIns.Create(t.Context(), SignIn{
		TokenHash: string(u.ID), UserID: u.ID, Data: []byte("{}"), ExpiresAt: testNow.Add(1 << 40),
	})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestIdentityGoesToOneOfManyUsers(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, tables Tables) {
		i := Identity{Issuer: "https://login.example.com", Subject: "s", CreatedAt: testNow}
		var wg sync.WaitGroup
		var added atomic.Int32
		for n := range 10 {
			u := newUser(t, s, string(rune('a'+n))+"@example.com", "h")
			wg.Go(func() {
				one := i
				one.UserID = u.ID
				err := tables.Identities.Add(context.WithoutCancel(t.Context()), one, 5, string(u.ID),
					store.Act{At: testNow, UserID: u.ID, Act: "user.identity-connected"})
				if err == nil {
					added.Add(1)
				} else if postern.ReasonOf(err) != postern.ResourceNotAllowed {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := added.Load(); got != 1 {
			t.Errorf("%d users have it, want 1", got)
		}
		if u, ok, err := tables.Identities.User(t.Context(), i.Issuer, i.Subject); !ok || err != nil || u.ID == "" {
			t.Errorf("it is found as %v, %v, %v", u, ok, err)
		}
		if _, ok, err := tables.Identities.User(t.Context(), "https://other.example.com", i.Subject); ok || err != nil {
			t.Errorf("another provider's is found: %v, %v", ok, err)
		}
	})
}

func TestIdentitiesAreBoundedAndNeedASession(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, tables Tables) {
		u := newUser(t, s, "a@example.com", "h")
		add := func(subject, session string) error {
			return tables.Identities.Add(t.Context(),
				Identity{Issuer: "i", Subject: subject, UserID: u.ID, CreatedAt: testNow},
				2,
				session, store.Act{At: testNow, UserID: u.ID, Act: "user.identity-connected"})
		}
		if err := add("x", "of nobody"); postern.ReasonOf(err) != postern.Unauthorized {
			t.Errorf("without a session: %v", err)
		}
		if err := errors.Join(add("1", string(u.ID)), add("2", string(u.ID))); err != nil {
			t.Fatal(err)
		}
		if err := add("3", string(u.ID)); postern.ReasonOf(err) != postern.ResourceNotAllowed {
			t.Errorf("one too many: %v", err)
		}
		if list, err := tables.Identities.List(t.Context(), u.ID, 10); err != nil || len(list) != 2 {
			t.Errorf("the user has %v, %v", list, err)
		}
	})
}

// Without a password an identity cannot be removed; with one it can, and removing it ends
// the login sessions that it may have opened.
func TestLastWayInIsNotRemoved(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store, tables Tables) {
		for hash, want := range map[string]postern.Reason{"": postern.ResourceNotAllowed, "h": ""} {
			u := newUser(t, s, "a"+hash+"@example.com", hash)
			i := Identity{Issuer: "i", Subject: string(u.ID), UserID: u.ID, CreatedAt: testNow}
			if err := tables.Identities.Add(t.Context(), i, 2, string(u.ID),
				store.Act{At: testNow, UserID: u.ID, Act: "user.identity-connected"}); err != nil {
				t.Fatal(err)
			}
			err := tables.Identities.Remove(t.Context(), i, "another session",
				store.Act{At: testNow, UserID: u.ID, Act: "user.identity-disconnected"})
			if (err != nil) != (want != "") || err != nil && postern.ReasonOf(err) != want {
				t.Errorf("with the password %q: %v, want %q", hash, err, want)
			}
			_, session, err := tables.SignIns.Get(t.Context(), string(u.ID), testNow)
			if err != nil || session != (hash == "") {
				t.Errorf("with the password %q the session goes on: %v, %v", hash, session, err)
			}
		}
	})
}
