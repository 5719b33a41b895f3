package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"postern/internal/db"
	"postern/internal/postern"
)

const deliveryColumns = `id, endpoint_id, event_id, type, device_id, status, attempts, last_status, last_reason,
	created_at, first_attempt_at, last_attempt_at, CASE WHEN status = 'pending' AND EXISTS (SELECT 1 FROM endpoint
	WHERE endpoint.id = delivery.endpoint_id AND endpoint.status = 'active') THEN due_at ELSE 0 END, completed_at`

func scanDelivery(s db.Scanner) (d postern.Delivery, err error) {
	err = s.Scan(&d.ID, &d.EndpointID, &d.EventID, &d.Type, &d.DeviceID, &d.Status, &d.Attempts, &d.LastStatus,
		&d.LastReason, &d.CreatedAt, &d.FirstAttemptAt, &d.LastAttemptAt, &d.NextAttemptAt, &d.CompletedAt)
	return d, err
}

// DeliveryFilter narrows a list of deliveries. A zero field does not restrict the list.
type DeliveryFilter struct {
	Status string
	Types  []postern.EventType
	Since  postern.Time // inclusive
	Until  postern.Time // exclusive

	Devices []postern.DeviceID // nil for all; entries without a device are always included
}

// DeliveryPage is a part of an endpoint's delivery log, newest first.
type DeliveryPage struct {
	List []postern.Delivery
	Last int64 // the log was read down to this position
	More bool  // there may be entries before Last
}

// List returns up to limit deliveries of an endpoint, newest first, from before a position
// in its log; 0 starts at the end of the log. A page may have fewer entries than limit even
// though there are more: see [DeliveryPage.More].
func (s Deliveries) List(ctx context.Context, ws postern.WorkspaceID, endpoint postern.EndpointID, f DeliveryFilter,
	before int64, limit int,
) (p DeliveryPage, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	var n int
	if err = s.look(ctx, `SELECT coalesce(min(n), 0), count(*) FROM (SELECT n FROM delivery WHERE endpoint_id = $1
		AND n < $2 ORDER BY n DESC LIMIT $3 + 0) scanned`, []any{endpoint, before, logScan}, &p.Last, &n); err != nil {
		return p, err
	}
	var places []int64
	err = s.db.Rows(ctx, `SELECT `+deliveryColumns+`, n FROM delivery WHERE workspace_id = $1 AND endpoint_id = $2
		AND ($3 = '' OR status = $3)
		AND n < $4 AND n >= $10
		AND ($5 = 'null' OR type IN `+s.db.InList(5)+`) AND created_at >= $6 AND (CAST($7 AS BIGINT) = 0 OR created_at < $7)
		AND ($8 = 'null' OR device_id = '' OR device_id IN `+s.db.InList(8)+`) ORDER BY n DESC LIMIT $9 + 0`,
		[]any{ws, endpoint, f.Status, before, asJSON(f.Types), f.Since, f.Until, textList(f.Devices), limit + 1, p.Last},
		func(r *sql.Rows) error {
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

// MostOfEvent is how many deliveries of an event are shown.
const MostOfEvent = 100

// OfEvent returns the first deliveries of the event at a position of the log, in the order in which they were queued.
func (s Deliveries) OfEvent(
	ctx context.Context, ws postern.WorkspaceID, position int64,
) (list []postern.Delivery, err error) {
	err = s.db.Rows(ctx, `SELECT `+deliveryColumns+` FROM delivery WHERE workspace_id = $1 AND position = $2
		AND endpoint_id IN (SELECT id FROM endpoint WHERE workspace_id = $1) ORDER BY n LIMIT $3 + 0`,
		[]any{ws, position, MostOfEvent},
		func(r *sql.Rows) error {
			d, err := scanDelivery(r)
			list = append(list, d)
			return err
		})
	return list, err
}

// Get returns a delivery of the workspace and the bytes that it posts. The body is nil when
// its content has been removed.
func (s Deliveries) Get(ctx context.Context, ws postern.WorkspaceID,
	id postern.DeliveryID,
) (d postern.Delivery, body []byte, err error) {
	d, err = scanDelivery(s.db.One(ctx, `SELECT `+deliveryColumns+` FROM delivery WHERE workspace_id = $1
		AND id = $2`, ws, id))
	if err != nil {
		return d, nil, notFoundOr(err, s.exists(ctx, `SELECT count(*) FROM delivery
			WHERE id = $1 AND workspace_id <> $2`, id, ws), "delivery")
	}
	err = s.db.Row(ctx, deliveryBody, []any{ws, id}, &body)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return d, body, err
}

const deliveryBody = `SELECT coalesce(d.notice, e.body) FROM delivery d LEFT JOIN event e ON e.position = d.position
	WHERE d.workspace_id = $1 AND d.id = $2 AND (d.notice IS NOT NULL OR length(e.body) > 0)`

// Attempts returns the attempts of a delivery of the workspace, newest first, at most
// attemptsShown.
func (s Deliveries) Attempts(ctx context.Context, ws postern.WorkspaceID,
	id postern.DeliveryID,
) (list []postern.Attempt, err error) {
	err = s.db.Rows(ctx, `SELECT number, at, duration, status, reason, answer FROM attempt_log
		WHERE delivery_id = $2 AND EXISTS (SELECT 1 FROM delivery WHERE workspace_id = $1 AND id = $2) ORDER BY number DESC
		LIMIT $3 + 0`, []any{ws, id, attemptsShown}, func(r *sql.Rows) error {
		var a postern.Attempt
		err := r.Scan(&a.Number, &a.At, &a.DurationMs, &a.Status, &a.Reason, &a.Answer)
		list = append(list, a)
		return err
	})
	return list, err
}

// Retry makes a delivery due now. A delivery that has ended starts a new round: it posts
// the same event and the same bytes, with a fresh number of attempts and a fresh time
// window, and later events of its chat do not wait for it. One that is pending keeps its round, of which this attempt
// is not one. An attempt that is in progress notices the request by the changed due time; see heedRequests in
// attempt.go.
func (s Deliveries) Retry(ctx context.Context, ws postern.WorkspaceID, id postern.DeliveryID, now postern.Time,
	once *Once, acts ...Act,
) (d postern.Delivery, err error) {
	check := func(t *db.Tx) error { return checkRetriable(t, ws, id) }
	err = s.doOnce(ctx, ws, once, check, func(t *db.Tx) error {
		d, err = scanDelivery(t.One(`UPDATE delivery
			SET due_at = CASE WHEN due_at = $3 THEN CAST($3 AS BIGINT) + 1 ELSE $3 END,
			earlier = CASE WHEN status <> 'pending' THEN attempts WHEN attempts > earlier AND due_at > $3
				THEN earlier + 1 ELSE earlier END,
			first_attempt_at = CASE WHEN status = 'pending' THEN first_attempt_at ELSE 0 END,
			replay_id = CASE WHEN status = 'pending' THEN replay_id ELSE '' END,
			chat = CASE WHEN status = 'pending' THEN chat ELSE '' END, completed_at = 0, status = 'pending'
			WHERE workspace_id = $1 AND id = $2 RETURNING `+deliveryColumns, ws, id, now))
		t.Wake(RetryDue, string(d.EndpointID))
		return errors.Join(err, RecordActs(t, acts))
	})
	return d, err
}

// isPending tells that a delivery, which a statement finds by its number, is pending. A condition on the column
// itself would let PostgreSQL read an index of all pending deliveries instead. It keeps the plan that it made when
// few were pending, so once many are, each group of attempts would read them all.
const isPending = `status || '' = 'pending'`

var hasten = db.NewStatement("place, delivery, due, counted",
	`UPDATE delivery SET due_at = @due, earlier = earlier + 1, hastened = hastened + @counted [FROM @rows]
	WHERE n = @place AND id = @delivery AND `+isPending+` AND attempts > earlier AND due_at > @due`)

// waiting is the condition that a delivery of an endpoint waits for another attempt, which may be
// made now.
const waiting = `endpoint_id = $1 AND status = 'pending'` + again + ` AND attempts > earlier AND due_at > $2
	AND not_before <= $2`

// Hasten makes up to limit deliveries of an endpoint due now that wait for another attempt, those
// after a row first. It returns how many, and the last row. The attempt does not count as one of the
// round's: when it fails, the next gap is as long as the one that was cut short. Hasten leaves out
// what was attempted after a time, and a delivery of which half the attempts were made by Hasten.
func (s Deliveries) Hasten(ctx context.Context, endpoint postern.EndpointID, now, attempted postern.Time, after int64,
	limit int,
) (n int, last int64, err error) {
	return s.makeDue(ctx, `SELECT n, id FROM delivery d WHERE `+waiting+` AND last_attempt_at <= $3
		AND attempts > 2 * hastened AND n > $4 ORDER BY n LIMIT $5 + 0`,
		[]any{endpoint, now, attempted, after, limit}, now, 1)
}

// Probe makes a delivery of an endpoint due now that waits for another attempt, and returns 1 if
// there is one. Of the oldest it takes the one that was not attempted for the longest time. The
// attempt does not count, as with Hasten.
func (s Deliveries) Probe(ctx context.Context, endpoint postern.EndpointID, now postern.Time) (n int, err error) {
	n, _, err = s.makeDue(ctx, `SELECT n, id FROM (SELECT n, id, last_attempt_at FROM delivery d WHERE `+waiting+`
		ORDER BY n LIMIT $3 + 0) oldest ORDER BY last_attempt_at, n LIMIT 1`, []any{endpoint, now, probed}, now, 0)
	return n, err
}

// RetryWaiting makes deliveries of an endpoint of the workspace due now that wait for another attempt, those after a row
// first, at most [RetriedAtOnce]. It returns how many, and the last row that it looked at, 0 if there was none.
func (s Deliveries) RetryWaiting(ctx context.Context, ws postern.WorkspaceID, endpoint postern.EndpointID,
	now postern.Time, after int64, acts ...Act,
) (n int, last int64, err error) {
	n, last, err = s.makeDue(ctx, `SELECT n, id FROM delivery d WHERE endpoint_id = $1 AND status = 'pending'`+again+`
		AND attempts > earlier AND due_at > $2 AND n > $3 AND workspace_id = $4 ORDER BY n LIMIT $5 + 0`,
		[]any{endpoint, now, after, ws, RetriedAtOnce}, now, 0)
	if err == nil && n > 0 {
		err = s.db.Do(ctx, db.FuncOf(string(ws), func(t *db.Tx) error {
			t.Wake(RetryDue, string(endpoint))
			return RecordActs(t, acts)
		}))
	}
	return n, last, err
}

// RetriedAtOnce is how many deliveries RetryWaiting makes due in one write.
const RetriedAtOnce = 1000

// probed is among how many of the oldest deliveries Probe chooses.
const probed = 1000

func (s Deliveries) makeDue(ctx context.Context, query string, args []any, now postern.Time,
	counted int,
) (n int, last int64, err error) {
	var rows [][]any
	err = s.db.Rows(ctx, query, args, func(r *sql.Rows) error {
		var id postern.DeliveryID
		err := r.Scan(&last, &id)
		rows = append(rows, []any{last, id, now, counted})
		return err
	})
	if err != nil || len(rows) == 0 {
		return 0, 0, err
	}
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		changed, err := t.Count(hasten, rows)
		n = int(changed)
		return err
	}))
	return n, last, err
}

// checkRetriable returns an error when the delivery cannot be made: it does not exist, it is
// a POST of a handshake, its endpoint is not active, or its content was removed.
func checkRetriable(t *db.Tx, ws postern.WorkspaceID, id postern.DeliveryID) error {
	var status postern.EndpointStatus
	var kind postern.EventType
	err := t.Row(`SELECT p.status, d.type FROM delivery d JOIN endpoint p ON p.id = d.endpoint_id
		WHERE d.workspace_id = $1 AND d.id = $2`, []any{ws, id}, &status, &kind)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return postern.Errorf(postern.NotFound, "there is no such delivery")
	case err != nil:
		return err
	case kind == postern.WebhookVerification:
		return postern.Errorf(postern.NotRetriable,
			"a verification is not retried, because each has a new challenge; verify the endpoint to start another")
	case status != postern.EndpointActive:
		return notActive(status)
	}
	var body []byte
	if err = t.Row(deliveryBody, []any{ws, id}, &body); errors.Is(err, sql.ErrNoRows) {
		return postern.Errorf(postern.EventRemoved,
			"the content of the event was removed, so it cannot be delivered again")
	}
	return err
}

func notActive(status postern.EndpointStatus) error {
	first := "verify"
	if status == postern.EndpointPaused || status == postern.EndpointDisabled {
		first = "resume"
	}
	return postern.Errorf(postern.EndpointNotActive,
		"the endpoint is %s, so nothing can be sent to it; %s it first", status, first)
}

// DueDelivery is a delivery with what an attempt needs.
type DueDelivery struct {
	ID             postern.DeliveryID
	EndpointID     postern.EndpointID
	EventID        postern.EventID
	Replay         postern.ReplayID // "" when the delivery belongs to no replay
	Row            int64            // in the delivery table
	Attempts       int              // made so far, in all rounds
	Earlier        int              // attempts of the rounds before this one
	DueAt          postern.Time
	CreatedAt      postern.Time
	FirstAttemptAt postern.Time // of this round; 0 before it
	Chat           string       // "" unless the events of the chat are delivered in order
	Size           int          // of the body, in bytes
	Trace          string       // to which it belongs; see [postern.Message]
	Body           []byte       // the bytes to post; nil if there are more than bodyInline: see [Deliveries.Body]
}

// Columns of [DueDelivery]. Those that only ofAny has are empty before the first attempt.
// The length of a column is read without its content.
const (
	bodyBytes = `coalesce(length(d.notice), length(e.body))`
	ofAFirst  = `d.id, d.event_id, d.n, d.due_at, d.created_at, d.chat, d.trace, ` + bodyBytes + `,
		CASE WHEN ` + bodyBytes + ` <= ` + bodyInline + ` THEN coalesce(d.notice, e.body) END`
	ofAny = ofAFirst + `, d.replay_id, d.attempts, d.earlier, d.first_attempt_at`
)

// Due returns up to limit deliveries of an endpoint that are due, oldest first. With firsts
// false it leaves out the deliveries that First returns.
func (s Deliveries) Due(ctx context.Context, endpoint postern.EndpointID, now postern.Time, firsts bool,
	limit int,
) ([]DueDelivery, error) {
	which := ``
	if !firsts {
		which = again
	}
	return s.due(ctx, ofAny, `d.endpoint_id = $1 AND d.status = 'pending'`+which+` AND d.due_at <= $2
		AND `+inLine(4)+` ORDER BY d.due_at, d.n LIMIT $3 + 0`, endpoint, now, limit, now.Add(-lineWait))
}

// again is the condition of the partial index delivery_again.
const again = ` AND (d.attempts > 0 OR d.replay_id <> '')`

// NextOfChat returns the next delivery of a chat whose events are delivered in order; ok is
// false when no delivery of the chat is pending or the next one is not due yet.
func (s Deliveries) NextOfChat(ctx context.Context, endpoint postern.EndpointID, chat string,
	now postern.Time,
) (d DueDelivery, ok bool, err error) {
	list, err := s.due(ctx, ofAny, `d.endpoint_id = $1 AND d.chat = $2 AND d.chat <> '' AND d.status = 'pending'
		AND (d.due_at <= $3 OR d.first_attempt_at = 0 OR d.first_attempt_at > $4) ORDER BY d.n LIMIT 1`, endpoint, chat, now,
		now.Add(-lineWait))
	if err != nil || len(list) == 0 || list[0].DueAt > now && !list[0].IsFirst() {
		return d, false, err
	}
	return list[0], true, nil
}

// IsFirst reports whether the next attempt is the first one of an event, not a retry or a replay.
func (d DueDelivery) IsFirst() bool { return d.Attempts == 0 && d.Replay == "" }

// Place is a position in an endpoint's queue, which is ordered by due time and then by row.
type Place struct {
	DueAt postern.Time
	Row   int64
}

// Place returns the position of the delivery in the queue.
func (d DueDelivery) Place() Place { return Place{d.DueAt, d.Row} }

// First returns up to limit deliveries of an endpoint that became due behind a position and
// have not been attempted yet, oldest first. It leaves out the deliveries of replays. A first
// attempt never waits for a time, so one that is due later than now was recorded before the
// clock was set back. The further along the position is, the fewer rows First reads.
func (s Deliveries) First(ctx context.Context, endpoint postern.EndpointID, behind Place, now postern.Time,
	limit int,
) ([]DueDelivery, error) {
	return s.due(ctx, ofAFirst, `d.endpoint_id = $1 AND d.status = 'pending' AND d.attempts = 0 AND d.replay_id = ''
		AND (d.due_at, d.n) > ($2, $3) AND `+inLine(5)+` ORDER BY d.due_at, d.n LIMIT $4 + 0`,
		endpoint, behind.DueAt, behind.Row, limit, now.Add(-lineWait))
}

func (s Deliveries) due(ctx context.Context, columns, where string, endpoint postern.EndpointID,
	args ...any,
) (list []DueDelivery, err error) {
	query := `SELECT ` + columns + ` FROM delivery d LEFT JOIN event e ON e.position = d.position
		WHERE (d.notice IS NOT NULL OR e.position IS NOT NULL) AND ` + where
	list = make([]DueDelivery, 0, dueGuess)
	d := DueDelivery{EndpointID: endpoint}
	dst := []any{
		(*string)(&d.ID), (*string)(&d.EventID), &d.Row, (*int64)(&d.DueAt), (*int64)(&d.CreatedAt),
		&d.Chat, &d.Trace, &d.Size, &d.Body,
	}
	if columns == ofAny {
		dst = append(dst, (*string)(&d.Replay), &d.Attempts, &d.Earlier, (*int64)(&d.FirstAttemptAt))
	}
	err = s.db.Rows(ctx, query, append([]any{endpoint}, args...), func(r *sql.Rows) error {
		err := r.Scan(dst...)
		list = append(list, d)
		return err
	})
	return list, err
}

// Body returns the bytes that a pending delivery posts. It returns a NotFound error if the
// delivery was deleted or has ended.
func (s Deliveries) Body(ctx context.Context, d DueDelivery) (body []byte, err error) {
	err = s.db.Row(ctx, `SELECT coalesce(d.notice, e.body) FROM delivery d LEFT JOIN event e ON e.position = d.position
		WHERE d.n = $1 AND d.id = $2 AND d.endpoint_id = $3 AND d.status = 'pending'
		AND (d.notice IS NOT NULL OR e.position IS NOT NULL)`, []any{d.Row, d.ID, d.EndpointID}, &body)
	if errors.Is(err, sql.ErrNoRows) {
		err = postern.Errorf(postern.NotFound, "there is no such delivery")
	}
	return body, err
}

// inLine returns the condition that a delivery waits for no other delivery of its chat: no
// earlier one is pending, except those first attempted before the time in the parameter
// with the given number.
func inLine(parameter int) string {
	return fmt.Sprintf(`(d.chat = '' OR NOT EXISTS (SELECT 1 FROM delivery b WHERE b.endpoint_id = d.endpoint_id
		AND b.chat = d.chat AND b.chat <> '' AND b.status = 'pending' AND b.n < d.n
		AND (b.first_attempt_at = 0 OR b.first_attempt_at > $%d)))`, parameter)
}

// NextInLine returns when the next pending delivery stops holding up the later deliveries
// of its chat; ok is false when no delivery holds others up.
func (s Deliveries) NextInLine(ctx context.Context, endpoint postern.EndpointID,
	now postern.Time,
) (at postern.Time, ok bool, err error) {
	err = s.db.Row(ctx, `SELECT coalesce(min(first_attempt_at), 0) FROM delivery WHERE endpoint_id = $1 AND chat <> ''
		AND status = 'pending' AND first_attempt_at > 0 AND first_attempt_at > $2`, []any{endpoint, now.Add(-lineWait)}, &at)
	return at.Add(lineWait), at != 0, err
}

// NextDue returns when the next delivery of an endpoint after now becomes due; ok is false
// when none is pending after now.
func (s Deliveries) NextDue(ctx context.Context, endpoint postern.EndpointID,
	now postern.Time,
) (at postern.Time, ok bool, err error) {
	err = s.db.Row(ctx, `SELECT due_at FROM delivery WHERE endpoint_id = $1 AND status = 'pending' AND due_at > $2
		ORDER BY due_at LIMIT 1`, []any{endpoint, now}, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return at, err == nil, err
}

// WithWork lists, over all workspaces, the active endpoints that have pending deliveries,
// due now or later.
func (s Endpoints) WithWork(ctx context.Context) (list []postern.EndpointID, err error) {
	err = s.db.Rows(ctx, `SELECT id FROM endpoint e WHERE status = 'active' AND EXISTS (SELECT 1 FROM delivery d
		WHERE d.endpoint_id = e.id AND d.status = 'pending')`, nil, func(r *sql.Rows) error {
		var id postern.EndpointID
		err := r.Scan(&id)
		list = append(list, id)
		return err
	})
	return list, err
}

// awaited is the condition that an active endpoint still waits for a delivery. An endpoint
// that is not active, possibly for ever, holds nothing back: it no longer receives events
// older than the retention.
const awaited = `(d.status = 'pending' AND EXISTS (SELECT 1 FROM endpoint p WHERE p.id = d.endpoint_id
	AND p.status = 'active'))`

// dropEnded deletes a chunk of the deliveries of some events, except those that an active
// endpoint waits for.
func dropEnded(t *db.Tx, ws postern.WorkspaceID, events []string) (left bool, err error) {
	return dropSome(t, `SELECT id FROM delivery d WHERE workspace_id = $1
		AND event_id IN `+t.InList(2)+` AND NOT `+awaited+` LIMIT $3 + 0`, ws, asJSON(events), purgeChunk)
}

// dropSome deletes the deliveries that a query returns, with their attempts. The query
// returns at most purgeChunk ids; left reports that there may be more. For a replay, what was pending has failed.
func dropSome(t *db.Tx, query string, args ...any) (left bool, err error) {
	var ids []string
	err = t.Rows(query, args, addID(&ids))
	if err != nil || len(ids) == 0 {
		return false, err
	}
	if err := t.Exec(`DELETE FROM attempt WHERE delivery_id IN `+t.InList(1), asJSON(ids)); err != nil {
		return false, err
	}
	replays := map[string]int{}
	err = t.Rows(`DELETE FROM delivery WHERE id IN `+t.InList(1)+` RETURNING replay_id, status`, []any{asJSON(ids)},
		func(r *sql.Rows) error {
			var replay string
			var status postern.DeliveryStatus
			err := r.Scan(&replay, &status)
			if replay != "" && status == postern.DeliveryPending {
				replays[replay]++
			}
			return err
		})
	for replay, n := range replays {
		t.Wake(ReplayChanged, replay)
		err = errors.Join(err, t.Exec(`UPDATE replay SET failed = failed + $2 WHERE id = $1`, replay, n))
	}
	return len(ids) == purgeChunk, err
}

// RemoveNotices deletes a chunk of the notices and ended replays made before a time, which
// are not removed with an event; more is false when none are left.
func (s Deliveries) RemoveNotices(ctx context.Context, ws postern.WorkspaceID,
	before postern.Time,
) (more bool, err error) {
	const notices = `SELECT id FROM delivery d WHERE workspace_id = $1 AND position < 0 AND created_at < $2
		AND NOT ` + awaited + ` LIMIT $3 + 0`
	const replays = `SELECT id FROM replay WHERE workspace_id = $1 AND ended_at > 0 AND ended_at < $2 LIMIT $3 + 0`
	old, err := s.exists(ctx, `SELECT (SELECT count(*) FROM (`+notices+`) AS n) + (SELECT count(*)
		FROM (`+replays+`) AS r)`, ws, before, 1)()
	if err != nil || !old {
		return false, err // the common case costs no write
	}
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`DELETE FROM replay WHERE id IN (`+replays+`)`, ws, before, purgeChunk)
		if err != nil {
			return err
		}
		more, err = dropSome(t, notices, ws, before, purgeChunk)
		more = more || n == purgeChunk
		return err
	}))
	return more, err
}
