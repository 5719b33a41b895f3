package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"postern/internal/postern"
)

const deliveryColumns = `id, endpoint_id, event_id, type, device_id, status, attempts, last_status, last_reason, created_at, first_attempt_at, last_attempt_at, CASE WHEN status = 'pending' THEN due_at ELSE 0 END, completed_at`

func scanDelivery(s scanner) (d postern.Delivery, err error) {
	err = s.Scan(&d.ID, &d.EndpointID, &d.EventID, &d.Type, &d.DeviceID, &d.Status, &d.Attempts, &d.LastStatus, &d.LastReason,
		&d.CreatedAt, &d.FirstAttemptAt, &d.LastAttemptAt, &d.NextAttemptAt, &d.CompletedAt)
	return d, err
}

// DeliveryFilter narrows a list of deliveries; zero members ask for nothing.
type DeliveryFilter struct {
	Status string
	Types  []postern.EventType
	Since  postern.Time // inclusive
	Until  postern.Time // exclusive

	Devices []postern.DeviceID // nil is all; what concerns no device is always in
}

// DeliveryPage is a part of an endpoint's log, newest first.
type DeliveryPage struct {
	List []postern.Delivery
	Last int64 // the log was read down to here, entries or none
	More bool  // there may be more
}

// List lists an endpoint's deliveries that came before a place in its log;
// 0 is its end. A page may have fewer entries than the limit, and still more
// behind it, like one of [DB.Events].
func (s Deliveries) List(ctx context.Context, ws postern.WorkspaceID, endpoint postern.EndpointID, f DeliveryFilter, before int64, limit int) (p DeliveryPage, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	var n int
	if err = s.db.row(ctx, `SELECT coalesce(min(n), 0), count(*) FROM (SELECT n FROM delivery WHERE endpoint_id = $1 AND n < $2 ORDER BY n DESC LIMIT $3 + 0) scanned`, []any{endpoint, before, logScan}, &p.Last, &n); err != nil {
		return p, err
	}
	var places []int64
	err = s.db.rows(ctx, `SELECT `+deliveryColumns+`, n FROM delivery WHERE workspace_id = $1 AND endpoint_id = $2 AND ($3 = '' OR status = $3)
		AND n < $4 AND n >= $10
		AND ($5 = 'null' OR type IN `+s.db.dialect.inList(5)+`) AND created_at >= $6 AND (CAST($7 AS BIGINT) = 0 OR created_at < $7)
		AND ($8 = 'null' OR device_id = '' OR device_id IN `+s.db.dialect.inList(8)+`) ORDER BY n DESC LIMIT $9 + 0`,
		[]any{ws, endpoint, f.Status, before, asJSON(f.Types), f.Since, f.Until, asJSON(f.Devices), limit + 1, p.Last}, func(r *sql.Rows) error {
			var place int64
			d, err := scanDelivery(withTail{r, []any{&place}})
			p.List, places = append(p.List, d), append(places, place)
			return err
		})
	if p.More = n == logScan; len(p.List) > limit {
		p.List, p.Last, p.More = p.List[:limit], places[limit-1], true
	}
	return p, err
}

// Get finds a delivery of the workspace, with its body, nil when that is
// kept no more.
func (s Deliveries) Get(ctx context.Context, ws postern.WorkspaceID, id postern.DeliveryID) (d postern.Delivery, body []byte, err error) {
	d, err = scanDelivery(s.db.one(ctx, `SELECT `+deliveryColumns+` FROM delivery WHERE workspace_id = $1 AND id = $2`, ws, id))
	if err != nil {
		return d, nil, notFoundOr(err, s.db.exists(ctx, `SELECT count(*) FROM delivery WHERE id = $1 AND workspace_id <> $2`, id, ws), "delivery")
	}
	err = s.db.row(ctx, deliveryBody, []any{ws, id}, &body)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return d, body, err
}

const deliveryBody = `SELECT coalesce(d.notice, e.body) FROM delivery d LEFT JOIN event e ON e.position = d.position WHERE d.workspace_id = $1 AND d.id = $2 AND (d.notice IS NOT NULL OR length(e.body) > 0)`

// Attempts lists the attempts of a delivery of the workspace, newest first.
func (s Deliveries) Attempts(ctx context.Context, ws postern.WorkspaceID, id postern.DeliveryID) (list []postern.Attempt, err error) {
	err = s.db.rows(ctx, `SELECT number, at, duration, status, reason, answer FROM attempt_log
		WHERE delivery_id = $2 AND EXISTS (SELECT 1 FROM delivery WHERE workspace_id = $1 AND id = $2) ORDER BY number DESC LIMIT $3 + 0`, []any{ws, id, attemptsShown}, func(r *sql.Rows) error {
		var a postern.Attempt
		err := r.Scan(&a.Number, &a.At, &a.DurationMs, &a.Status, &a.Reason, &a.Answer)
		list = append(list, a)
		return err
	})
	return list, err
}

// Retry makes a delivery due now. One that has ended gets a new round:
// the same event and bytes, with attempts and a window of its own; what is new
// in its chat does not wait for it. An attempt that is under way sees by the
// time that another one was asked for; see heed.
func (s Deliveries) Retry(ctx context.Context, ws postern.WorkspaceID, id postern.DeliveryID, now postern.Time, once *Once, acts ...Act) (d postern.Delivery, err error) {
	err = s.db.do(ctx, opFunc(func(t *tx) error {
		if err := once.claim(t); err != nil {
			return err
		}
		if err := t.retriable(ws, id); err != nil {
			return err
		}
		d, err = scanDelivery(t.one(`UPDATE delivery SET due_at = CASE WHEN due_at = $3 THEN CAST($3 AS BIGINT) + 1 ELSE $3 END, earlier = CASE WHEN status = 'pending' THEN earlier ELSE attempts END,
			first_attempt_at = CASE WHEN status = 'pending' THEN first_attempt_at ELSE 0 END, replay_id = CASE WHEN status = 'pending' THEN replay_id ELSE '' END, chat = CASE WHEN status = 'pending' THEN chat ELSE '' END, completed_at = 0, status = 'pending'
			WHERE workspace_id = $1 AND id = $2 RETURNING `+deliveryColumns, ws, id, now))
		t.wake(RetryDue, string(d.EndpointID))
		return errors.Join(err, t.recordActs(acts))
	}))
	return d, err
}

// retriable refuses when nothing can be delivered.
func (t *tx) retriable(ws postern.WorkspaceID, id postern.DeliveryID) error {
	var status postern.EndpointStatus
	err := t.row(`SELECT p.status FROM delivery d JOIN endpoint p ON p.id = d.endpoint_id WHERE d.workspace_id = $1 AND d.id = $2`, []any{ws, id}, &status)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return postern.Errorf(postern.NotFound, "there is no such delivery")
	case err != nil:
		return err
	case status != postern.EndpointActive:
		return notActive(status)
	}
	var body []byte
	if err = t.row(deliveryBody, []any{ws, id}, &body); errors.Is(err, sql.ErrNoRows) {
		return postern.Errorf(postern.EventRemoved, "the event is kept no more, so that it cannot be delivered again")
	}
	return err
}

func notActive(status postern.EndpointStatus) error {
	return postern.Errorf(postern.EndpointNotActive, "the endpoint is %s and gets nothing; verify or resume it first", status)
}

// DueDelivery is what an attempt needs of a delivery.
type DueDelivery struct {
	ID             postern.DeliveryID
	EndpointID     postern.EndpointID
	EventID        postern.EventID
	Replay         postern.ReplayID // "" when it belongs to none
	Row            int64            // in the table
	Attempts       int              // so far
	Earlier        int              // of them, those of the rounds before this one
	DueAt          postern.Time
	CreatedAt      postern.Time
	FirstAttemptAt postern.Time // of the round; 0 before it
	Chat           string       // "" unless the events of its chat keep their order
	Body           []byte       // the bytes to post
}

const (
	ofAFirst = `d.id, d.event_id, d.n, d.due_at, d.created_at, d.chat, coalesce(d.notice, e.body)`
	ofAny    = ofAFirst + `, d.replay_id, d.attempts, d.earlier, d.first_attempt_at` // which are nothing before the first attempt
)

// Due gives the deliveries of an endpoint that are due, oldest first.
// Without firsts it leaves out those that FirstDeliveries gives.
func (s Deliveries) Due(ctx context.Context, endpoint postern.EndpointID, now postern.Time, firsts bool, limit int) ([]DueDelivery, error) {
	which := ``
	if !firsts {
		which = again
	}
	return s.due(ctx, ofAny, `d.endpoint_id = $1 AND d.status = 'pending'`+which+` AND d.due_at <= $2 AND `+inLine(4)+` ORDER BY d.due_at, d.n LIMIT $3 + 0`, endpoint, now, limit, now.Add(-lineWait))
}

// again are the words of the index delivery_again.
const again = ` AND (d.attempts > 0 OR d.replay_id <> '')`

// NextOfChat gives the delivery of a chat in order whose turn it is; ok is false
// when there is none, or it is not due.
func (s Deliveries) NextOfChat(ctx context.Context, endpoint postern.EndpointID, chat string, now postern.Time) (d DueDelivery, ok bool, err error) {
	list, err := s.due(ctx, ofAny, `d.endpoint_id = $1 AND d.chat = $2 AND d.chat <> '' AND d.status = 'pending'
		AND (d.due_at <= $3 OR d.first_attempt_at = 0 OR d.first_attempt_at > $4) ORDER BY d.n LIMIT 1`, endpoint, chat, now, now.Add(-lineWait))
	if err != nil || len(list) == 0 || list[0].DueAt > now {
		return d, false, err
	}
	return list[0], true, nil
}

// Place is one in an endpoint's queue: behind what became due before DueAt, and
// behind the row of what became due then.
type Place struct {
	DueAt postern.Time
	Row   int64
}

// Place is where a delivery stands in the queue.
func (d DueDelivery) Place() Place { return Place{d.DueAt, d.Row} }

// First gives the deliveries of an endpoint that were not attempted
// yet and became due behind a place, until now, oldest first; those of replays
// are none. A later place spares it the walk over older ones.
func (s Deliveries) First(ctx context.Context, endpoint postern.EndpointID, behind Place, now postern.Time, limit int) ([]DueDelivery, error) {
	return s.due(ctx, ofAFirst, `d.endpoint_id = $1 AND d.status = 'pending' AND d.attempts = 0 AND d.replay_id = '' AND (d.due_at, d.n) > ($2, $3) AND d.due_at <= $4 AND `+inLine(6)+` ORDER BY d.due_at, d.n LIMIT $5 + 0`,
		endpoint, behind.DueAt, behind.Row, now, limit, now.Add(-lineWait))
}

func (s Deliveries) due(ctx context.Context, columns, where string, endpoint postern.EndpointID, args ...any) (list []DueDelivery, err error) {
	query := `SELECT ` + columns + ` FROM delivery d LEFT JOIN event e ON e.position = d.position WHERE (d.notice IS NOT NULL OR e.position IS NOT NULL) AND ` + where
	list = make([]DueDelivery, 0, dueGuess)
	d := DueDelivery{EndpointID: endpoint}
	dst := []any{(*string)(&d.ID), (*string)(&d.EventID), &d.Row, (*int64)(&d.DueAt), (*int64)(&d.CreatedAt), &d.Chat, &d.Body}
	if columns == ofAny {
		dst = append(dst, (*string)(&d.Replay), &d.Attempts, &d.Earlier, (*int64)(&d.FirstAttemptAt))
	}
	err = s.db.rows(ctx, query, append([]any{endpoint}, args...), func(r *sql.Rows) error {
		err := r.Scan(dst...)
		list = append(list, d)
		return err
	})
	return list, err
}

// inLine holds for a delivery that waits for no other of its chat: none before
// it is pending, but for those tried first longer ago than the time in the
// parameter of that number.
func inLine(parameter int) string {
	return fmt.Sprintf(`(d.chat = '' OR NOT EXISTS (SELECT 1 FROM delivery b WHERE b.endpoint_id = d.endpoint_id AND b.chat = d.chat AND b.chat <> '' AND b.status = 'pending' AND b.n < d.n
		AND (b.first_attempt_at = 0 OR b.first_attempt_at > $%d)))`, parameter)
}

// NextInLine says when the next delivery that others of its chat wait for will
// have kept them waiting long enough; ok is false when there is none.
func (s Deliveries) NextInLine(ctx context.Context, endpoint postern.EndpointID, now postern.Time) (at postern.Time, ok bool, err error) {
	err = s.db.row(ctx, `SELECT coalesce(min(first_attempt_at), 0) FROM delivery WHERE endpoint_id = $1 AND chat <> '' AND status = 'pending' AND first_attempt_at > $2`, []any{endpoint, now.Add(-lineWait)}, &at)
	return at.Add(lineWait), at != 0, err
}

// NextDue says when the next delivery of an endpoint after now is due; ok is
// false when none waits.
func (s Deliveries) NextDue(ctx context.Context, endpoint postern.EndpointID, now postern.Time) (at postern.Time, ok bool, err error) {
	err = s.db.row(ctx, `SELECT due_at FROM delivery WHERE endpoint_id = $1 AND status = 'pending' AND due_at > $2 ORDER BY due_at LIMIT 1`, []any{endpoint, now}, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return at, err == nil, err
}

// WithWork lists, over all workspaces, the active endpoints that have
// deliveries to make, now or later.
func (s Endpoints) WithWork(ctx context.Context) (list []postern.EndpointID, err error) {
	err = s.db.rows(ctx, `SELECT id FROM endpoint e WHERE status = 'active' AND EXISTS (SELECT 1 FROM delivery d WHERE d.endpoint_id = e.id AND d.status = 'pending')`, nil, func(r *sql.Rows) error {
		var id postern.EndpointID
		err := r.Scan(&id)
		list = append(list, id)
		return err
	})
	return list, err
}

// Attempt is one POST of a delivery and what follows from it.
type Attempt struct {
	DeliveryID postern.DeliveryID
	Row        int64 // of the delivery in its table
	EndpointID postern.EndpointID
	Replay     postern.ReplayID // that it belongs to
	URL        string           // that was posted to
	Claimed    postern.Time     // when the delivery was due as the attempt began; 0: nobody looked
	Number     int
	At         postern.Time // when it began
	Ended      postern.Time
	HTTPStatus int                    // 0 when there was no answer
	Reason     string                 // "" for success
	Answer     string                 // at most the first KiB
	Status     postern.DeliveryStatus // of the delivery from now on
	DueAt      postern.Time           // of the next attempt, while pending
	Disable    string                 // why the endpoint is disabled at once; "" leaves it

	newRound bool
}

func (o Attempt) apply(t *tx) error {
	n, err := o.update(t)
	if err != nil || n == 0 {
		return err // it is recorded already, or the endpoint was deleted meanwhile
	}
	t.count(o)
	if err := o.countReplay(t); err != nil {
		return err
	}
	return o.health(t)
}

// update writes the attempt into the delivery, and says whether it did. The one
// that succeeds at once, as nearly all do, has a statement of its own: with half of
// the parameters it costs two thirds.
func (o *Attempt) update(t *tx) (n int64, err error) {
	if o.Number == 1 && o.Reason == "" {
		return t.changed(`UPDATE delivery SET status = 'succeeded', attempts = 1, due_at = 0, first_attempt_at = $3, last_attempt_at = $3, last_duration = $4, last_status = $5, last_reason = '', last_answer = $6, completed_at = $7
			WHERE n = $1 AND id = $2 AND status = 'pending' AND attempts = 0`, o.Row, o.DeliveryID, o.At, int64(o.Ended-o.At), o.HTTPStatus, o.Answer, o.Ended)
	}
	if err := errors.Join(o.heed(t), o.logBefore(t)); err != nil {
		return 0, err
	}
	completed := o.Ended
	if o.Status == postern.DeliveryPending {
		completed = 0
	}
	return t.changed(`UPDATE delivery SET status = $3, attempts = $4, due_at = $5, first_attempt_at = CASE WHEN CAST($12 AS BIGINT) = 1 THEN 0 WHEN first_attempt_at = 0 THEN $6 ELSE first_attempt_at END,
		earlier = CASE WHEN CAST($12 AS BIGINT) = 1 THEN $4 ELSE earlier END,
		last_attempt_at = $6, last_duration = $7, last_status = $8, last_reason = $9, last_answer = $10, completed_at = $11 WHERE n = $1 AND id = $2 AND status = 'pending' AND attempts < $4`,
		o.Row, o.DeliveryID, o.Status, o.Number, o.DueAt, o.At, int64(o.Ended-o.At), o.HTTPStatus, o.Reason, o.Answer, completed, o.newRound)
}

// heed keeps the time that somebody asked for while the attempt was under way,
// and opens the round for it when this was the last attempt.
func (o *Attempt) heed(t *tx) error {
	if o.Reason == "" || o.Claimed == 0 {
		return nil
	}
	var due postern.Time
	err := t.row(`SELECT due_at FROM delivery WHERE n = $1 AND id = $2 AND status = 'pending'`, []any{o.Row, o.DeliveryID}, &due)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // apply finds the same
	}
	if err == nil && due != o.Claimed {
		o.newRound = o.Status == postern.DeliveryExhausted
		o.Status, o.DueAt = postern.DeliveryPending, due
	}
	return err
}

// logBefore moves the attempt before this one into the log.
func (o Attempt) logBefore(t *tx) error {
	if o.Number == 1 {
		return nil
	}
	return t.exec(`INSERT INTO attempt (delivery_id, number, at, duration, status, reason, answer)
		SELECT id, attempts, last_attempt_at, last_duration, last_status, last_reason, last_answer FROM delivery WHERE n = $1 AND id = $2 AND status = 'pending' AND attempts BETWEEN 1 AND $3 - 1
		ON CONFLICT (delivery_id, number) DO NOTHING`, o.Row, o.DeliveryID, o.Number)
}

// applyAll records first attempts of different deliveries that succeeded. The others
// are left over.
func (Attempt) applyAll(t *tx, list []pending) (rest []pending, err error) {
	seen := map[postern.DeliveryID]bool{}
	var values [][]any
	for _, p := range list {
		o := p.op.(Attempt) //nolint:errcheck,forcetypeassert // a list of one kind
		if seen[o.DeliveryID] || o.Reason != "" || o.Number > 1 || o.Replay != "" {
			rest = append(rest, p)
			continue
		}
		seen[o.DeliveryID] = true
		values = append(values, []any{o.Row, o.DeliveryID, o.Status, o.At, o.HTTPStatus, o.Ended, int64(o.Ended - o.At), o.Answer})
	}
	if len(values) == 0 {
		return rest, nil
	}
	from, args := table("n, id, status, at, http, ended, duration, answer", values)
	return rest, t.exec(`WITH u AS (SELECT * FROM `+from+`), done AS (
			UPDATE delivery AS d SET status = u.status, attempts = 1, due_at = 0, first_attempt_at = u.at, last_attempt_at = u.at, last_duration = u.duration,
			last_status = u.http, last_reason = '', last_answer = u.answer, completed_at = u.ended FROM u WHERE d.n = u.n AND d.id = u.id AND d.status = 'pending' AND d.attempts = 0 RETURNING d.endpoint_id, u.at, u.duration),
		hours AS (INSERT INTO endpoint_hour AS h (endpoint_id, hour, succeeded, failed, exhausted, duration, slowest)
			SELECT endpoint_id, at - at % 3600000 AS hour, count(*), 0, 0, sum(duration), max(duration) FROM done GROUP BY endpoint_id, at - at % 3600000`+addTally+`)
		UPDATE endpoint AS e SET failing_since = 0, failures = 0 WHERE e.failures > 0 AND e.id IN (SELECT endpoint_id FROM done)`, args...)
}

// health keeps the endpoint's record: since when it has been failing and how
// often. It is written only when it changes.
func (o Attempt) health(t *tx) error {
	if o.Reason == "" {
		if _, well := t.well[o.EndpointID]; well {
			return nil
		}
		t.well[o.EndpointID] = struct{}{}
		return t.exec(`UPDATE endpoint SET failing_since = 0, failures = 0 WHERE id = $1 AND failures > 0`, o.EndpointID)
	}
	delete(t.well, o.EndpointID)
	if err := t.exec(`UPDATE endpoint SET failing_since = CASE WHEN failures = 0 THEN $2 ELSE failing_since END, failures = failures + 1 WHERE id = $1`, o.EndpointID, o.At); err != nil {
		return err
	}
	n, err := t.changed(`UPDATE endpoint SET status = 'disabled', status_reason = CASE WHEN $2 = '' THEN 'failing' ELSE $2 END, since = (SELECT coalesce(max(position), 0) FROM event)
		WHERE id = $1 AND status = 'active' AND ($2 <> '' AND ($5 = '' OR url = $5) OR failures >= $3 AND failing_since <= $4)`,
		o.EndpointID, o.Disable, disableFailures, o.Ended.Add(-disableAfter), o.URL)
	if err != nil || n == 0 {
		return err
	}
	t.wake(EndpointChanged, string(o.EndpointID))
	return t.tellDisabled(o.EndpointID, o.Ended)
}

// FinishAttempt records one attempt and what follows from it.
func (s Deliveries) FinishAttempt(ctx context.Context, o Attempt) error { return s.db.do(ctx, o) }

// FinishAttemptThen is FinishAttempt for a caller that does not wait: then is
// called with the outcome, must not block, and must have been before Close.
func (s Deliveries) FinishAttemptThen(o Attempt, then func(error)) { s.db.after(o, then) }
