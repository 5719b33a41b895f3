package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	patience   = 20 * time.Second // for an event that must come
)

// world is a store with a device, and a dispatcher that can be stopped and
// started again.
type world struct {
	t      testing.TB
	dir    string
	db     *store.Store
	box    *seal.Box
	client *egress.Client
	device postern.Device
	stop   func() // of the dispatcher that runs
}

func newWorld(t testing.TB) *world {
	t.Helper()
	box, err := seal.NewBox(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, dir: migrated.Dir(t, ""), box: box, client: egress.NewClient(egress.Options{AllowPrivate: true}),
		stop: func() {},
	}
	w.open()
	w.newTenant()
	t.Cleanup(func() {
		w.stop()
		w.client.Close()
		if err := w.db.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// newTenant adds a workspace with a device, which is the one that receives from
// now on.
func (w *world) newTenant() {
	w.t.Helper()
	ws := postern.Workspace{ID: postern.NewWorkspaceID(), Name: "acme", Plan: "growth", CreatedAt: now()}
	w.device = postern.Device{
		ID: postern.NewDeviceID(), WorkspaceID: ws.ID, Name: "d", Mode: "sandbox",
		Status: postern.Connected, Desired: postern.WantIdle, Metadata: map[string]string{},
		CreatedAt: now(),
	}
	w.must(w.db.Workspaces.Create(w.t.Context(), ws))
	w.must(w.db.Devices.Create(w.t.Context(), w.device, nil))
}

// open opens the store, again when it was closed.
func (w *world) open() {
	w.t.Helper()
	var err error
	w.db, err = store.Open(context.Background(), store.Options{Dir: w.dir})
	w.must(err)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) dispatcher(opts Options) *Dispatcher {
	opts.DB, opts.Client, opts.Box, opts.Version = w.db, w.client, w.box, "1.2.3"
	return New(opts)
}

// start runs a dispatcher until stop.
func (w *world) start(d *Dispatcher) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
}

// endpoint adds a pending endpoint; edit may change it before.
func (w *world) endpoint(url string, edit func(*postern.Endpoint)) postern.Endpoint {
	w.t.Helper()
	e := postern.Endpoint{
		ID: postern.NewEndpointID(), WorkspaceID: w.device.WorkspaceID, URL: url, Events: []string{"*"},
		Status: postern.EndpointPending, CreatedAt: now(), MaxInFlight: 8, DueAt: now(),
	}
	e.Secret = w.box.Seal([]byte(testSecret), e.ID.SecretPlace())
	if edit != nil {
		edit(&e)
	}
	w.must(w.db.Endpoints.Create(w.t.Context(), e, 1000, nil))
	return e
}

// active adds an endpoint whose handshake is taken as done.
func (w *world) active(url string, edit func(*postern.Endpoint)) postern.Endpoint {
	w.t.Helper()
	e := w.endpoint(url, edit)
	w.must(w.db.Endpoints.Activate(w.t.Context(), e.ID, now()))
	return e
}

// inbound is the operation that records a message and its event.
func (w *world) inbound(text string) store.RecordInbound {
	return store.RecordInbound{Sender: "lid:1", Type: postern.MessageReceived, Now: now(), Message: postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: w.device.WorkspaceID, DeviceID: w.device.ID,
		Direction: postern.Inbound, ChatID: "+15551234567",
		From: "+15551234567", Content: postern.Text(text), Status: postern.Received, NetworkID: postern.NewNetworkID(),
		Metadata:  map[string]string{},
		CreatedAt: now(),
	}}
}

func (w *world) receive(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		w.must(w.db.Messages.RecordInbound(w.t.Context(), w.inbound(text)))
	}
}

// fill receives n messages from many callers at once, so that a commit has many of them.
func (w *world) fill(n int) {
	w.t.Helper()
	var callers sync.WaitGroup
	var next atomic.Int64
	for range 64 {
		callers.Go(func() {
			for next.Add(1) <= int64(n) {
				if err := w.db.Messages.RecordInbound(w.t.Context(), w.inbound("hello")); err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	callers.Wait()
}

// dueNow are the deliveries as a lane reads them.
func (w *world) dueNow(e postern.Endpoint) []store.DueDelivery {
	w.t.Helper()
	list, err := w.db.Deliveries.Due(w.t.Context(), e.ID, now(), true, 100_000)
	w.must(err)
	return list
}

// deliveries lists those of an endpoint, oldest first.
func (w *world) deliveries(e postern.Endpoint) []postern.Delivery {
	w.t.Helper()
	page, err := w.db.Deliveries.List(w.t.Context(), e.WorkspaceID, e.ID, store.DeliveryFilter{}, 0, 100_000)
	w.must(err)
	slices.Reverse(page.List)
	return page.List
}

// await waits until a condition on the store holds. It looks again after a while that is
// longer when looking takes longer.
func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		began := time.Now()
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain: %s", what)
		}
		_ = postern.Sleep(w.t.Context(), max(2*time.Millisecond, 4*time.Since(began)))
	}
}

func (w *world) awaitStatus(e postern.Endpoint, want postern.EndpointStatus) postern.Endpoint {
	w.t.Helper()
	var got postern.Endpoint
	w.await(fmt.Sprintf("endpoint %s", want), func() (ok bool) {
		var err error
		got, err = w.db.Endpoints.ForDelivery(w.t.Context(), e.ID)
		w.must(err)
		return got.Status == want
	})
	return got
}

func (w *world) awaitSucceeded(e postern.Endpoint, n int) {
	w.t.Helper()
	w.await(fmt.Sprintf("%d deliveries", n), func() bool {
		page, err := w.db.Deliveries.List(w.t.Context(), e.WorkspaceID, e.ID, store.DeliveryFilter{Status: "succeeded"},
			0, 100_000)
		w.must(err)
		return len(page.List) == n
	})
}

// got is one POST that a receiver took.
type got struct {
	header http.Header
	body   string
	event  struct {
		EventID   string `json:"eventId"`
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
		Message   struct {
			Body string `json:"body"`
		} `json:"message"`
	}
}

func (g got) text() string { return g.event.Message.Body }

// receiver is a consumer. It verifies every POST with the official library,
// also in fields that the library leaves alone, and answers as told.
type receiver struct {
	*httptest.Server
	t       *testing.T
	answer  func(w http.ResponseWriter, g got)
	posts   chan got
	mu      sync.Mutex
	flying  int
	highest int // in flight
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, g got)) *receiver {
	t.Helper()
	r := &receiver{t: t, answer: answer, posts: make(chan got, 100_000)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.count(1)
	defer r.count(-1)
	body, _ := io.ReadAll(req.Body)
	g := got{header: req.Header, body: string(body)}
	verify(r.t, g.header, body)
	if err := json.Unmarshal(body, &g.event); err != nil {
		r.t.Errorf("a body is no JSON: %v", err)
	}
	if id := req.Header.Get("Webhook-Id"); id != g.event.EventID || strings.Contains(id, ".") {
		r.t.Errorf("webhook-id is %q, eventId %q", id, g.event.EventID)
	}
	r.posts <- g
	if r.answer != nil {
		r.answer(w, g)
	}
}

func (r *receiver) count(by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying += by
	r.highest = max(r.highest, r.flying)
}

// newPlainReceiver takes POSTs and verifies nothing.
func newPlainReceiver(t *testing.T, posts chan<- got) (url string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		posts <- got{header: req.Header, body: string(body)}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// next waits for the next POST.
func (r *receiver) next() got {
	r.t.Helper()
	select {
	case g := <-r.posts:
		return g
	case <-time.After(patience):
		r.t.Fatal("waited in vain for a POST")
		return got{}
	}
}

func (r *receiver) none(why string) {
	r.t.Helper()
	select {
	case g := <-r.posts:
		r.t.Errorf("%s: got %s", why, g.body)
	default:
	}
}

func verify(t *testing.T, h http.Header, body []byte) {
	t.Helper()
	key, err := standardwebhooks.NewWebhook(testSecret)
	if err == nil {
		err = key.Verify(body, h)
	}
	if err != nil {
		t.Errorf("a POST does not verify: %v", err)
	}
	if h.Get("X-Service-Signature") != h.Get("Webhook-Signature") || h.Get("Content-Type") != "application/json" ||
		h.Get("User-Agent") != "Postern/1.2.3" {
		t.Errorf("headers = %v", h)
	}
}

func respond(status int) func(http.ResponseWriter, got) {
	return func(w http.ResponseWriter, _ got) { w.WriteHeader(status) }
}

// buffer is a log that may be written and read at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(b, nil)) }

func now() postern.Time { return postern.TimeOf(time.Now()) }
