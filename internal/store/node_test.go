package store

import (
	"errors"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
)

// sharing opens one PostgreSQL database as two servers.
func sharing(t *testing.T) (first, second *Store, a, b Node) {
	t.Helper()
	url := dbtest.URL(t)
	first = reopen(t, Options{Dir: t.TempDir(), URL: url, Nodes: true})
	second = reopen(t, Options{Dir: t.TempDir(), URL: url, Nodes: true})
	return first, second, join(t, first, "a"), join(t, second, "b")
}

func join(t *testing.T, s *Store, id string) Node {
	t.Helper()
	n, err := s.Nodes.Join(t.Context(), Node{ID: id, Name: id}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func claimAll(t *testing.T, s *Store, n Node) []Claim {
	t.Helper()
	list, err := s.Nodes.ClaimDevices(t.Context(), n, 10)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A device has one owner. When the lease of its server is over, another one takes it, and the
// first can write nothing that only the owner may write.
func TestServerWhoseLeaseIsOverWritesNothing(t *testing.T) {
	t.Parallel()
	first, second, a, b := sharing(t)
	d := newDevice(t, first, newWorkspace(t, first), postern.Connected)
	if got := claimAll(t, first, a); len(got) != 1 || got[0].Device != d.ID || got[0].Lost {
		t.Fatalf("the first server claims %+v", got)
	}
	if got := claimAll(t, second, b); len(got) != 0 {
		t.Fatalf("the second server claims %+v, which has an owner", got)
	}
	keys := func(value string) error {
		return first.SessionKeys.Write(t.Context(), WriteSessionKeys{
			Account: "1", Keys: []SessionKey{{Kind: "k", Name: "n", Value: []byte(value)}},
		})
	}
	if err := keys("before"); err != nil {
		t.Fatal(err)
	}
	err := second.db.Do(t.Context(), db.Func(func(t *db.Tx) error {
		return t.Exec(`UPDATE node SET lease_until = 0 WHERE id = 'a'`) // the lease is over
	}))
	if err != nil {
		t.Fatal(err)
	}
	st, err := second.Nodes.Renew(t.Context(), b, time.Hour)
	if err != nil || !st.Leads || st.Nodes != 1 || st.Free != 1 {
		t.Errorf("the second server stands at %+v, %v", st, err)
	}
	if got := claimAll(t, second, b); len(got) != 1 || got[0].Device != d.ID || !got[0].Lost {
		t.Errorf("the second server claims %+v", got)
	}
	if err := keys("after"); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("a server without a lease writes keys: %v", err)
	}
	if err := first.Messages.RecordInbound(t.Context(), inboundOf(d, "A", "", "hello")); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("a server without a lease records a message: %v", err)
	}
	k, err := second.SessionKeys.Get(t.Context(), "1", "k", "n")
	if err != nil || string(k.Value) != "before" {
		t.Errorf("the key has the value %q, %v", k.Value, err)
	}
	if _, err := first.Nodes.Renew(t.Context(), a, time.Hour); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("a lease that was taken is renewed: %v", err)
	}
}
