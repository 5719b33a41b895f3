package dash

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// setPlan gives the workspace of the first user another plan.
func (s *site) setPlan(plan string) {
	s.t.Helper()
	if err := s.g.Workspaces.SetPlan(s.t.Context(), access.Operator(), s.workspace(), plan); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) endpoint(id postern.EndpointID) postern.Endpoint {
	s.t.Helper()
	e, err := s.db.Endpoints.ForDelivery(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

func TestPlanWithoutAPIHasNoWebhooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	e, _ := c.addWebhook(hookURL)
	s.activate(e)
	path := "/webhooks/" + string(e.ID)
	c.post(path+"/test", nil)
	delivery := s.attempted(e, http.StatusOK, "", "")
	s.setPlan("free")
	p := c.says(path, "plan does not include webhooks")
	for _, verb := range []string{"/resume", "/verify", "/test"} {
		if strings.Contains(p.body, `action="`+path+verb) {
			t.Errorf("the page offers %s", verb)
		}
	}
	moved := url.Values{"url": {hookURL + "/2"}, "event": {"*"}}
	for at, form := range map[string]url.Values{
		path + "/resume": nil, path + "/verify": nil, path + "/test": nil, path: moved, "/webhooks": moved,
		path + "/deliveries/" + string(delivery) + "/retry": nil, path + "/replay": {"since": {"2026-11-20T09:00"}},
	} {
		if p := c.post(at, form); p.status != http.StatusForbidden ||
			!strings.Contains(p.body, "plan does not include") {
			t.Errorf("%s is answered %d", at, p.status)
		}
	}
	if p := c.get("/webhooks/new"); p.status != http.StatusForbidden {
		t.Errorf("the form of a new webhook is answered %d", p.status)
	}
	if got := s.endpoint(e.ID); got.Status != postern.EndpointPaused || got.StatusReason != "plan" {
		t.Errorf("the endpoint is %s (%s), want paused (plan)", got.Status, got.StatusReason)
	}
	s.setPlan("starter")
	if got := s.endpoint(e.ID); got.Status != postern.EndpointPending {
		t.Errorf("after the upgrade the endpoint is %s, want pending", got.Status)
	}
}

func TestOperatorGivesNoWebhookToAPlanWithoutThem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.setUp()
	s.setPlan("free")
	op, err := s.g.Workspaces.Caller(t.Context(), access.Operator(), s.workspace())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.g.Webhooks.Create(t.Context(), op, gateway.NewEndpoint{URL: hookURL}, nil)
	if postern.ReasonOf(err) != postern.PlanWithoutAPI {
		t.Errorf("an endpoint for a plan without webhooks: %v", err)
	}
}

// A handshake that began on a larger plan may succeed after the change to the smaller one.
func TestHandshakeDoesNotActivateOnAPlanWithoutWebhooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	e, _ := c.addWebhook(hookURL)
	before, err := s.g.Workspaces.Caller(t.Context(), access.Operator(), s.workspace())
	if err != nil {
		t.Fatal(err)
	}
	s.setPlan("free")
	if _, err := s.g.Webhooks.Resume(t.Context(), before, e.ID); err != nil { // with the plan as it was
		t.Fatal(err)
	}
	if err := s.db.Endpoints.Verified(t.Context(), e.ID, e.URL, postern.TimeOf(time.Now())); err != nil {
		t.Fatal(err)
	}
	if got := s.endpoint(e.ID); got.Status != postern.EndpointPaused || got.StatusReason != "plan" {
		t.Errorf("the endpoint is %s (%s), want paused (plan)", got.Status, got.StatusReason)
	}
}
