package gateway

import (
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/migrated"
	"postern/internal/store/storetest"
)

// sharing opens three gateways on one PostgreSQL database.
func sharing(t *testing.T) (url string, list [3]*Gateway) {
	t.Helper()
	url = migrated.URL(t)
	for i := range list {
		list[i] = openAs(t, store.Options{URL: url, Nodes: true})
	}
	return url, list
}

// knows fails unless a gateway accepts a key, which it caches.
func knows(t *testing.T, g *Gateway, secret string) {
	t.Helper()
	if _, err := g.Keys.Authenticate(t.Context(), "Bearer "+secret); err != nil {
		t.Fatal(err)
	}
}

func refuses(t *testing.T, g *Gateway, secret string) {
	t.Helper()
	if _, err := g.Keys.Authenticate(t.Context(), "Bearer "+secret); postern.ReasonOf(err) != postern.Unauthorized {
		t.Errorf("a revoked key = %v, want unauthorized", err)
	}
}

// A key that one server revokes is refused by the others as soon as they are told, and not only when what
// they cache has lasted.
func TestOtherServersRefuseARevokedKeyWhenTheyAreTold(t *testing.T) {
	t.Parallel()
	_, servers := sharing(t)
	for i, by := range servers {
		by.keys.lasts = time.Hour
		key, secret := newKey(t, by, NewKey{})
		var told []*store.Listener
		for _, g := range servers {
			knows(t, g, secret)
			l := g.db.Listen(store.KeyChanged, string(key.WorkspaceID)) // the clock does not wake who listens to one id
			defer l.Close()
			told = append(told, l)
		}
		if err := by.Keys.Revoke(t.Context(), access.Operator(), key.WorkspaceID, key.ID); err != nil {
			t.Fatal(err)
		}
		for n, g := range servers {
			select {
			case <-told[n].C():
			case <-t.Context().Done():
				t.Fatalf("the server %d was not told what the server %d has done", n, i)
			}
			refuses(t, g, secret)
		}
	}
}

// When the news of a revoked key is lost, no server accepts it for more than a second.
func TestServersForgetKeysWithinASecond(t *testing.T) {
	t.Parallel()
	url, servers := sharing(t)
	_, secret := newKey(t, servers[0], NewKey{})
	now := time.Now()
	for _, g := range servers {
		g.keys.now = func() time.Time { return now }
		knows(t, g, secret)
	}
	storetest.OpenTable(t, "", url).Exec(`UPDATE api_key SET revoked_at = 1`) // nobody is told
	now = now.Add(time.Second)
	for _, g := range servers {
		refuses(t, g, secret)
	}
}

// A quota that one server lowers holds at the others at once, before they are told: they accept a message by
// the plan of that moment, not by the one that they cache.
func TestAllServersKeepALoweredQuotaAtOnce(t *testing.T) {
	t.Parallel()
	url, servers := sharing(t)
	key, secret := newKey(t, servers[0], NewKey{})
	plan, _ := postern.PlanByName("growth")
	operator := access.OperatorIn(key.WorkspaceID, plan)
	d, err := servers[0].Devices.Create(t.Context(), operator, NewDevice{Name: "d"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	storetest.OpenTable(t, "", url).Exec(`UPDATE device SET status = 'connected'`)
	for i, by := range servers {
		other := servers[(i+1)%len(servers)]
		c, err := other.Keys.Authenticate(t.Context(), "Bearer "+secret)
		if err != nil {
			t.Fatal(err)
		}
		send := func() error {
			_, err := other.Messages.Send(t.Context(), c,
				NewMessage{DeviceID: d.Value.ID, To: "+15551234567", Content: postern.Text("x")}, nil)
			return err
		}
		for _, limit := range []int{i, i + 1} { // i are sent
			change := postern.Limits{Messages: &limit}
			_, err := by.Workspaces.ChangeLimits(t.Context(), access.Operator(), key.WorkspaceID, change)
			if err != nil {
				t.Fatal(err)
			}
			want := map[bool]postern.Reason{true: postern.QuotaExhausted}[limit == i]
			if err := send(); err != nil && postern.ReasonOf(err) != want || err == nil && want != "" {
				t.Errorf("with %d of %d sent, a message = %v, want %q", i, limit, err, want)
			}
		}
	}
}
