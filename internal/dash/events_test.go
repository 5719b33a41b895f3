package dash

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// link is the address that a page has in an attribute.
func link(t *testing.T, p answer, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(p.body)
	if m == nil {
		t.Fatalf("there is no %s", pattern)
	}
	return html.UnescapeString(m[1])
}

const (
	newer = `hx-get="(/events/new[^"]*)"`
	older = `href="(/events\?[^"]*after=[^"]*)"`
)

func TestEventsAreListedNewestFirstAndFollowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	c.says("/events", "No events", "message.*")
	d := s.linked(s.workspace(), "Support")
	s.received(d, "<script>alert(1)</script>")
	id := s.sent(d, postern.Sent)
	p := c.says(
		"/events", "message.received", "message.sent", "/messages/"+string(id), "/devices/"+string(d.ID),
		"<bdi>Support</bdi>",
	)
	told := logged(c, p)
	if !strings.Contains(told, "&lt;script&gt;alert(1)") || strings.Contains(told, "<script>alert") ||
		strings.Index(p.body, ">message.sent</bdi>") > strings.Index(p.body, ">message.received</bdi>") {
		t.Error("an event is part of the page, or the newest is not the first")
	}
	next := link(t, p, newer)
	c.want(c.get(next), http.StatusNoContent, "")
	s.received(d, "one")
	s.received(d, "two")
	part := c.says(next)
	told = logged(c, part)
	one, two := strings.Index(told, "&#34;one&#34;"), strings.Index(told, "&#34;two&#34;")
	if strings.Contains(part.body, "<html") || strings.Contains(part.body, string(id)) || two < 0 || one < two {
		t.Errorf("the part is %s", part.body)
	}
	next = link(t, part, newer)
	c.want(c.get(next), http.StatusNoContent, "")
}

// A page that follows a busy log shows the newest events, and leads to those that it left out. With a filter, it shows
// all of them, and asks for the rest at once.
func TestPageOfABusyLogShowsItsEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.linked(s.workspace(), "Support")
	next, some := link(t, c.get("/events"), newer), link(t, c.get("/events?type=message.received"), newer)
	for i := range 51 {
		s.received(d, fmt.Sprint("number ", i, "."))
	}
	matching := c.says(some, `hx-trigger="load delay:200ms, news from:body, every 10s"`)
	part := c.says(next, "Show what came before")
	for _, p := range []struct {
		page          answer
		newest, count int
	}{{matching, 49, 50}, {part, 50, passing}, {c.says(link(t, part, older)), 50 - passing, 50 - passing + 1}} {
		told := regexp.MustCompile(`number (\d+)\.`).FindAllStringSubmatch(logged(c, p.page), -1)
		if len(told) < p.count || told[0][1] != fmt.Sprint(p.newest) {
			t.Errorf("the page has %v, and %d from %d on were expected", told, p.count, p.newest)
		}
	}
	if strings.Count(part.body, "<summary") != passing {
		t.Error("the part has more events than it is to have")
	}
	c.want(c.get(link(t, part, newer)), http.StatusNoContent, "")
}

// An event leads to its deliveries, and they lead back, also when no message is part of it.
func TestEventLeadsToItsDeliveries(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.linked(s.workspace(), "Support")
	s.received(d, "before there was a webhook")
	early := link(t, c.get("/events"), `href="(/events/evt_[0-9A-Z]{26})"`)
	e, _ := c.addWebhook(hookURL)
	s.activate(e)
	s.received(d, "hello")
	one := s.attempted(e, 503, "status", "")
	path := link(t, c.get("/events"), `href="(/events/evt_[0-9A-Z]{26})"`)
	delivery := hookPath(e.ID) + "/deliveries/" + string(one)
	c.says(path, "message.received", "hello", "Support", hookURL, "HTTP 503", delivery)
	c.says(delivery, `href="`+path+`"`)
	c.says(early, "before there was a webhook", "No webhook has this event")
	c.says("/find?q="+strings.TrimPrefix(path, "/events/"), `href="`+path+`"`)
	c.want(c.get("/events/evt_none"), http.StatusNotFound, "")
	s.setPlan("free")
	c.says(path, "hello", hookURL, delivery) // what was delivered before is shown on any plan, as on the page of the webhook
}

func TestEventsAreFiltered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	here, there := s.linked(s.workspace(), "Here"), s.linked(s.workspace(), "There")
	s.received(here, "to the one")
	s.received(there, "to the other")
	s.sent(there, postern.Sent)
	for path, want := range map[string][2]bool{
		"/events":                           {true, true},
		"/events?type=message.*":            {true, true},
		"/events?type=message.sent":         {false, false},
		"/events?device=" + string(here.ID): {true, false},
		"/events?type=message.received&device=" + string(there.ID): {false, true},
		"/events?type=device.*": {false, false},
	} {
		told := logged(c, c.says(path))
		if got := [2]bool{
			strings.Contains(told, "to the one"),
			strings.Contains(told, "to the other"),
		}; got != want {
			t.Errorf("%s shows %v, want %v", path, got, want)
		}
	}
	next := link(t, c.says("/events?type=message.received&device="+string(here.ID)), newer)
	s.received(there, "not this")
	passed := c.get(next)
	if passed.status != http.StatusOK || logged(c, passed) != "" || link(t, passed, newer) == next {
		t.Errorf("what the filter lets not through is answered %d: %s", passed.status, passed.body)
	}
	s.received(here, "but this")
	if told := logged(c, c.says(link(t, passed, newer))); !strings.Contains(told, "but this") {
		t.Errorf("an open page gets %q", told)
	}
}

// logged are the events that a page lists, in its order. Their JSON is on pages of their own, in the elements that take
// the places of those in the list.
func logged(c *client, p answer) (all string) {
	c.t.Helper()
	if strings.Contains(p.body, "eventId") {
		c.t.Error("the list has the JSON of events")
	}
	for _, m := range regexp.MustCompile(`id="(json-(evt_[^"]+))" data-loads`).FindAllStringSubmatch(p.body, -1) {
		event := c.says("/events/"+m[2], `id="`+m[1]+`"`, "eventId")
		all += mainOf(event)
	}
	return all
}

func TestOlderEventsAreOnPagesThatFollow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.linked(s.workspace(), "Support")
	for i := range 120 {
		s.received(d, fmt.Sprintf("number %d.", i))
	}
	seen, at := 119, "/events?type=message.received"
	for page := 0; ; page++ {
		p := c.says(at)
		for _, m := range regexp.MustCompile(`number (\d+)\.`).FindAllStringSubmatch(logged(c, p), -1) {
			if m[1] != fmt.Sprint(seen) {
				t.Fatalf("%s comes where %d is due", m[1], seen)
			}
			seen--
		}
		if page > 0 && strings.Contains(mainOf(p), "hx-get") {
			t.Error("an older page follows the log")
		}
		if seen < 0 {
			break
		}
		at = link(t, p, older)
	}
}

func TestWhatAsksForNoEventsIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	s.browser().want(s.browser().get("/events"), http.StatusSeeOther, "/signin?next=%2Fevents")
	foreign := strings.TrimPrefix(s.device(), "/devices/")
	for _, query := range []string{
		"?type=nothing.*", "?type=%3Cb%3E", "?after=x", "?device=dev_x", "?device=" + foreign,
		"?after=" + url.QueryEscape("\x00\xff"), "?device=" + url.QueryEscape("\x00"),
	} {
		for _, path := range []string{"/events", "/events/new"} {
			if p := c.get(path + query); p.status < 400 || p.status >= 500 {
				t.Errorf("%s%s is answered %d", path, query, p.status)
			}
		}
	}
	next := link(t, c.get("/events"), newer)
	ws, err := s.g.Workspaces.Create(t.Context(), access.Operator(),
		gateway.NewWorkspace{
			Name: "other",
			Plan: "growth",
		})
	if err != nil {
		t.Fatal(err)
	}
	s.received(s.linked(ws.ID, "Theirs"), "not yours")
	c.want(c.get(next), http.StatusNoContent, "")
	if p := c.get("/events"); strings.Contains(p.body, "not yours") {
		t.Error("the events of another workspace are shown")
	}
	s.as("")
	c.want(c.get("/events"), http.StatusForbidden, "")
	c.want(c.get(next), http.StatusForbidden, "")
}

// A page that was away until what it was to show is removed is loaded anew.
func TestPageThatFollowsARemovedPartOfTheLogIsLoadedAnew(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.linked(s.workspace(), "Support")
	next := link(t, c.get("/events"), newer)
	s.received(d, "one")
	s.received(d, "two")
	if _, _, err := s.db.Events.Remove(
		t.Context(), s.workspace(), postern.TimeOf(time.Now().Add(time.Hour)), 0,
	); err != nil {
		t.Fatal(err)
	}
	if p := c.want(c.get(next), http.StatusOK, ""); p.header.Get("HX-Refresh") != "true" {
		t.Error("the page goes on as if nothing were missing")
	}
	c.says("/events", "No events")
}
