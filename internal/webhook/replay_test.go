package webhook

import (
	"net/http"
	"slices"
	"testing"

	"postern/internal/postern"
)

func (w *world) replay(e postern.Endpoint) postern.Replay {
	w.t.Helper()
	end, err := w.db.Events.End(w.t.Context(), e.WorkspaceID)
	w.must(err)
	r := postern.Replay{
		ID: postern.NewReplayID(), WorkspaceID: e.WorkspaceID, EndpointID: e.ID,
		Status: postern.ReplayRunning, Last: end,
		CreatedAt: now(),
	}
	w.must(w.db.Replays.Create(w.t.Context(), r, nil))
	return r
}

func (w *world) awaitReplay(r postern.Replay, what string, holds func(postern.Replay) bool) (got postern.Replay) {
	w.t.Helper()
	w.await(what, func() bool {
		var err error
		got, err = w.db.Replays.Get(w.t.Context(), r.WorkspaceID, r.ID)
		w.must(err)
		return holds(got)
	})
	return got
}

func completed(r postern.Replay) bool { return r.Status == postern.ReplayCompleted }

func TestReplayDeliversTheSameBytesAndWhatWasMissed(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t, nil)
	w.receive("before the endpoint")
	e := w.active(r.URL, func(e *postern.Endpoint) { e.MaxInFlight = 1 })
	w.start(w.dispatcher(Options{}))
	w.receive("delivered")
	first := r.next()
	w.awaitSucceeded(e, 1)
	replay := w.replay(e)
	if g := r.next(); g.text() != "before the endpoint" || g.header.Get("Webhook-Attempt") != "1" {
		t.Errorf("first %q, attempt %s", g.text(), g.header.Get("Webhook-Attempt"))
	}
	if g := r.next(); g.body != first.body || g.header.Get("Webhook-Id") != first.header.Get("Webhook-Id") ||
		g.header.Get("Webhook-Attempt") != "2" {
		t.Errorf("then %v %s, want the bytes of %s", g.header, g.body, first.body)
	}
	if got := w.awaitReplay(replay, "the end of the replay", completed); got.Matched != 2 || got.Delivered != 2 ||
		got.Failed != 0 {
		t.Errorf("replay = %+v", got)
	}
	r.none("after the replay")
}

// A replay of many events is cut in the middle by a restart; what is new
// overtakes it.
func TestReplayIsOvertakenByWhatIsNewAndGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	const all = 320 // more than a chunk, and more than a lane reads at once
	w := newWorld(t)
	w.receive(numbered(all)...)
	gate := make(chan struct{}, all+10)
	r := newReceiver(t, func(http.ResponseWriter, got) { <-gate })
	e := w.active(r.URL, func(e *postern.Endpoint) { e.MaxInFlight = 1 })
	w.start(w.dispatcher(Options{}))
	replay := w.replay(e)
	var texts []string
	take := func(n int) {
		for range n {
			gate <- struct{}{}
			texts = append(texts, r.next().text())
		}
	}
	take(20)
	w.receive("new")
	take(10) // those that were on their way come first
	if !slices.Contains(texts[20:], "new") {
		t.Errorf("after the new event came %v", texts[20:])
	}
	if got := w.awaitReplay(replay, "a running replay",
		func(r postern.Replay) bool { return r.Delivered > 0 }); got.Matched > 200 {
		t.Errorf("%d of %d are queued with %d delivered: a replay must not flood", got.Matched, all, got.Delivered)
	}
	for range all + 5 {
		gate <- struct{}{} // from here on it answers at once
		if len(gate) == cap(gate) {
			break
		}
	}
	w.stop()
	w.must(w.db.Close())
	w.open()
	w.start(w.dispatcher(Options{}))
	got := w.awaitReplay(replay, "the end of the replay", completed)
	if got.Matched != all || got.Delivered != all {
		t.Errorf("replay = %+v, want %d delivered", got, all)
	}
}
