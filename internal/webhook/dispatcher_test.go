package webhook

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
	"postern/internal/store"

	"github.com/prometheus/client_golang/prometheus"
)

// soon makes gaps of the schedule a hundredth of what they are.
func soon() float64 { return -1.975 }

func numbered(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = "text " + strconv.Itoa(i)
	}
	return texts
}

func TestEventIsDeliveredSignedAndLoggedWithoutItsContent(t *testing.T) {
	t.Parallel()
	w, r, log := newWorld(t), newReceiver(t, nil), &buffer{}
	e := w.active(r.URL+"/secret-path", func(e *postern.Endpoint) {
		e.HeaderValues = w.box.Seal([]byte(`{"X-Api-Key":"canary-header","webhook-id":"forged",
			"x-service-signature":"forged","user-agent":"forged"}`), e.ID.HeadersPlace())
	})
	reg := prometheus.NewRegistry()
	w.start(w.dispatcher(Options{Log: log.logger(), Registerer: reg}))
	w.receive("canary-text")
	g := r.next()
	if g.header.Get("X-Api-Key") != "canary-header" || g.header.Get("Webhook-Attempt") != "1" ||
		g.text() != "canary-text" || g.event.Type != "message.received" {
		t.Errorf("got %v %s", g.header, g.body)
	}
	w.awaitSucceeded(e, 1)
	d := w.deliveries(e)[0]
	if d.Attempts != 1 || d.LastStatus != 200 || d.LastReason != "" || d.CompletedAt == 0 ||
		d.FirstAttemptAt < d.CreatedAt {
		t.Errorf("delivery = %+v", d)
	}
	w.stop()
	line := log.String()
	for _, want := range []string{
		string(e.ID), string(d.ID), string(d.EventID), string(e.WorkspaceID), `"attempt":1`,
		`"status":200`, `"reason":""`, `"duration_ms":`,
	} {
		if !strings.Contains(line, want) {
			t.Errorf("the log line lacks %s: %s", want, line)
		}
	}
	for _, secret := range []string{"canary", "secret-path", "whsec", "127.0.0.1"} {
		if strings.Contains(line, secret) {
			t.Errorf("the log shows %s", secret)
		}
	}
	if got := gathered(t, reg)["postern_webhook_attempts_total"]; got != 1 {
		t.Errorf("attempts counted = %v, want 1", got)
	}
}

func gathered(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sums[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sums
}

func TestReceiverThatWasDownGetsTheSameBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fails := 3
	r := newReceiver(t, func(w http.ResponseWriter, _ got) {
		if fails--; fails >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	e := w.active(r.URL, nil)
	d := w.dispatcher(Options{})
	d.jitter = soon
	w.start(d)
	w.receive("again and again")
	first := r.next()
	for n := 2; n <= 4; n++ {
		g := r.next()
		if g.body != first.body || g.header.Get("Webhook-Id") != first.header.Get("Webhook-Id") ||
			g.header.Get("Webhook-Attempt") != strconv.Itoa(n) {
			t.Errorf("attempt %d: %v %s, first %s", n, g.header, g.body, first.body)
		}
	}
	w.awaitSucceeded(e, 1)
	if d := w.deliveries(e)[0]; d.Attempts != 4 || d.NextAttemptAt != 0 {
		t.Errorf("delivery = %+v", d)
	}
}

func TestFirstAttemptsGoBeforeRetries(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t, nil)
	e := w.active(r.URL, func(e *postern.Endpoint) { e.MaxInFlight = 1 })
	w.receive("old 0", "old 1", "old 2")
	for _, d := range w.dueNow(e) {
		w.must(w.db.Deliveries.FinishAttempt(t.Context(), store.Attempt{
			DeliveryID: d.ID, Row: d.Row, EndpointID: e.ID, Number: 1, At: now(), Ended: now(), HTTPStatus: 500,
			Reason: "status", Status: postern.DeliveryPending,
			DueAt: now().Add(-time.Minute),
		}))
	}
	w.receive(numbered(batch + 3)...)
	w.start(w.dispatcher(Options{}))
	for i := range batch + 3 {
		if g := r.next(); g.text() != "text "+strconv.Itoa(i) {
			t.Fatalf("POST %d is %q", i, g.text())
		}
	}
	for i := range 3 {
		if g := r.next(); g.text() != "old "+strconv.Itoa(i) || g.header.Get("Webhook-Attempt") != "2" {
			t.Errorf("then %q, attempt %s", g.text(), g.header.Get("Webhook-Attempt"))
		}
	}
}

func TestHangingEndpointDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := make(chan struct{})
	hang := newReceiver(t, func(http.ResponseWriter, got) { <-release })
	healthy := newReceiver(t, nil)
	for range 10 {
		w.active(hang.URL, nil)
	}
	d := w.dispatcher(Options{})
	d.slots = newShares(40) // of which one workspace gets half: far fewer than the hanging endpoints want
	w.start(d)
	w.receive(numbered(10)...)
	for range 30 {
		hang.next() // 10 own slots and 20 shared ones
	}
	e := w.active(healthy.URL, nil)
	w.receive(numbered(50)...)
	w.awaitSucceeded(e, 50)
	close(release)
	w.stop()
}

func TestTimeoutsNarrowALaneAndSuccessWidensIt(t *testing.T) {
	t.Parallel()
	l := &lane{
		Dispatcher: &Dispatcher{bodies: newShares(0), now: now}, endpoint: &postern.Endpoint{MaxInFlight: 8}, width: 8,
		flying: 100, held: map[postern.DeliveryID]struct{}{},
	}
	for _, tt := range []struct {
		status int
		reason egress.Reason
		want   int
	}{
		{0, "timeout", 4},
		{500, "status", 4},
		{429, "status", 2},
		{0, "timeout", 1},
		{0, "timeout", 1},
		{200, "", 2},
		{200, "", 3},
		{200, "", 4},
		{200, "", 5},
		{200, "", 6},
		{200, "", 7},
		{200, "", 8},
		{200, "", 8},
	} {
		if l.land(report{
			verdict:  verdictOf(egress.Answer{Status: tt.status}, tt.reason),
			answered: true,
		}); l.width != tt.want {
			t.Fatalf("after %d %q the width is %d, want %d", tt.status, tt.reason, l.width, tt.want)
		}
	}
}

func TestNoMoreThanMaxInFlightAtOnce(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 3, 64} {
		w := newWorld(t)
		full := make(chan struct{})
		var once sync.Once
		var r *receiver
		r = newReceiver(t, func(http.ResponseWriter, got) {
			r.mu.Lock()
			reached := r.flying == limit
			r.mu.Unlock()
			if reached {
				once.Do(func() { close(full) })
			}
			<-full
		})
		e := w.active(r.URL, func(e *postern.Endpoint) { e.MaxInFlight = limit })
		w.receive(numbered(100)...)
		w.start(w.dispatcher(Options{}))
		w.awaitSucceeded(e, 100)
		w.stop()
		if r.highest != limit {
			t.Errorf("%d were in flight at once, want %d", r.highest, limit)
		}
		if n := len(r.posts); n != 100 {
			t.Errorf("%d POSTs of 100 events", n)
		}
	}
}

func TestEveryEventIsDeliveredOnceUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	receivers := make([]*receiver, 5)
	endpoints := make([]postern.Endpoint, 5)
	for i := range receivers {
		receivers[i] = newReceiver(t, nil)
		endpoints[i] = w.active(receivers[i].URL, nil)
	}
	w.start(w.dispatcher(Options{}))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for j := range 20 {
				if err := w.db.Messages.RecordInbound(t.Context(), w.inbound(fmt.Sprint(i, " ", j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i, e := range endpoints {
		w.await("400 POSTs", func() bool { return len(receivers[i].posts) >= 400 })
		w.awaitSucceeded(e, 400)
		if n := len(receivers[i].posts); n != 400 {
			t.Errorf("%d POSTs of 400 events", n)
		}
	}
}

func TestNextProcessGoesOnWithTheSameBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	status := http.StatusInternalServerError
	r := newReceiver(t, func(w http.ResponseWriter, _ got) { w.WriteHeader(status) })
	e := w.active(r.URL, nil)
	d := w.dispatcher(Options{})
	d.jitter = soon
	w.start(d)
	w.receive("survives")
	first := r.next()
	w.stop()
	status = http.StatusNoContent
	w.receive("meanwhile")
	w.start(w.dispatcher(Options{}))
	w.awaitSucceeded(e, 2)
	seen := map[string]string{}
	for len(r.posts) > 0 {
		g := r.next()
		seen[g.text()] = g.body
	}
	if len(seen) != 2 || seen["survives"] != first.body {
		t.Errorf("after the restart: %v; before: %s", seen, first.body)
	}
}

func TestStoppingFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := make(chan struct{})
	r := newReceiver(t, func(http.ResponseWriter, got) { <-release })
	e := w.active(r.URL, func(e *postern.Endpoint) { e.MaxInFlight = 2 })
	w.receive(numbered(5)...)
	w.start(w.dispatcher(Options{}))
	r.next()
	r.next()
	stopped := make(chan struct{})
	go func() { w.stop(); close(stopped) }()
	close(release)
	<-stopped
	n := 0
	for _, d := range w.deliveries(e) {
		if d.Status == postern.DeliverySucceeded {
			n++
		}
	}
	if n < 2 || n != 2+len(r.posts) {
		t.Errorf("%d are recorded as delivered, %d were posted", n, 2+len(r.posts))
	}
}

func TestDrainThatTakesTooLongIsCutOffAndNothingLost(t *testing.T) {
	t.Parallel()
	w, log := newWorld(t), &buffer{}
	release := make(chan struct{})
	var hang sync.Once
	r := newReceiver(t, func(http.ResponseWriter, got) { hang.Do(func() { <-release }) })
	e := w.active(r.URL, nil)
	w.receive("cut off")
	w.start(w.dispatcher(Options{Log: log.logger(), Drain: time.Millisecond}))
	first := r.next()
	w.stop()
	close(release)
	if d := w.deliveries(e)[0]; d.Attempts != 0 || d.Status != postern.DeliveryPending ||
		!strings.Contains(log.String(), "cut off") {
		t.Errorf("delivery = %+v, log %s", d, log)
	}
	w.start(w.dispatcher(Options{}))
	if g := r.next(); g.body != first.body || g.header.Get("Webhook-Attempt") != "1" {
		t.Errorf("then %v %s", g.header, g.body)
	}
	w.awaitSucceeded(e, 1)
}

func TestDeletedEndpointGetsNothingMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var e postern.Endpoint
	r := newReceiver(t, func(http.ResponseWriter, got) {
		if err := w.db.Endpoints.Delete(t.Context(), e.WorkspaceID, e.ID); err != nil {
			t.Error(err)
		}
	})
	e = w.active(r.URL, func(e *postern.Endpoint) { e.MaxInFlight = 1 })
	w.receive(numbered(10)...)
	other := newReceiver(t, nil)
	o := w.active(other.URL, nil)
	w.start(w.dispatcher(Options{}))
	r.next()
	w.receive("still works")
	w.awaitSucceeded(o, 1)
	w.stop()
	r.none("after the deletion")
}

func TestGoneDisablesTheEndpointAtOnce(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t, respond(http.StatusGone))
	e := w.active(r.URL, func(e *postern.Endpoint) { e.MaxInFlight = 1 })
	w.receive(numbered(10)...)
	w.start(w.dispatcher(Options{}))
	r.next()
	if got := w.awaitStatus(e, postern.EndpointDisabled); got.StatusReason != "gone" {
		t.Errorf("reason = %q, want gone", got.StatusReason)
	}
	w.stop()
	r.none("after 410")
	for i, d := range w.deliveries(e) {
		if d.Status != postern.DeliveryPending || (d.Attempts == 1) != (i == 0) {
			t.Errorf("delivery %d = %+v", i, d)
		}
	}
}

func TestRetryAfterLengthensTheGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t, func(w http.ResponseWriter, _ got) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	e := w.active(r.URL, nil)
	w.start(w.dispatcher(Options{}))
	w.receive("later")
	r.next()
	w.await("the attempt", func() bool { return w.deliveries(e)[0].Attempts == 1 })
	d := w.deliveries(e)[0]
	if gap := time.Duration(d.NextAttemptAt-d.LastAttemptAt) * time.Millisecond; gap < time.Hour ||
		gap > time.Hour+time.Minute {
		t.Errorf("the gap is %s, want an hour", gap)
	}
	if d.LastReason != "status" || d.LastStatus != 429 {
		t.Errorf("delivery = %+v", d)
	}
}

// The process ends between an answer and its record: the event is posted again
// with its id and its bytes.
func TestOutcomeThatCannotBeRecordedIsTriedAgain(t *testing.T) {
	t.Parallel()
	w, log := newWorld(t), &buffer{}
	var once sync.Once
	r := newReceiver(t, func(http.ResponseWriter, got) { once.Do(func() { w.db.Close() }) })
	e := w.active(r.URL, nil)
	w.receive("twice")
	w.start(w.dispatcher(Options{Log: log.logger(), Drain: time.Millisecond}))
	first := r.next()
	w.await("the log line", func() bool { return strings.Contains(log.String(), "not recorded") })
	w.stop()
	w.open()
	w.start(w.dispatcher(Options{}))
	if g := r.next(); g.body != first.body {
		t.Errorf("the second POST differs: %s", g.body)
	}
	w.awaitSucceeded(e, 1)
	w.stop()
}

func TestLargeAnswerIsKeptInPartAndAsText(t *testing.T) {
	t.Parallel()
	if got := answerText([]byte("a\x00b\xff\xc3")); got != "a\uFFFDb\uFFFD" {
		t.Errorf("answerText = %q", got)
	}
}

func TestNoticeIsDeliveredLikeAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var posts atomic.Int32
	r := newReceiver(t, func(w http.ResponseWriter, _ got) {
		if posts.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	e := w.active(r.URL, func(e *postern.Endpoint) { e.Events = []string{"device.*"} }) // whatever it asks for
	other := newReceiver(t, nil)
	w.active(other.URL, nil)
	dispatcher := w.dispatcher(Options{})
	dispatcher.jitter = func() float64 { return -1 } // 2 s: the second notice comes before the retry
	w.start(dispatcher)
	for range 2 {
		d := postern.Delivery{
			ID: postern.NewDeliveryID(), EndpointID: e.ID, EventID: postern.NewEventID(),
			Type: postern.WebhookTest, CreatedAt: now(),
		}
		w.must(w.db.Deliveries.QueueNotice(t.Context(), e.WorkspaceID, d, e.TestNotice(d.EventID, d.CreatedAt), nil))
		g := r.next()
		if g.event.Type != "webhook.test" || g.event.EventID != string(d.EventID) || !strings.Contains(g.body,
			`"deviceId":""`) || !strings.Contains(g.body,
			`"test":{"endpointId":"`+string(e.ID)+`"}`) {
			t.Errorf("got %s", g.body)
		}
	}
	if g := r.next(); g.header.Get("Webhook-Attempt") != "2" {
		t.Errorf("the one that failed is not tried again: %v", g.header)
	}
	w.awaitSucceeded(e, 2)
	other.none("a test of another endpoint")
	if end, err := w.db.Events.End(t.Context(), e.WorkspaceID); err != nil || end != 0 {
		t.Errorf("the log of events ends at %d (%v), want nothing in it", end, err)
	}
}
