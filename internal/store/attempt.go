package store

import (
	"context"
	"database/sql"

	"postern/internal/db"
	"postern/internal/postern"
)

// Attempt is one POST of a delivery and its outcome.
type Attempt struct {
	DeliveryID postern.DeliveryID
	Row        int64 // of the delivery in its table
	EndpointID postern.EndpointID
	Replay     postern.ReplayID // that the delivery belongs to; "" for none
	URL        string           // that the attempt posted to
	Claimed    postern.Time     // the due time when the attempt began; 0 skips heedRequests
	Number     int
	At         postern.Time // when it began
	Ended      postern.Time
	HTTPStatus int                    // 0 when there was no response
	Reason     string                 // "" for success
	Answer     string                 // the response's body, at most its first KiB
	Status     postern.DeliveryStatus // of the delivery from now on
	DueAt      postern.Time           // of the next attempt, while pending
	NotBefore  postern.Time           // when the receiver may be tried again; 0 if it did not say (Retry-After)
	Disable    string                 // why to disable the endpoint at once; "" does not

	newRound bool // the delivery starts a new round, as with [Deliveries.Retry]
}

// FinishAttempt records an attempt and its consequences for the delivery and the endpoint.
func (s Deliveries) FinishAttempt(ctx context.Context, o Attempt) error { return write(ctx, s.core, o) }

// FinishAttemptThen is FinishAttempt for a caller that does not wait: it calls then with
// the outcome. then must not block. FinishAttemptThen must not be called after Close.
func (s Deliveries) FinishAttemptThen(o Attempt, then func(error)) { writeThen(s.core, o, then) }

// About lets attempts wait for other writes, because nothing depends on them.
func (o Attempt) About() db.About { return db.About{Urgency: db.Patient} }

// WriteAll records attempts. Two attempts of the same delivery are recorded one after the
// other.
func (Attempt) WriteAll(t *db.Tx, list []db.Pending[Attempt]) error {
	for len(list) > 0 {
		var attempts []*Attempt
		seen := make(map[postern.DeliveryID]bool, len(list))
		for len(list) > 0 && !seen[list[0].Value.DeliveryID] {
			o := list[0].Value
			seen[o.DeliveryID] = true
			attempts, list = append(attempts, &o), list[1:]
		}
		if err := recordAttempts(t, attempts); err != nil {
			return err
		}
	}
	return nil
}

// recordAttempts records attempts of different deliveries. An attempt that is already
// recorded, or whose delivery was deleted, changes nothing.
func recordAttempts(t *db.Tx, list []*Attempt) error {
	recorded, err := updateDeliveries(t, list)
	if err != nil {
		return err
	}
	var health endpointHealth
	for _, o := range recorded {
		t.Note(o)
		if err := o.countReplay(t); err != nil {
			return err
		}
		if err := health.record(t, o); err != nil {
			return err
		}
	}
	return health.flush(t)
}

// updateDeliveries writes attempts into their deliveries and returns those it wrote.
func updateDeliveries(t *db.Tx, list []*Attempt) (recorded []*Attempt, err error) {
	var first, others []*Attempt
	for _, o := range list {
		if o.Number == 1 && o.Reason == "" {
			first = append(first, o)
		} else {
			others = append(others, o)
		}
	}
	if recorded, err = updateEach(t, succeedAtOnce, first, (*Attempt).firstSuccess); err != nil || len(others) == 0 {
		return recorded, err
	}
	if err := heedRequests(t, others); err != nil {
		return nil, err
	}
	if err := logPrevious(t, others); err != nil {
		return nil, err
	}
	more, err := updateEach(t, updateDelivery, others, (*Attempt).outcome)
	return append(recorded, more...), err
}

func updateEach(t *db.Tx, s *db.Statement, list []*Attempt, row func(*Attempt) []any) (recorded []*Attempt, err error) {
	rows := make([][]any, len(list))
	for i, o := range list {
		rows[i] = row(o)
	}
	changed, err := t.Which(s, rows)
	for i, o := range list {
		if changed[i] {
			recorded = append(recorded, o)
		}
	}
	return recorded, err
}

// succeedAtOnce is for first attempts that succeed, which are the vast majority: with half
// the parameters it costs two thirds of updateDelivery.
var succeedAtOnce = db.NewStatement("place, delivery, began, took, http, said, ended",
	`UPDATE delivery SET status = 'succeeded', attempts = 1, due_at = 0,
	first_attempt_at = @began, last_attempt_at = @began, last_duration = @took,
	last_status = @http, last_reason = '', last_answer = @said, completed_at = @ended
	[FROM @rows] WHERE n = @place AND id = @delivery AND `+isPending+` AND attempts = 0`)

func (o *Attempt) firstSuccess() []any {
	return []any{o.Row, o.DeliveryID, o.At, int64(o.Ended - o.At), o.HTTPStatus, o.Answer, o.Ended}
}

var updateDelivery = db.NewStatement(
	"place, delivery, outcome, number, due, not_before, began, took, http, reason, said, ended, new_round",
	`UPDATE delivery SET status = @outcome, attempts = @number, due_at = @due, not_before = @not_before,
	first_attempt_at = CASE WHEN CAST(@new_round AS BIGINT) = 1 THEN 0 WHEN first_attempt_at = 0 THEN @began
	ELSE first_attempt_at END,
	earlier = CASE WHEN CAST(@new_round AS BIGINT) = 1 THEN @number ELSE earlier END,
	replay_id = CASE WHEN CAST(@new_round AS BIGINT) = 1 THEN '' ELSE replay_id END,
	chat = CASE WHEN CAST(@new_round AS BIGINT) = 1 THEN '' ELSE chat END,
	last_attempt_at = @began, last_duration = @took, last_status = @http, last_reason = @reason, last_answer = @said,
	completed_at = @ended
	[FROM @rows] WHERE n = @place AND id = @delivery AND `+isPending+` AND attempts < @number`)

func (o *Attempt) outcome() []any {
	completed := o.Ended
	if o.Status == postern.DeliveryPending {
		completed = 0
	}
	return []any{
		o.Row, o.DeliveryID, o.Status, o.Number, o.DueAt, o.NotBefore, o.At, int64(o.Ended - o.At), o.HTTPStatus,
		o.Reason, o.Answer, completed, o.newRound,
	}
}

var readDue = db.NewStatement("place, delivery",
	`SELECT n, due_at FROM delivery [, @rows] WHERE n = @place AND id = @delivery AND `+isPending)

// heedRequests keeps the due time of a retry that was requested while the attempt was in
// progress, and starts the delivery over when this was its last attempt.
//
// Single writer: change.
func heedRequests(t *db.Tx, list []*Attempt) error {
	byRow := make(map[int64]*Attempt, len(list))
	var rows [][]any
	for _, o := range list {
		if o.Reason != "" && o.Claimed != 0 {
			byRow[o.Row] = o
			rows = append(rows, []any{o.Row, o.DeliveryID})
		}
	}
	return t.EachRow(readDue, rows, func(r *sql.Rows) error {
		var row int64
		var due postern.Time
		err := r.Scan(&row, &due)
		if o := byRow[row]; err == nil && due != o.Claimed {
			o.newRound = o.Status == postern.DeliveryExhausted
			o.Status, o.DueAt = postern.DeliveryPending, due
		}
		return err
	})
}

var logAttempts = db.NewStatement("place, delivery, next",
	`INSERT INTO attempt (delivery_id, number, at, duration, status, reason, answer)
	SELECT id, attempts, last_attempt_at, last_duration, last_status, last_reason, last_answer FROM delivery [, @rows]
	WHERE n = @place AND id = @delivery AND `+isPending+` AND attempts BETWEEN 1 AND @next - 1
	ON CONFLICT (delivery_id, number) DO NOTHING`)

// logPrevious moves the attempt before each of these to the log.
func logPrevious(t *db.Tx, list []*Attempt) error {
	var rows [][]any
	for _, o := range list {
		if o.Number > 1 {
			rows = append(rows, []any{o.Row, o.DeliveryID, o.Number})
		}
	}
	return t.Each(logAttempts, rows)
}

// endpointHealth maintains, for each endpoint, since when and how often it has been
// failing. It writes rows only when they change.
type endpointHealth struct {
	well [][]any // endpoints that succeeded and are not written yet
}

// wellKey is the key under which a transaction remembers an endpoint that does not fail.
type wellKey postern.EndpointID

var markWell = db.NewStatement("endpoint",
	`UPDATE endpoint SET failing_since = 0, failures = 0 [FROM @rows] WHERE id = @endpoint AND failures > 0`)

// record adds the outcome of an attempt. Successes are written together, by flush or before
// the next failure.
func (h *endpointHealth) record(t *db.Tx, o *Attempt) error {
	if o.Reason == "" {
		if t.First(wellKey(o.EndpointID)) {
			h.well = append(h.well, []any{o.EndpointID})
		}
		return nil
	}
	if err := h.flush(t); err != nil {
		return err
	}
	t.Forget(wellKey(o.EndpointID))
	return o.countFailure(t)
}

// flush writes the successes.
func (h *endpointHealth) flush(t *db.Tx) error {
	err := t.Each(markWell, h.well)
	h.well = nil
	return err
}

// countFailure counts a failure of the endpoint, and disables the endpoint when it has failed for long enough or
// when the attempt asks for it. Failures at a URL that the endpoint no longer has do not count, and a new URL has
// as much time as the first one. That the endpoint has failed is kept until a success: what waits is then
// attempted at once.
//
// Single writer: order.
func (o *Attempt) countFailure(t *db.Tx) error {
	n, err := t.Changed(`UPDATE endpoint SET failures = failures + 1,
		failing_since = CASE WHEN failures = 0 OR failing_since = 0 THEN $2 ELSE failing_since END
		WHERE id = $1 AND ($3 = '' OR url = $3)`, o.EndpointID, o.At, o.URL)
	if err != nil || n == 0 {
		return err
	}
	n, err = t.Changed(`UPDATE endpoint SET status = 'disabled',
			status_reason = CASE WHEN $2 = '' THEN 'failing' ELSE $2 END,
			since = (SELECT coalesce(max(position), 0) FROM event)
		WHERE id = $1 AND status = 'active' AND ($2 <> '' OR failures >= $3
			AND failing_since <= $4 AND verified_at <= $4)`,
		o.EndpointID, o.Disable, DisableFailures, o.Ended.Add(-disableAfter))
	if err != nil || n == 0 {
		return err
	}
	t.Wake(EndpointChanged, string(o.EndpointID))
	return recordDisabled(t, o.EndpointID, o.Ended)
}
