package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"testing"

	"postern/internal/access"
	"postern/internal/db/dbtest"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

// onEachEngine runs a test on SQLite and on PostgreSQL.
func onEachEngine(t *testing.T, test func(t *testing.T, g *Gateway)) {
	t.Helper()
	t.Parallel()
	engines := map[string]func(testing.TB) string{
		"sqlite":   func(testing.TB) string { return "" },
		"postgres": migrated.URL,
	}
	for name, url := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, url(t)))
		})
	}
}

func open(t *testing.T, url string) *Gateway {
	t.Helper()
	return openAs(t, store.Options{URL: url})
}

// openAs opens a gateway in a directory of its own. With Nodes, the database is shared with others.
func openAs(t *testing.T, opts store.Options) *Gateway {
	t.Helper()
	opts.Dir = migrated.Dir(t, opts.URL)
	db, err := store.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	box, err := seal.NewBox(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{
		DB: db, Box: box, Log: slog.New(slog.DiscardHandler), CheckURL: func(string) error { return nil },
		Shared: opts.Nodes,
	})
}

func newKey(t *testing.T, g *Gateway, in NewKey) (postern.Key, string) {
	t.Helper()
	ws, err := g.Workspaces.Create(t.Context(), access.Operator(), NewWorkspace{Name: "acme", Plan: "growth"})
	if err != nil {
		t.Fatal(err)
	}
	in.Name = "k"
	key, secret, err := g.Keys.Create(t.Context(), access.Operator(), ws.ID, in)
	if err != nil {
		t.Fatal(err)
	}
	return key, secret
}

func TestRevokedKeyIsRefusedAtOnceAlsoWhenItWasJustRead(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		key, secret := newKey(t, g, NewKey{})
		hash := postern.HashKey(secret)
		_, version, _ := g.keys.find(hash)
		stale, err := g.Keys.load(t.Context(), hash, version)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Keys.Revoke(t.Context(), access.Operator(), key.WorkspaceID, key.ID); err != nil {
			t.Fatal(err)
		}
		g.keys.put(hash, stale, version) // a request that had read the key before it was revoked
		if _, err := g.Keys.Authenticate(t.Context(), "Bearer "+secret); postern.ReasonOf(err) != postern.Unauthorized {
			t.Errorf("a revoked key = %v, want unauthorized", err)
		}
	})
}

func TestEveryBrokenCredentialGivesTheSameError(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		_, good := newKey(t, g, NewKey{})
		_, expired := newKey(t, g, NewKey{ExpiresAt: 1})
		want := unauthorized().Error()
		for _, header := range []string{
			"", good, "Bearer", "Bearer ", "Basic " + good, "Bearer  " + good, "Bearer " + good + " ",
			"Bearer " + good[:41] + "!", "Bearer " + postern.NewKeySecret(), "Bearer " + expired,
		} {
			if _, err := g.Keys.Authenticate(t.Context(), header); err == nil || err.Error() != want {
				t.Errorf("a broken header = %v, want %v", err, want)
			}
		}
		for _, header := range []string{"Bearer " + good, "bearer " + good} {
			c, err := g.Keys.Authenticate(t.Context(), header)
			if err != nil || c.Plan.Name != "growth" {
				t.Errorf("a good key = %+v, %v", c.Plan, err)
			}
		}
	})
}

func TestKeyLimitedToDevicesStaysWithinThem(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		ctx := context.Background()
		ws, err := g.Workspaces.Create(ctx, access.Operator(), NewWorkspace{Name: "acme", Plan: "growth"})
		if err != nil {
			t.Fatal(err)
		}
		all, err := g.Workspaces.Caller(ctx, access.Operator(), ws.ID)
		if err != nil {
			t.Fatal(err)
		}
		var ids []postern.DeviceID
		for range 2 {
			d, err := g.Devices.Create(ctx, all, NewDevice{Name: "d"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, d.Value.ID)
		}
		one := all
		one.Key.Devices = ids[:1]
		if list, err := g.Devices.List(ctx, one, paging.Page{}); err != nil || len(list.Data) != 1 ||
			list.Data[0].ID != ids[0] {
			t.Errorf("list = %+v, %v", list, err)
		}
		everything, err := g.Webhooks.Create(ctx, all, NewEndpoint{URL: "https://example.com"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		frozen, err := g.Webhooks.Create(ctx, one, NewEndpoint{URL: "https://example.com"}, nil)
		if err != nil || len(frozen.Value.DeviceIDs) != 1 || frozen.Value.DeviceIDs[0] != ids[0] {
			t.Errorf("endpoint without devices = %+v, %v, want the key's list", frozen.Value.DeviceIDs, err)
		}
		if list, err := g.Webhooks.List(ctx, one, paging.Page{}); err != nil || len(list.Data) != 1 ||
			list.Data[0].ID != frozen.Value.ID {
			t.Errorf("endpoints = %+v, %v", list, err)
		}
		for what, err := range map[string]error{
			"another device":             second(g.Devices.Get(ctx, one, ids[1])),
			"a send from another device": second(g.Messages.Send(ctx, one, NewMessage{DeviceID: ids[1], To: "+15551234567", Content: postern.Text("x")}, nil)),
			"a new device":               second(g.Devices.Create(ctx, one, NewDevice{Name: "x"}, nil)),
			"an endpoint beyond":         second(g.Webhooks.Create(ctx, one, NewEndpoint{URL: "https://example.com", DeviceIDs: ids}, nil)),
			"an endpoint of all":         second(g.Webhooks.Get(ctx, one, everything.Value.ID)),
			"messages of another device": second(g.Messages.List(ctx, one, MessageQuery{DeviceID: ids[1]})),
			"linking another device":     second(g.Links.Open(ctx, one, ids[1], NewLink{}, nil)),
		} {
			if postern.ReasonOf(err) != postern.ResourceNotAllowed {
				t.Errorf("%s = %v, want resource-not-allowed", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestReplayShowsNoSecretToAKeyThatMayNotSeeTheEndpoint(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *Gateway) {
		ctx := t.Context()
		ws, err := g.Workspaces.Create(ctx, access.Operator(), NewWorkspace{Name: "acme", Plan: "growth"})
		if err != nil {
			t.Fatal(err)
		}
		all, err := g.Workspaces.Caller(ctx, access.Operator(), ws.ID)
		if err != nil {
			t.Fatal(err)
		}
		d, err := g.Devices.Create(ctx, all, NewDevice{Name: "d"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		once := &Idempotency{Method: "POST", Path: "/v1/webhooks", Key: "k"}
		made, err := g.Webhooks.Create(ctx, all, NewEndpoint{URL: "https://example.com"}, once)
		if err != nil {
			t.Fatal(err)
		}
		again, err := g.Webhooks.Create(ctx, all, NewEndpoint{URL: "https://example.com"}, once)
		if err != nil || !again.Replayed || again.Value.Secret != made.Value.Secret || again.Value.ID != made.Value.ID {
			t.Errorf("the same key again = %+v, %v, want the first answer", again, err)
		}
		one := all
		one.Key.Devices = []postern.DeviceID{d.Value.ID}
		got, err := g.Webhooks.Create(ctx, one, NewEndpoint{URL: "https://example.com"}, once)
		if postern.ReasonOf(err) != postern.ResourceNotAllowed || got.Value.Secret != "" {
			t.Errorf("a limited key = %+v, %v, want resource-not-allowed", got, err)
		}
	})
}
