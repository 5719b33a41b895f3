package people

import (
	"testing"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
)

func TestSecretIsRevealedToAMemberAndWrittenDown(t *testing.T) {
	onEachEngine(t, func(t *testing.T, g *server) {
		u, m := first(t, g)
		c, err := g.Members.Caller(t.Context(), access.Self{ID: u.ID}, m.WorkspaceID)
		if err != nil {
			t.Fatal(err)
		}
		c.Address = "192.0.2.1"
		made, err := g.Webhooks.Create(t.Context(), c, gateway.NewEndpoint{URL: "https://hooks.example.com"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		id := made.Value.ID
		reveals := func(c access.Caller, id postern.EndpointID, password string, want postern.Reason) {
			t.Helper()
			e, err := g.Webhooks.RevealSecret(t.Context(), c, id, password)
			if postern.ReasonOf(err) != want || e.Secret != "" {
				t.Errorf("the secret %q, %v; want %s", e.Secret, err, want)
			}
		}
		reveals(c, id, "not this one", postern.ValidationFailed)
		reveals(c, "whk_none", goodPassword, postern.NotFound)
		key := c
		key.Member = postern.Member{} // a key with every scope
		reveals(key, id, goodPassword, postern.MissingScope)
		viewer := c
		viewer.Key.Scopes = postern.Viewer.Scopes()
		reveals(viewer, id, goodPassword, postern.MissingScope)
		e, err := g.Webhooks.RevealSecret(t.Context(), c, id, goodPassword)
		if err != nil || e.Secret != made.Value.Secret {
			t.Errorf("the secret %q, %v", e.Secret, err)
		}
		acts, err := g.Audit.List(t.Context(), access.Actor{Member: m}, m.WorkspaceID, ActQuery{})
		if err != nil || acts.Data[0].Act != "webhook.secret-revealed" || acts.Data[0].Subject != string(id) ||
			acts.Data[0].UserID != u.ID ||
			acts.Data[0].Address != "192.0.2.1" {
			t.Errorf("the log says %+v, %v", acts, err)
		}
		for range attemptsOfAccount { // as few as at the sign-in
			_, err = g.Webhooks.RevealSecret(t.Context(), c, id, "not this one")
		}
		if postern.ReasonOf(err) != postern.RateLimited {
			t.Errorf("after many guesses: %v", err)
		}
	})
}
