package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/postern"
)

const deliveryColumns = `id, endpoint_id, event_id, type, device_id, status, attempts, last_status, last_reason, created_at, first_attempt_at, last_attempt_at, CASE WHEN status = 'pending' THEN due_at ELSE 0 END, completed_at`

func scanDelivery(s scanner) (d postern.Delivery, err error) {
	err = s.Scan(&d.ID, &d.EndpointID, &d.EventID, &d.Type, &d.DeviceID, &d.Status, &d.Attempts, &d.LastStatus, &d.LastReason,
		&d.CreatedAt, &d.FirstAttemptAt, &d.LastAttemptAt, &d.NextAttemptAt, &d.CompletedAt)
	return d, err
}

// Deliveries lists an endpoint's deliveries, newest first. The page's After is
// the id of the last one seen.
func (db *DB) Deliveries(ctx context.Context, ws postern.WorkspaceID, endpoint postern.EndpointID, status string, p Page) (list []postern.Delivery, err error) {
	err = db.rows(ctx, `SELECT `+deliveryColumns+` FROM delivery WHERE workspace_id = $1 AND endpoint_id = $2 AND ($3 = '' OR status = $3)
		AND ($4 = '' OR n < (SELECT n FROM delivery WHERE workspace_id = $1 AND id = $4)) ORDER BY n DESC LIMIT $5 + 0`,
		[]any{ws, endpoint, status, p.After, p.Limit}, func(r *sql.Rows) error {
			d, err := scanDelivery(r)
			list = append(list, d)
			return err
		})
	return list, err
}

// DueDelivery is what an attempt needs of a delivery.
type DueDelivery struct {
	ID             postern.DeliveryID
	EndpointID     postern.EndpointID
	EventID        postern.EventID
	Row            int64 // in the table
	Attempts       int   // so far
	DueAt          postern.Time
	CreatedAt      postern.Time
	FirstAttemptAt postern.Time // 0 before the first
	Body           []byte       // the bytes to post
}

const dueDeliveries = `SELECT d.id, d.event_id, d.n, d.attempts, d.due_at, d.created_at, d.first_attempt_at, e.body FROM delivery d JOIN event e ON e.position = d.position`

// DueDeliveries gives the deliveries of an endpoint that are due, oldest first.
func (db *DB) DueDeliveries(ctx context.Context, endpoint postern.EndpointID, now postern.Time, limit int) ([]DueDelivery, error) {
	return db.dueDeliveries(ctx, dueDeliveries+` WHERE d.endpoint_id = $1 AND d.status = 'pending' AND d.due_at <= $2 ORDER BY d.due_at, d.n LIMIT $3 + 0`, endpoint, now, limit)
}

// FirstDeliveries gives the deliveries of an endpoint that were not attempted
// yet and became due between from and now, oldest first. A later from spares
// it the walk over older retries.
func (db *DB) FirstDeliveries(ctx context.Context, endpoint postern.EndpointID, from, now postern.Time, limit int) ([]DueDelivery, error) {
	return db.dueDeliveries(ctx, dueDeliveries+` WHERE d.endpoint_id = $1 AND d.status = 'pending' AND d.attempts = 0 AND d.due_at >= $2 AND d.due_at <= $3 ORDER BY d.due_at, d.n LIMIT $4 + 0`, endpoint, from, now, limit)
}

func (db *DB) dueDeliveries(ctx context.Context, query string, endpoint postern.EndpointID, args ...any) (list []DueDelivery, err error) {
	list = make([]DueDelivery, 0, dueGuess)
	err = db.rows(ctx, query, append([]any{endpoint}, args...), func(r *sql.Rows) error {
		d := DueDelivery{EndpointID: endpoint}
		err := r.Scan((*string)(&d.ID), (*string)(&d.EventID), &d.Row, &d.Attempts, (*int64)(&d.DueAt), (*int64)(&d.CreatedAt), (*int64)(&d.FirstAttemptAt), &d.Body)
		list = append(list, d)
		return err
	})
	return list, err
}

// NextDue says when the next delivery of an endpoint after now is due; ok is
// false when none waits.
func (db *DB) NextDue(ctx context.Context, endpoint postern.EndpointID, now postern.Time) (at postern.Time, ok bool, err error) {
	err = db.row(ctx, `SELECT due_at FROM delivery WHERE endpoint_id = $1 AND status = 'pending' AND due_at > $2 ORDER BY due_at LIMIT 1`, []any{endpoint, now}, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return at, err == nil, err
}

// EndpointsWithWork lists, over all workspaces, the active endpoints that have
// deliveries to make, now or later.
func (db *DB) EndpointsWithWork(ctx context.Context) (list []postern.EndpointID, err error) {
	err = db.rows(ctx, `SELECT id FROM endpoint e WHERE status = 'active' AND EXISTS (SELECT 1 FROM delivery d WHERE d.endpoint_id = e.id AND d.status = 'pending')`, nil, func(r *sql.Rows) error {
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
	Number     int
	At         postern.Time // when it began
	Ended      postern.Time
	HTTPStatus int                    // 0 when there was no answer
	Reason     string                 // "" for success
	Answer     string                 // at most the first KiB
	Status     postern.DeliveryStatus // of the delivery from now on
	DueAt      postern.Time           // of the next attempt, while pending
	Disable    string                 // why the endpoint is disabled at once; "" leaves it
}

func (o Attempt) apply(t *tx) error {
	completed := o.Ended
	if o.Status == postern.DeliveryPending {
		completed = 0
	}
	if err := o.logBefore(t); err != nil {
		return err
	}
	n, err := t.changed(`UPDATE delivery SET status = $3, attempts = $4, due_at = $5, first_attempt_at = CASE WHEN first_attempt_at = 0 THEN $6 ELSE first_attempt_at END,
		last_attempt_at = $6, last_duration = $7, last_status = $8, last_reason = $9, last_answer = $10, completed_at = $11 WHERE n = $1 AND id = $2 AND status = 'pending' AND attempts < $4`,
		o.Row, o.DeliveryID, o.Status, o.Number, o.DueAt, o.At, int64(o.Ended-o.At), o.HTTPStatus, o.Reason, o.Answer, completed)
	if err != nil || n == 0 {
		return err // the endpoint was deleted meanwhile
	}
	return o.health(t)
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
		if seen[o.DeliveryID] || o.Reason != "" || o.Number > 1 {
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
			last_status = u.http, last_reason = '', last_answer = u.answer, completed_at = u.ended FROM u WHERE d.n = u.n AND d.id = u.id AND d.status = 'pending' AND d.attempts = 0 RETURNING d.endpoint_id)
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
		WHERE id = $1 AND status = 'active' AND ($2 <> '' OR failures >= $3 AND failing_since <= $4)`,
		o.EndpointID, o.Disable, disableFailures, o.Ended.Add(-disableAfter))
	if n > 0 {
		t.wake(EndpointChanged, string(o.EndpointID))
	}
	return err
}

// FinishAttempt records one attempt and what follows from it.
func (db *DB) FinishAttempt(ctx context.Context, o Attempt) error { return db.do(ctx, o) }
