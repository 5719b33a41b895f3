package dash

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	pages "postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
)

// linked makes a device of a workspace that is connected.
func (s *site) linked(ws postern.WorkspaceID, name string) postern.Device {
	s.t.Helper()
	d := postern.Device{
		ID: postern.NewDeviceID(), WorkspaceID: ws, Name: name, Mode: "live", Status: postern.Connected,
		Desired: postern.WantConnect, Metadata: map[string]string{}, CreatedAt: postern.TimeOf(time.Now()),
	}
	if err := s.db.Devices.Create(s.t.Context(), d, nil); err != nil {
		s.t.Fatal(err)
	}
	return d
}

// sent sends a message by a device, which comes to a status.
func (s *site) sent(d postern.Device, status postern.MessageStatus) postern.MessageID {
	s.t.Helper()
	now := postern.TimeOf(time.Now())
	m := postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Outbound,
		Content: postern.Text("hello"), ChatID: "+15551234567", To: "+15551234567",
		Status: postern.Queued, NetworkID: postern.NewNetworkID(), Source: postern.FromAPI,
		Metadata:  map[string]string{},
		CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
	if err := s.db.Messages.Queue(s.t.Context(), store.QueueMessage{
		Message: m, Month: store.MonthOf(now),
	}); err != nil {
		s.t.Fatal(err)
	}
	var err error
	if status == postern.Failed {
		err = s.db.Outbox.Finish(s.t.Context(), store.FinishOutbound{
			MessageID: m.ID, Status: status, At: now, Failure: postern.Failure{Code: postern.Unconfirmed},
		})
	} else {
		err = s.db.Messages.RecordReceipts(s.t.Context(), []store.Receipt{
			{
				DeviceID: d.ID, NetworkID: m.NetworkID, Chats: []string{m.ChatID}, Status: status, At: now, Now: now,
			},
		})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return m.ID
}

// received lets a contact write to a device.
func (s *site) received(d postern.Device, body string) {
	s.t.Helper()
	m := postern.Message{
		WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Inbound, Content: postern.Text(body),
		ChatID: "+15551234567", From: "+15551234567",
		Status: postern.Received, NetworkID: postern.NewNetworkID(), Source: postern.FromContact,
	}
	if err := s.g.Sessions.Receive(s.t.Context(), m, "lid:1", postern.MessageReceived, gateway.ArrivedFile{}); err != nil {
		s.t.Fatal(err)
	}
}

// cells are the last row of a chart's table.
func cells(t *testing.T, body, id string) []string {
	t.Helper()
	_, chart, _ := strings.Cut(body, `<figure id="`+id+`"`)
	chart, _, ok := strings.Cut(chart, "</figure>")
	if !ok {
		t.Fatalf("there is no chart %s", id)
	}
	rows := strings.Split(chart, "<tr")
	var list []string
	for _, m := range regexp.MustCompile(`<td[^>]*><bdi>([^<]*)</bdi>`).FindAllStringSubmatch(rows[len(rows)-1], -1) {
		list = append(list, m[1])
	}
	return list
}

// What happened in the hour is in the last row of each table, or, when the hour
// has just ended, in the one before: the sums are in the captions.
func TestOverviewShowsWhatHappened(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	c.says("/", "0 messages were sent", "Nothing was sent in", "0 of 1")
	d := s.linked(s.workspace(), "Support")
	e, _ := c.addWebhook(hookURL)
	s.activate(e)
	for _, status := range []postern.MessageStatus{postern.Sent, postern.Delivered, postern.Read, postern.Failed} {
		s.sent(d, status)
	}
	s.received(d, "hi")
	s.received(d, "hi again")
	s.attempted(e, 503, "status", "no")
	s.attempted(e, 200, "", "ok")
	s.attempted(e, 200, "", "ok")
	other, err := s.g.Workspaces.Create(
		t.Context(), access.Operator(), gateway.NewWorkspace{Name: "other", Plan: "growth"},
	)
	if err != nil {
		t.Fatal(err)
	}
	s.received(s.linked(other.ID, "Theirs"), "not yours")
	for path, words := range map[string]string{
		"/?data=1": "the last 24 hours", "/?data=1&span=month": "the last 30 days",
		"/?data=1&span=nothing": "the last 24 hours",
	} {
		p := c.says(
			path, "In "+words+", 3 messages were sent, 2 received, and 1 failed.",
			"In "+words+", 2 of 3 sent messages reached the recipient (66.6%).",
			"In "+words+", 2 attempts succeeded and 1 failed (66.6% success rate).",
			"50% of attempts took at most 36 ms, 95% at most 42 ms, and the slowest 42 ms.", "4 of ", "<bdi>66.6%</bdi>",
		)
		for id, want := range map[string]string{
			"messages": "[3 2 1]", "delivered": "[3 2 66.6%]", "attempts": "[2 1 66.6% 42]", "latency": "[3 36 42 42 42]",
		} {
			if got := fmt.Sprint(cells(t, p.body, id)); got != want && time.Now().Minute() > 0 {
				t.Errorf("%s: the last row of %s is %s, want %s", path, id, got, want)
			}
		}
	}
	c.says("/?span=hour", "In the last hour, 3 messages were sent, 2 received, and 1 failed.",
		"In the last hour, 2 attempts succeeded and 1 failed")
	c.says("/", "Getting started", "3 of 4 done")
	c.post("/keys", url.Values{"name": {"ci"}, "scope": {"devices:read"}, "expiry": {""}})
	c.saysNot("/", "Getting started")
	if p := c.says("/", `href="/?data=1">Show the data of all charts`); strings.Contains(p.body, `class="data"`) {
		t.Error("the tables are here although nobody asked for them")
	}
	if p := c.get("/?data=1&span=month"); strings.Count(p.body, "<tr") != 4*31+2 { // with the board
		t.Errorf("the tables of 30 days have %d rows", strings.Count(p.body, "<tr"))
	}
}

// With several devices, the charts can show the messages of one of them, in the last hour or day.
func TestChartsOfOneDevice(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	one, other := s.linked(s.workspace(), "Support"), s.linked(s.workspace(), "Sales")
	s.sent(one, postern.Sent)
	s.received(other, "hi")
	c.says("/", "1 message was sent, 1 received", "<option value=\""+string(other.ID)+"\">Sales</option>")
	for _, span := range []string{"", "&span=hour", "&span=month"} {
		p := c.says("/?device="+string(other.ID)+span, "0 messages were sent, 1 received")
		if strings.Contains(p.body, "30 days") || strings.Contains(p.body, "Webhook success") ||
			!strings.Contains(p.body, ", of Sales") {
			t.Errorf("charts of one device show what is not of the device, or of more than a day (%s)", span)
		}
	}
	if p := c.get("/?device=dev_none"); p.status != http.StatusNotFound {
		t.Errorf("an unknown device is answered %d", p.status)
	}
}

func TestFiguresAreForThoseWhoMayReadWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	s.as(postern.Viewer)
	c.says("/", "Webhook latency", "Delivery rate")
	c.says("/usage", "What happens at a limit")
	for name, tt := range map[string]struct {
		key  postern.Key
		want postern.Reason
	}{
		"no scope": {postern.Key{Scopes: []postern.Scope{postern.UsageRead}}, postern.MissingScope},
		"some devices": {
			postern.Key{Scopes: postern.Scopes(), Devices: []postern.DeviceID{"dev_1"}}, postern.ResourceNotAllowed,
		},
	} {
		tt.key.WorkspaceID = s.workspace()
		caller := access.Caller{Key: tt.key, Plan: postern.Plan{API: true}}
		_, err1 := s.g.Statistics.MessageSpans(t.Context(), caller, gateway.LastDay())
		_, err2 := s.g.Statistics.AttemptSpans(t.Context(), caller, gateway.LastDay())
		_, err3 := s.g.Statistics.Endpoints(t.Context(), caller)
		for _, err := range []error{err1, err2, err3} {
			if postern.ReasonOf(err) != tt.want {
				t.Errorf("%s: %v, want %s", name, err, tt.want)
			}
		}
	}
	v := visit{
		caller: access.Caller{
			Plan: postern.Plan{API: true},
			Key: postern.Key{
				WorkspaceID: s.workspace(),
				Scopes: []postern.Scope{
					postern.UsageRead,
					postern.DevicesRead,
				},
			},
		},
	}
	o := overview{&core{g: s.g}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	var view pages.OverviewView
	if err := o.figures(r, v, &view); err != nil || len(view.Charts)+len(view.Tiles) != 0 {
		t.Errorf("without the scopes there are %d charts and %d tiles (%v)", len(view.Charts), len(view.Tiles), err)
	}
}

func TestUsageSaysThePlanInWords(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	seven, hundred := 7, 4
	if _, err := s.g.Workspaces.ChangeLimits(t.Context(), access.Operator(), s.workspace(), postern.Limits{
		EventDays: &seven, Messages: &hundred,
	}); err != nil {
		t.Fatal(err)
	}
	month := time.Now().UTC()
	c.says(
		"/usage", "7 days", "90 days", "0 of 4", "quota-exhausted", month.Format("January 2006"),
		time.Date(month.Year(), month.Month()+1, 1, 0, 0, 0, 0, time.UTC).Format("2 Jan 2006, 15:04 UTC"),
	)
	d := s.linked(s.workspace(), "Support")
	for range 4 {
		s.sent(d, postern.Sent)
	}
	c.says("/usage", "4 of 4", "Limit reached.", `value="4"`)
	if err := s.g.Workspaces.SetPlan(t.Context(), access.Operator(), s.workspace(), "free"); err != nil {
		t.Fatal(err)
	}
	if p := c.says("/usage", "Free", "Not included"); strings.Contains(p.body, "Requests per minute") {
		t.Error("a plan without an API has a number of requests")
	}
}

// A workspace whose only device is paused is not one that was never set up.
func TestHomeOfPausedDevice(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	c.says("/", "No devices yet", "Nothing to show yet")
	d := s.linked(s.workspace(), "Support")
	if p := c.says("/", "All is well"); strings.Contains(p.body, "No devices yet") {
		t.Error("a workspace with a device has none")
	}
	c.want(c.post("/devices/"+string(d.ID)+"/pause", nil), http.StatusSeeOther, "/devices/"+string(d.ID))
	if p := c.says("/", "All is well"); strings.Contains(p.body, "No devices yet") {
		t.Error("a workspace with a paused device has none")
	}
}
