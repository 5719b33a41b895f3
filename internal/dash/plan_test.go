package dash

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/ratelimit"
	"postern/internal/store"
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
	if err := s.db.Endpoints.Verified(t.Context(), e.ID, e.URL, store.HandshakePost{Ended: postern.TimeOf(time.Now())}); err != nil {
		t.Fatal(err)
	}
	if got := s.endpoint(e.ID); got.Status != postern.EndpointPaused || got.StatusReason != "plan" {
		t.Errorf("the endpoint is %s (%s), want paused (plan)", got.Status, got.StatusReason)
	}
}

// The dashboard has an allowance of its own, of the same size as the API's, for each person and
// for the workspace.
func TestDashboardIsThrottledLikeTheAPI(t *testing.T) {
	t.Parallel()
	limiter := ratelimit.New(100)
	limiter.StopClock()
	s := newSiteWith(t, func(o *Options) { o.requests = limiter })
	ada := s.setUp()
	bob := s.joins(ada.invites(guest, postern.Admin))
	s.setPlan("starter")
	made, p := 0, answer{}
	for ; p.status != http.StatusTooManyRequests && made < 1000; made++ {
		p = ada.post("/keys", url.Values{"name": {"ci"}, "scope": {"devices:read"}})
	}
	starter, _ := postern.PlanByName("starter")
	if most := starter.RequestsPerMinute + 1; made > most || made < most-5 || p.header.Get("Retry-After") == "" {
		t.Errorf("refused after %d requests, Retry-After %q, want %d", made, p.header.Get("Retry-After"), most)
	}
	for _, c := range []*client{ada, bob} { // Ada has used up the workspace's
		c.want(c.get("/devices"), http.StatusTooManyRequests, "")
	}
	keys, err := s.g.Keys.ListForOperator(t.Context(), access.Operator(), s.workspace())
	if err != nil || len(keys) != starter.Caps.Keys {
		t.Errorf("%d keys were created, want %d: %v", len(keys), starter.Caps.Keys, err)
	}
}

// Visitors who are not signed in are counted by their network.
func TestVisitorsAreThrottledByNetwork(t *testing.T) {
	t.Parallel()
	limiter := ratelimit.New(100)
	limiter.StopClock()
	s := newSiteWith(t, func(o *Options) {
		o.requests, o.Address = limiter, func(r *http.Request) string { return r.Header.Get("X-Test-Address") }
	})
	seen := map[int]int{}
	for range visitsPerMinute + 10 {
		seen[s.browser().do(http.MethodGet, "/signin", nil, "X-Test-Address", "192.0.2.1").status]++
	}
	if seen[http.StatusOK] != visitsPerMinute || seen[http.StatusTooManyRequests] != 10 {
		t.Errorf("answers by status: %v", seen)
	}
	for _, other := range []string{"192.0.2.2", "127.0.0.1"} {
		c := s.browser()
		c.want(c.do(http.MethodGet, "/signin", nil, "X-Test-Address", other), http.StatusOK, "")
	}
}

// The pages that need no sign-in are counted for a person who is signed in, too.
func TestOpenPagesAreThrottledForMembers(t *testing.T) {
	t.Parallel()
	limiter := ratelimit.New(100)
	limiter.StopClock()
	s := newSiteWith(t, func(o *Options) { o.requests = limiter })
	c := s.setUp()
	most, seen := postern.Plan{}.PagesPerMinute(), map[int]int{}
	for range most + 10 {
		seen[c.get("/nothing").status]++
	}
	if seen[http.StatusNotFound] < most-5 || seen[http.StatusTooManyRequests] < 10 {
		t.Errorf("answers by status: %v", seen)
	}
}

// Devices that are not linked use no slot of the plan, and have a limit all the same.
func TestUnlinkedDevicesHaveALimit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	s.setPlan("starter")
	seen := map[int]int{}
	for range 20 {
		seen[c.post("/devices", url.Values{"name": {"Support"}}).status]++
	}
	if seen[http.StatusSeeOther] != 5 || seen[http.StatusForbidden] != 15 {
		t.Errorf("answers by status: %v", seen)
	}
	c.sees(c.post("/devices", url.Values{"name": {"Support"}}), "The plan allows 5 devices, linked or not")
	list, err := s.g.Workspaces.Devices(t.Context(), access.Operator(), s.workspace(), paging.Page{})
	if err != nil || len(list.Data) != 5 {
		t.Errorf("there are %d devices, want 5: %v", len(list.Data), err)
	}
	c.says("/usage", "Devices in total", "resource-limit", "Stored files", "0 bytes of 10 GiB")
}
