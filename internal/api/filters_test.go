package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"postern/internal/postern"
	"postern/internal/store/storetest"
)

// The messages of one workspace, and the events and deliveries. The numbers are clearly more than a
// list may read (storetest.MostMessages and MostEvents), so a list that reads all of them fails. Of
// 30,000 messages, PostgreSQL prefers to read all when a search includes archived ones. A search
// takes three steps through the smaller number.
const (
	manyMessages  = 50_000
	manyEvents    = 26_000
	threeSteps    = 5000
	messagesAStep = 2000
)

// crowded is a workspace with much that is alike, and older than that a little that is
// not, on a second device.
type crowded struct {
	*tenant
	busy, quiet postern.DeviceID
	hook        string // the path of an endpoint
	message     string // ids
	delivery    string
	event       string // the oldest
}

// newCrowded makes a workspace with a number of messages, and one of events and deliveries; 0 is
// a few.
func newCrowded(s *server, table storetest.Table, messages, events int) crowded {
	c := crowded{tenant: s.tenant("enterprise")}
	c.busy, c.quiet = c.device("busy", postern.Connected), c.device("quiet", postern.Connected)
	c.hook = c.active(`{"url":"https://example.com/hook","events":["*"]}`)
	c.event = c.events("limit=1").Data[0].EventID
	c.do("POST", "/v1/messages", fmt.Sprintf(`{"deviceId":%q,"to":"+15559990000","body":"x"}`, c.quiet)).
		want(http.StatusAccepted, "")
	c.receive(c.busy, "y")
	c.message = c.do("GET", "/v1/messages?limit=1", "").list().Data[0].ID
	c.delivery = c.do("GET", c.hook+"/deliveries?limit=1", "").list().Data[0].ID
	id := func(prefix string) string {
		return `substr('` + prefix + strings.Repeat("0", 26) + `', 1, 30 - length(CAST(i AS TEXT))) || CAST(i AS TEXT)`
	}
	table.Multiply("chat", "newest", map[string]string{ // with messages that are added next
		"chat_id": `'+1556' || CAST(1000000 + i AS TEXT)`, "newest": "one.newest + i",
	}, max(1, messages/5))
	table.Multiply("message", "n", map[string]string{
		"id": id("msg_"), "network_id": `'F' || CAST(i AS TEXT)`,
		"created_at": fmt.Sprintf("one.created_at + (i - %d) * 1000", messages),
	}, messages)
	if events == 0 {
		return c
	}
	table.Multiply("event", "position", map[string]string{"id": id("evt_"), "sequence": "one.sequence + i"}, events)
	table.Multiply("delivery", "n", map[string]string{"id": id("dlv_"), "position": "one.position + i"}, events)
	return c
}

// values are the values to try for each filter: one that matches nearly everything, one
// that matches little, and one that matches nothing. A filter that is not here fails the
// test.
func (c crowded) values() map[string][]string {
	return map[string][]string{
		"deviceId":  {string(c.busy), string(c.quiet)},
		"chatId":    {"+15551234567", "+15559990000", "+15550000000"},
		"direction": {"inbound", "outbound"},
		"q":         {"nothing", "hello"},
		"status":    {"received", "queued", "expired"},
		"since":     {"2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"},
		"until":     {"2100-01-01T00:00:00Z", "2020-01-01T00:00:00Z"},
		"archived":  {"false", "true"},
		"unread":    {"true", "false"},
		"label":     {"5"},
		"after":     {c.event},
		"type":      {"message.received", "device.*", "message.failed"},

		"messages type":     {"text", "poll"},
		"deliveries status": {"pending", "succeeded"},
	}
}

// filters returns the queries to try: each filter with each of its values, and each two of
// them together.
func (c crowded) filters(t *testing.T, op operation) (list []url.Values) {
	t.Helper()
	var singles []url.Values
	for _, p := range op.Parameters {
		if p.In != "query" || p.Name == "limit" || p.Name == "cursor" {
			continue
		}
		values := c.values()[p.Name]
		if strings.HasSuffix(op.path, "/deliveries") && p.Name == "status" {
			values = c.values()["deliveries status"]
		}
		if strings.HasSuffix(op.path, "/messages") && p.Name == "type" {
			values = c.values()["messages type"]
		}
		if len(values) == 0 {
			t.Errorf("%s: there is no value to try for the filter %s", op.path, p.Name)
		}
		for _, v := range values {
			singles = append(singles, url.Values{p.Name: {v}})
		}
	}
	list = append(list, url.Values{})
	for i, one := range singles {
		list = append(list, one)
		for _, other := range singles[i+1:] {
			if both := merged(one, other); len(both) == 2 {
				list = append(list, both)
			}
		}
	}
	return list
}

func merged(a, b url.Values) url.Values {
	both := url.Values{}
	for _, v := range []url.Values{a, b} {
		for name, value := range v {
			both[name] = value
		}
	}
	return both
}

// target is the path of an operation with the ids of this workspace.
func (c crowded) target(op operation) string {
	ids := map[string]string{
		"devices": string(c.busy), "messages": c.message, "deliveries": c.delivery,
		"webhooks": strings.TrimPrefix(c.hook, "/v1/webhooks/"),
	}
	return strings.Replace(op.path, "{id}", ids[strings.Split(op.path, "/")[2]], 1)
}

// TestEveryFilterReadsABoundedPart asks for every list of the document with every filter
// and every two of them, and with no filter, on its first two pages. Beside thousands of rows
// that match or do not, none reads more than a part.
func TestEveryFilterReadsABoundedPart(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database func(testing.TB) string) {
		reads, where := &storetest.Reads{}, database(t)
		s := newServerTraced(t, where, fakeSandbox{}, reads.Trace)
		table := storetest.OpenTable(t, s.dir, where)
		c := newCrowded(s, table, manyMessages, manyEvents)
		tried := 0
		for _, methods := range described().Paths {
			op := methods["get"]
			if _, reads := op.Responses["200"].Content["application/json"]; !reads {
				continue // a stream reads the pages of a list
			}
			if strings.HasSuffix(op.path, "/profile") {
				continue // no list: it asks the network, and stores the file of a new picture
			}
			for _, query := range c.filters(t, op) {
				c.visit(table, reads, c.target(op), query, mostOf(op))
				tried++
			}
		}
		if tried < 150 {
			t.Errorf("%d requests were tried, want 150 or more", tried)
		}
	})
}

// mostOf is what a request for a list may read.
func mostOf(op operation) storetest.Most {
	switch {
	case op.path == "/v1/messages":
		return storetest.MostMessages()
	case op.path == "/v1/chats":
		return storetest.MostOf(1000, 4)
	case op.path == "/v1/events":
		return storetest.MostEvents()
	case strings.HasSuffix(op.path, "/deliveries"):
		return storetest.MostDeliveries()
	}
	return storetest.MostOf(0, 0)
}

// visit requests the first two pages of a list.
func (c crowded) visit(
	table storetest.Table, reads *storetest.Reads, target string, query url.Values, most storetest.Most,
) {
	c.t.Helper()
	for page := range 2 {
		reads.Forget()
		a := c.do("GET", target+"?"+query.Encode(), "")
		if a.Code >= 500 {
			c.t.Errorf("%s: %d", a.what, a.Code)
		}
		table.Check(fmt.Sprintf("page %d of %s?%s", page+1, target, query.Encode()), reads, most)
		if !strings.Contains(a.Body.String(), `"nextCursor":"`) {
			return
		}
		query = merged(query, url.Values{"cursor": {*a.list().NextCursor}})
		query.Del("after")
	}
}

// A page that finds less than its limit says where the next one continues, and the pages
// together find everything, in order.
func TestRareMessagesAreFoundPageByPage(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database func(testing.TB) string) {
		where := database(t)
		s := newServerOn(t, where, fakeSandbox{})
		c := newCrowded(s, storetest.OpenTable(t, s.dir, where), threeSteps, 0)
		for query, want := range map[string]int{
			"deviceId=" + string(c.quiet): 1, "chatId=%2B15559990000": 1, "direction=outbound": 1, "status=queued": 1,
			"status=expired": 0, "archived=true": 0, "since=2100-01-01T00:00:00Z": 0, "until=2020-01-01T00:00:00Z": 0,
		} {
			found, pages := c.walk(query)
			if len(found) != want || pages > threeSteps/messagesAStep+3 {
				t.Errorf("%s: %d messages on %d pages, want %d", query, len(found), pages, want)
			}
		}
		all, _ := c.walk("since=2020-01-01T00:00:00Z")
		slices.Sort(all)
		if n := len(slices.Compact(all)); n != threeSteps+2 {
			t.Errorf("%d messages of the period are found, want %d", n, threeSteps+2)
		}
	})
}

// walk follows the pages of a list of messages.
func (c crowded) walk(query string) (ids []string, pages int) {
	c.t.Helper()
	target := "/v1/messages?limit=200&" + query
	for {
		pages++
		l := c.do("GET", target, "").list()
		for _, m := range l.Data {
			ids = append(ids, m.ID)
		}
		if l.NextCursor == nil {
			return ids, pages
		}
		target = "/v1/messages?limit=200&" + query + "&cursor=" + *l.NextCursor
	}
}

// A caller who leaves while a list is read ends the read.
func TestReadOfARequestEndsWithItsCaller(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database func(testing.TB) string) {
		type caller struct {
			waits string // for the first read of a table
			leave context.CancelFunc
		}
		var present atomic.Pointer[caller]
		s := newServerTraced(t, database(t), fakeSandbox{}, func(query string, _ []any) {
			if one := present.Load(); one != nil && strings.Contains(query, one.waits) {
				one.leave()
			}
		})
		c := s.tenant("growth")
		for path, table := range map[string]string{"/v1/messages": "FROM message WHERE", "/v1/events": "FROM event WHERE"} {
			ctx, leave := context.WithCancel(t.Context())
			present.Store(&caller{table, leave})
			req := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
			req.Header.Set("Authorization", "Bearer "+c.key)
			if a := s.send(req); ctx.Err() == nil || a.Code != http.StatusServiceUnavailable {
				t.Errorf("%s: the read went on: %d %s", path, a.Code, a.Body)
			}
			present.Store(nil)
		}
	})
}
