package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
)

// hostile is a receiver that misbehaves, and what becomes of a delivery to it.
type hostile struct {
	name     string
	answer   http.HandlerFunc
	status   int
	reason   string
	outcome  postern.DeliveryStatus
	endpoint postern.EndpointStatus
	kept     int // bytes of the answer
}

func hostiles() []hostile {
	const pending, active = postern.DeliveryPending, postern.EndpointActive
	hijack := func(end func(*net.TCPConn)) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				end(c.(*net.TCPConn))
				c.Close()
			}
		}
	}
	return []hostile{
		{"hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0, "timeout", pending, active, 0},
		{"answers slowly", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				io.WriteString(w, "x")
				http.NewResponseController(w).Flush()
				_ = postern.Sleep(r.Context(), 50*time.Millisecond)
			}
		}, 200, "timeout", pending, active, -1},
		{"resets", hijack(func(c *net.TCPConn) { c.SetLinger(0) }), 0, "reset", pending, active, 0},
		{"closes", hijack(func(*net.TCPConn) {}), 0, "reset", pending, active, 0},
		{"talks something else", hijack(func(c *net.TCPConn) { io.WriteString(c, "220 mail.example.com ESMTP\r\n\r\n") }), 0, "body", pending, active, 0},
		{"sends an endless body", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte("y"), 4096)); err != nil {
					return
				}
			}
		}, 200, "", postern.DeliverySucceeded, active, 1024},
		{"ends its body early", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
		}, 200, "body", pending, active, 4},
		{"compresses", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(make([]byte, 50_000))
		}, 200, "", postern.DeliverySucceeded, active, 1023}, // marks of three bytes each
		{"redirects to a private address", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://169.254.169.254/latest/meta-data")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, 307, "redirect", pending, active, 0},
		{"asks for less", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, 429, "status", pending, active, 0},
		{"is gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, 410, "status", pending, postern.EndpointDisabled, 0},
		{"says early hints for ever", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.Header().Set("X-A", strings.Repeat("a", 1000))
				w.WriteHeader(http.StatusEarlyHints)
			}
		}, 0, "body", pending, active, 0},
	}
}

func TestHostileReceiverHasItsExactOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range hostiles() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body) // only then the server notices that the sender went away
				tt.answer(w, r)
			}))
			defer srv.Close()
			outcomeAt(t, srv.URL, tt)
		})
	}
}

func TestReceiverWithBadTLSHasItsExactOutcome(t *testing.T) {
	t.Parallel()
	for name, newest := range map[string]uint16{
		"an unknown certificate": tls.VersionTLS13,
		"TLS 1.1":                tls.VersionTLS11,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter,
				*http.Request,
			) {
				t.Error("a request arrived")
			}))
			srv.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: newest}
			srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			srv.StartTLS()
			defer srv.Close()
			outcomeAt(t, srv.URL, hostile{
				reason: "tls", outcome: postern.DeliveryPending,
				endpoint: postern.EndpointActive,
			})
		})
	}
}

// outcomeAt delivers to a URL once and compares what is in the log.
func outcomeAt(t *testing.T, url string, want hostile) {
	t.Helper()
	w := newWorld(t)
	opts := egress.Options{AllowPrivate: true}
	if want.reason == string(egress.Timeout) {
		opts.Timeout = 3 * time.Second // the others answer at once, on a slow machine later
	}
	w.client = egress.NewClient(opts)
	e := w.active(url, nil)
	w.start(w.dispatcher(Options{}))
	w.receive("to a hostile one")
	w.await("the attempt", func() bool { return w.deliveries(e)[0].Attempts == 1 })
	w.stop()
	d := w.deliveries(e)[0]
	log, err := w.db.Deliveries.Attempts(t.Context(), e.WorkspaceID, d.ID)
	if err != nil || len(log) != 1 {
		t.Fatalf("%d attempts are in the log (%v), want 1", len(log), err)
	}
	if d.Status != want.outcome || d.LastStatus != want.status || string(d.LastReason) != want.reason ||
		w.get(e).Status != want.endpoint {
		t.Errorf("%s, %d %q, endpoint %s; want %s, %d %q, %s", d.Status, d.LastStatus, d.LastReason, w.get(e).Status,
			want.outcome, want.status, want.reason,
			want.endpoint)
	}
	if a := log[0]; a.Status != want.status || string(a.Reason) != want.reason || want.kept >= 0 &&
		len(a.Answer) != want.kept || len(a.Answer) > 1024 {
		t.Errorf("the log has %d %q with %d bytes of the answer, want %d", a.Status, a.Reason, len(a.Answer), want.kept)
	}
	gap := time.Duration(d.NextAttemptAt-d.LastAttemptAt-postern.Time(log[0].DurationMs)) * time.Millisecond
	switch {
	case want.endpoint != postern.EndpointActive:
		if d.NextAttemptAt != 0 {
			t.Errorf("the next attempt is at %s, want none while the endpoint is %s", d.NextAttemptAt, want.endpoint)
		}
	case want.outcome == postern.DeliveryPending && (gap < 4*time.Second || gap > 7*time.Second):
		t.Errorf("the next attempt is after %s, want 5 s, a fifth more or less", gap)
	}
}

// A URL that passed when it was registered may lead anywhere later. Whichever
// field it is in, no connection is opened.
func TestForbiddenAddressIsNeverPostedTo(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../egress/testdata/forbidden.txt")
	if err != nil {
		t.Fatal(err)
	}
	var touched atomic.Bool
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ConnState = func(net.Conn, http.ConnState) { touched.Store(true) }
	srv.StartTLS()
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	w := newWorld(t)
	w.client.Close()
	w.client = egress.NewClient(egress.Options{})
	d := w.dispatcher(Options{})
	for _, ip := range strings.Fields(string(table)) {
		url := "https://" + net.JoinHostPort(ip, port) + "/"
		e := w.endpoint(url, nil)
		w.must(d.handshake(t.Context(), e))
		if got := w.get(e); got.Status != postern.EndpointPending || got.StatusReason != "blocked" {
			t.Errorf("url %s: %s (%q), want blocked", ip, got.Status, got.StatusReason)
		}
		w.must(w.db.Endpoints.Activate(t.Context(), e.ID, now()))
		_, err := d.send(t.Context(), new(w.get(e)), &signer{}, letter{body: []byte("{}")})
		if reasonOf(err) != egress.Blocked {
			t.Errorf("a delivery to %s: %v, want blocked", ip, err)
		}
		w.change(e, func(e *postern.Endpoint) {
			e.URL, e.PendingURL, e.DueAt = "https://example.com", postern.Maybe(url), now()
		})
		w.must(d.handshake(t.Context(), w.get(e)))
		if got := w.get(e); got.Status != postern.EndpointActive || got.StatusReason != "blocked" ||
			got.URL != "https://example.com" {
			t.Errorf("pendingUrl %s: %+v, want blocked", ip, got)
		}
	}
	srv.Close()
	if touched.Load() {
		t.Error("a connection was opened")
	}
}

// After 96 hours what was first is exhausted, visibly, and a replay of what
// failed brings it; what is new arrives at once.
func TestReceiverThatComesBackAfterFourDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.active("https://example.com", nil)
		var up atomic.Bool
		f := &fakePost{answer: func(ctx context.Context, n int) (egress.Answer, error) {
			if up.Load() {
				return egress.Answer{Status: 200}, nil
			}
			return egress.Answer{}, failure("connect")
		}}
		d := w.dispatcher(Options{})
		d.post = f.post
		w.start(d)
		w.receive("the first")
		time.Sleep(95 * time.Hour)
		w.receive("an hour before")
		time.Sleep(time.Hour)
		synctest.Wait()
		up.Store(true)
		list := w.deliveries(e)
		if w.get(e).Status != postern.EndpointActive || list[0].Status != postern.DeliveryExhausted ||
			list[0].LastReason != "connect" ||
			list[1].Status != postern.DeliveryPending {
			t.Fatalf("endpoint %s, deliveries %+v", w.get(e).Status, list)
		}
		if gap := list[0].CompletedAt.Std().Sub(list[0].CreatedAt.Std()); gap > 72*time.Hour+time.Minute {
			t.Errorf("the first was given up after %s, want at most 72 h", gap)
		}
		w.receive("new")
		time.Sleep(time.Second)
		synctest.Wait()
		if got := w.deliveries(e)[2]; got.Status != postern.DeliverySucceeded || got.Attempts != 1 {
			t.Errorf("what is new: %+v", got)
		}
		replay := postern.Replay{
			ID: postern.NewReplayID(), WorkspaceID: e.WorkspaceID, EndpointID: e.ID,
			Status: postern.ReplayRunning, OnlyFailed: true, Last: 1000,
			CreatedAt: now(),
		}
		w.must(w.db.Replays.Create(t.Context(), replay, nil))
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		for i, d := range w.deliveries(e) {
			if d.Status != postern.DeliverySucceeded {
				t.Errorf("delivery %d: %+v", i, d)
			}
		}
		if got, err := w.db.Replays.Get(t.Context(), e.WorkspaceID, replay.ID); err != nil ||
			got.Status != postern.ReplayCompleted || got.Matched != 1 ||
			got.Delivered != 1 {
			t.Errorf("replay = %+v (%v)", got, err)
		}
		w.stop()
	})
}
