package dash

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
)

// publicURL takes https alone, like a server whose operator allows nothing else.
func publicURL(s string) error {
	if !strings.HasPrefix(s, "https://") {
		return errors.New("the URL needs https")
	}
	return nil
}

const hookURL = "https://hooks.example.com/postern"

// addWebhook registers an endpoint by the form, and gives it as it is then.
func (c *client) addWebhook(address string) (e postern.Endpoint, secret string) {
	c.t.Helper()
	p := c.want(c.post("/webhooks", url.Values{"url": {address}, "event": {"*"}}), http.StatusCreated, "")
	if secret = regexp.MustCompile(`whsec_[0-9A-Za-z+/]{43}=`).FindString(strings.ReplaceAll(
		p.body, "&#43;", "+",
	)); secret == "" {
		c.t.Fatalf("no secret in %s", p.body)
	}
	list, err := c.db.Endpoints.List(c.t.Context(), c.workspace(), store.Page{Limit: 1})
	if err != nil || len(list) != 1 {
		c.t.Fatal(list, err)
	}
	return list[0], secret
}

// workspace is that of the first user.
func (s *site) workspace() postern.WorkspaceID {
	s.t.Helper()
	u, _, _, err := s.accounts().Users.ByEmail(s.t.Context(), email)
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := s.accounts().Members.Memberships(s.t.Context(), u.ID, store.Page{Limit: 1})
	if err != nil || len(list) != 1 {
		s.t.Fatal(list, err)
	}
	return list[0].WorkspaceID
}

// attempted makes an attempt of the delivery that waits, as the dispatcher would.
func (s *site) attempted(e postern.Endpoint, status int, reason, text string) postern.DeliveryID {
	s.t.Helper()
	at := postern.TimeOf(time.Now())
	due, err := s.db.Deliveries.Due(s.t.Context(), e.ID, at, true, 1)
	if err != nil || len(due) != 1 {
		s.t.Fatal(due, err)
	}
	d := due[0]
	o := store.Attempt{
		DeliveryID: d.ID, Row: d.Row, EndpointID: e.ID, URL: e.URL, Number: d.Attempts + 1, At: at, Ended: at + 42,
		HTTPStatus: status, Reason: reason, Answer: text,
		Status: postern.DeliverySucceeded,
	}
	if reason != "" {
		o.Status, o.DueAt = postern.DeliveryExhausted, o.Ended
	}
	if err := s.db.Deliveries.FinishAttempt(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
	return d.ID
}

func (s *site) activate(e postern.Endpoint) {
	s.t.Helper()
	p := store.HandshakePost{Ended: postern.TimeOf(time.Now())}
	if err := s.db.Endpoints.Verified(s.t.Context(), e.ID, e.URL, p); err != nil {
		s.t.Fatal(err)
	}
}

func (c *client) says(path string, texts ...string) answer {
	c.t.Helper()
	p := c.want(c.get(path), http.StatusOK, "")
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			c.t.Errorf("%s does not say %q", path, text)
		}
	}
	return p
}

func TestWebhookFromItsFormToARetriedDelivery(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	c.says("/webhooks", "No webhooks yet")
	c.says("/webhooks/new", "message.received", "All events except")
	if p := c.post("/webhooks", url.Values{
		"url": {"http://x"}, "event": {"message.*"},
	}); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, "The URL needs https.") {
		t.Errorf("status %d", p.status)
	}
	if p := c.post("/webhooks", url.Values{"url": {hookURL}}); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, `value="`+hookURL) {
		t.Errorf("without an event: status %d", p.status)
	}
	e, _ := c.addWebhook(hookURL)
	own := "/webhooks/" + string(e.ID)
	c.says("/webhooks", hookURL, "Pending", "No attempts")
	c.says(own, "Postern is sending a challenge", `hx-get="`+own+`"`)
	c.want(c.post(own+"/test", nil), http.StatusConflict, "")
	s.activate(e)
	p := c.post(own+"/test", nil)
	delivery := s.attempted(e, 503, "status", `</bdi><script>alert(1)</script>`)
	c.want(p, http.StatusSeeOther, own+"/deliveries/"+string(delivery))
	p = c.says(
		own+"/deliveries/"+string(delivery), "webhook.test", "HTTP 503", "a status other than 2xx", "Exhausted",
		"&lt;script&gt;", "&#34;eventId&#34;",
	)
	if strings.Contains(p.body, "<script>alert") {
		t.Error("the answer of a receiver is part of the page")
	}
	c.says(own, "1 failed")
	c.says("/webhooks", "1 attempt, all failed")
	c.says(own+"/deliveries?status=exhausted&type=webhook.test", "HTTP 503")
	c.says(own+"/deliveries?status=succeeded&type=webhook.test", "No deliveries")
	c.want(
		c.post(own+"/deliveries/"+string(delivery)+"/retry", nil), http.StatusSeeOther,
		own+"/deliveries/"+string(delivery),
	)
	c.says(own+"/deliveries/"+string(delivery), "Pending", "The delivery is being attempted again")
}

func TestWebhookIsChangedPausedAndDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	e, _ := c.addWebhook(hookURL)
	own := "/webhooks/" + string(e.ID)
	s.activate(e)
	c.says(own+"/edit", hookURL)
	c.want(
		c.post(own, url.Values{"url": {hookURL}, "event": {"message.*"}, "description": {"orders"}, "ordered": {"on"}}),
		http.StatusSeeOther, own,
	)
	c.says(own, "orders", "message.*", "The webhook was changed", "Send a test event")
	c.want(c.post(own, url.Values{"url": {hookURL + "/2"}, "event": {"message.*"}}), http.StatusSeeOther, own)
	c.says(own, "once that URL answers", hookURL+"/2")
	for _, wrong := range []url.Values{
		{"url": {""}, "event": {"*"}},
		{"url": {hookURL}},
		{"url": {"ftp://x"}, "event": {"*"}},
		{"url": {hookURL}, "event": {"<b>"}},
	} {
		if p := c.post(own, wrong); p.status != http.StatusUnprocessableEntity ||
			!strings.Contains(p.body, "The webhook was not changed.") {
			t.Errorf("%v is answered %d", wrong, p.status)
		}
	}
	c.want(c.post(own+"/pause", nil), http.StatusSeeOther, own)
	c.says(own, "The webhook is paused.", "Resume")
	c.want(c.post(own+"/verify", nil), http.StatusConflict, "")
	c.want(c.post(own+"/resume", nil), http.StatusSeeOther, own)
	c.says(own, "Postern is sending a challenge")
	c.want(c.post(own+"/verify", nil), http.StatusSeeOther, own)
	c.want(c.post(own+"/delete", nil), http.StatusSeeOther, "/webhooks")
	c.want(c.get(own), http.StatusNotFound, "")
}

func TestSecretIsRevealedToThoseWhoKnowTheirPassword(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	e, secret := c.addWebhook(hookURL)
	own := "/webhooks/" + string(e.ID)
	shows := func(p answer) bool { return strings.Contains(strings.ReplaceAll(p.body, "&#43;", "+"), secret) }
	for _, path := range []string{"/webhooks", own, own + "/edit", own + "/secret"} {
		if shows(c.says(path)) {
			t.Errorf("%s shows the secret", path)
		}
	}
	if p := c.post(own+"/secret", url.Values{"password": {"not this one"}}); p.status != http.StatusUnprocessableEntity ||
		shows(p) || !strings.Contains(p.body, "password is not correct") {
		t.Errorf("a wrong password is answered %d", p.status)
	}
	if p := c.post(own+"/secret", url.Values{"password": {password}}); p.status != http.StatusOK || !shows(p) {
		t.Errorf("the password is answered %d; it shows the secret: %v", p.status, shows(p))
	}
	p := c.post(own+"/rotate", url.Values{"overlap": {"1h"}})
	if p.status != http.StatusCreated || shows(p) || !strings.Contains(p.body, "whsec_") ||
		!strings.Contains(p.body, "the old secret until") {
		t.Errorf("rotation is answered %d", p.status)
	}
	c.want(c.post(own+"/rotate", url.Values{"overlap": {"-1h"}}), http.StatusUnprocessableEntity, "")
}

func TestReplayIsFollowedAndStopped(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	e, _ := c.addWebhook(hookURL)
	own := "/webhooks/" + string(e.ID)
	if p := c.post(own+"/replay", nil); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, "The endpoint is pending") {
		t.Errorf("a replay to a pending endpoint is answered %d", p.status)
	}
	s.activate(e)
	c.says(own+"/replay", "Start replay")
	for field, wrong := range map[string]string{
		"since": "yesterday", "until": "2026-13-01T00:00",
		"type": "nothing.*",
	} {
		if p := c.post(own+"/replay", url.Values{field: {wrong}}); p.status != http.StatusUnprocessableEntity ||
			!strings.Contains(p.body, "was not started") {
			t.Errorf("%s %s is answered %d", field, wrong, p.status)
		}
	}
	p := c.post(own+"/replay", url.Values{"since": {"2026-01-01T00:00"}, "until": {""}, "type": {"message.*"}})
	at := p.header.Get("Location")
	if p.status != http.StatusSeeOther || !strings.HasPrefix(at, own+"/replays/rpl_") {
		t.Fatalf("answered %d to %s", p.status, at)
	}
	c.says(at, "Running", "message.*", "Stop replay", `hx-get="`+at+`"`)
	c.want(c.post(at+"/stop", nil), http.StatusSeeOther, at)
	c.says(at, "Stopped")
}

// What somebody else's workspace has is not there, by whatever path it is asked.
func TestWebhooksOfOthersAreNotThere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	mine, _ := c.addWebhook(hookURL)
	s.activate(mine)
	ws, err := s.g.Workspaces.Create(t.Context(), access.Operator(),
		gateway.NewWorkspace{
			Name: "other",
			Plan: "growth",
		})
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.g.Workspaces.Caller(t.Context(), access.Operator(), ws.ID)
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.g.Webhooks.Create(t.Context(), other, gateway.NewEndpoint{URL: hookURL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.activate(made.Value.Endpoint)
	test, err := s.g.Webhooks.Test(t.Context(), other, made.Value.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	replay, err := s.g.Replays.Create(t.Context(), other, made.Value.ID, gateway.NewReplay{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []postern.EndpointID{made.Value.ID, mine.ID, "whk_none"} {
		own := "/webhooks/" + string(id)
		gets := []string{"/deliveries/" + string(test.Value.ID), "/replays/" + string(replay.Value.ID)}
		posts := []string{
			"/deliveries/" + string(test.Value.ID) + "/retry",
			"/replays/" + string(replay.Value.ID) + "/stop",
		}
		if id != mine.ID {
			gets = append(gets, "", "/edit", "/secret", "/deliveries", "/replay", "/replays")
			posts = append(posts, "", "/verify", "/test", "/pause", "/resume", "/rotate", "/secret", "/delete",
				"/replay")
		}
		for _, path := range gets {
			c.want(c.get(own+path), http.StatusNotFound, "")
		}
		for _, path := range posts {
			form := url.Values{"url": {hookURL}, "event": {"*"}, "overlap": {"0s"}, "password": {password}}
			if p := c.post(own+path, form); p.status != http.StatusNotFound && path != "/delete" {
				t.Errorf("POST %s is answered %d", own+path, p.status)
			}
		}
	}
	if _, err := s.g.Webhooks.Get(t.Context(), other, made.Value.ID); err != nil {
		t.Errorf("the other workspace's endpoint: %v", err)
	}
}

func TestViewerLooksAtWebhooksAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	e, secret := c.addWebhook(hookURL)
	s.activate(e)
	own := "/webhooks/" + string(e.ID)
	at := c.post(own+"/test", nil).header.Get("Location")
	replay := c.post(own+"/replay", nil).header.Get("Location")
	s.as(postern.Viewer)
	for _, path := range []string{"/webhooks", own, own + "/deliveries", at, replay, own + "/replays"} {
		p := c.says(path)
		if strings.Contains(p.body, secret) || strings.Contains(p.body, `action="/webhooks`) &&
			strings.Contains(p.body, `method="post" action="/webhooks`) {
			t.Errorf("%s offers a change to a viewer", path)
		}
	}
	for _, path := range []string{"/webhooks/new", own + "/edit", own + "/secret", own + "/replay"} {
		c.want(c.get(path), http.StatusForbidden, "")
	}
	for _, path := range []string{
		"/webhooks", own, own + "/verify", own + "/test", own + "/pause", own + "/resume", own + "/rotate",
		own + "/secret",
		own + "/delete", own + "/replay", at + "/retry", replay + "/stop",
	} {
		c.want(c.post(path, url.Values{"url": {hookURL}, "event": {"*"}, "password": {password}}), http.StatusForbidden,
			"")
	}
	s.as("")
	c.want(c.get("/webhooks"), http.StatusForbidden, "")
}

// T14 for these pages: without a sign-in nothing is shown, and another site
// changes nothing.
func TestT14WebhooksAreChangedFromTheirOwnPagesOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	e, _ := c.addWebhook(hookURL)
	s.activate(e)
	own := "/webhooks/" + string(e.ID)
	at := c.post(own+"/test", nil).header.Get("Location")
	form := url.Values{"url": {"https://evil.example"}, "event": {"*"}, "password": {password}, "overlap": {"0s"}}
	stranger := s.browser()
	for _, path := range []string{
		"/webhooks", "/webhooks/new", own, own + "/edit", own + "/secret", own + "/deliveries", at, own + "/replay",
		own + "/replays", own + "/replays/rpl_1",
	} {
		stranger.want(stranger.get(path), http.StatusSeeOther, "/signin?next="+url.QueryEscape(path))
	}
	for _, path := range []string{
		"/webhooks", own, own + "/verify", own + "/test", own + "/pause", own + "/resume", own + "/rotate",
		own + "/secret",
		own + "/delete", own + "/replay", at + "/retry", own + "/replays/rpl_1/stop",
	} {
		stranger.want(stranger.post(path, form), http.StatusSeeOther, "/signin")
		if p := c.do(http.MethodPost, path, form, "Sec-Fetch-Site", "cross-site"); p.status != http.StatusForbidden {
			t.Errorf("POST %s from another site is answered %d", path, p.status)
		}
	}
	c.says(own, hookURL)
}

func TestDeliveriesAreReadPageByPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	e, _ := c.addWebhook(hookURL)
	s.activate(e)
	own := "/webhooks/" + string(e.ID)
	for range 51 {
		c.post(own+"/test", nil)
	}
	seen := map[string]bool{}
	path, pages := own+"/deliveries?status=pending&type=webhook.*", 0
	for ; path != "" && pages < 5; pages++ {
		p := c.says(path)
		for _, id := range regexp.MustCompile(`deliveries/dlv_[0-9A-Z]{26}`).FindAllString(p.body, -1) {
			seen[id] = true
		}
		path = ""
		if next := regexp.MustCompile(`href="([^"]*after=[^"]*)"`).FindStringSubmatch(p.body); next != nil {
			path = strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	if len(seen) != 51 || pages != 2 {
		t.Errorf("%d deliveries on %d pages, want 51 on 2", len(seen), pages)
	}
	for wrong, want := range map[string]int{
		"?after=x": http.StatusBadRequest, "?type=nothing.*": http.StatusUnprocessableEntity,
	} {
		if p := c.get(own + "/deliveries" + wrong); p.status != want {
			t.Errorf("%s is answered %d, want %d", wrong, p.status, want)
		}
	}
}

func TestVerificationsAreInTheListOfDeliveries(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	p := c.post("/webhooks", url.Values{"url": {"https://hooks.test/a"}, "event": {"*"}})
	c.want(p, http.StatusCreated, "")
	list, err := s.db.Endpoints.PendingHandshakes(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	e, at := list[0], postern.TimeOf(time.Now())
	o := store.FinishHandshake{EndpointID: e.ID, URL: e.URL, Attempts: 1, DueAt: at, Post: store.HandshakePost{
		Number: 1, At: at, Ended: at + 42, HTTPStatus: 200, Reason: "challenge", Answer: "welcome, visitor",
	}}
	if err := s.db.Endpoints.FinishHandshake(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	at += 3000
	if err := s.db.Endpoints.Verified(t.Context(), e.ID, e.URL, store.HandshakePost{
		Number: 2, At: at, Ended: at + 1, HTTPStatus: 200,
	}); err != nil {
		t.Fatal(err)
	}
	all := "/webhooks/" + string(e.ID) + "/deliveries"
	c.says(all+"?type=webhook.verification", "Wrong challenge", "attempt 1", "HTTP 200", "attempt 2")
	failed := c.says(all+"?type=webhook.verification&status=exhausted", "attempt 1")
	one := regexp.MustCompile(`deliveries/dlv_[0-9A-Z]{26}`).FindString(failed.body)
	shown := c.says("/webhooks/"+string(e.ID)+"/"+one, "Attempt 1: HTTP 200", "but not with the challenge", "welcome, visitor", "42 ms")
	if strings.Contains(shown.body, "Retry now") {
		t.Error("the page of a verification offers to retry it")
	}
}

// What to do about a failed attempt depends on the status of the response, and on whether there will be another
// attempt.
func TestAdviceDependsOnTheResponse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		again  bool
		want   string
	}{
		{http.StatusUnauthorized, false, "custom headers"}, {http.StatusForbidden, false, "firewall"},
		{http.StatusNotFound, false, "path in the URL"}, {http.StatusTooManyRequests, false, "Concurrent deliveries"},
		{http.StatusBadGateway, true, "Check its logs. Postern tries again later."},
		{http.StatusTeapot, true, "respond with 200. Postern"},
	} {
		got := whyAnswer("status", tt.status, tt.again)
		if !strings.Contains(got.Do, tt.want) || strings.Contains(got.Do, "again later") != tt.again {
			t.Errorf("the advice for %d is %q", tt.status, got.Do)
		}
	}
	if got := whyAnswer("dns", 0, true); got != whyAttempt("dns") {
		t.Errorf("the advice for a host name that was not found is %q", got.Do)
	}
}
