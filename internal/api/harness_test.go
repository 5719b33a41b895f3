package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/api"
	"postern/internal/db/dbtest"
	"postern/internal/egress"
	"postern/internal/gateway"
	"postern/internal/media/blob"
	"postern/internal/media/library"
	"postern/internal/postern"
	"postern/internal/problem"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"
	"postern/internal/web"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.Binary{M: m}) }

// onEachEngine runs a test with the embedded database (url is "") and with
// PostgreSQL.
func onEachEngine(t *testing.T, test func(t *testing.T, url func(testing.TB) string)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{
		"sqlite":   func(testing.TB) string { return "" },
		"postgres": migrated.URL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, url)
		})
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

const baseURL = "https://postern.test"

// safeBuffer is a log that many goroutines may write.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Reset()
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// fakeSandbox answers the sandbox routes without a network.
type fakeSandbox struct{}

func (f fakeSandbox) Of(postern.WorkspaceID) (gateway.SandboxNetwork, error) { return f, nil }

func (fakeSandbox) Scan(context.Context, string, string) error { return nil }

func (fakeSandbox) EnterCode(context.Context, string, string) error { return nil }

func (fakeSandbox) Passkey(postern.PasskeyOptions, string, string) (postern.PasskeyCredential, error) {
	return postern.PasskeyCredential{ID: "aWQ", RawID: "aWQ", Type: "public-key", Response: postern.PasskeyResponse{
		ClientData: "e30", AuthenticatorData: "AQ", Signature: "c2ln", UserHandle: "dXNlcg",
	}}, nil
}

func (fakeSandbox) ChangeGroup(context.Context, string, string, gateway.SandboxGroupChange) error {
	return nil
}

func (fakeSandbox) Remember(context.Context, string, string, []gateway.SandboxPast, bool) error {
	return nil
}

func (fakeSandbox) CreateGroup(string, string, []string) (string, error) {
	return "group:120363041234567890", nil
}

func (fakeSandbox) CreateChannel(_, _, name string, _ bool) (gateway.SandboxChannel, error) {
	return gateway.SandboxChannel{ChatID: "channel:120363041234567890", Name: name, Invite: "0029VaJt3mHkq0s7c9oWf2"}, nil
}

func (fakeSandbox) Call(context.Context, string, string, postern.Call) (string, error) {
	return "3EB0A1B2C3D4E5F60718", nil
}

func (fakeSandbox) Inbound(context.Context, string, gateway.SandboxInbound) (string, error) {
	return "3EB0A1B2C3D4E5F60718", nil
}

func (fakeSandbox) Appear(string, gateway.SandboxAppearance) error { return nil }

func (fakeSandbox) SetContactPicture(string, []byte) error { return nil }

func (fakeSandbox) SetContact(context.Context, string, string, string) error { return nil }

func (fakeSandbox) SetChat(context.Context, string, gateway.SandboxChat) error { return nil }

func (fakeSandbox) ReadOnPhone(string, string) error { return nil }

func (fakeSandbox) Receipt(context.Context, string, string, string, postern.MessageStatus) error {
	return nil
}

func (fakeSandbox) Fault(context.Context, string, string) error { return nil }

func (fakeSandbox) Phone(string) []gateway.PhoneMessage { return nil }

func (fakeSandbox) File(string, string) (io.ReadCloser, postern.Media, error) {
	return nil, postern.Media{}, postern.Errorf(postern.NotFound, "the phone shows no such file")
}

// server is an API over a fresh store.
type server struct {
	t       testing.TB
	api     *api.API
	door    *web.Door
	handler http.Handler // door, or one that spreads requests over several servers
	all     []*server    // those that share the database, this one first; none: it is alone
	db      *store.Store
	dir     string // of the database
	url     string // of the PostgreSQL database; "" for the one in dir
	g       *gateway.Gateway
	blobs   blob.Store
	library *library.Library
	log     *safeBuffer

	closeStore func()
}

func newServer(tb testing.TB) *server {
	tb.Helper()
	return newServerWith(tb, fakeSandbox{})
}

// newServerWith makes a server for the real network when sandbox is nil.
func newServerWith(tb testing.TB, sandbox gateway.Sandbox) *server {
	tb.Helper()
	return newServerOn(tb, "", sandbox)
}

// goodbyeWait is short, since no engine says goodbye here.
const goodbyeWait = 10 * time.Millisecond

// newServerWithoutTime makes a server whose rates do not recover.
func newServerWithoutTime(tb testing.TB) *server {
	tb.Helper()
	s := newServer(tb)
	s.api.StopRates()
	return s
}

// newServerOn makes a server on a PostgreSQL database, or with the embedded one
// when url is "".
func newServerOn(tb testing.TB, url string, sandbox gateway.Sandbox) *server {
	tb.Helper()
	return newServerTraced(tb, url, sandbox, nil)
}

// newServerTraced makes a server whose statements are recorded.
func newServerTraced(tb testing.TB, url string, sandbox gateway.Sandbox, trace func(string, []any)) *server {
	tb.Helper()
	return openServer(tb, store.Options{URL: url, Trace: trace}, sandbox, nil)
}

// openServer opens a store, and makes a server with the files of another one, or with its own.
func openServer(tb testing.TB, opts store.Options, sandbox gateway.Sandbox, files blob.Store) *server {
	tb.Helper()
	dir := migrated.Dir(tb, opts.URL)
	opts.Dir = dir
	db, err := store.Open(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	var once sync.Once
	closeStore := func() {
		once.Do(func() {
			if err := db.Close(); err != nil {
				tb.Error(err)
			}
		})
	}
	tb.Cleanup(closeStore)
	box, err := seal.NewBox(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		tb.Fatal(err)
	}
	s := &server{t: tb, db: db, dir: dir, url: opts.URL, blobs: files, log: &safeBuffer{}, closeStore: closeStore}
	s.keepFiles()
	s.g = gateway.New(gateway.Options{
		DB: db, Box: box, Library: s.library, Log: slog.New(slog.DiscardHandler), Sandbox: sandbox,
		GoodbyeWait: goodbyeWait, Shared: opts.Nodes, CheckProxy: egress.NewClient(egress.Options{}).CheckProxy,
		CheckURL: func(u string) error {
			if !strings.HasPrefix(u, "https://") {
				return errors.New("an endpoint's URL starts with https://")
			}
			return nil
		},
	})
	s.open(web.Transport{}, sandbox != nil)
	go answerRequests(tb.Context(), s.g)
	return s
}

// keepFiles opens a library, in a directory of the test's own unless the server has the files of another.
func (s *server) keepFiles() {
	s.t.Helper()
	var err error
	if s.blobs == nil {
		s.blobs, err = blob.OpenDirectory(s.t.TempDir())
	}
	if err == nil {
		s.library, err = library.Open(s.blobs, s.t.TempDir(), s.db.Blobs)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// open makes the API and the front door before it.
func (s *server) open(transport web.Transport, sandbox bool) {
	s.t.Helper()
	log := slog.New(slog.NewJSONHandler(s.log, nil))
	var err error
	if s.api, err = api.New(api.Options{Gateway: s.g, Log: log, BaseURL: baseURL, Sandbox: sandbox}); err != nil {
		s.t.Fatal(err)
	}
	s.api.SetPulse(testPulse)
	s.door = web.New(web.Options{
		Log: log, BaseURL: baseURL, Transport: transport, API: s.api.Handler(),
		Announce: s.api.TellRate,
	})
	s.handler = s.door
}

// tenant is a workspace with a key.
type tenant struct {
	*server
	ws  postern.WorkspaceID
	key string

	once   sync.Once
	open   sync.Once
	looked string // the device of routes that only look at a link attempt
	acted  string // the device of the messages that the routes of actions are about

	inGroup sync.Once
	grouped string // the device that the routes of groups are about

	people atomic.Int32 // who have written to it
}

func (s *server) tenant(plan string) *tenant {
	s.t.Helper()
	ws, err := s.g.Workspaces.Create(s.t.Context(), access.Operator(), gateway.NewWorkspace{Name: "test", Plan: plan})
	if err != nil {
		s.t.Fatal(err)
	}
	t := &tenant{server: s, ws: ws.ID}
	t.key = t.newKey(gateway.NewKey{})
	return t
}

// newKey makes a key; nil scopes are all.
func (t *tenant) newKey(k gateway.NewKey) string {
	t.t.Helper()
	k.Name = "test"
	_, secret, err := t.g.Keys.Create(t.t.Context(), access.Operator(), t.ws, k)
	if err != nil {
		t.t.Fatal(err)
	}
	return secret
}

// device makes a device in a state.
func (t *tenant) device(name string, status postern.Status) postern.DeviceID {
	t.t.Helper()
	a := t.do("POST", "/v1/devices", fmt.Sprintf(`{"name":%q}`, name))
	a.want(http.StatusCreated, "")
	id := postern.DeviceID(a.member("id"))
	if status != postern.Unlinked {
		t.set(id, status)
	}
	return id
}

// set puts a device into a state, with a number when it gets connected.
func (t *tenant) set(id postern.DeviceID, status postern.Status) {
	t.t.Helper()
	ctx := t.t.Context()
	d, err := t.g.Devices.Get(ctx, t.caller(), id)
	if err != nil {
		t.t.Fatal(err)
	}
	if d.PhoneNumber == "" && status == postern.Connected {
		t.link(d)
	}
	if err := t.db.Devices.SetState(ctx, store.SetDeviceState{
		WorkspaceID: t.ws, DeviceID: id, Status: status,
		Desired: postern.WantConnect, At: postern.TimeOf(time.Now()),
	}); err != nil {
		t.t.Fatal(err)
	}
}

func (t *tenant) caller() access.Caller {
	t.t.Helper()
	c, err := t.g.Keys.Authenticate(t.t.Context(), "Bearer "+t.key)
	if err != nil {
		t.t.Fatal(err)
	}
	return c
}

// link links a device as the session engine would.
func (t *tenant) link(d postern.Device) {
	t.t.Helper()
	ctx := t.t.Context()
	if _, err := t.g.Links.Open(ctx, t.caller(), d.ID, gateway.NewLink{}, nil); err != nil {
		t.t.Fatal(err)
	}
	row := t.openLink(d.ID)
	if err := t.g.Sessions.Linked(ctx, d, row, "15550001111:1@s.whatsapp.net", "+15550001111", "Acme"); err != nil {
		t.t.Fatal(err)
	}
}

// openLink is the open attempt as the session engine sees it.
func (t *tenant) openLink(id postern.DeviceID) store.LinkRow {
	t.t.Helper()
	d, err := t.g.Devices.Get(t.t.Context(), t.caller(), id)
	if err != nil {
		t.t.Fatal(err)
	}
	row, ok, err := t.g.Sessions.OpenLink(t.t.Context(), d)
	if err != nil || !ok {
		t.t.Fatalf("open link of %s: %v %v", id, ok, err)
	}
	return row
}

// answerT is an answer with what the test wants of it.
type answerT struct {
	t    testing.TB
	what string
	*httptest.ResponseRecorder
}

// do sends a request with the tenant's key. Headers follow as name, value.
func (t *tenant) do(method, target, body string, headers ...string) *answerT {
	t.t.Helper()
	return t.server.do(method, target, body, append([]string{"Authorization", "Bearer " + t.key}, headers...)...)
}

func (s *server) do(method, target, body string, headers ...string) *answerT {
	s.t.Helper()
	return s.send(s.request(method, target, body, headers...))
}

func (s *server) request(method, target, body string, headers ...string) *http.Request {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req := httptest.NewRequestWithContext(s.t.Context(), method, target, r)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// send makes a request, and compares the answer with the document.
func (s *server) send(req *http.Request) *answerT {
	s.t.Helper()
	a := s.answer(req)
	if err := described().check(req, a.Code, a.Header(), a.Body.Bytes()); err != nil {
		s.t.Errorf("%s: not as the document says: %v", a.what, err)
	}
	return a
}

// answer makes a request. Only one of many that are alike, whose answers need no comparison
// with the document, is made by it alone.
func (s *server) answer(req *http.Request) *answerT {
	s.t.Helper()
	if req.RemoteAddr == "" || req.RemoteAddr == "192.0.2.1:1234" { // httptest's own; who calls from elsewhere says so
		req.RemoteAddr = "127.0.0.1:1234"
	}
	a := &answerT{s.t, req.Method + " " + req.URL.Path, httptest.NewRecorder()}
	if strings.HasSuffix(req.URL.Path, "/stream") {
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		s.handler.ServeHTTP(untilIdle{a.ResponseRecorder, cancel}, req.WithContext(ctx))
	} else {
		s.handler.ServeHTTP(a.ResponseRecorder, req)
	}
	if !strings.HasPrefix(a.Header().Get("Request-Id"), "req_") {
		s.t.Errorf("%s: no request id", a.what)
	}
	return a
}

// untilIdle is a reader of a stream that goes away at the first heartbeat, when
// the stream has said all that there is to say.
type untilIdle struct {
	*httptest.ResponseRecorder
	leave func()
}

func (w untilIdle) Write(b []byte) (int, error) {
	if string(b) == heartbeat {
		w.leave()
		return len(b), nil
	}
	return w.ResponseRecorder.Write(b)
}

// heartbeat is what a stream writes that has nothing to say; its readers in these
// tests wait for one this long.
const (
	heartbeat = ": waiting\n\n"
	testPulse = 30 * time.Millisecond
)

type refusal struct {
	Type      string          `json:"type"`
	Title     string          `json:"title"`
	Detail    string          `json:"detail"`
	Code      string          `json:"code"`
	RequestID string          `json:"requestId"`
	Status    int             `json:"status"`
	Errors    []postern.Field `json:"errors"`
}

// want checks the status and, of a problem, all members that follow from its
// reason.
func (a *answerT) want(status int, reason postern.Reason) refusal {
	a.t.Helper()
	if a.Code != status {
		a.t.Fatalf("%s: got %d, want %d %s\n%s", a.what, a.Code, status, reason, a.Body)
	}
	if reason == "" {
		return refusal{}
	}
	var p refusal
	if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil {
		a.t.Fatalf("%s: %v in %s", a.what, err, a.Body)
	}
	k := problem.Of(reason)
	if k.Status != status || p.Status != status || p.Code != k.Code || p.Type != baseURL+"/problems/"+string(reason) ||
		p.Title == "" || p.Detail == "" || p.RequestID != a.Header().Get("Request-Id") ||
		a.Header().Get("Content-Type") != "application/problem+json" {
		a.t.Fatalf("%s: want the problem %s with %d %s, got %s of type %s", a.what, reason, k.Status, k.Code, a.Body,
			a.Header().Get("Content-Type"))
	}
	return p
}

// member reads one text member of the body.
func (a *answerT) member(name string) string {
	a.t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.Body.Bytes(), &m); err != nil {
		a.t.Fatalf("%s: %v in %s", a.what, err, a.Body)
	}
	s, _ := m[name].(string)
	return s
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n got %s\nwant %s", path, got, want)
	}
}
