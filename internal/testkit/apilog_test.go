package testkit_test

import (
	"net/http"
	"testing"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/testkit"
)

// Each request with a key of a workspace is in that workspace's log, without its body, and says why it was refused.
func TestAPIRequestsAreLogged(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c, other := k.Workspace("growth"), k.Workspace("growth")
		caller, err := k.Gateway().Keys.Authenticate(t.Context(), "Bearer "+string(c.Key))
		if err != nil {
			t.Fatal(err)
		}
		ws := caller.Workspace()
		other.Call(http.MethodGet, "/v1/usage", nil, http.StatusOK, nil)
		refused := c.Do(http.MethodPost, "/v1/messages?secret=1", map[string]any{"deviceId": "dev_none", "to": "x", "body": "Hi"})
		c.Call(http.MethodGet, "/v1/devices", nil, http.StatusOK, nil)
		testkit.Eventually(t, "both requests in the log", func() (bool, any) {
			p, err := k.Gateway().Statistics.Requests(t.Context(), access.Operator(), ws, gateway.RequestFilter{}, gateway.RequestPlace{}, 10)
			return err == nil && len(p.List) == 2, p
		})
		p, err := k.Gateway().Statistics.Requests(t.Context(), access.Operator(), ws, gateway.RequestFilter{From: 400}, gateway.RequestPlace{}, 10)
		if err != nil || len(p.List) != 1 {
			t.Fatalf("%+v, %v; want the request that was refused", p, err)
		}
		got := p.List[0]
		if got.ID != refused.Header.Get("Request-Id") || got.Method != http.MethodPost || got.Path != "/v1/messages" ||
			got.Status != refused.Status || got.Reason == "" || got.Key != caller.Key.ID || got.Client == "" || got.At == 0 {
			t.Errorf("the request is %+v", got)
		}
	})
}
