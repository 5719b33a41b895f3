package webhook

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
)

// posts notes when a POST went to which URL.
type posts struct {
	mu    sync.Mutex
	began time.Time
	at    map[string][]time.Duration
	fails map[string]int // URL → how many of its first POSTs fail
}

func newPosts() *posts {
	return &posts{began: time.Now(), at: map[string][]time.Duration{}, fails: map[string]int{}}
}

func (p *posts) post(_ context.Context, _, url string, _ http.Header, _ []byte) (egress.Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[url] = append(p.at[url], time.Since(p.began))
	if len(p.at[url]) <= p.fails[url] {
		return egress.Answer{Status: 500}, failure("status")
	}
	return egress.Answer{Status: 200}, nil
}

func (p *posts) of(url string) []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]time.Duration{}, p.at[url]...)
}

// mostInAMinute is the largest number of times within any 60 seconds.
func mostInAMinute(at []time.Duration) (most int) {
	for i, j := 0, 0; i < len(at); i++ {
		for at[i]-at[j] >= time.Minute {
			j++
		}
		most = max(most, i-j+1)
	}
	return most
}

func TestFloodIsSpreadOutAndNothingIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(t), newPosts()
		starter, _ := postern.PlanByName("starter")
		w.must(w.db.Workspaces.SetPlan(t.Context(), w.device.WorkspaceID, starter, now()))
		flooded := w.active("https://flood.example.com", nil)
		p.fails[flooded.URL] = 3
		w.fill(1500)
		w.newTenant()
		calm := w.active("https://calm.example.com", nil)
		d := w.dispatcher(Options{})
		d.post, p.began = p.post, time.Now()
		w.start(d)
		synctest.Wait()
		w.receive(numbered(20)...)
		synctest.Wait()
		if at := p.of(calm.URL); len(at) != 20 || at[19] > time.Second {
			t.Errorf("the neighbour's 20 events came at %v", at)
		}
		if n := len(p.of(flooded.URL)); n != 100 {
			t.Errorf("%d events came at once, want a sixth of 600", n)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if at := p.of(flooded.URL); len(at) < 183 || len(at) > 187 { // 500 a minute more, and the three retries
			t.Errorf("%d attempts in 10 s", len(at))
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		w.awaitSucceeded(flooded, 1500)
		if n := mostInAMinute(p.of(flooded.URL)); n > 603 || n < 590 {
			t.Errorf("%d attempts in a minute, want up to 600 first ones and 3 retries", n)
		}
		w.stop()
	})
}

func TestLargerPlanHoldsSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(t), newPosts()
		set := func(name string) {
			plan, _ := postern.PlanByName(name)
			w.must(w.db.Workspaces.SetPlan(t.Context(), w.device.WorkspaceID, plan, now()))
		}
		set("starter")
		e := w.active("https://example.com", nil)
		w.fill(700)
		d := w.dispatcher(Options{})
		d.post = p.post
		w.start(d)
		time.Sleep(time.Second)
		set("enterprise")
		time.Sleep(planLook + time.Second)
		synctest.Wait()
		w.awaitSucceeded(e, 700)
		w.stop()
	})
}

func (w *world) wantAllDelivered(e postern.Endpoint) {
	w.t.Helper()
	for _, d := range w.deliveries(e) {
		if d.Status != postern.DeliverySucceeded {
			w.t.Errorf("%s, made at %s, is %s", d.ID, d.CreatedAt, d.Status)
		}
	}
}

// A first that is written late is found, though others waited for their turn when
// the lane looked.
func TestLateFirstBehindFairUseIsDelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(t), newPosts()
		starter, _ := postern.PlanByName("starter")
		w.must(w.db.Workspaces.SetPlan(t.Context(), w.device.WorkspaceID, starter, now()))
		e := w.active("https://example.com", nil)
		d := w.dispatcher(Options{})
		d.post = p.post
		w.start(d)
		late := w.inbound("late") // the writer is slow: it is on disk 15 s after its time
		for range 15 {
			w.receive(numbered(20)...)
			time.Sleep(time.Second)
		}
		w.must(w.db.Messages.RecordInbound(t.Context(), late))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		w.wantAllDelivered(e)
		w.stop()
	})
}

// So is one that is on disk 2 ms after one with a later time, while a backlog
// grows.
func TestFirstOutOfOrderBehindFairUseIsDelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(t), newPosts()
		starter, _ := postern.PlanByName("starter")
		w.must(w.db.Workspaces.SetPlan(t.Context(), w.device.WorkspaceID, starter, now()))
		e := w.active("https://example.com", nil)
		w.receive(numbered(127)...)
		time.Sleep(time.Millisecond)
		late := w.inbound("late")
		time.Sleep(time.Millisecond)
		w.receive("last of a page")
		d := w.dispatcher(Options{})
		d.post = p.post
		w.start(d)
		time.Sleep(50 * time.Millisecond) // four full pages were read, and fair use waits
		w.must(w.db.Messages.RecordInbound(t.Context(), late))
		for range 30 {
			w.receive(numbered(40)...)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		w.wantAllDelivered(e)
		w.stop()
	})
}
