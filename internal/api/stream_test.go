package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/web"
)

// follower reads a stream over a real connection.
type follower struct {
	t     *testing.T
	lines *bufio.Scanner
	resp  *http.Response
}

func follow(t *testing.T, mine *tenant, srv *httptest.Server, id postern.DeviceID) *follower {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		srv.URL+"/v1/devices/"+string(id)+"/link/stream",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+mine.key)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" ||
		resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("stream: %d %v", resp.StatusCode, resp.Header)
	}
	return &follower{t, bufio.NewScanner(resp.Body), resp}
}

// next gives the next event, or "" at the end.
func (f *follower) next() (name string, l postern.Link) {
	f.t.Helper()
	for f.lines.Scan() {
		line := f.lines.Text()
		if n, ok := strings.CutPrefix(line, "event: "); ok {
			name = n
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(data), &l); err != nil {
				f.t.Fatal(err)
			}
			return name, l
		}
	}
	return "", l
}

func (f *follower) wants(name, code string, status postern.LinkStatus, reason string) {
	f.t.Helper()
	got, l := f.next()
	if got != name || string(l.QR) != code || l.Status != status || string(l.Reason) != reason {
		f.t.Fatalf("got %q %+v, want %s %q %s %q", got, l, name, code, status, reason)
	}
}

func (f *follower) wantsEnd() {
	f.t.Helper()
	if name, l := f.next(); name != "" || f.lines.Err() != nil {
		f.t.Fatalf("after the end: %q %+v %v", name, l, f.lines.Err())
	}
}

func serveTest(t *testing.T) (*httptest.Server, *tenant, postern.DeviceID) {
	t.Helper()
	s := newServer(t)
	s.api.SetPulse(10 * time.Millisecond)
	srv := httptest.NewServer(s.handler)
	t.Cleanup(srv.Close)
	mine := s.tenant("starter")
	id := mine.device("d", postern.Unlinked)
	mine.do("POST", "/v1/devices/"+string(id)+"/link", "").want(http.StatusCreated, "")
	return srv, mine, id
}

func TestStreamOfCodes(t *testing.T) {
	t.Parallel()
	srv, mine, id := serveTest(t)
	f := follow(t, mine, srv, id)
	for _, code := range []string{"2@first", "2@second", "2@<third>"} {
		mine.showCode(id, code, time.Now().Add(time.Minute))
		f.wants("code", code, postern.LinkPending, "")
	}
	late := follow(t, mine, srv, id)
	late.wants("code", "2@<third>", postern.LinkPending, "")

	d, err := mine.g.Devices.Get(t.Context(), mine.caller(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.g.Sessions.Linked(t.Context(), d, mine.openLink(id), "a@s.whatsapp.net", "+15550001111",
		"Acme"); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*follower{f, late} {
		f.wants("ended", "", postern.LinkLinked, "")
		f.wantsEnd()
	}
	after := follow(t, mine, srv, id)
	after.wants("ended", "", postern.LinkLinked, "")
	after.wantsEnd()
	if strings.Contains(mine.log.String(), "2@") {
		t.Error("the log shows a code")
	}
}

func TestStreamLivesWhileNothingHappens(t *testing.T) {
	t.Parallel()
	srv, mine, id := serveTest(t)
	f := follow(t, mine, srv, id)
	mine.showCode(id, "2@once", time.Now().Add(time.Minute))
	f.wants("code", "2@once", postern.LinkPending, "")
	for range 6 { // a code is not repeated
		if !f.lines.Scan() || !strings.HasPrefix(f.lines.Text(), ":") && f.lines.Text() != "" {
			t.Fatalf("no heartbeat: %q %v", f.lines.Text(), f.lines.Err())
		}
	}
}

func TestStreamEnds(t *testing.T) {
	t.Parallel()
	t.Run("canceled", func(t *testing.T) {
		t.Parallel()
		srv, mine, id := serveTest(t)
		f := follow(t, mine, srv, id)
		mine.do("DELETE", "/v1/devices/"+string(id)+"/link", "").want(http.StatusNoContent, "")
		f.wants("ended", "", postern.LinkFailed, "canceled")
		f.wantsEnd()
	})
	t.Run("deleted", func(t *testing.T) {
		t.Parallel()
		srv, mine, id := serveTest(t)
		f := follow(t, mine, srv, id)
		mine.do("DELETE", "/v1/devices/"+string(id), "").want(http.StatusNoContent, "")
		f.wants("ended", "", postern.LinkFailed, "deleted")
		f.wantsEnd()
	})
	t.Run("key revoked", func(t *testing.T) {
		t.Parallel()
		srv, mine, id := serveTest(t)
		other := mine.with(mine.newKey(gateway.NewKey{}))
		f := follow(t, other, srv, id)
		if err := mine.g.Keys.Revoke(t.Context(), access.Operator(), mine.ws, other.caller().Key.ID); err != nil {
			t.Fatal(err)
		}
		f.wantsEnd()
	})
	t.Run("caller gone", func(t *testing.T) {
		t.Parallel()
		srv, mine, id := serveTest(t)
		f := follow(t, mine, srv, id)
		f.resp.Body.Close()
		srv.Close() // waits for the handler
		if !strings.Contains(mine.log.String(), `"route":"/v1/devices/{id}/link/stream","status":200`) {
			t.Errorf("log: %s", mine.log.String())
		}
	})
}

// atFlush is a response that does something when the server first sends a part of it.
type atFlush struct {
	*httptest.ResponseRecorder
	first func()
}

func (w *atFlush) Flush() {
	w.ResponseRecorder.Flush()
	w.first()
	w.first = func() {}
}

// read reads a stream for at most a minute, and tells whether it is over.
func (t *tenant) read(tb testing.TB, h http.Handler, w http.ResponseWriter, path string) (over bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Authorization", "Bearer "+t.key)
	h.ServeHTTP(w, r)
	return ctx.Err() == nil
}

func TestStreamOfADeviceDeletedAtItsStart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("starter")
	id := mine.device("d", postern.Unlinked)
	mine.do("POST", "/v1/devices/"+string(id)+"/link", "").want(http.StatusCreated, "")
	w := &atFlush{httptest.NewRecorder(), func() {
		mine.do("DELETE", "/v1/devices/"+string(id), "").want(http.StatusNoContent, "")
	}}
	over := mine.read(t, s.handler, w, "/v1/devices/"+string(id)+"/link/stream")
	if got := w.Body.String(); !over || !strings.Contains(got, "event: ended\n") || !strings.Contains(got, `"deleted"`) {
		t.Errorf("%q", got)
	}
}

// A stream is of one attempt, also if the next one is opened before the stream looks again.
func TestStreamOfAnAttemptThatIsReplaced(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("starter")
	id := mine.device("d", postern.Unlinked)
	path := "/v1/devices/" + string(id) + "/link"
	mine.do("POST", path, "").want(http.StatusCreated, "")
	w := &atFlush{httptest.NewRecorder(), func() {
		mine.do("DELETE", path, "").want(http.StatusNoContent, "")
		mine.do("POST", path, "").want(http.StatusCreated, "")
	}}
	over := mine.read(t, s.handler, w, path+"/stream")
	if got := w.Body.String(); !over || !strings.Contains(got, "event: ended\n") || !strings.Contains(got, `"canceled"`) {
		t.Errorf("%q", got)
	}
}

// A key that may do less before the stream watches it does not keep the stream until a heartbeat.
func TestEventStreamOfAKeyRevokedAtItsStart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.api.SetPulse(time.Hour)
	mine := s.tenant("growth")
	w := &atFlush{httptest.NewRecorder(), func() {
		if err := mine.g.Keys.Revoke(t.Context(), access.Operator(), mine.ws, mine.caller().Key.ID); err != nil {
			t.Error(err)
		}
	}}
	over := mine.read(t, s.handler, w, "/v1/events/stream")
	if !over {
		t.Errorf("the stream goes on with %q", w.Body.String())
	}
}

// A stream that is woken again and again without an event for it shows that it lives.
func TestHeartbeatsComeWhileOthersAreBusy(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.api.SetPulse(300 * time.Millisecond)
	srv := httptest.NewServer(s.handler)
	t.Cleanup(srv.Close)
	mine := s.tenant("growth")
	f := mine.stream(t, srv, "?type=device.banned")
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	busy.Go(func() {
		for postern.Sleep(ctx, 30*time.Millisecond) == nil {
			key := mine.newKey(gateway.NewKey{})
			id := mine.with(key).caller().Key.ID
			if err := mine.g.Keys.Revoke(t.Context(), access.Operator(), mine.ws, id); err != nil {
				t.Error(err)
			}
		}
	})
	defer busy.Wait()
	defer cancel()
	for beats := 0; beats < 3; {
		if !f.lines.Scan() {
			t.Fatalf("the stream ended after %d heartbeats: %v", beats, f.lines.Err())
		}
		if f.lines.Text() == ": waiting" {
			beats++
		}
	}
}

// HTTP/2 has a deadline for a stream and not for a write: it must not end a stream that waits for the next heartbeat.
func TestStreamByHTTP2OutlivesItsPatience(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.api.SetPatience(time.Second)
	s.api.SetPulse(2 * time.Second)
	srv := httptest.NewUnstartedServer(s.handler)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	mine := s.tenant("starter")
	id := mine.device("d", postern.Unlinked)
	mine.do("POST", "/v1/devices/"+string(id)+"/link", "").want(http.StatusCreated, "")
	f := follow(t, mine, srv, id)
	if f.resp.ProtoMajor != 2 {
		t.Fatalf("the stream comes by %s", f.resp.Proto)
	}
	for beats := 0; beats < 3; {
		if !f.lines.Scan() {
			t.Fatalf("the stream ended after %d comments: %v", beats, f.lines.Err())
		}
		if strings.HasPrefix(f.lines.Text(), ":") {
			beats++
		}
	}
}

// shorten shortens the timeouts that are set.
func shorten(to time.Duration, timeouts ...*time.Duration) {
	for _, set := range timeouts {
		*set = min(*set, to)
	}
}

// TestStreamOutlivesTheServersTimeouts: those are meant for requests. A heartbeat
// never comes early, so that ten of them take longer than the timeout.
func TestStreamOutlivesTheServersTimeouts(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	const timeout = 2 * time.Second
	s.api.SetPulse(timeout / 8)
	srv := httptest.NewUnstartedServer(s.handler)
	srv.Config = web.NewServer(t.Context(), s.handler, slog.New(slog.DiscardHandler))
	shorten(timeout, &srv.Config.ReadHeaderTimeout, &srv.Config.ReadTimeout, &srv.Config.WriteTimeout)
	srv.Start()
	t.Cleanup(srv.Close)
	mine := s.tenant("starter")
	id := mine.device("d", postern.Unlinked)
	mine.do("POST", "/v1/devices/"+string(id)+"/link", "").want(http.StatusCreated, "")
	f := follow(t, mine, srv, id)
	for beats := 0; beats < 10; {
		if !f.lines.Scan() {
			t.Fatalf("the stream ended after %d heartbeats: %v", beats, f.lines.Err())
		}
		if strings.HasPrefix(f.lines.Text(), ":") {
			beats++
		}
	}
	mine.showCode(id, "2@late", time.Now().Add(time.Minute))
	f.wants("code", "2@late", postern.LinkPending, "")
}
