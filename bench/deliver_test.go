package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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
	deliveries = 10_000
	inFlight   = 64
)

// backlog is a store with one active endpoint at a URL.
type backlog struct {
	db       *store.DB
	box      *seal.Box
	device   postern.Device
	endpoint postern.Endpoint
}

func newBacklog(t *testing.T, url string) *backlog {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	box, err := seal.NewBox(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	now := postern.TimeOf(time.Now())
	ws := postern.Workspace{ID: postern.NewWorkspaceID(), Name: "x", Plan: "pro", CreatedAt: now}
	b := &backlog{db: db, box: box}
	b.device = postern.Device{ID: postern.NewDeviceID(), WorkspaceID: ws.ID, Name: "d", Mode: "sandbox", Status: postern.Connected, Metadata: map[string]string{}, CreatedAt: now}
	id := postern.NewEndpointID()
	b.endpoint = postern.Endpoint{
		ID: id, WorkspaceID: ws.ID, URL: url, Events: []string{"*"}, Headers: map[string]string{}, Status: postern.EndpointPending, CreatedAt: now, MaxInFlight: inFlight,
		Secret: box.Seal([]byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="), id.SecretPlace()), DueAt: now,
	}
	for _, err := range []error{db.CreateWorkspace(t.Context(), ws), db.CreateDevice(t.Context(), b.device, nil), db.CreateEndpoint(t.Context(), b.endpoint, 20, nil), db.Activate(t.Context(), id, now)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// receive records one inbound message with its event and delivery.
func (b *backlog) receive(ctx context.Context) error {
	now := postern.TimeOf(time.Now())
	return b.db.RecordInbound(ctx, store.RecordInbound{Sender: "lid:1", Type: postern.MessageReceived, Now: now, Message: postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: b.device.WorkspaceID, DeviceID: b.device.ID, Direction: postern.Inbound, Type: postern.TypeText, ChatID: "+15551234567", From: "+15551234567",
		Body: "A message of ordinary length, as people write them.", Status: postern.Received, NetworkID: postern.NewNetworkID(), Source: postern.FromContact, Metadata: map[string]string{}, CreatedAt: now, SentAt: now,
	}})
}

func (b *backlog) dispatch(t *testing.T) (stop func()) {
	t.Helper()
	client := egress.NewClient(egress.Options{AllowPrivate: true})
	d := webhook.New(webhook.Options{DB: b.db, Client: client, Box: b.box})
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

// deliver measures a backlog flat out to one fast receiver beside a bare loop
// of POSTs, and the time from commit to receipt at 100 events a second.
func deliver(t *testing.T) []figure {
	f := figure{name: "webhook deliveries flat out, one receiver, 64 in flight", unit: "/s", extra: "signed, recorded (goal 5,000/s); receiver in the same process; bare: POSTs of the same bytes, nothing recorded"}
	for range rounds {
		f.ours = append(f.ours, flatOut(t))
		f.bare = append(f.bare, barePosts(t))
	}
	return []figure{f, paced(t)}
}

// counter is a receiver that says when it got so many.
func counter(n int64) (srv *httptest.Server, all chan struct{}) {
	all = make(chan struct{})
	var got atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if got.Add(1) == n {
			close(all)
		}
	})), all
}

func flatOut(t *testing.T) float64 {
	t.Helper()
	srv, all := counter(deliveries)
	defer srv.Close()
	b := newBacklog(t, srv.URL)
	inParallel(64, func(n int) error {
		for i := n; i < deliveries; i += 64 {
			if err := b.receive(t.Context()); err != nil {
				return err
			}
		}
		return nil
	}, t)
	return timed(deliveries, func() {
		stop := b.dispatch(t)
		<-all
		stop()
	})
}

func barePosts(t *testing.T) float64 {
	t.Helper()
	srv, all := counter(deliveries)
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: inFlight}}
	body := strings.Repeat("x", 450)
	return timed(deliveries, func() {
		inParallel(inFlight, func(n int) error {
			for i := n; i < deliveries; i += inFlight {
				res, err := client.Post(srv.URL, "application/json", strings.NewReader(body))
				if err != nil {
					return err
				}
				res.Body.Close()
			}
			return nil
		}, t)
		<-all
	})
}

// paced measures from the start of a message's commit to its receipt.
func paced(t *testing.T) figure {
	const events, gap = 500, 10 * time.Millisecond
	arrived := make(chan time.Time, events)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		at := time.Now()
		io.Copy(io.Discard, r.Body)
		arrived <- at
	}))
	defer srv.Close()
	b := newBacklog(t, srv.URL)
	stop := b.dispatch(t)
	defer stop()
	var waits []float64
	tick := time.NewTicker(gap)
	defer tick.Stop()
	for range events {
		<-tick.C
		at := time.Now()
		if err := b.receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		waits = append(waits, float64((<-arrived).Sub(at).Microseconds())/1000)
	}
	slices.Sort(waits)
	return figure{name: "commit to receipt at 100 events/s", unit: "µs (median)", ours: []float64{1000 * waits[events/2]}, extra: fmt.Sprintf("p99 %.1f ms (goal p50 10 ms, p99 50 ms), fsync included", waits[events*99/100])}
}
