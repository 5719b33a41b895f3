package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/webhook"
)

const (
	deliveries = 30_000
	inFlight   = 64
)

// backlog is a store with one active endpoint at a URL.
type backlog struct {
	db       *store.Store
	dir      string // of the store
	box      *seal.Box
	device   postern.Device
	endpoint postern.Endpoint
	chat     string // the sender of the messages; "" means a fixed number
}

func newBacklog(t *testing.T, url string) *backlog {
	t.Helper()
	return newBacklogIn(t, "", url, inFlight)
}

// newBacklogIn is like newBacklog, in the PostgreSQL database with a URL, for an endpoint that allows
// so many deliveries at once.
func newBacklogIn(t *testing.T, database, url string, inFlight int) *backlog {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), store.Options{Dir: dir, URL: database})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	box, err := seal.NewBox(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	b := settle(t, db, box, url, inFlight)
	b.dir = dir
	return b
}

// settle adds a workspace with a device and an active endpoint.
func settle(t *testing.T, db *store.Store, box *seal.Box, url string, inFlight int) *backlog {
	t.Helper()
	now := postern.TimeOf(time.Now())
	ws := postern.Workspace{ID: postern.NewWorkspaceID(), Name: "x", Plan: "pro", CreatedAt: now}
	b := &backlog{db: db, box: box}
	b.device = postern.Device{
		ID: postern.NewDeviceID(), WorkspaceID: ws.ID, Name: "d", Mode: "sandbox",
		Status: postern.Connected, Metadata: map[string]string{}, CreatedAt: now,
	}
	id := postern.NewEndpointID()
	b.endpoint = postern.Endpoint{
		ID: id, WorkspaceID: ws.ID, URL: url, Events: []string{"*"},
		Status: postern.EndpointPending, CreatedAt: now,
		MaxInFlight: inFlight,
		Secret:      box.Seal([]byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="), id.SecretPlace()), DueAt: now,
	}
	for _, err := range []error{
		db.Workspaces.Create(t.Context(), ws), db.Devices.Create(t.Context(), b.device, nil),
		db.Endpoints.Create(t.Context(), b.endpoint, 20, nil),
		db.Endpoints.Activate(t.Context(), id,
			now),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// receive records one inbound message with its event and delivery.
func (b *backlog) receive(ctx context.Context) (id postern.MessageID, err error) {
	return b.receiveAs(ctx, func(postern.MessageID) {})
}

// receiveAs passes the message's id to a function before it is recorded.
func (b *backlog) receiveAs(ctx context.Context, begin func(postern.MessageID)) (id postern.MessageID, err error) {
	now := postern.TimeOf(time.Now())
	id = postern.NewMessageID()
	begin(id)
	chat := cmp.Or(b.chat, "+15551234567")
	return id, b.db.Messages.RecordInbound(ctx,
		store.RecordInbound{
			Sender: "lid:1", Type: postern.MessageReceived, Now: now,
			Message: postern.Message{
				ID: id, WorkspaceID: b.device.WorkspaceID, DeviceID: b.device.ID, Direction: postern.Inbound, ChatID: chat,
				From:    postern.Maybe(chat),
				Content: postern.Text("A message of ordinary length, as people write them."), Status: postern.Received,
				NetworkID: postern.NewNetworkID(), Source: postern.FromContact, Metadata: map[string]string{},
				CreatedAt: now, SentAt: now,
			},
		})
}

func (b *backlog) dispatch(t *testing.T, unfair bool) (stop func()) {
	t.Helper()
	return b.dispatchBy(t, egress.NewClient(egress.Options{AllowPrivate: true}), unfair)
}

// dispatchBy makes the deliveries by a client, which it closes.
func (b *backlog) dispatchBy(t *testing.T, client *egress.Client, unfair bool) (stop func()) {
	t.Helper()
	d := webhook.New(webhook.Options{DB: b.db, Client: client, Box: b.box, Unfair: unfair})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		client.Close()
	}
}

// deliver measures delivering a backlog at full speed to one fast receiver, compared with
// a bare loop of POSTs, and the time from commit to receipt at 100 events per second.
func deliver(t *testing.T) []figure {
	f := figure{
		name: "webhook deliveries flat out, one receiver, 64 in flight", unit: "/s", floor: 0.6,
		extra: "signed, recorded (goal 5,000/s); receiver in the same process; bare: the same POSTs by the same transport, nothing signed or recorded",
	}
	wait := figure{name: "commit to receipt at 100 events/s, median", unit: "µs"}
	var p99s []float64
	for range rounds {
		ours, like := flatOut(t)
		f.ours = append(f.ours, ours)
		f.bare = append(f.bare, barePosts(t, like))
		p50, p99 := paced(t)
		wait.ours, p99s = append(wait.ours, p50), append(p99s, p99)
	}
	wait.extra = fmt.Sprintf("p99 %.1f ms (goal p50 10 ms, p99 50 ms), fsync included", median(p99s)/1000)
	return []figure{f, wait}
}

// letter is a received POST.
type letter struct {
	header http.Header
	body   []byte
}

// counter is a receiver that reports when it has got a number of POSTs, and keeps the
// first.
func counter(n int64) (srv *httptest.Server, all chan struct{}, first *letter) {
	all, first = make(chan struct{}), &letter{}
	var got atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		switch got.Add(1) {
		case 1:
			first.header = r.Header.Clone()
			first.body, _ = io.ReadAll(r.Body)
		case n:
			io.Copy(io.Discard, r.Body)
			close(all)
		default:
			io.Copy(io.Discard, r.Body)
		}
	})), all, first
}

func flatOut(t *testing.T) (rate float64, like *letter) {
	t.Helper()
	srv, all, first := counter(deliveries)
	defer srv.Close()
	b := newBacklog(t, srv.URL)
	b.fill(t, deliveries)
	return timed(deliveries, func() {
		stop := b.dispatch(t, true)
		<-all
		stop()
	}), first
}

// fill records so many messages with their deliveries.
func (b *backlog) fill(t *testing.T, messages int) {
	t.Helper()
	inParallel(64, func(n int) error {
		for i := n; i < messages; i += 64 {
			if _, err := b.receive(t.Context()); err != nil {
				return err
			}
		}
		return nil
	}, t)
}

// barePosts makes the same POST again and again, with the transport that
// deliveries are made with.
func barePosts(t *testing.T, like *letter) float64 {
	t.Helper()
	srv, all, _ := counter(deliveries)
	defer srv.Close()
	client := egress.NewClient(egress.Options{AllowPrivate: true})
	defer client.Close()
	transport := client.Transport()
	defer transport.CloseIdleConnections()
	return timed(deliveries, func() {
		barePost(t, transport, srv.URL, deliveries, like)
		<-all
	})
}

// barePost makes a POST so many times, as many at once as an endpoint may have.
func barePost(t *testing.T, transport *http.Transport, url string, times int, like *letter) {
	t.Helper()
	client := &http.Client{Transport: transport}
	inParallel(inFlight, func(n int) error {
		for i := n; i < times; i += inFlight {
			req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(like.body))
			if err != nil {
				return err
			}
			req.Header = like.header
			res, err := client.Do(req)
			if err != nil {
				return err
			}
			res.Body.Close()
		}
		return nil
	}, t)
}

// paced measures from the start of a message's commit to its receipt, in
// microseconds. Events come by the clock, whether those before have arrived or
// not.
func paced(t *testing.T) (p50, p99 float64) {
	t.Helper()
	const events, gap = 500, 10 * time.Millisecond
	arrived := make(chan receipt, events)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got := receipt{at: time.Now()}
		var e struct{ Message struct{ ID string } }
		if err := json.NewDecoder(r.Body).Decode(&e); err == nil {
			got.id = e.Message.ID
		}
		arrived <- got
	}))
	defer srv.Close()
	b := newBacklog(t, srv.URL)
	stop := b.dispatch(t, false)
	defer stop()
	var begun sync.Map // id → time
	tick := time.NewTicker(gap)
	defer tick.Stop()
	var group sync.WaitGroup
	for range events {
		<-tick.C
		group.Go(func() {
			at := time.Now()
			id, err := b.receive(t.Context())
			if err != nil {
				t.Error(err)
			}
			begun.Store(string(id), at)
		})
	}
	group.Wait()
	var waits []float64
	for range events {
		got := <-arrived
		at, ok := begun.Load(got.id)
		if !ok {
			t.Fatalf("an unknown message: %q", got.id)
		}
		waits = append(waits, float64(got.at.Sub(at.(time.Time)).Microseconds()))
	}
	slices.Sort(waits)
	return waits[events/2], waits[events*99/100]
}

// receipt is the time at which an event arrived.
type receipt struct {
	id string
	at time.Time
}
