package store

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"postern/internal/postern"
)

// The hourly counts match the log of attempts when attempts are recorded concurrently, some
// of them failures and some of them repeated.
func TestEndpointHoursAreWhatTheLogHas(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		e := newEndpoint(t, db, d.WorkspaceID, "*")
		if err := db.Endpoints.Activate(t.Context(), e.ID, testNow); err != nil {
			t.Fatal(err)
		}
		receiveN(t, db, d, 60)
		due, err := db.Deliveries.Due(t.Context(), e.ID, testNow, true, 100)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i, q := range due {
			all.Go(func() {
				for _, a := range attemptsOf(q, i) {
					if err := db.Deliveries.FinishAttempt(t.Context(), a); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		got, err := db.Hours.OfEndpoint(t.Context(), d.WorkspaceID, e.ID, 0, testNow.Add(24*time.Hour))
		if err != nil || len(got) != 2 {
			t.Fatalf("%+v (%v), want two hours", got, err)
		}
		for _, h := range got {
			if want := countedSpanOf(t, db, h.Hour, hourMillis); fmt.Sprint(h) != fmt.Sprint(want) {
				t.Errorf("counted %+v, the log has %+v", h, want)
			}
		}
		minutes, err := db.Hours.AttemptSpans(t.Context(), d.WorkspaceID, 0, time.Minute)
		if err != nil || len(minutes) != 60 {
			t.Fatalf("%d minutes (%v), want 60", len(minutes), err)
		}
		for _, m := range minutes {
			if want := countedSpanOf(t, db, m.Hour, minuteMillis); fmt.Sprint(m) != fmt.Sprint(want) {
				t.Errorf("counted %+v, the log has %+v", m, want)
			}
		}
		if list, err := db.Hours.OfEndpoint(t.Context(), newWorkspace(t, db), e.ID, 0,
			testNow.Add(24*time.Hour)); len(list) != 0 || err != nil {
			t.Errorf("another workspace sees %+v (%v)", list, err)
		}
		if more, err := db.Hours.RemoveEndpointHours(t.Context(), got[1].Hour); more || err != nil {
			t.Error(more, err)
		}
		if n := count(t, db, `SELECT count(*) FROM endpoint_hour`); n != 1 {
			t.Errorf("%d hours are left, want the young one", n)
		}
		if more, err := db.Hours.RemoveEndpointMinutes(t.Context(), minutes[59].Hour); more || err != nil {
			t.Error(more, err)
		}
		if n := count(t, db, `SELECT count(*) FROM endpoint_minute`); n != 1 {
			t.Errorf("%d minutes are left, want the young one", n)
		}
		if err := db.Endpoints.Delete(t.Context(), d.WorkspaceID, e.ID); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, periodsKept); n != 0 {
			t.Errorf("%d hours and minutes outlive their endpoint", n)
		}
	})
}

// An attempt may end while the deliveries of its deleted endpoint are being removed.
func TestAnAttemptForADeletedEndpointLeavesNoHour(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db, d, e := on.endpoint(t)
		receiveN(t, db, d, 1)
		err := db.db.Do(t.Context(), opFunc(func(tx *tx) error { // what Delete does first
			return tx.Exec(`DELETE FROM endpoint WHERE id = $1`, e.ID)
		}))
		if err != nil {
			t.Fatal(err)
		}
		finish(t, db, e, succeed)
		if n := count(t, db, periodsKept); n != 2 {
			t.Fatalf("%d hours and minutes, want those of the attempt", n)
		}
		if err := db.Endpoints.Delete(t.Context(), d.WorkspaceID, e.ID); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, periodsKept); n != 0 {
			t.Errorf("%d hours and minutes outlive their endpoint", n)
		}
	})
}

// attemptsOf returns the attempts of the i-th delivery; the last one is reported twice.
func attemptsOf(q DueDelivery, i int) (list []Attempt) {
	at := testNow.Add(time.Duration(i) * time.Minute)
	a := Attempt{
		DeliveryID: q.ID, Row: q.Row, EndpointID: q.EndpointID, Number: 1, At: at,
		Ended: at.Add(time.Duration(i) * time.Millisecond), HTTPStatus: 200, Status: postern.DeliverySucceeded,
	}
	if i%3 == 0 {
		a.Reason, a.HTTPStatus, a.Status, a.DueAt = "status", 500, postern.DeliveryPending, testNow
		list = append(list, a)
		a.Number = 2
	}
	if i%6 == 0 {
		a.Status = postern.DeliveryExhausted
	} else {
		a.Reason, a.HTTPStatus, a.Status, a.DueAt = "", 200, postern.DeliverySucceeded, 0
	}
	return append(list, a, a)
}

const periodsKept = `SELECT (SELECT count(*) FROM endpoint_hour) + (SELECT count(*) FROM endpoint_minute)`

// countedSpanOf counts the attempts of an hour or a minute one by one.
func countedSpanOf(t *testing.T, db *Store, from, length postern.Time) (h postern.EndpointHour) {
	t.Helper()
	const in = ` FROM attempt_log WHERE at >= $1 AND at < $2`
	to := from + length
	h = postern.EndpointHour{
		Hour: from, Succeeded: int64(count(t, db, `SELECT count(*)`+in+` AND reason = ''`, from, to)),
		Failed: int64(count(t, db, `SELECT count(*)`+in+` AND reason <> ''`, from, to)),
		Exhausted: int64(count(t, db, `SELECT count(*) FROM delivery WHERE status = 'exhausted' AND last_attempt_at >= $1
			AND last_attempt_at < $2`, from, to)),
		MaxMs: int64(count(t, db, `SELECT max(duration)`+in, from, to)),
	}
	h.MeanMs = int64(count(t, db, `SELECT sum(duration)`+in, from, to)) / (h.Succeeded + h.Failed)
	err := db.db.Rows(t.Context(), `SELECT duration`+in, []any{from, to}, func(r *sql.Rows) error {
		var ms int64
		err := r.Scan(&ms)
		h.Took.Add(ms)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}
