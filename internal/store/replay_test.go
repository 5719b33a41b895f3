package store

import (
	"slices"
	"testing"

	"postern/internal/postern"
)

// replayOf creates a replay of all events that the endpoint wants, changed by edit.
func replayOf(t *testing.T, db *Store, e postern.Endpoint, edit func(*postern.Replay)) postern.Replay {
	t.Helper()
	end, err := db.Events.End(t.Context(), e.WorkspaceID)
	if err != nil {
		t.Fatal(err)
	}
	r := postern.Replay{
		ID: postern.NewReplayID(), WorkspaceID: e.WorkspaceID, EndpointID: e.ID,
		Status: postern.ReplayRunning, Last: end, CreatedAt: testNow,
	}
	if edit != nil {
		edit(&r)
	}
	if err := db.Replays.Create(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// step runs a replay until it has nothing to do.
func step(t *testing.T, db *Store, r postern.Replay) postern.Replay {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = db.Replays.Step(t.Context(), r.ID, testNow.Add(1e12)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Replays.Get(t.Context(), r.WorkspaceID, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// finish ends the deliveries that are due, with the outcome for each of their events.
func finish(t *testing.T, db *Store, e postern.Endpoint, outcome func(n int) postern.DeliveryStatus) []DueDelivery {
	t.Helper()
	due, err := db.Deliveries.Due(t.Context(), e.ID, testNow.Add(1e15), true, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	var list []Attempt
	for n, d := range due {
		o := Attempt{
			DeliveryID: d.ID, Row: d.Row, EndpointID: e.ID, Replay: d.Replay, Number: d.Attempts + 1,
			At:    testNow,
			Ended: testNow, HTTPStatus: 200, Status: outcome(n),
		}
		if o.Status != postern.DeliverySucceeded {
			o.HTTPStatus, o.Reason = 500, "status"
		}
		if o.Status == postern.DeliveryPending {
			o.DueAt = testNow.Add(1e12)
		}
		list = append(list, o)
	}
	writeAll(t, db, list...)
	return due
}

func succeed(int) postern.DeliveryStatus { return postern.DeliverySucceeded }

func TestReplayReachesWhatSucceededWhatFailedAndWhatWasNeverSent(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		receiveN(t, db, d, 2) // before the endpoint
		e := newEndpoint(t, db, d.WorkspaceID, "*")
		if err := db.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
			t.Fatal(err)
		}
		receiveN(t, db, d, 3)
		first := finish(t, db, e, func(n int) postern.DeliveryStatus {
			return []postern.DeliveryStatus{
				postern.DeliverySucceeded, postern.DeliveryExhausted,
				postern.DeliveryPending,
			}[n]
		})
		r := step(t, db, replayOf(t, db, e, func(r *postern.Replay) { r.OnlyFailed = true }))
		again := finish(t, db, e, func(n int) postern.DeliveryStatus {
			return []postern.DeliveryStatus{postern.DeliveryExhausted, postern.DeliveryPending}[n]
		})
		if r.Matched != 1 || len(again) != 2 || again[0].ID != first[1].ID && again[1].ID != first[1].ID {
			t.Fatalf("of failed ones alone: %+v, %+v", r, again)
		}
		if again[0].Replay != r.ID && again[1].Replay != r.ID {
			t.Errorf("due = %+v", again)
		}
		for _, l := range again {
			if l.Replay == r.ID && (l.EventID != first[1].EventID || string(l.Body) != string(first[1].Body) ||
				l.Attempts != 1 || l.Earlier != 1 || l.FirstAttemptAt != 0) {
				t.Errorf("the replayed delivery is %+v, want a new round of %+v", l, first[1])
			}
		}
		if r = step(t, db, r); r.Status != postern.ReplayCompleted || r.Delivered+r.Failed != 1 || r.EndedAt == 0 {
			t.Errorf("the replay ended as %+v", r)
		}
		r = step(t, db, replayOf(t, db, e, nil))
		if r.Matched != 4 || r.AlreadyPending != 1 || r.Status != postern.ReplayRunning {
			t.Errorf("replay = %+v, want 4 matched, 1 already pending, and running", r)
		}
		firsts, err := db.Deliveries.First(t.Context(), e.ID, Place{}, testNow.Add(1e15), 10)
		if err != nil || len(firsts) != 0 {
			t.Errorf("%d of its deliveries are first ones (%v): they would go before what is new", len(firsts), err)
		}
		finish(t, db, e, func(n int) postern.DeliveryStatus {
			return map[bool]postern.DeliveryStatus{
				true:  postern.DeliverySucceeded,
				false: postern.DeliveryExhausted,
			}[n != 2]
		})
		if r = step(t, db, r); r.Status != postern.ReplayCompleted || r.Delivered+r.Failed != 4 {
			t.Errorf("replay = %+v", r)
		}
	})
}

func TestReplayIsNarrowedByTimeAndKind(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		other := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		logMany(t, db, other, 2, postern.MessageReceived, testNow)
		for n := range 5 {
			logMany(t, db, d, 1, []postern.EventType{postern.MessageReceived, postern.DeviceLinked}[n%2],
				testNow.Add(1e9*10)+postern.Time(n))
		}
		finish(t, db, e, succeed)
		at := testNow.Add(1e9 * 10)
		for _, tt := range []struct {
			edit func(*postern.Replay)
			want int
		}{
			{nil, 5},
			{func(r *postern.Replay) { r.Since = at + 1 }, 4},
			{func(r *postern.Replay) { r.Until = at + 1 }, 1},
			{func(r *postern.Replay) { r.Since, r.Until = at+1, at+3 }, 2},
			{func(r *postern.Replay) { r.Types = []string{"message.*"} }, 3},
			{func(r *postern.Replay) { r.Types = []string{"device.linked"}; r.Until = at + 2 }, 1},
			{func(r *postern.Replay) { r.OnlyFailed = true }, 0},
		} {
			r := step(t, db, replayOf(t, db, e, tt.edit))
			finish(t, db, e, succeed)
			if r = step(t, db, r); r.Matched != tt.want || r.Delivered != tt.want ||
				r.Status != postern.ReplayCompleted {
				t.Errorf("replay = %+v, want %d matched", r, tt.want)
			}
		}
	})
}

func TestReplayIsBoundedSurvivesARestartAndStops(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		opts := on.options(t)
		db := reopen(t, opts)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		const all = 3*replayChunk + 7
		logMany(t, db, d, all, postern.MessageReceived, testNow)
		e := newEndpoint(t, db, d.WorkspaceID, "*")
		if err := db.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
			t.Fatal(err)
		}
		r := step(t, db, replayOf(t, db, e, nil))
		if r.Matched != replayChunk {
			t.Errorf("%d are queued at once, want %d", r.Matched, replayChunk)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = reopen(t, opts)
		if ids, err := db.Replays.Running(t.Context(), ""); err != nil || !slices.Equal(ids, []postern.ReplayID{r.ID}) {
			t.Fatalf("after a restart run %v (%v)", ids, err)
		}
		if r = step(t, db, r); r.Matched != replayChunk {
			t.Errorf("after a restart %d are queued, want still %d", r.Matched, replayChunk)
		}
		change(t, db, e, func(e *postern.Endpoint) { e.Status = postern.EndpointPaused })
		finish(t, db, e, succeed)
		if r = step(t, db, r); r.Matched != replayChunk || r.Status != postern.ReplayRunning {
			t.Errorf("while the endpoint is paused: %+v", r)
		}
		change(t, db, e, func(e *postern.Endpoint) { e.Status = postern.EndpointActive })
		if r = step(t, db, r); r.Matched != 2*replayChunk || r.Delivered != replayChunk {
			t.Errorf("after the pause: %+v", r)
		}
		if err := db.Replays.Stop(t.Context(), r.WorkspaceID, r.ID, testNow.Add(5)); err != nil {
			t.Fatal(err)
		}
		finish(t, db, e, succeed)
		if r = step(t, db, r); r.Status != postern.ReplayStopped || r.Matched != 2*replayChunk ||
			r.Delivered != 2*replayChunk {
			t.Errorf("a stopped replay: %+v", r)
		}
		r = step(t, db, replayOf(t, db, e, nil))
		for range 3 {
			finish(t, db, e, succeed)
			r = step(t, db, r)
		}
		finish(t, db, e, succeed)
		if r = step(t, db, r); r.Status != postern.ReplayCompleted || r.Matched != all || r.Delivered != all {
			t.Errorf("the whole: %+v", r)
		}
		if n := count(t, db, `SELECT count(*) FROM delivery`); n != all {
			t.Errorf("%d deliveries, want one for each event", n)
		}
	})
}

func TestReplaysOfAnEndpointAreFewAndGoWithIt(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		receiveN(t, db, d, 1)
		for range postern.MaxReplays {
			replayOf(t, db, e, nil)
		}
		r := postern.Replay{
			ID: postern.NewReplayID(), WorkspaceID: e.WorkspaceID, EndpointID: e.ID,
			Status: postern.ReplayRunning, CreatedAt: testNow,
		}
		if err := db.Replays.Create(t.Context(), r, nil); postern.ReasonOf(err) != postern.ReplayLimit {
			t.Errorf("one too many = %v", err)
		}
		r.WorkspaceID = newWorkspace(t, db)
		if err := db.Replays.Create(t.Context(), r, nil); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("of another workspace = %v", err)
		}
		if err := db.Endpoints.Delete(t.Context(), e.WorkspaceID, e.ID); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, `SELECT count(*) FROM replay`); n != 0 {
			t.Errorf("%d replays are left", n)
		}
	})
}

// What a replay still had to deliver was erased: the replay ends.
func TestReplayEndsWhenItsLastDeliveryIsErased(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		receiveN(t, db, d, 1)
		finish(t, db, e, succeed)
		r := step(t, db, replayOf(t, db, e, nil))
		var message string
		err := db.db.Row(t.Context(), `SELECT id FROM message`, nil, &message)
		if err != nil || r.Status != postern.ReplayRunning {
			t.Fatalf("the replay is %+v (%v)", r, err)
		}
		changed := db.Listen(ReplayChanged, string(r.ID))
		defer changed.Close()
		if err := db.db.Do(t.Context(), opFunc(func(tx *tx) error {
			return EmptyEvents(tx, []string{message})
		})); err != nil {
			t.Fatal(err)
		}
		<-changed.C()
		if r = step(t, db, r); r.Status != postern.ReplayCompleted || r.Failed != 1 {
			t.Errorf("the replay is %+v", r)
		}
	})
}

// A retry that is requested during the last attempt of a replayed delivery opens a round
// that is not the replay's, and that no event of the chat waits for.
func TestARoundRequestedDuringTheLastAttemptIsOnItsOwn(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		receiveN(t, db, d, 1)
		finish(t, db, e, succeed)
		r := step(t, db, replayOf(t, db, e, nil))
		if err := db.db.Do(t.Context(), opFunc(func(tx *tx) error {
			return tx.Exec(`UPDATE delivery SET chat = 'c'`)
		})); err != nil {
			t.Fatal(err)
		}
		due, err := db.Deliveries.Due(t.Context(), e.ID, testNow.Add(1e15), true, 10)
		if err != nil || len(due) != 1 || due[0].Replay != r.ID {
			t.Fatalf("due = %+v (%v), want one of the replay", due, err)
		}
		if _, err := db.Deliveries.Retry(t.Context(), e.WorkspaceID, due[0].ID, testNow+5, nil); err != nil {
			t.Fatal(err)
		}
		if err := db.Deliveries.FinishAttempt(t.Context(),
			Attempt{
				DeliveryID: due[0].ID, Row: due[0].Row,
				EndpointID: e.ID,
				Replay:     r.ID, Claimed: due[0].DueAt, Number: due[0].Attempts + 1, At: testNow, Ended: testNow,
				HTTPStatus: 500,
				Reason:     "status", Status: postern.DeliveryExhausted,
			}); err != nil {
			t.Fatal(err)
		}
		again, err := db.Deliveries.Due(t.Context(), e.ID, testNow.Add(1e15), true, 10)
		if err != nil || len(again) != 1 || again[0].Replay != "" || again[0].Chat != "" || again[0].Earlier != 2 {
			t.Errorf("due = %+v (%v), want a new round without replay and chat", again, err)
		}
		if r = step(t, db, r); r.Status != postern.ReplayCompleted || r.Failed != 1 {
			t.Errorf("the replay is %+v, want completed with one failure", r)
		}
	})
}
