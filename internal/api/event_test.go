package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
)

// receive lets a device take in a message from a contact.
func (t *tenant) receive(device postern.DeviceID, body string) {
	t.t.Helper()
	t.take(device, postern.Text(body))
}

// hear lets the device receive a voice message.
func (t *tenant) hear(device postern.DeviceID) {
	t.t.Helper()
	t.take(device, postern.Content{Kind: postern.KindVoice, Media: &postern.Media{MIMEType: "audio/ogg", Size: 4096}})
}

func (t *tenant) take(device postern.DeviceID, c postern.Content) {
	t.t.Helper()
	m := postern.Message{
		WorkspaceID: t.ws, DeviceID: device, Direction: postern.Inbound, Status: postern.Received,
		ChatID: "+15551234567", From: "+15551234567",
		Content: c, NetworkID: postern.NewNetworkID(), Source: postern.FromContact,
	}
	if err := t.next().g.Sessions.Receive(t.t.Context(), m, "+15551234567", postern.MessageReceived, gateway.ArrivedFile{}); err != nil {
		t.t.Error(err)
	}
}

type loggedEvent struct {
	EventID, Type, Timestamp, DeviceID, WorkspaceID string
	Sequence                                        int64
	Message                                         map[string]any
	Device                                          map[string]any
}

type eventList struct {
	Data       []loggedEvent `json:"data"`
	NextCursor *string       `json:"nextCursor"`
}

func (t *tenant) events(query string) (l eventList) {
	t.t.Helper()
	a := t.do("GET", "/v1/events?"+query, "")
	a.what += "?" + query
	a.want(http.StatusOK, "")
	if err := json.Unmarshal(a.Body.Bytes(), &l); err != nil || l.Data == nil {
		t.t.Fatalf("%s: %v in %s", a.what, err, a.Body)
	}
	return l
}

// bodies are the texts of the messages in a list.
func (l eventList) bodies() (texts string) {
	for _, e := range l.Data {
		s, _ := e.Message["body"].(string)
		texts += s
	}
	return texts
}

// remove takes events away as the retention does.
func (t *tenant) remove(before time.Time) {
	t.t.Helper()
	for from, more := int64(0), true; more; {
		var err error
		if from, more, err = t.db.Events.Remove(t.t.Context(), t.ws, postern.TimeOf(before), from); err != nil {
			t.t.Fatal(err)
		}
	}
}

func TestLogOfEvents(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine, other := s.tenant("growth"), s.tenant("growth")
	a, b := mine.device("a", postern.Connected), mine.device("b", postern.Connected)
	theirs := other.device("c", postern.Connected)
	other.receive(theirs, "x")
	for _, n := range []string{"1", "2", "3"} {
		mine.receive(a, "a"+n)
		mine.receive(b, "b"+n)
	}
	all := mine.events("")
	if len(all.Data) != 10 || all.bodies() != "a1b1a2b2a3b3" || all.NextCursor != nil ||
		all.Data[0].Type != "device.linking" || all.Data[1].Type != "device.linked" ||
		all.Data[0].Device["id"] != string(a) {
		t.Fatalf("the log is %+v", all)
	}
	first := all.Data[4] // a1
	if first.EventID == "" || first.WorkspaceID != string(mine.ws) || first.DeviceID != string(a) ||
		first.Sequence != 3 || first.Message["from"] != "+15551234567" {
		t.Errorf("an event is %+v", first)
	}
	for query, want := range map[string]string{
		"after=" + first.EventID:                             "b1a2b2a3b3",
		"after=" + all.Data[9].EventID:                       "",
		"type=message.received&deviceId=" + string(b):        "b1b2b3",
		"type=message.*":                                     "a1b1a2b2a3b3",
		"type=device.*":                                      "",
		"type=device.linked,message.*&limit=4":               "a1b1",
		"type=*&after=" + first.EventID + "&limit=1":         "b1",
		"deviceId=" + string(a) + "&after=" + first.EventID:  "a2a3",
		"type=message.read":                                  "",
		"type=message.received&after=" + all.Data[8].EventID: "b3",
	} {
		if got := mine.events(query).bodies(); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := other.events("").bodies(); got != "x" {
		t.Errorf("the log of another workspace: %q", got)
	}
	mine.do("GET", "/v1/events?after="+other.events("").Data[0].EventID, "").want(http.StatusForbidden,
		postern.ResourceNotAllowed)
	mine.do("GET", "/v1/events?after="+string(postern.NewEventID()), "").want(http.StatusNotFound, postern.NotFound)
	mine.do("GET", "/v1/events?after="+canary, "").want(http.StatusNotFound, postern.NotFound)
	mine.do("GET", "/v1/events?deviceId="+string(theirs), "").want(http.StatusForbidden, postern.ResourceNotAllowed)
	for _, query := range []string{
		"type=message", "type=", "type=message.*,", "type=a&type=b", "limit=201",
		"after=" + first.EventID + "&cursor=x",
	} {
		mine.do("GET", "/v1/events?"+query, "").want(http.StatusUnprocessableEntity, postern.ValidationFailed)
	}
}

func TestLogInPages(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine, other := s.tenant("growth"), s.tenant("growth")
	device := mine.device("a", postern.Connected)
	for n := range 10 {
		mine.receive(device, fmt.Sprint(n))
	}
	texts, query := "", "type=message.*&limit=3"
	for range 10 {
		l := mine.events(query)
		texts += l.bodies()
		if l.NextCursor == nil {
			break
		}
		query = "type=message.*&limit=3&cursor=" + *l.NextCursor
		other.do("GET", "/v1/events?cursor="+*l.NextCursor, "").want(http.StatusBadRequest, postern.MalformedRequest)
		mine.do("GET", "/v1/messages?cursor="+*l.NextCursor, "").want(http.StatusBadRequest, postern.MalformedRequest)
		mine.do("GET", "/v1/events?cursor="+(*l.NextCursor)[1:], "").want(http.StatusBadRequest,
			postern.MalformedRequest)
	}
	if texts != "0123456789" {
		t.Errorf("pages give %q", texts)
	}
}

func TestKeyLimitedToDevicesSeesTheirEventsOnly(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("growth")
	a, b := mine.device("a", postern.Connected), mine.device("b", postern.Connected)
	mine.receive(a, "a")
	mine.receive(b, "b")
	limited := mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{a}}))
	if got := limited.events("type=message.*").bodies(); got != "a" {
		t.Errorf("a limited key sees %q", got)
	}
	ofB := mine.events("deviceId=" + string(b)).Data[0].EventID
	limited.do("GET", "/v1/events?after="+ofB, "").want(http.StatusForbidden, postern.ResourceNotAllowed)
	limited.do("GET", "/v1/events/stream", "", "Last-Event-ID", ofB).want(http.StatusForbidden,
		postern.ResourceNotAllowed)
	limited.do("GET", "/v1/events?deviceId="+string(b), "").want(http.StatusForbidden, postern.ResourceNotAllowed)
}

// wholeLog gives the ids of all events, page by page.
func (t *tenant) wholeLog() (ids []string) {
	t.t.Helper()
	cursor := ""
	for {
		l := t.events("limit=200" + cursor)
		for _, e := range l.Data {
			ids = append(ids, e.EventID)
		}
		if l.NextCursor == nil {
			return ids
		}
		cursor = "&cursor=" + *l.NextCursor
	}
}

// TestReadingOnMissesNothing reads behind the last event seen while many
// write: whatever is committed later comes behind it.
func TestReadingOnMissesNothing(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 50
	mine := newServer(t).tenant("enterprise")
	var wg sync.WaitGroup
	for w := range writers {
		device := mine.device("d", postern.Connected)
		wg.Go(func() {
			for n := range each {
				mine.receive(device, fmt.Sprintf("%d.%d ", w, n))
			}
		})
	}
	written := make(chan struct{})
	go func() { wg.Wait(); close(written) }()
	var seen []string
	after := ""
	for ended := false; ; {
		select {
		case <-written:
			ended = true
		default:
		}
		l := mine.events("limit=7" + after)
		for _, e := range l.Data {
			seen = append(seen, e.EventID)
			after = "&after=" + e.EventID
		}
		if ended && len(l.Data) == 0 {
			break
		}
	}
	all := mine.wholeLog()
	const linking, linked = 1, 1
	if len(seen) != writers*(linking+linked+each) || !slices.Equal(seen, all) {
		t.Errorf("reading on gave %d events, the log has %d, want %d", len(seen), len(all), writers*(linking+linked+each))
	}
}

// nextMillisecond waits for the clock to show another time than now, since times
// have milliseconds.
func nextMillisecond() {
	for now := postern.TimeOf(time.Now()); postern.TimeOf(time.Now()) == now; {
		runtime.Gosched()
	}
}

func TestRemovedEventsAreNoSilentGap(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine, other := s.tenant("growth"), s.tenant("growth")
	device := mine.device("a", postern.Connected)
	for n := range 6 {
		mine.receive(device, fmt.Sprint(n))
	}
	old := mine.events("type=message.*&limit=4")
	nextMillisecond()
	cut := time.Now()
	mine.receive(device, "6")
	mine.receive(device, "7")
	young := mine.events("type=message.received&after=" + old.Data[3].EventID).Data[2]
	mine.remove(cut)
	if got := mine.events("").bodies(); got != "67" {
		t.Errorf("after the retention the log is %q, want 67", got)
	}
	if got := mine.events("after=" + young.EventID).bodies(); got != "7" {
		t.Errorf("behind an event that is kept: %q, want 7", got)
	}
	for name, query := range map[string]string{
		"after":  "after=" + old.Data[3].EventID,
		"cursor": "cursor=" + *old.NextCursor, "with a filter": "type=device.*&after=" + old.Data[0].EventID,
	} {
		a := mine.do("GET", "/v1/events?"+query, "")
		a.what = name
		if p := a.want(http.StatusGone, postern.EventsExpired); p.Code != "EVENTS_EXPIRED" {
			t.Errorf("code %s", p.Code)
		}
	}
	mine.do("GET", "/v1/events/stream", "", "Last-Event-ID", old.Data[3].EventID).want(http.StatusGone,
		postern.EventsExpired)
	future := "evt_7ZZZZZZZZZ0000000000000000"
	mine.do("GET", "/v1/events?after="+future, "").want(http.StatusNotFound, postern.NotFound)
	mine.do("GET", "/v1/events?after=evt_x", "").want(http.StatusNotFound, postern.NotFound)
	other.do("GET", "/v1/events?after="+old.Data[3].EventID, "").want(http.StatusNotFound, postern.NotFound)
	// All removed: what comes next is behind the place that was last seen.
	last := mine.events("").Data[1].EventID
	nextMillisecond()
	mine.remove(time.Now())
	if l := mine.events(""); len(l.Data) != 0 || l.NextCursor != nil {
		t.Errorf("an empty log is %+v", l)
	}
	mine.do("GET", "/v1/events?after="+last, "").want(http.StatusGone, postern.EventsExpired)
	mine.receive(device, "8")
	if got := mine.events("").bodies(); got != "8" {
		t.Errorf("after all was removed: %q", got)
	}
}

func TestEventsOfADeletedDeviceKeepIDsOnly(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("growth")
	device := mine.device("a", postern.Connected)
	mine.receive(device, canary)
	mine.do("DELETE", "/v1/devices/"+string(device), "").want(http.StatusNoContent, "")
	var at store.PurgePlace
	for {
		p, err := mine.db.Devices.Purge(t.Context(), device, &at)
		if err != nil {
			t.Fatal(err)
		}
		if p != 0 {
			break
		}
	}
	l := mine.events("type=message.*")
	if len(l.Data) != 1 || l.Data[0].EventID == "" || l.Data[0].Sequence != 3 || l.Data[0].Timestamp == "" ||
		l.Data[0].DeviceID != string(device) ||
		l.Data[0].Message != nil {
		t.Errorf("the log of a deleted device: %+v", l)
	}
	if a := mine.do("GET", "/v1/events", ""); strings.Contains(a.Body.String(), canary) ||
		strings.Contains(a.Body.String(),
			"15551234567") {
		t.Errorf("the log of a deleted device shows %s", a.Body)
	}
}
