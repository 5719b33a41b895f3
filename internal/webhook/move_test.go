package webhook

import (
	"net/http"
	"sync/atomic"
	"testing"

	"postern/internal/postern"
)

func (w *world) change(e postern.Endpoint, change func(*postern.Endpoint)) {
	w.t.Helper()
	_, err := w.db.Endpoints.Change(w.t.Context(), e.WorkspaceID, e.ID, nil, func(e *postern.Endpoint) error {
		change(e)
		return nil
	})
	w.must(err)
}

func (w *world) get(e postern.Endpoint) postern.Endpoint {
	w.t.Helper()
	got, err := w.db.Endpoints.ForDelivery(w.t.Context(), e.ID)
	w.must(err)
	return got
}

func TestOldURLIsUsedUntilTheNewOneHasAnswered(t *testing.T) {
	t.Parallel()
	w, older := newWorld(t), newReceiver(t, nil)
	var ready atomic.Bool
	newer := newReceiver(t, func(w http.ResponseWriter, g got) {
		if !ready.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		answerJSON(w, g)
	})
	e := w.active(older.URL, nil)
	w.start(w.dispatcher(Options{}))
	move := func(e *postern.Endpoint) {
		e.PendingURL, e.Attempts, e.DueAt = postern.Maybe(newer.URL), 0, now()
	}
	w.change(e, move)
	if g := newer.next(); g.event.Type != "webhook.verification" || g.event.Challenge == "" {
		t.Fatalf("the new URL got %s", g.body)
	}
	w.await("the failed try", func() bool { return w.get(e).StatusReason == "status" })
	w.receive("while it fails")
	if g := older.next(); g.text() != "while it fails" {
		t.Errorf("the old URL got %s", g.body)
	}
	ready.Store(true)
	w.change(e, move) // as POST …/verify does
	newer.next()
	w.await("the move", func() bool { return w.get(e).URL == newer.URL })
	if got := w.get(e); got.PendingURL != "" || got.Status != postern.EndpointActive || got.StatusReason != "" {
		t.Errorf("endpoint = %+v", got)
	}
	w.receive("after the move")
	if g := newer.next(); g.text() != "after the move" {
		t.Errorf("the new URL got %s", g.body)
	}
	w.awaitSucceeded(e, 3) // with that of the verification
	older.none("after the move")
}

func TestNewURLThatNeverAnswersLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	w, older, newer := newWorld(t), newReceiver(t, nil), newReceiver(t, nil) // it does not give the challenge back
	e := w.active(older.URL, nil)
	w.change(e, func(e *postern.Endpoint) { e.PendingURL, e.DueAt = postern.Maybe(newer.URL), now() })
	d := w.dispatcher(Options{})
	for range postern.HandshakeTries {
		w.must(d.handshake(t.Context(), w.get(e)))
		newer.next()
	}
	got := w.get(e)
	if got.Status != postern.EndpointActive || got.URL != older.URL || string(got.PendingURL) != newer.URL ||
		got.StatusReason != wrongChallenge || got.DueAt != 0 {
		t.Errorf("endpoint = %+v", got)
	}
	w.start(d)
	w.receive("still here")
	if g := older.next(); g.text() != "still here" {
		t.Errorf("the old URL got %s", g.body)
	}
	w.awaitSucceeded(e, 1)
	newer.none("after its last try")
}

func TestPausedEndpointGetsNothingAndCatchesUp(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t, answerJSON)
	e := w.active(r.URL, func(e *postern.Endpoint) { e.MaxInFlight = 1 })
	w.start(w.dispatcher(Options{}))
	w.receive("before")
	r.next()
	w.awaitSucceeded(e, 1)
	w.change(e, func(e *postern.Endpoint) { e.Status = postern.EndpointPaused })
	w.receive(numbered(5)...)
	r.none("while paused")
	w.change(e, func(e *postern.Endpoint) { e.Status, e.DueAt = postern.EndpointPending, now() })
	if g := r.next(); g.event.Type != "webhook.verification" {
		t.Fatalf("first POST after the pause is %s", g.body)
	}
	for i, want := range numbered(5) {
		if g := r.next(); g.text() != want {
			t.Errorf("POST %d after the pause is %q, want %q", i, g.text(), want)
		}
	}
}
