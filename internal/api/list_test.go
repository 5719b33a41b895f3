package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/storetest"
)

// TestDeviceListIsAsTheInterfaceSays pins the bytes of the answer.
func TestDeviceListIsAsTheInterfaceSays(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("growth")
	a := mine.do("GET", "/v1/devices", "", "Accept", "application/json")
	a.want(http.StatusOK, "")
	if got := a.Body.String(); got != `{"data":[],"nextCursor":null}` ||
		a.Header().Get("Content-Type") != "application/json" {
		t.Errorf("no devices: %s of type %s", got, a.Header().Get("Content-Type"))
	}
	const day = postern.Time(1795251600000)
	for _, d := range []postern.Device{
		{ID: "dev_01JD8Z3NDEKTSV4RRFFQ69G5FA", Name: "Support <1> & \"Co\"", Mode: "live", Status: postern.Connected, PhoneNumber: "+15550001111", DisplayName: "Acme", Metadata: map[string]string{"team": "b"}, Pace: &postern.Pace{PerMinute: 20}, Receive: postern.DefaultReceive(), CreatedAt: day, LinkedAt: day.Add(1e9), ConnectedAt: day.Add(2e9), LastSeenAt: day.Add(3e9)},
		{ID: "dev_01JD8Z3NDEKTSV4RRFFQ69G5FB", Name: "New", Mode: "live", Status: postern.Unlinked, Metadata: map[string]string{}, Receive: postern.DefaultReceive(), CreatedAt: day},
	} {
		d.WorkspaceID, d.Desired = mine.ws, postern.WantIdle
		if err := s.db.Devices.Create(t.Context(), d, nil); err != nil {
			t.Fatal(err)
		}
	}
	a = mine.do("GET", "/v1/devices", "")
	a.want(http.StatusOK, "")
	golden(t, "devices.json", a.Body.Bytes())
}

type list struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

func (a *answerT) list() (l list) {
	a.t.Helper()
	a.want(http.StatusOK, "")
	if err := json.Unmarshal(a.Body.Bytes(), &l); err != nil || l.Data == nil {
		a.t.Fatalf("%s: %v in %s", a.what, err, a.Body)
	}
	return l
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine, other := s.tenant("enterprise"), s.tenant("enterprise")
	var want []string
	for i := range 7 {
		want = append(want, string(mine.device(fmt.Sprint(i), postern.Unlinked)))
		other.device("x", postern.Unlinked)
	}
	slices.Sort(want) // ids tell the millisecond; within one their order is chance
	slices.Reverse(want)
	var got []string
	target, cursor := "/v1/devices?limit=3", ""
	for range 10 {
		l := mine.do("GET", target, "").list()
		for _, d := range l.Data {
			got = append(got, d.ID)
		}
		if l.NextCursor == nil {
			break
		}
		cursor = *l.NextCursor
		target = "/v1/devices?limit=3&cursor=" + cursor
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("pages give %v, want %v", got, want)
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw { // no byte of it may be changed
		changed := append([]byte(nil), raw...)
		changed[i] ^= 1
		mine.do("GET", "/v1/devices?cursor="+base64.RawURLEncoding.EncodeToString(changed),
			"").want(http.StatusBadRequest,
			postern.MalformedRequest)
	}
	other.do("GET", "/v1/devices?cursor="+cursor, "").want(http.StatusBadRequest, postern.MalformedRequest)
	mine.do("GET", "/v1/messages?cursor="+cursor, "").want(http.StatusBadRequest, postern.MalformedRequest)
	mine.do("GET", "/v1/webhooks?cursor="+cursor, "").want(http.StatusBadRequest, postern.MalformedRequest)
}

// costly is a text that takes six times its size in JSON.
func costly(n int) string { return strings.Repeat("\x01", n) }

// phoneOfTexts is a sandbox in which every phone shows large messages.
type phoneOfTexts struct{ fakeSandbox }

func (p phoneOfTexts) Of(postern.WorkspaceID) (gateway.SandboxNetwork, error) { return p, nil }

func (phoneOfTexts) Phone(string) []gateway.PhoneMessage {
	return slices.Repeat([]gateway.PhoneMessage{{
		ID: "x", From: "+15550001111", To: "+15551234567", Type: postern.KindText, Body: costly(postern.MaxText), At: 1,
	}}, 20)
}

// TestPagesAreBoundedByBytes reads lists whose entries are as large as they can be, to the
// end: no response is larger than 1 MiB, and nothing is left out.
func TestPagesAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	const n = 7
	mine := newServerWith(t, phoneOfTexts{}).tenant("enterprise")
	device := mine.device("d", postern.Connected)
	var labels []string
	for i := range 50 {
		labels = append(labels, fmt.Sprintf(`"%d":"%s"`, i, strings.Repeat(`\u0001`, 500)))
	}
	for range n {
		mine.receive(device, costly(postern.MaxText))
		mine.do("POST", "/v1/devices", `{"name":"d","metadata":{`+strings.Join(labels, ",")+`}}`).want(http.StatusCreated, "")
	}
	for path, want := range map[string]int{
		"/v1/messages": n, "/v1/events": n + 2, "/v1/devices": n + 1,
	} {
		got, pages, target := 0, 0, path+"?limit=200"
		for target != "" {
			a := mine.do("GET", target, "")
			if pages++; a.Body.Len() > 1<<20 || pages > n {
				t.Fatalf("page %d of %s has %d bytes", pages, path, a.Body.Len())
			}
			l := a.list()
			got, target = got+len(l.Data), ""
			if l.NextCursor != nil {
				target = path + "?limit=200&cursor=" + *l.NextCursor
			}
		}
		if got != want || pages < 2 {
			t.Errorf("%d pages of %s have %d entries, want %d", pages, path, got, want)
		}
	}
	if a := mine.do("GET", "/v1/sandbox/devices/"+string(device)+"/phone", ""); len(a.list().Data) != 2 || a.Body.Len() > 1<<20 {
		t.Errorf("a phone is shown in %d bytes", a.Body.Len())
	}
}

// TestUnreadListKeepsNoTurn: however many responses a client does not read, the next list of
// its workspace is read and encoded.
func TestUnreadListKeepsNoTurn(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("growth")
	mine.device("d", postern.Connected)
	unread := unreadResponse{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	var requests sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		req := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/devices", nil)
		req.RemoteAddr = "127.0.0.1:1234"
		req.Header.Set("Authorization", "Bearer "+mine.key)
		requests.Go(func() { mine.handler.ServeHTTP(unread, req) })
		<-unread.began
	}
	if l := mine.do("GET", "/v1/devices", "").list(); len(l.Data) != 1 {
		t.Errorf("%d devices are listed beside responses that nobody reads", len(l.Data))
	}
	close(unread.read)
	requests.Wait()
}

// unreadResponse is a response whose client reads nothing until read is closed.
type unreadResponse struct {
	http.ResponseWriter
	began, read chan struct{}
}

func (w unreadResponse) Header() http.Header { return http.Header{} }

func (w unreadResponse) WriteHeader(int) {}

func (w unreadResponse) Write(b []byte) (int, error) {
	w.began <- struct{}{}
	<-w.read
	return len(b), nil
}

// TestTextsThatArePutIntoMemoryAreBounded: the store reads no more of a page than a
// response may have, whatever the limit is.
func TestTextsThatArePutIntoMemoryAreBounded(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	device := mine.device("d", postern.Connected)
	for range 20 {
		mine.receive(device, strings.Repeat("x", postern.MaxText))
	}
	found, err := mine.db.Messages.Search(t.Context(), mine.ws, store.MessageSearch{}, store.MessagePlace{}, 200)
	if err != nil || len(found.Messages) != 17 || !found.More {
		t.Fatalf("a search reads %d messages, more %v (%v)", len(found.Messages), found.More, err)
	}
	found, err = mine.db.Messages.Search(t.Context(), mine.ws, store.MessageSearch{}, found.Last, 200)
	if err != nil || len(found.Messages) != 3 || found.More {
		t.Errorf("the second page has %d messages, more %v (%v)", len(found.Messages), found.More, err)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	a, b := connected(mine), connected(mine)
	for _, device := range []string{a, a, b} {
		mine.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"+15551234567","body":"x"}`).want(http.StatusAccepted, "")
	}
	for query, want := range map[string]int{
		"": 3, "deviceId=" + a: 2, "deviceId=" + b + "&direction=outbound&status=queued": 1, "chatId=%2B15551234567": 3, "chatId=%2B15550000000": 0,
		"direction=inbound": 0, "since=2020-01-01T00:00:00Z": 3, "until=2020-01-01T00:00:00Z": 0, "since=1969-01-01T00:00:00Z&until=9999-12-31T23:59:59Z": 3, "limit=2": 2,
	} {
		if l := mine.do("GET", "/v1/messages?"+query, "").list(); len(l.Data) != want {
			t.Errorf("%s: %d messages, want %d", query, len(l.Data), want)
		}
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("starter")
	device := connected(mine)
	caller := mine.caller()
	send := func() {
		if _, err := s.g.Messages.Send(t.Context(), caller,
			gateway.NewMessage{
				DeviceID: postern.DeviceID(device), To: "+15551234567",
				Content: postern.Text("x"),
			}, nil); err != nil {
			t.Error(err)
		}
	}
	send()
	const left = 30 // of 3000
	storetest.OpenTable(t, s.dir, "").Exec(`UPDATE usage SET messages = messages + $1 WHERE workspace_id = $2`,
		3000-1-left, string(mine.ws))
	var wg sync.WaitGroup
	for range left {
		wg.Go(send)
	}
	wg.Wait()
	p := mine.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"+15551234567","body":"x"}`, "Idempotency-Key",
		"k").want(http.StatusForbidden, postern.QuotaExhausted)
	if p.Detail == "" {
		t.Error("no word of when the month ends")
	}
	// What is wrong with a request is told before the quota.
	mine.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"x","body":"x"}`).want(http.StatusUnprocessableEntity, postern.ValidationFailed)
	if err := s.g.Workspaces.SetPlan(t.Context(), access.Operator(), mine.ws, "growth"); err != nil {
		t.Fatal(err)
	}
	mine.do("POST", "/v1/messages", `{"deviceId":"`+device+`","to":"+15551234567","body":"x"}`, "Idempotency-Key",
		"k").want(http.StatusAccepted, "")
}

func TestLimitsOfAPlan(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("starter")
	linking(mine)
	second := mine.device("second", postern.Unlinked)
	mine.do("POST", "/v1/devices/"+string(second)+"/link", "").want(http.StatusForbidden, postern.DeviceLimit)
	for i := range 5 {
		mine.do("POST", "/v1/webhooks", fmt.Sprintf(`{"url":"https://hooks.test/%d"}`, i)).want(http.StatusCreated, "")
	}
	mine.do("POST", "/v1/webhooks", `{"url":"https://hooks.test/6"}`).want(http.StatusForbidden, postern.EndpointLimit)
}

func TestStates(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("enterprise")
	id := string(mine.device("d", postern.Unlinked))
	mine.do("POST", "/v1/devices/"+id+"/unlink", "").want(http.StatusConflict, postern.NotLinked)
	mine.do("DELETE", "/v1/devices/"+id+"/link", "").want(http.StatusConflict, postern.NoOpenLink)
	mine.do("GET", "/v1/devices/"+id+"/link", "").want(http.StatusNotFound, postern.NotFound)
	mine.do("GET", "/v1/devices/"+id+"/link/stream", "").want(http.StatusNotFound, postern.NotFound)
	mine.do("POST", "/v1/sandbox/devices/"+id+"/inbound",
		`{"from":"+15551234567","body":"x"}`).want(http.StatusConflict,
		postern.NotLinked)
	refused := mine.do("POST", "/v1/messages", `{"deviceId":"`+id+`","to":"+15551234567","body":"x"}`)
	refused.want(http.StatusConflict, postern.DeviceNotConnected)
	if detail := refused.member("detail"); !strings.Contains(detail, "unlinked; link it first") {
		t.Errorf("detail = %q, want it to say that the device must be linked", detail)
	}
	mine.do("POST", "/v1/devices/"+id+"/link", `{}`).want(http.StatusCreated, "")
	mine.do("POST", "/v1/devices/"+id+"/link", `{}`).want(http.StatusConflict, postern.LinkAlreadyOpen)
	mine.do("GET", "/v1/devices/"+id+"/link/qr.svg", "").want(http.StatusNotFound, postern.NotFound)
	mine.do("DELETE", "/v1/devices/"+id+"/link", "").want(http.StatusNoContent, "")
	mine.set(postern.DeviceID(id), postern.Connected)
	mine.do("POST", "/v1/devices/"+id+"/link", "").want(http.StatusConflict, postern.DeviceAlreadyLinked)
	mine.do("DELETE", "/v1/devices/"+id, "").want(http.StatusNoContent, "")
	mine.do("GET", "/v1/devices/"+id, "").want(http.StatusNotFound, postern.NotFound)
}

func TestContactsAreFilteredByPeople(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("growth")
	for chat, status := range map[string]int{
		"%2B15551234567": 200, "lid:123456789012345": 200, "group:120363041234567890": 422, "status": 422,
	} {
		if got := mine.do("GET", "/v1/contacts?chatId="+chat, "").Code; got != status {
			t.Errorf("contacts in %s: %d, want %d", chat, got, status)
		}
	}
}

// A time that has passed schedules nothing.
func TestAMessageForEarlierIsSentNow(t *testing.T) {
	t.Parallel()
	mine := newServer(t).tenant("growth")
	a := mine.do("POST", "/v1/messages", `{"deviceId":"`+connected(mine)+`","to":"+15551234567","body":"x","sendAt":"2020-01-01T00:00:00Z"}`)
	a.want(http.StatusAccepted, "")
	if a.member("status") != "queued" || strings.Contains(a.Body.String(), "sendAt") {
		t.Errorf("the message is %s", a.Body)
	}
}
