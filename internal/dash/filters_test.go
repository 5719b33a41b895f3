package dash

import (
	"flag"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/migrated"
	"postern/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

var pairs = flag.Bool("pairs", false, "fill in every two values of two fields, and not only a few of each")

// What there is of each kind. It is clearly more than a page may read of it (mostOf): a page that
// reads all of it fails. PostgreSQL prefers to read a table of 12,000
// messages as a whole.
const (
	manyMessages = 50_000
	manyEvents   = 26_000 // and deliveries
	manyAccounts = 12_000 // and workspaces
	manyActs     = 3000
)

// field is a field of a form with the values to try.
type field struct {
	name   string
	values []string
	few    []string // of the values, to try beside those of another field
}

// crowded is a site where much is alike, and a little older than that is not.
type crowded struct {
	*client
	table  storetest.Table
	reads  *storetest.Reads
	device string // of nearly everything
	quiet  string // of a little that is older
	hook   string
}

func newCrowded(t *testing.T, server string) crowded {
	t.Helper()
	reads, dir := &storetest.Reads{}, migrated.Dir(t, server)
	s := newSiteOn(t, store.Options{Dir: dir, URL: server, Trace: reads.Trace}, func(*Options) {})
	c := crowded{client: s.setUp(), table: storetest.OpenTable(t, dir, server), reads: reads}
	s.operates(true)
	quiet, busy := s.connected(s.workspace(), "quiet"), s.connected(s.workspace(), "busy")
	e, _ := c.addWebhook(hookURL)
	s.activate(e)
	s.comes(quiet, "+15559990000", "Bob", "x")
	s.comes(busy, "+15551234567", "Ada", "y")
	c.device, c.quiet, c.hook = string(busy.ID), string(quiet.ID), "/webhooks/"+string(e.ID)
	id := func(prefix string) string {
		return `substr('` + prefix + strings.Repeat("0", 26) + `', 1, 30 - length(CAST(i AS TEXT))) || CAST(i AS TEXT)`
	}
	c.table.Multiply("message", "n", map[string]string{"id": id("msg_"), "network_id": `'F' || CAST(i AS TEXT)`},
		manyMessages)
	c.table.Multiply("event", "position", map[string]string{"id": id("evt_"), "sequence": "one.sequence + i"}, manyEvents)
	c.table.Multiply("delivery", "n", map[string]string{"id": id("dlv_"), "position": "one.position + i"},
		manyEvents)
	c.table.Multiply("audit", "n", map[string]string{"kind": "one.kind"}, manyActs)
	c.table.Multiply("users", "id",
		map[string]string{"id": id("usr_"), "email": `CAST(i AS TEXT) || '@example.com'`, "operator": "0"}, manyAccounts)
	c.table.Multiply("workspace", "id", map[string]string{"id": id("ws_0")}, manyAccounts)
	return c
}

// typed are the values to try in a field for text, by its name.
func typed() map[string][]string {
	return map[string][]string{
		"who":  {email, "none@example.com"},
		"from": {"1970-01-02", "2999-01-01"}, "until": {"2999-01-01", "1970-01-02"},
	}
}

// searched are the values to try in the field q of a page.
func searched() map[string][]string {
	return map[string][]string{
		"/messages":            {"+15551234567", "+15559990000", "+15550000000", "15550000000", "y", "nothing"},
		"/messages/chats":      {"+15551234567", "+15559990000", "+15550000000", "15550000000", "y", "nothing"},
		"/operator/people":     {email, "nobody"},
		"/operator/workspaces": {"acme", "nowhere"},
	}
}

var (
	formPattern   = regexp.MustCompile(`(?s)<form method="get" action="([^"]+)"(.*?)</form>`)
	selectPattern = regexp.MustCompile(`(?s)<select[^>]* name="(\w+)"(.*?)</select>`)
	optionPattern = regexp.MustCompile(`<option value="([^"]*)"`)
	inputPattern  = regexp.MustCompile(`<input[^>]* name="(\w+)"`)
	olderPattern  = regexp.MustCompile(`href="([^"]+[?&;]after=[^"]+)"`)
)

// few are the values of a field to try beside those of another one: first one that matches nearly
// everything, then one that matches only what is older than that, if there is one, and then one
// that matches nothing. Numbers and words, and frequent and rare statuses, are found in two ways.
func (c *crowded) few(path, name string) []string {
	if path == c.hook+"/deliveries" && name == "status" {
		return []string{"pending", "succeeded"}
	}
	return map[string][]string{
		"q":         {"+15551234567", "+15559990000", "y", "nothing"},
		"device":    {c.device, c.quiet},
		"direction": {postern.Inbound, postern.Outbound},
		"status":    {"received", "sent", "failed"},
		"type":      {"message.received", "device.connected", "message.failed"},
		"who":       {email, "none@example.com"},
		"kind":      {"webhook", "user", "message"},
		"show":      {"unread", "archived"},
		"from":      {"1970-01-02", "2999-01-01"},
		"until":     {"2999-01-01", "1970-01-02"},
	}[name]
}

// form returns the fields of the form with which a page is filtered.
func (c *crowded) form(path string) (fields []field) {
	c.t.Helper()
	body := c.want(c.get(path), http.StatusOK, "").body
	for _, form := range formPattern.FindAllStringSubmatch(body, -1) {
		if form[1] != path {
			continue
		}
		for _, s := range selectPattern.FindAllStringSubmatch(form[2], -1) {
			f := field{name: s[1]}
			for _, o := range optionPattern.FindAllStringSubmatch(s[2], -1) {
				f.values = append(f.values, html.UnescapeString(o[1]))
			}
			fields = append(fields, f)
		}
		for _, i := range inputPattern.FindAllStringSubmatch(form[2], -1) {
			if strings.Contains(i[0], `type="hidden"`) {
				continue
			}
			f := field{name: i[1], values: typed()[i[1]]}
			if f.name == "q" {
				f.values = searched()[path]
			}
			fields = append(fields, f)
		}
	}
	for i := range fields {
		if fields[i].few = fields[i].values; len(fields) > 1 && !*pairs {
			fields[i].few = c.some(path, fields[i])
		}
	}
	return fields
}

// some returns a few of the values of a field, of which the first one matches more than a page.
func (c *crowded) some(path string, f field) []string {
	c.t.Helper()
	few := c.few(path, f.name)
	for _, v := range few {
		if !slices.Contains(f.values, v) {
			c.t.Errorf("%s: the field %s does not offer %q", path, f.name, v)
		}
	}
	if path == "/messages/chats" && f.name != "q" {
		return few // there are many messages, in a few conversations
	}
	if path == "/" {
		return few // it has no pages
	}
	if len(few) < 2 || !olderPattern.MatchString(c.get(path+"?"+url.Values{f.name: few[:1]}.Encode()).body) {
		c.t.Errorf("%s: of the values %q for the field %s, none matches nearly everything", path, few, f.name)
	}
	return few
}

// queries are each value of each field, and two values of two fields.
func queries(fields []field) (list []url.Values) {
	list = append(list, url.Values{})
	for i, f := range fields {
		for _, v := range f.values {
			list = append(list, url.Values{f.name: {v}})
		}
		for _, v := range f.few {
			for _, other := range fields[i+1:] {
				for _, w := range other.few {
					list = append(list, url.Values{f.name: {v}, other.name: {w}})
				}
			}
		}
	}
	return list
}

// TestEveryFormReadsABoundedPart fills in the form of every list with everything it offers,
// and with two things at a time, and looks at the first two pages. Beside thousands of rows
// that match or do not, none reads more than a part.
func TestEveryFormReadsABoundedPart(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(testing.TB) string{
		"sqlite": func(testing.TB) string { return "" }, "postgres": migrated.URL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowded(t, server(t))
			for path, fields := range map[string]int{
				"/messages": 6, "/messages/chats": 6, "/events": 2, c.hook + "/deliveries": 2, "/people/audit": 2,
				"/operator/people": 1, "/operator/activity": 1, "/operator/workspaces": 1,
				"/": 1, "/usage": 0, "/devices": 0, "/webhooks": 0,
				"/devices/" + c.device: 0, "/devices/" + c.device + "/health": 0, c.hook: 0, c.hook + "/replays": 0,
				"/messages/chats/" + c.device + "/+15551234567": 0, "/messages/chats/" + c.device + "/+15550000000": 0,
				"/keys": 0, "/people": 0, "/account": 0, "/workspaces": 0,
			} {
				form := c.form(path)
				if len(form) != fields {
					t.Errorf("%s has the fields %v, want %d", path, form, fields)
				}
				for _, q := range queries(form) {
					c.visitPages(path, q)
				}
			}
		})
	}
}

// mostOf is what a page may read.
func mostOf(path string) storetest.Most {
	switch {
	case strings.HasPrefix(path, "/messages"):
		return storetest.MostMessages()
	case path == "/events":
		return storetest.MostEvents()
	case strings.HasSuffix(path, "/deliveries"):
		return storetest.MostDeliveries()
	case strings.HasPrefix(path, "/operator"):
		return storetest.MostOf(2000, 4)
	}
	return storetest.MostOf(0, 0)
}

// visitPages looks at the first two pages of a list.
func (c *crowded) visitPages(path string, q url.Values) {
	c.t.Helper()
	most := mostOf(path)
	where := path + "?" + q.Encode()
	for range 2 {
		c.reads.Forget()
		a := c.get(where)
		c.table.Check(where, c.reads, most)
		older := olderPattern.FindStringSubmatch(a.body)
		if a.status != http.StatusOK || older == nil {
			return
		}
		where = html.UnescapeString(older[1])
	}
}

// An export reads its messages page by page as well.
func TestExportReadsABoundedPartAtATime(t *testing.T) {
	t.Parallel()
	c := newCrowded(t, "")
	c.reads.Forget()
	a := c.want(c.get("/messages.csv?direction=outbound"), http.StatusOK, "")
	if lines := strings.Count(a.body, "\n"); lines != 1 {
		t.Errorf("the file has %d lines, want that of the columns", lines)
	}
	what := fmt.Sprintf("an export of nothing among %d messages", manyMessages)
	c.table.CheckEach(what, c.reads, storetest.MostMessages())
}
