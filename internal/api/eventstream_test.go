package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// eventReader reads a stream of events over a real connection.
type eventReader struct {
	t     *testing.T
	lines *bufio.Scanner
	resp  *http.Response
}

func (t *tenant) stream(tb *testing.T, srv *httptest.Server, query string, headers ...string) *eventReader {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, srv.URL+"/v1/events/stream"+query, nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+t.key)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" ||
		resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("X-Accel-Buffering") != "no" {
		tb.Fatalf("stream: %d %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &eventReader{tb, lines, resp}
}

// next is the text of the next message, or "" at the end.
func (r *eventReader) next() (id, body string) {
	r.t.Helper()
	var name string
	for r.lines.Scan() {
		line := r.lines.Text()
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			id = v
		}
		if v, ok := strings.CutPrefix(line, "event: "); ok {
			name = v
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok {
			var e loggedEvent
			if err := json.Unmarshal([]byte(v), &e); err != nil || e.EventID != id || e.Type != name {
				r.t.Fatalf("event %s %s: %v in %s", id, name, err, v)
			}
			body, _ = e.Message["body"].(string)
			return id, body
		}
	}
	return "", ""
}

func (r *eventReader) wants(want string) (id string) {
	r.t.Helper()
	id, got := r.next()
	if got != want || id == "" {
		r.t.Fatalf("the stream gives %s %q, want %q", id, got, want)
	}
	return id
}

// begins looks at the place that a stream tells first.
func (r *eventReader) begins(id string) {
	r.t.Helper()
	want := "id: " + id
	if id == "" {
		want = ": no events yet" // and no id
	}
	if !r.lines.Scan() || r.lines.Text() != want || !r.lines.Scan() || r.lines.Text() != "" {
		r.t.Fatalf("the stream begins with %q, want the id %q and no event", r.lines.Text(), id)
	}
}

// ends reads to the end of the stream.
func (r *eventReader) ends() {
	r.t.Helper()
	for r.lines.Scan() {
		if strings.HasPrefix(r.lines.Text(), "data: ") {
			r.t.Fatalf("after its end the stream gives %s", r.lines.Text())
		}
	}
	if err := r.lines.Err(); err != nil {
		r.t.Errorf("the stream was cut: %v", err)
	}
}

func newStreamServer(t *testing.T) (*httptest.Server, *tenant) {
	t.Helper()
	s := newServer(t)
	s.api.SetPulse(time.Hour) // what ends a stream must not wait for a heartbeat
	srv := httptest.NewServer(s.handler)
	t.Cleanup(srv.Close)
	return srv, s.tenant("growth")
}

func TestStreamCatchesUpAndGoesOn(t *testing.T) {
	t.Parallel()
	srv, mine := newStreamServer(t)
	device, other := mine.device("a", postern.Connected), mine.device("b", postern.Connected)
	const before = 170 // several pages
	for n := range before {
		mine.receive(device, fmt.Sprint(n))
	}
	list := mine.events("type=message.*&limit=2")
	live := mine.stream(t, srv, "")
	r := mine.stream(t, srv, "?type=message.*&deviceId="+string(device), "Last-Event-ID", list.Data[1].EventID)
	mine.receive(other, "not asked for")
	mine.receive(device, "live")
	for n := 2; n < before; n++ {
		r.wants(fmt.Sprint(n))
	}
	last := r.wants("live")
	live.wants("not asked for")
	live.wants("live")
	r.resp.Body.Close()
	mine.receive(device, "meanwhile")
	mine.stream(t, srv, "?type=message.received", "Last-Event-ID", last).wants("meanwhile")
}

func TestStreamMissesNothingWhileManyWrite(t *testing.T) {
	t.Parallel()
	srv, mine := newStreamServer(t)
	devices := []postern.DeviceID{mine.device("a", postern.Connected), mine.device("b", postern.Connected)}
	r := mine.stream(t, srv, "")
	const each = 100
	for _, d := range devices {
		go func() {
			for n := range each {
				mine.receive(d, fmt.Sprint(n))
			}
		}()
	}
	seen := map[string]bool{}
	for range 2 * each {
		id, _ := r.next()
		if id == "" || seen[id] {
			t.Fatalf("after %d events the stream gives %q", len(seen), id)
		}
		seen[id] = true
	}
}

func TestStreamOfALimitedKey(t *testing.T) {
	t.Parallel()
	srv, mine := newStreamServer(t)
	a, b := mine.device("a", postern.Connected), mine.device("b", postern.Connected)
	r := mine.with(mine.newKey(gateway.NewKey{Devices: []postern.DeviceID{a}})).stream(t, srv, "")
	mine.receive(b, "b")
	mine.receive(a, "a")
	r.wants("a")
}

// TestStreamTellsItsPlace: a reader that is cut off before its first event goes
// on from there, with every filter and key, and misses nothing.
func TestStreamTellsItsPlace(t *testing.T) {
	t.Parallel()
	srv, mine := newStreamServer(t)
	silent := mine.device("silent", postern.Unlinked)
	mine.stream(t, srv, "").begins("") // of an empty log
	a, b := mine.device("a", postern.Connected), mine.device("b", postern.Connected)
	mine.receive(a, "1")
	mine.receive(b, "2")
	list := mine.events("type=message.*").Data
	ofA, ofB := list[0].EventID, list[1].EventID
	limited := func(ids ...postern.DeviceID) *tenant { return mine.with(mine.newKey(gateway.NewKey{Devices: ids})) }
	cases := map[string]struct {
		who         *tenant
		query, want string
	}{
		"everything":          {mine, "", ofB},
		"a family":            {mine, "?type=device.*", ofB},
		"a device":            {mine, "?deviceId=" + string(a), ofA},
		"a silent device":     {mine, "?deviceId=" + string(silent), ""},
		"a limited key":       {limited(a, silent), "", ofA},
		"a key that saw none": {limited(silent), "", ""},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) { tt.who.stream(t, srv, tt.query).begins(tt.want) })
	}
	mine.receive(a, "missed")
	for _, name := range []string{"everything", "a device", "a limited key"} {
		tt := cases[name]
		tt.who.stream(t, srv, tt.query, "Last-Event-ID", tt.want).wants("missed")
		query := "?after=" + tt.want
		if tt.query != "" {
			query = tt.query + "&after=" + tt.want
		}
		tt.who.stream(t, srv, query).wants("missed")
	}
	// A browser that reconnects sends both.
	mine.stream(t, srv, "?after="+ofA, "Last-Event-ID", ofB).wants("missed")
	mine.do("GET", "/v1/events/stream?after="+canary, "").want(http.StatusNotFound, postern.NotFound)
}

// TestOpenStreamsEndWithTheirKey has no heartbeats: only a change of the key, or
// its end, can end a stream.
func TestOpenStreamsEndWithTheirKey(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (*tenant, *tenant, *eventReader) {
		t.Helper()
		srv, mine := newStreamServer(t)
		device := mine.device("a", postern.Connected)
		other := mine.with(mine.newKey(gateway.NewKey{}))
		r := other.stream(t, srv, "")
		mine.receive(device, "1")
		r.wants("1")
		return mine, other, r
	}
	t.Run("revoked", func(t *testing.T) {
		t.Parallel()
		mine, other, r := open(t)
		if err := mine.g.Keys.Revoke(t.Context(), access.Operator(), mine.ws, other.caller().Key.ID); err != nil {
			t.Fatal(err)
		}
		r.ends()
	})
	t.Run("another key revoked", func(t *testing.T) {
		t.Parallel()
		mine, _, r := open(t)
		if err := mine.g.Keys.Revoke(t.Context(), access.Operator(), mine.ws, mine.caller().Key.ID); err != nil {
			t.Fatal(err)
		}
		mine.key = mine.newKey(gateway.NewKey{})
		mine.receive(postern.DeviceID(mine.do("GET", "/v1/devices", "").list().Data[0].ID), "2")
		r.wants("2")
	})
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		mine, other, r := open(t)
		const overlap = 300 * time.Millisecond // beside its successor
		if _, _, err := mine.g.Keys.Rotate(t.Context(), access.Operator(), mine.ws, other.caller().Key.ID,
			gateway.Rotation{Overlap: overlap}); err != nil {
			t.Fatal(err)
		}
		r.ends()
	})
	t.Run("plan without the API", func(t *testing.T) {
		t.Parallel()
		mine, _, r := open(t)
		if err := mine.g.Workspaces.SetPlan(t.Context(), access.Operator(), mine.ws, "free"); err != nil {
			t.Fatal(err)
		}
		r.ends()
	})
}

func TestLinkStreamEndsWithItsKeyAtOnce(t *testing.T) {
	t.Parallel()
	srv, mine := newStreamServer(t)
	id := mine.device("d", postern.Unlinked)
	mine.do("POST", "/v1/devices/"+string(id)+"/link", "").want(http.StatusCreated, "")
	other := mine.with(mine.newKey(gateway.NewKey{}))
	f := follow(t, other, srv, id)
	mine.showCode(id, "2@a", time.Now().Add(time.Minute))
	f.wants("code", "2@a", postern.LinkPending, "")
	if err := mine.g.Keys.Revoke(t.Context(), access.Operator(), mine.ws, other.caller().Key.ID); err != nil {
		t.Fatal(err)
	}
	f.wantsEnd()
}

func TestEventStreamShowsThatItLives(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.api.SetPulse(10 * time.Millisecond)
	srv := httptest.NewServer(s.handler)
	t.Cleanup(srv.Close)
	r := s.tenant("growth").stream(t, srv, "")
	r.begins("")
	for range 6 {
		if !r.lines.Scan() || r.lines.Text() != "" && r.lines.Text() != ": waiting" {
			t.Fatalf("no heartbeat: %q %v", r.lines.Text(), r.lines.Err())
		}
	}
}

// TestSlowReaderIsDropped opens a stream and reads nothing: the server gives
// it up, and others go on.
func TestSlowReaderIsDropped(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.api.SetPatience(500 * time.Millisecond)
	srv := httptest.NewServer(s.handler)
	t.Cleanup(srv.Close)
	mine := s.tenant("growth")
	device := mine.device("a", postern.Connected)
	var d net.Dialer
	slow, err := d.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if err := slow.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	io.WriteString(slow, "GET /v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+mine.key+"\r\n\r\n")
	quick := mine.stream(t, srv, "")
	text := strings.Repeat("x", 60_000)
	for n := 0; !strings.Contains(s.log.String(),
		`"route":"/v1/events/stream"`); n++ { // the one line at the end of a request
		if n == 10_000 { // 600 MB, and no connection buffers as much
			t.Fatal("a reader that reads nothing is served on")
		}
		mine.receive(device, text)
		quick.wants(text)
	}
}

// TestStreamsOfAllWorkspacesAreCounted: a server has only so many connections.
func TestStreamsOfAllWorkspacesAreCounted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.api.SetPulse(time.Hour)
	s.api.SetStreams(3)
	srv := httptest.NewServer(s.handler)
	t.Cleanup(srv.Close)
	one, two := s.tenant("growth"), s.tenant("growth")
	one.stream(t, srv, "")
	one.stream(t, srv, "")
	two.stream(t, srv, "")
	for _, who := range []*tenant{one, two} {
		a := who.do("GET", "/v1/events/stream", "")
		a.want(http.StatusTooManyRequests, postern.RateLimited)
		if a.Header().Get("Retry-After") == "" {
			t.Errorf("headers %v", a.Header())
		}
	}
}

func TestStreamsOfAWorkspaceAreCounted(t *testing.T) {
	t.Parallel()
	srv, mine := newStreamServer(t)
	var first *eventReader
	for range 100 {
		first = mine.stream(t, srv, "")
	}
	mine.do("GET", "/v1/events/stream", "").want(http.StatusTooManyRequests, postern.RateLimited)
	first.resp.Body.Close()
	// The server notices in its own time that a reader has left.
	req := func() *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodHead, "/v1/events/stream", nil)
		r.Header.Set("Authorization", "Bearer "+mine.key)
		return r
	}
	for mine.send(req()).Code != http.StatusOK {
		runtime.Gosched()
	}
}
