package dash

import (
	"encoding/csv"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
)

const contact = "+15551234567"

// connected makes a device that sends and receives.
func (s *site) connected(ws postern.WorkspaceID, name string) postern.Device {
	s.t.Helper()
	s.devices++ // each is linked after those before, also within a millisecond
	now := postern.TimeOf(time.Now())
	d := postern.Device{
		ID: postern.NewDeviceID(), WorkspaceID: ws, Name: name, Mode: "live", Status: postern.Connected,
		Desired: postern.WantConnect, PhoneNumber: "+15550001111",
		Metadata: map[string]string{}, CreatedAt: now, LinkedAt: now + postern.Time(s.devices),
	}
	if err := s.db.Devices.Create(s.t.Context(), d, nil); err != nil {
		s.t.Fatal(err)
	}
	return d
}

// comes records a text of a contact.
func (s *site) comes(d postern.Device, from, name, body string) postern.Message {
	s.t.Helper()
	return s.receives(d, from, name, postern.Text(body))
}

// receives records a message of a contact.
func (s *site) receives(d postern.Device, from, name string, content postern.Content) postern.Message {
	s.t.Helper()
	at := postern.TimeOf(time.Now())
	m := postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Inbound,
		Content: content, ChatID: from, From: postern.Maybe(postern.NumberOfChat(from)), FromName: name,
		Status: postern.Received, NetworkID: postern.NewNetworkID(), Source: postern.FromContact,
		Metadata: map[string]string{}, CreatedAt: at, SentAt: at,
	}
	if lid, hidden := strings.CutPrefix(from, "lid:"); hidden {
		m.FromLID = lid
	}
	if err := s.db.Messages.RecordInbound(s.t.Context(), store.RecordInbound{
		Message: m, Sender: from, Type: postern.MessageReceived, Now: at,
	}); err != nil {
		s.t.Fatal(err)
	}
	return m
}

// ends records what came of a message that waits.
func (s *site) ends(id postern.MessageID, status postern.MessageStatus, code postern.FailureCode) {
	s.t.Helper()
	at := postern.TimeOf(time.Now())
	o := store.FinishOutbound{MessageID: id, Status: status, Failure: postern.Failure{Code: code}, At: at}
	if status == postern.Sent {
		o.SentAt = at
	}
	if err := s.db.Outbox.Finish(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// form is the key of the form that a page shows.
func (c *client) form(path string) string {
	c.t.Helper()
	p := c.want(c.get(path), http.StatusOK, "")
	m := regexp.MustCompile(`name="key" value="([A-Z2-7]{26})"`).FindStringSubmatch(p.body)
	if m == nil {
		c.t.Fatalf("%s has no form", path)
	}
	return m[1]
}

// sends puts a text into the form and posts it.
func (c *client) sends(d postern.Device, to, body string) postern.MessageID {
	c.t.Helper()
	p := c.post("/messages", url.Values{
		"key": {c.form("/messages/new")}, "device": {string(d.ID)}, "to": {to}, "body": {body},
	})
	id := strings.TrimPrefix(p.header.Get("Location"), "/messages/")
	if p.status != http.StatusSeeOther || !strings.HasPrefix(id, "msg_") {
		c.t.Fatalf("answered %d to %q", p.status, p.header.Get("Location"))
	}
	return postern.MessageID(id)
}

func (c *client) saysNot(path string, texts ...string) {
	c.t.Helper()
	p := c.want(c.get(path), http.StatusOK, "")
	for _, text := range texts {
		if strings.Contains(p.body, text) {
			c.t.Errorf("%s says %q", path, text)
		}
	}
}

// A page lists the newest devices only. One that is not among them stays the one that was chosen, with its name.
func TestDeviceThatIsNotListedStaysChosen(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	oldest := s.connected(s.workspace(), "Oldest")
	for range devicesShown {
		s.connected(s.workspace(), "Newer")
	}
	c.saysNot("/messages/new", "Oldest")
	chosen := `<option value="` + string(oldest.ID) + `" selected>Oldest</option>`
	c.says("/messages/new?device="+string(oldest.ID), chosen)
	refused := c.post("/messages", url.Values{
		"key": {c.form("/messages/new")}, "device": {string(oldest.ID)}, "to": {"12"},
	})
	if refused.status != http.StatusUnprocessableEntity || !strings.Contains(refused.body, chosen) {
		t.Errorf("a form that is refused with %d has another device", refused.status)
	}
	for _, path := range []string{"/messages", "/messages/chats", "/contacts", "/contacts/groups", "/events", "/"} {
		c.says(path+"?device="+string(oldest.ID), chosen)
	}
	s.comes(oldest, contact, "Ada", "hello")
	c.says("/contacts", "Ada", `<bdi class="cut">Oldest</bdi>`)
	c.says("/messages/chats?q=ada", "Ada", "Oldest")
}

func TestMessagesAreFoundByWhatIsKnownOfThem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	c.says("/messages", "No messages yet")
	d, e := s.connected(s.workspace(), "Support"), s.connected(s.workspace(), "Sales")
	in := s.comes(d, contact, "Ada", "the inbound one")
	s.comes(e, "+4915550002222", "", "another one")
	out := c.sends(d, contact, "the outbound one")
	failed := c.sends(e, contact, "the failed one")
	s.ends(failed, postern.Failed, postern.RecipientNotFound)
	c.says("/messages", "the inbound one", "another one", "the outbound one", "the failed one", "Support", "Sales")
	for _, number := range []string{contact, "15551234567", "+1 (555) 123-4567", "15551234567@s.whatsapp.net"} {
		path := "/messages?q=" + url.QueryEscape(number)
		c.says(path, "the inbound one", "the outbound one", "the failed one")
		c.saysNot(path, "another one")
	}
	for query, only := range map[string]string{
		"status=failed": "the failed one", "device=" + string(d.ID) + "&direction=inbound": "the inbound one",
		"status=queued": "the outbound one", "status=queued%2Csending": "the outbound one", "status=failed,nothing": "the failed one",
		"q=" + url.QueryEscape(contact) + "&device=" + string(e.ID): "the failed one",
	} {
		c.says("/messages?"+query, only)
		for _, other := range []string{"the inbound one", "another one", "the outbound one", "the failed one"} {
			if other != only {
				c.saysNot("/messages?"+query, other)
			}
		}
	}
	c.says("/messages?status=expired", "No messages found")
	c.want(c.get("/messages?q="+string(out)), http.StatusSeeOther, "/messages/"+string(out))
	c.want(c.get("/messages?q=+"+string(in.ID)+"+"), http.StatusSeeOther, "/messages/"+string(in.ID))
	for _, wrong := range []string{"msg_none", "+", "<>", strings.Repeat("1", 5000)} {
		if p := c.get("/messages?q=" + url.QueryEscape(wrong)); p.status != http.StatusUnprocessableEntity ||
			strings.Contains(p.body, "the inbound one") {
			t.Errorf("%.20q is answered %d", wrong, p.status)
		}
	}
	c.says("/messages?status=nothing&direction=up", "the inbound one") // asks for all
	if p := c.get("/messages?after=x"); p.status != http.StatusBadRequest {
		t.Errorf("an invalid cursor is answered %d", p.status)
	}
}

// A day is one of the reader's time, if the page has said how far it is ahead of UTC.
func TestMessagesAreFoundByTheirDay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	m := s.comes(s.connected(s.workspace(), "Support"), contact, "Ada", "the inbound one")
	on := m.CreatedAt.Std().UTC()
	day := func(later int) string { return on.AddDate(0, 0, later).Format(time.DateOnly) }
	for _, page := range []string{"/messages?", "/messages/chats?"} {
		for query, found := range map[string]bool{
			"from=" + day(0): true, "from=" + day(1): false, "until=" + day(0): true, "until=" + day(-1): false,
			"from=" + day(0) + "&until=" + day(0) + "&status=received": true, "from=" + day(0) + "&status=failed": false,
			"from=" + day(0) + "&fromOffset=-1440": false, "from=" + day(1) + "&fromOffset=1440": true,
			"until=" + day(0) + "&untilOffset=1440": false, "until=" + day(-1) + "&untilOffset=-1440": true,
			"from=" + day(0) + "&fromOffset=1441": true,
		} {
			if p := c.says(page + query); strings.Contains(p.body, "the inbound one") != found {
				t.Errorf("%s%s shows the message: %t, want %t", page, query, !found, found)
			}
		}
	}
	for page, status := range map[string]int{"/messages": 422, "/messages/chats": 200} {
		p := c.get(page + "?from=yesterday&until=0001-01-01")
		if p.status != status || !strings.Contains(p.body, "Enter a date such as 2026-11-29.") {
			t.Errorf("%s answers %d to wrong days", page, p.status)
		}
	}
}

// indexed writes the words of messages, for searches.
func (s *site) indexed() {
	s.t.Helper()
	for more := true; more; {
		var err error
		if more, err = s.db.Messages.IndexWords(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// A result leads to the message in its conversation, however many came after it.
func TestMessagesAreFoundByTheirWords(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d, e := s.connected(s.workspace(), "Support"), s.connected(s.workspace(), "Sales")
	order := s.comes(d, contact, "Ada", "Where is my order 1234567?")
	for i := range 70 {
		s.comes(d, contact, "Ada", fmt.Sprintf("text %02d.", i))
	}
	s.comes(e, "+4915550002222", "", "the ÖRDER of the others")
	poll := s.receives(d, "+15550009999", "Bob", postern.Content{Kind: postern.KindPoll, Extra: postern.Extra{
		Poll: &postern.Poll{Question: "Where?", Options: []string{"Office", "Harbour"}},
	}})
	s.indexed()
	talk := chatPath(d.ID, contact)
	place := talk + "?near=" + string(order.ID)
	c.says("/messages?q=ORD", "my order", "the ÖRDER", `href="`+place+"#m-"+string(order.ID)+`"`, "/messages/"+string(order.ID))
	c.saysNot("/messages?q=order+others", "my order")
	c.saysNot("/messages?q=order&device="+string(e.ID), "my order")
	c.says("/messages?q=harbour", "Poll: Where?", "near="+string(poll.ID))
	c.says("/messages?q=nothing", "No messages found")
	c.says("/messages?q=1234567", "my order", "in=words") // not a number that anybody has
	c.says("/messages?q=order+-+2", "No messages found")
	if list := readCSV(t, c.get("/messages.csv?q=1234567&in=words")); len(list) != 2 || list[1][0] != string(order.ID) {
		t.Errorf("the words are exported as %v", list)
	}
	p := c.says(place, "my order", "text 09.", "Newest messages", `id="m-`+string(order.ID)+`"`)
	if strings.Contains(p.body, "text 10.") || strings.Contains(p.body, "<textarea") {
		t.Error("the conversation is not shown around the message")
	}
	c.says(talk+"?near="+string(s.newest(d.WorkspaceID).ID), "text 69.") // of another conversation
	c.says(talk+"?near=msg_none", "text 69.", "<textarea")
	c.says(chatPath(d.ID, "+15550009999")+"?near="+string(poll.ID), "Harbour", "<textarea")
}

// next is where a page's link to what is older leads.
func next(p answer) string {
	m := regexp.MustCompile(`href="([^"]*after=[^"]*)"`).FindStringSubmatch(p.body)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1], "&amp;", "&")
}

func TestMessagesAndConversationsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	for i := range 60 {
		s.comes(d, contact, "Ada", fmt.Sprintf("text %02d.", i))
	}
	talk := "/messages/chats/" + string(d.ID) + "/" + contact
	for _, path := range []string{"/messages?direction=inbound", talk} {
		first := c.says(path, "text 59.", "text 10.")
		if strings.Contains(first.body, "text 09.") {
			t.Errorf("%s has too much on a page", path)
		}
		last := c.says(next(first), "text 09.", "text 00.")
		if strings.Contains(last.body, "text 10.") || next(last) != "" {
			t.Errorf("the second page of %s repeats the first, or is not the last", path)
		}
	}
	p := c.get(talk)
	if strings.Index(p.body, "text 58.") > strings.Index(p.body, "text 59.") {
		t.Error("the oldest is not at the top")
	}
	if p := c.get(next(p)); strings.Contains(p.body, "<textarea") || strings.Contains(mainOf(p), `news from:body`) {
		t.Error("an older part of a conversation has a form, or is asked for again")
	}
	for i := range 51 {
		s.comes(d, fmt.Sprintf("+1555000%04d", i), "", "hi")
	}
	first := c.says("/messages/chats", "+15550000050", "+15550000021")
	if strings.Contains(first.body, "+15550000020") {
		t.Error("31 chats are on a page of 30")
	}
	c.says(next(first), "+15550000020", "+15550000000", contact, "Ada", "text 59.")
}

// A conversation is listed with its labels.
func TestConversationsShowTheirLabels(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	s.comes(d, contact, "", "hello")
	var all postern.LabelChanges
	for i := range mostLabels + 2 {
		id := strconv.Itoa(i)
		all.Labels = append(all.Labels, postern.LabelEdit{Label: postern.Label{ID: id, Name: "<b>" + id}})
		all.Chats = append(all.Chats, postern.ChatLabel{ChatID: contact, LabelID: id, On: true})
	}
	if err := s.g.Sessions.SetLabels(t.Context(), d.ID, all); err != nil {
		t.Fatal(err)
	}
	p := c.says("/messages/chats", "&lt;b&gt;0", "&lt;b&gt;3", "and 2 more")
	if strings.Contains(p.body, "&lt;b&gt;4") || strings.Contains(p.body, "<b>0") {
		t.Error("labels are not escaped, or there are too many")
	}
}

// A channel has its name, and only its administrators see a form to write.
func TestChannelsAreShownByTheirNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	const chat = "channel:120363041234567890"
	m := s.comes(d, chat, "", "We are closed.")
	talk := "/messages/chats/" + string(d.ID) + "/" + url.PathEscape(chat)
	c.says("/messages/chats", "Channel", "We are closed.")
	knows := func(role string) {
		t.Helper()
		list := []postern.Channel{{ChatID: chat, Name: "Opening hours", Role: role}}
		if err := s.g.Sessions.NoteChannels(t.Context(), d.ID, list); err != nil {
			t.Fatal(err)
		}
		c.says("/messages/chats", "Opening hours", "We are closed.")
	}
	knows(postern.ChannelFollower)
	if p := c.says(talk, "Opening hours", chat, "We are closed."); strings.Contains(p.body, "<textarea") {
		t.Error("a follower can write")
	}
	knows(postern.ChannelAdmin)
	if p := c.says(talk, "Opening hours", "We are closed."); !strings.Contains(p.body, "<textarea") {
		t.Error("an administrator cannot write")
	}
	c.says("/messages/"+string(m.ID), "We are closed.")
}

func TestLocationIsShownAsText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	m := s.receives(d, contact, "Ada", postern.Content{Kind: postern.KindLocation, Extra: postern.Extra{
		Location: &postern.Location{Latitude: 52.5163, Longitude: -13.3777, Name: "<Gate>", Address: "Pariser Platz"},
	}})
	for _, path := range []string{
		"/messages", "/messages/chats", "/messages/chats/" + string(d.ID) + "/" + contact, "/messages/" + string(m.ID),
	} {
		c.says(path, "&lt;Gate&gt;", "Pariser Platz", "52.51630, -13.37770")
	}
	if got, want := readCSV(t, c.get("/messages.csv"))[1][9],
		"<Gate>\nPariser Platz\n52.51630, -13.37770"; got != want {
		t.Errorf("it is exported as %q, want %q", got, want)
	}
}

// The inbox has the conversations of all devices or of one, only the unread ones, and in their place what a search finds.
func TestInbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	support, sales := s.connected(s.workspace(), "Support"), s.connected(s.workspace(), "Sales")
	const other = "+15559990000"
	s.comes(support, contact, "Ada", "The gate is open")
	m := s.comes(sales, other, "Ben", "An offer, please")
	shows := func(path, want, not string) answer {
		t.Helper()
		p := c.says(path, want)
		if strings.Contains(p.body, not) {
			t.Errorf("%s shows %q", path, not)
		}
		return p
	}
	c.says("/messages/chats", "The gate is open", "An offer, please", "via <bdi>Support</bdi>", "via <bdi>Sales</bdi>")
	shows("/messages/chats?device="+string(sales.ID), "An offer, please", "The gate is open")
	c.post("/messages/chats/"+string(support.ID)+"/"+contact, url.Values{"do": {"read"}})
	shows("/messages/chats?show=unread", "An offer, please", "The gate is open")
	shows("/messages/chats?show=archived", "No archived conversations", "An offer, please")
	found := `href="/messages/chats/` + string(sales.ID) + "/" + other + "?near=" + string(m.ID)
	for _, find := range []string{"offer", other, string(m.ID)} {
		if p := shows("/messages/chats?q="+url.QueryEscape(find), "An offer, please", "The gate is open"); !strings.Contains(p.body, found) {
			t.Errorf("what %q finds does not lead to its conversation", find)
		}
	}
	c.says("/messages/chats?q=nothing", "No messages found")
	c.says("/messages/chats?q=%3F", "Enter words, a phone number, or a message ID")
	open := url.QueryEscape(string(sales.ID) + "/" + other)
	c.says("/messages/chats?beside="+open, `aria-current="page"`)
}

// A person who writes to somebody learns before that the device is not connected.
func TestConversationSaysThatItsDeviceIsDown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	s.comes(d, contact, "Ada", "Hello")
	talk := "/messages/chats/" + string(d.ID) + "/" + contact
	if p := c.get(talk); strings.Contains(p.body, "not connected") {
		t.Error("a device that is connected is said to be down")
	}
	if err := s.g.Sessions.SetState(t.Context(), d.ID, gateway.SessionState{Status: postern.Disconnected}); err != nil {
		t.Fatal(err)
	}
	c.says(talk, "Support is not connected. Messages are sent once it reconnects.")
	c.want(c.post(talk, url.Values{"key": {c.form(talk)}, "body": {"Good morning"}}), http.StatusSeeOther, talk)
	c.says(talk, "Good morning", "Queued")
}

// Who may write sees the buttons of a conversation. Without a session, archiving fails with its reason.
func TestConversationHasButtonsForWriters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	s.comes(d, contact, "Ada", "Hello")
	talk := "/messages/chats/" + string(d.ID) + "/" + contact
	c.says(talk, "Mark as read", "Archive", "Mute")
	c.want(c.post(talk, url.Values{"do": {"read"}}), http.StatusSeeOther, talk)
	if p := c.get("/messages/chats?device=" + string(d.ID)); strings.Contains(p.body, "1 unread") {
		t.Error("the conversation is not read")
	}
	if err := s.g.Sessions.SetState(t.Context(), d.ID, gateway.SessionState{Status: postern.Disconnected}); err != nil {
		t.Fatal(err)
	}
	if p := c.post(talk, url.Values{"do": {"archive"}}); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, "The device is disconnected") {
		t.Errorf("archiving is answered %d %s", p.status, p.body)
	}
	s.as(postern.Viewer)
	if p := c.get(talk); p.status != http.StatusOK || strings.Contains(p.body, "Mark as read") {
		t.Errorf("a viewer is shown the buttons (status %d)", p.status)
	}
	if p := c.post(talk, url.Values{"do": {"read"}}); p.status != http.StatusForbidden {
		t.Errorf("a viewer's mark is answered %d", p.status)
	}
}

// Members say who takes care of a conversation, and write down what others should know. Contacts see nothing of it.
func TestConversationsAreAssignedAndNoted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	s.comes(d, contact, "Ada", "Hello")
	talk := "/messages/chats/" + string(d.ID) + "/" + contact
	does := func(fields url.Values) {
		t.Helper()
		c.want(c.post(talk, fields), http.StatusSeeOther, talk)
	}
	c.says("/messages/chats?show=mine", "Nothing is assigned to you")
	does(url.Values{"do": {"assign-me"}})
	c.says(talk, "Assigned to <bdi>"+email+"</bdi>")
	c.says("/messages/chats?show=mine", "Hello", email)
	does(url.Values{"do": {"unassign"}})
	c.saysNot(talk, "Assigned to")
	does(url.Values{"do": {"assign"}, "assignee": {" " + strings.ToUpper(email)}})
	c.says(talk, "Assigned to <bdi>"+email+"</bdi>")
	for _, wrong := range []string{"nobody@example.com", "x"} {
		if p := c.post(talk, url.Values{"do": {"assign"}, "assignee": {wrong}}); p.status != http.StatusUnprocessableEntity ||
			!strings.Contains(p.body, "No member of the workspace has this email address.") {
			t.Errorf("%s is answered %d", wrong, p.status)
		}
	}
	before := c.seen(talk)
	does(url.Values{"do": {"note"}, "seen": {before}, "note": {"Pays late.\r\n<b>Ask</b> Ben."}})
	c.outdated(talk, url.Values{"do": {"note"}, "seen": {before}, "note": {"Pays late.\r\n<b>Ask</b> Ben."}})
	c.says(talk, "Pays late.\n&lt;b&gt;Ask&lt;/b&gt; Ben.")
	const turned = "Pays late. Name: \u2067דנה\u2069, \u202bשלום\u202c"
	does(url.Values{"do": {"note"}, "seen": {c.seen(talk)}, "note": {turned}})
	c.says(talk, "\n"+turned+"</textarea>")
	if p := c.post(talk, url.Values{"do": {"note"}, "note": {strings.Repeat("ä", postern.MaxChatNote+1)}}); p.status != 422 {
		t.Errorf("a long note is answered %d", p.status)
	}
	s.as(postern.Viewer)
	if p := c.says(talk, "Pays late."); strings.Contains(p.body, "Save note") {
		t.Error("a viewer can change the note")
	}
	for _, do := range []string{"note", "assign-me", "unassign"} {
		if p := c.post(talk, url.Values{"do": {do}}); p.status != http.StatusForbidden {
			t.Errorf("a viewer who does %s is answered %d", do, p.status)
		}
	}
}

func TestAConversationIsAnsweredByHand(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	c.says("/messages/chats", "Add a device first")
	c.says("/messages/new", "No device to send from")
	d := s.connected(s.workspace(), "Support")
	c.says("/messages/chats", "No conversations yet")
	s.comes(d, contact, "Ada", "Hello, are you there?")
	talk := "/messages/chats/" + string(d.ID) + "/" + contact
	c.says("/messages/chats?device="+string(d.ID), "Ada", "Hello, are you there?", `href="`+talk+`"`, "1 unread")
	c.says(talk, "Ada", "Hello, are you there?", `hx-get="`+talk+`"`)
	c.want(c.post(talk, url.Values{"key": {c.form(talk)}, "body": {"Yes.\r\nAnd you?"}}), http.StatusSeeOther, talk)
	c.says(talk, "Yes.\nAnd you?", "Queued")
	sent, err := s.db.Messages.Search(
		t.Context(), d.WorkspaceID, store.MessageSearch{Direction: postern.Outbound}, store.MessagePlace{}, 5,
	)
	list := sent.Messages
	if err != nil || len(list) != 1 || list[0].To != contact || list[0].Content.Text != "Yes.\nAnd you?" {
		t.Fatalf("sent %+v, %v", list, err)
	}
	s.ends(list[0].ID, postern.Sent, "")
	if err := s.db.Messages.RecordReceipts(t.Context(), []store.Receipt{
		{
			DeviceID: d.ID, NetworkID: list[0].NetworkID, Chats: []string{contact}, Status: postern.Delivered,
			At: list[0].CreatedAt, Now: list[0].CreatedAt,
		},
	}); err != nil {
		t.Fatal(err)
	}
	c.says(talk, "Delivered")
	c.says("/messages/chats", "You:", "Yes.", "Delivered")
	if p := c.post(talk, url.Values{"key": {c.form(talk)}, "body": {""}}); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, "needs a body") {
		t.Errorf("an empty answer is answered %d", p.status)
	}
	c.says("/messages/chats/"+string(d.ID)+"/+15559999999", "No messages yet") // one may begin
	c.want(c.get("/messages/chats/"+string(d.ID)+"/nobody"), http.StatusNotFound, "")
}

// A double click, a reload of the post, and two posts at once send one message, of
// which one unit of the quota is spent.
func TestWhatAFormSendsIsSentOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	form := url.Values{
		"key": {c.form("/messages/new")}, "device": {string(d.ID)}, "to": {"+1 555 123-4567"}, "body": {"once"},
	}
	places := make([]string, 4)
	var wg sync.WaitGroup
	for i := range places {
		wg.Go(func() { places[i] = c.post("/messages", form).header.Get("Location") })
	}
	wg.Wait()
	again := c.post("/messages", form).header.Get("Location")
	for _, p := range []string{places[0], places[1], places[2], places[3], again} {
		if p != places[0] || !strings.HasPrefix(p, "/messages/msg_") {
			t.Errorf("the posts lead to %v", places)
		}
	}
	found, err := s.db.Messages.Search(
		t.Context(), d.WorkspaceID, store.MessageSearch{}, store.MessagePlace{}, 9,
	)
	list := found.Messages
	if err != nil || len(list) != 1 {
		t.Fatalf("%d messages, %v", len(list), err)
	}
	owner, err := s.g.Workspaces.Caller(t.Context(), access.Operator(), d.WorkspaceID)
	if err != nil {
		t.Fatal(err)
	}
	if usage, err := s.g.Statistics.Usage(t.Context(), owner); err != nil || usage.Messages.Used != 1 {
		t.Errorf("%d units are spent, want 1 (%v)", usage.Messages.Used, err)
	}
	form.Set("body", "another text under the same key")
	if p := c.post("/messages", form); p.status != http.StatusUnprocessableEntity ||
		!strings.Contains(p.body, "Press Send again") || strings.Contains(p.body, form.Get("key")) {
		t.Errorf("another message from the same form is answered %d", p.status)
	}
}

// TestTextOfAnyScriptFitsTheForm sends the longest text in a script whose characters take
// nine bytes each in a form.
func TestTextOfAnyScriptFitsTheForm(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	p := c.post("/messages", url.Values{
		"key": {c.form("/messages/new")}, "device": {string(d.ID)}, "to": {"+1 (555) 123-4567"},
		"body": {strings.Repeat("字", postern.MaxText)},
	})
	if p.status != http.StatusSeeOther {
		t.Errorf("the longest text is answered %d", p.status)
	}
}

func TestARefusedMessageKeepsWhatWasEntered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d, away := s.connected(s.workspace(), "Support"), s.connected(s.workspace(), "Away")
	if err := s.db.Devices.SetState(t.Context(), store.SetDeviceState{
		WorkspaceID: away.WorkspaceID, DeviceID: away.ID, Status: postern.LoggedOut, At: 1,
	}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		device   postern.DeviceID
		to, body string
		say      string
	}{
		"number":    {d.ID, "12", "hello <b> \u2067שלום\u2069", "Write a phone number as + and 7 to 15 digits"},
		"zeros":     {d.ID, "0049 151 2345678", "hello <b>", "Write + instead of the leading 00"},
		"text":      {d.ID, contact, "", "needs a body"},
		"away":      {away.ID, contact, "hello <b>", "The device is not connected"},
		"too large": {d.ID, contact, strings.Repeat("字", postern.MaxText+1), ""},
	} {
		key := c.form("/messages/new")
		p := c.post("/messages", url.Values{
			"key": {key}, "device": {string(tt.device)}, "to": {tt.to},
			"body": {tt.body},
		})
		if tt.say == "" {
			if p.status >= 500 {
				t.Errorf("%s is answered %d", name, p.status)
			}
			continue
		}
		if p.status != http.StatusUnprocessableEntity || !strings.Contains(p.body, tt.say) ||
			!strings.Contains(p.body, `value="`+strings.ReplaceAll(tt.to, "+", "&#43;")+`"`) &&
				!strings.Contains(p.body, `value="`+tt.to+`"`) {
			t.Errorf("%s is answered %d without %q, or without what was entered", name, p.status, tt.say)
		}
		if tt.body != "" && !strings.Contains(p.body, html.EscapeString(tt.body)) ||
			!strings.Contains(p.body, `value="`+string(tt.device)+`" selected`) {
			t.Errorf("%s: the text or the device is lost", name)
		}
	}
	for _, key := range []string{"", "x", strings.Repeat("a", 26), strings.Repeat("A", 5000)} {
		if p := c.post("/messages", url.Values{
			"key": {key}, "device": {string(d.ID)}, "to": {contact}, "body": {"x"},
		}); p.status != http.StatusUnprocessableEntity {
			t.Errorf("the key %.10q is answered %d", key, p.status)
		}
	}
}

func TestAMessagesWayIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	id := c.sends(d, contact, "hello")
	own := "/messages/" + string(id)
	c.says(
		own, "The message was accepted.", "Accepted", "The device sends its messages one at a time", "Not yet",
		"Expires",
		`hx-get="`+own+`"`, "&#34;networkId&#34;", string(id),
	)
	if err := s.db.Outbox.MarkSending(id, 0)(); err != nil {
		t.Fatal(err)
	}
	c.says(own, "The message was handed to the network")
	s.ends(id, postern.Sent, "")
	c.says(own, "The network accepted the message.", "Delivered")
	caller, err := s.g.Workspaces.Caller(t.Context(), access.Operator(), d.WorkspaceID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.g.Actions.React(t.Context(), caller, id, "👍"); err != nil {
		t.Fatal(err)
	}
	c.says(own, "Reaction 👍", "By you. The network has not confirmed it yet.")
	c.saysNot(own, "Expires")
	for code, text := range map[postern.FailureCode]string{
		postern.RecipientNotFound: "not on the network", postern.RestrictedSender: "never written to it",
		postern.NetworkRejected: "refused the message", postern.EncryptionFailed: "encrypted",
		postern.DeviceLoggedOut: "was logged out before", postern.Unconfirmed: "may have been delivered",
		"SOMETHING_NEW": "SOMETHING_NEW",
	} {
		id := c.sends(d, contact, "hello")
		s.ends(id, postern.Failed, code)
		p := c.says("/messages/"+string(id), "Failed", text, string(code))
		if strings.Contains(mainOf(p), "hx-get") {
			t.Error("the page of what has ended is asked for again")
		}
	}
	expired := c.sends(d, contact, "hello")
	s.ends(expired, postern.Expired, "")
	c.says("/messages/"+string(expired), "expired before it could be sent")
	in := s.comes(d, contact, "Ada", "hi")
	c.says("/messages/"+string(in.ID), "Sent by the contact", "Recorded", "Ada")
}

// The way of a message names the webhook to which an event was posted.
func TestAMessagesWayNamesItsWebhooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	e, _ := c.addWebhook(hookURL)
	s.activate(e)
	m := s.comes(d, contact, "Ada", "hello")
	s.attempted(e, http.StatusOK, "", "")
	way := c.says(messagePath(m.ID), "message.received was posted to "+hookURL+".")
	c.says(link(t, way, `href="(/events/evt_[0-9A-Z]{26})"><bdi>message.received<`), "hello", hookURL)
	c.saysNot(messagePath(m.ID), "posted to "+string(e.ID))
	c.says(messagePath(m.ID), "View delivery", hookPath(e.ID)+"/deliveries/")
}

func TestTextsOfContactsStayText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "<script>alert(0)</script>")
	m := s.comes(d, contact, "<script>alert(1)</script>", "</bdi><script>alert(2)</script>")
	for _, path := range []string{
		"/messages", "/messages/chats", "/messages/chats/" + string(d.ID) + "/" + contact, "/messages/" + string(m.ID),
		"/messages/new", "/messages?q=%3Cscript%3Ealert(3)",
	} {
		if p := c.get(path); strings.Contains(p.body, "<script>alert") || p.status >= 500 {
			t.Errorf("%s holds the script of a contact (%d)", path, p.status)
		}
	}
}

// What somebody else's workspace has is not there, by whatever path it is asked.
func TestMessagesOfOthersAreNotThere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	mine := s.connected(s.workspace(), "Support")
	ws, err := s.g.Workspaces.Create(t.Context(), access.Operator(),
		gateway.NewWorkspace{
			Name: "other",
			Plan: "growth",
		})
	if err != nil {
		t.Fatal(err)
	}
	d := s.connected(ws.ID, "theirs")
	m := s.comes(d, contact, "Ada", "a secret of theirs")
	for _, path := range []string{
		"/messages/" + string(m.ID), "/messages/msg_none", "/messages?device=" + string(d.ID),
		"/messages.csv?device=" + string(d.ID), "/messages/chats?device=" + string(d.ID),
		"/messages/chats/" + string(d.ID) + "/" + contact, "/messages/chats/dev_none/" + contact,
	} {
		if p := c.want(c.get(path), http.StatusNotFound, ""); strings.Contains(p.body, "a secret") {
			t.Errorf("%s shows it", path)
		}
	}
	if p := c.get("/messages?q=" + string(m.ID)); p.status != http.StatusUnprocessableEntity ||
		strings.Contains(p.body, "a secret") {
		t.Errorf("its id is answered %d", p.status)
	}
	for _, path := range []string{
		"/messages", "/messages?q=" + url.QueryEscape(contact), "/messages.csv", "/messages/chats",
		"/messages/chats/" + string(mine.ID) + "/" + contact,
	} {
		c.saysNot(path, "a secret")
	}
	key := c.form("/messages/new")
	c.want(
		c.post("/messages", url.Values{"key": {key}, "device": {string(d.ID)}, "to": {contact}, "body": {"x"}}),
		http.StatusNotFound, "",
	)
	c.want(
		c.post("/messages/chats/"+string(d.ID)+"/"+contact, url.Values{"key": {key}, "body": {"x"}}),
		http.StatusNotFound, "",
	)
}

func TestViewerReadsMessagesAndSendsNone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	m := s.comes(d, contact, "Ada", "hello")
	talk, key := "/messages/chats/"+string(d.ID)+"/"+contact, c.form("/messages/new")
	form := url.Values{"key": {key}, "device": {string(d.ID)}, "to": {contact}, "body": {"x"}}
	s.as(postern.Viewer)
	for _, path := range []string{"/messages", "/messages/chats", talk, "/messages/" + string(m.ID)} {
		c.saysNot(path, "<textarea", "/messages/new")
	}
	c.want(c.get("/messages.csv"), http.StatusOK, "")
	c.want(c.get("/messages/new"), http.StatusForbidden, "")
	c.want(c.post("/messages", form), http.StatusForbidden, "")
	c.want(c.post(talk, form), http.StatusForbidden, "")
	s.as("")
	for _, path := range []string{"/messages", "/messages.csv", "/messages/chats", talk, "/messages/" + string(m.ID)} {
		c.want(c.get(path), http.StatusForbidden, "")
	}
	stranger := s.browser()
	for _, path := range []string{"/messages", "/messages.csv", "/messages/new", talk} {
		stranger.want(stranger.get(path), http.StatusSeeOther, "/signin?next="+url.QueryEscape(path))
	}
	for _, path := range []string{"/messages", talk} {
		stranger.want(stranger.post(path, form), http.StatusSeeOther, "/signin")
		if p := c.do(http.MethodPost, path, form, "Sec-Fetch-Site", "cross-site"); p.status != http.StatusForbidden {
			t.Errorf("POST %s from another site is answered %d", path, p.status)
		}
	}
}

func readCSV(t *testing.T, p answer) [][]string {
	t.Helper()
	list, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(p.body, "\ufeff"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestMessagesAreExportedWithTheFiltersOfTheSearch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	for i := range exportPage + 1 {
		s.comes(d, contact, "Ada", fmt.Sprintf("text %d", i))
	}
	evil := []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"}
	for _, body := range evil {
		s.comes(d, "+15559990000", body, body)
	}
	p := c.want(c.get("/messages.csv"), http.StatusOK, "")
	if kind, as := p.header.Get("Content-Type"),
		p.header.Get("Content-Disposition"); !strings.HasPrefix(kind,
		"text/csv;") ||
		!strings.HasPrefix(as, "attachment; filename=") || p.header.Get("X-Row-Limit") != "100000" {
		t.Errorf("the file comes as %s, %s", kind, as)
	}
	list := readCSV(t, p)
	if len(list) != 1+exportPage+1+len(evil) || list[0][0] != "id" {
		t.Fatalf("%d rows", len(list))
	}
	for _, cells := range list {
		for _, cell := range cells {
			if strings.ContainsAny(cell[:min(len(cell), 1)], "=+-@\t\r\n") || strings.HasPrefix(cell, "＝") {
				t.Errorf("the cell %q is a formula", cell)
			}
		}
	}
	list = readCSV(t, c.get("/messages.csv?direction=inbound&q="+url.QueryEscape(contact)))
	if len(list) != 1+exportPage+1 || list[1][4] != "'"+contact || list[1][9] != fmt.Sprintf("text %d", exportPage) {
		t.Errorf("%d rows, the first %v", len(list), list[1])
	}
	if p := c.get("/messages.csv?q=%3C%3E"); p.status != http.StatusUnprocessableEntity {
		t.Errorf("a search for nothing is answered %d", p.status)
	}
}

// The first rows are with the reader while the rest is not read from the store yet:
// nothing on the way, such as what keeps sessions, holds the file back. A reader who may
// read no more meanwhile gets no more, and sees that the file is not whole.
func TestExportIsStreamedAsLongAsItsReaderMayRead(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*site){
		"left the workspace": func(s *site) { s.as("") },
		"signed out everywhere": func(s *site) {
			if err := s.p.SignIns.EndAll(s.t.Context(), access.Self{ID: s.member(email)}); err != nil {
				s.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { exportIsCut(t, end) })
	}
}

func exportIsCut(t *testing.T, end func(*site)) {
	t.Helper()
	s := newSite(t)
	c := s.setUp()
	d := s.connected(s.workspace(), "Support")
	for range 2*exportPage + 1 { // more than the buffers between here and there take
		s.comes(d, contact, "", strings.Repeat("long ", 12_000))
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/messages.csv", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 1000)); err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.StatusCode, err)
	}
	if p := c.get("/messages.csv"); p.status != http.StatusTooManyRequests || p.header.Get("Retry-After") != "10" {
		t.Errorf("a second file at the same time is answered %d", p.status)
	}
	end(s)
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil {
		t.Errorf("the file is whole, after %d bytes", n)
	}
}

func TestExportHoldsNoFormulas(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"": "", "hello": "hello", "a = b; c - d": "a = b; c - d", "https://example.com/?a=b": "https://example.com/?a=b",
		"=1+1": "'=1+1", "+15551234567": "'+15551234567", " =1+1": "' =1+1", "＝1+1": "'＝1+1", "\t=1+1": "'\t'=1+1",
		";=cmd|' /C calc'!A0;": ";'=cmd|' /C calc'!A0;", "hi\n-cmd|' /C calc'!A0;": "hi\n'-cmd|' /C calc'!A0;",
		"a;\t @SUM(1)": "a;\t '@SUM(1)", ";;=1": ";;'=1", ";\"=1": ";\"'=1", "\"=1": "'\"=1", "\"a": "\"a",
		"a\u2028=1": "a\u2028'=1", ";\u200b=1": ";\u200b'=1", "−1": "'−1", "é": "é", "1": "1",
	} {
		if got := harmless(cell); got != want {
			t.Errorf("%q is written as %q, want %q", cell, got, want)
		}
	}
}

// A cell that begins with a character that a program may skip does not begin with it in the file,
// whatever follows.
func TestExportEscapesEveryInvisibleStart(t *testing.T) {
	t.Parallel()
	step := func(r rune) rune { // private planes are all alike
		if r < 0x20000 {
			return 1
		}
		return 0x101
	}
	for r := rune(0); r <= unicode.MaxRune; r += step(r) {
		if unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !strings.ContainsRune("\u3164\u2800", r) ||
			!utf8.ValidRune(r) {
			continue
		}
		if cell := string(r) + "=1+1"; harmless(cell)[0] != '\'' {
			t.Fatalf("%q is written as %q", cell, harmless(cell))
		}
	}
	for _, cell := range []string{"\t", "\thello", "\u200b", "\u200bhello"} {
		if harmless(cell) != "'"+cell {
			t.Errorf("%q is written as %q", cell, harmless(cell))
		}
	}
	for _, r := range "=+-@＝＋－＠" {
		if cell := string(r) + "1"; harmless(cell) != "'"+cell {
			t.Errorf("%q is written as %q", cell, harmless(cell))
		}
	}
}

func TestExportHasAnEnd(t *testing.T) {
	t.Parallel()
	w := &flushed{header: http.Header{}}
	f := &exported{ctl: http.NewResponseController(w), csv: csv.NewWriter(w)}
	if err := f.write([]postern.Message{{ID: "msg_1"}}); err != nil || w.flushes != 1 {
		t.Errorf("a page is flushed %d times, %v", w.flushes, err)
	}
	f.rows = exportRows - 1
	if err := f.write([]postern.Message{{ID: "msg_2"}, {ID: "msg_3"}}); err != nil || !f.full {
		t.Errorf("full: %t, %v", f.full, err)
	}
	if got := w.b.String(); !strings.Contains(got, "msg_2") || strings.Contains(got, "msg_3") ||
		!strings.Contains(got, "Narrow the search") {
		t.Errorf("written: %s", got)
	}
}

// flushed counts what is pushed on its way.
type flushed struct {
	header  http.Header
	b       strings.Builder
	flushes int
}

func (w *flushed) Header() http.Header         { return w.header }
func (w *flushed) Write(b []byte) (int, error) { return w.b.Write(b) }
func (w *flushed) WriteHeader(int)             {}
func (w *flushed) Flush()                      { w.flushes++ }

func TestPageOfAMessageAsksLessOftenInTime(t *testing.T) {
	t.Parallel()
	at := postern.TimeOf(time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC))
	for _, c := range []struct {
		status postern.MessageStatus
		source string
		after  time.Duration
		want   time.Duration
	}{
		{postern.Queued, postern.FromAPI, 0, 2 * time.Second},
		{postern.Delivered, postern.FromAPI, 9 * time.Minute, 2 * time.Second},
		{postern.Delivered, postern.FromAPI, time.Hour, 30 * time.Second},
		{postern.Read, postern.FromAPI, 0, 0},
		{postern.Failed, postern.FromAPI, 0, 0},
		{postern.Expired, postern.FromAPI, 0, 0},
		{postern.Received, postern.FromContact, 0, 0},
		{postern.Delivered, postern.FromPhone, 0, 0},
	} {
		m := postern.Message{Status: c.status, Source: c.source, CreatedAt: at}
		if got := every(m, at.Std().Add(c.after)); got != c.want {
			t.Errorf("%s from %s after %s: every %s, want %s", c.status, c.source, c.after, got, c.want)
		}
	}
}

// A refusal that passes, or that the person can do something about, leaves what was written in the form.
func TestRefusedMessagesStayWritten(t *testing.T) {
	t.Parallel()
	for reason, kept := range map[postern.Reason]bool{
		postern.NewChatsBlocked: true, postern.ResourceLimit: true, postern.RateLimited: true, postern.Unavailable: true,
		postern.QuotaExhausted: true, postern.DeviceNotConnected: true, postern.NotFound: false, postern.MissingScope: false,
	} {
		if _, problem, ok := refusedMessage(postern.Errorf(reason, "no")); ok != kept || (problem != "") != kept {
			t.Errorf("after %s the form is shown again: %v (%q)", reason, ok, problem)
		}
	}
}
