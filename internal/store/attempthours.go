package store

import (
	"context"
	"database/sql"

	"postern/internal/db"
	"postern/internal/postern"
)

// attemptKey is what attempts are counted by.
type attemptKey struct {
	endpoint postern.EndpointID
	hour     postern.Time
}

// attemptCount is what the attempts of an hour add up to.
type attemptCount struct{ succeeded, failed, exhausted, duration, slowest int64 }

const attemptHourColumns = `endpoint_id, hour, succeeded, failed, exhausted, duration, slowest`

var addAttemptHours = db.NewStatement(attemptHourColumns,
	`INSERT INTO endpoint_hour AS h (`+attemptHourColumns+`) @values ON CONFLICT (endpoint_id, hour) DO UPDATE
	SET succeeded = h.succeeded + excluded.succeeded, failed = h.failed + excluded.failed, exhausted = h.exhausted + excluded.exhausted,
	duration = h.duration + excluded.duration, slowest = CASE WHEN excluded.slowest > h.slowest THEN excluded.slowest ELSE h.slowest END`)

// attemptHours counts attempts by the hour, once for all attempts of an endpoint in a group.
type attemptHours map[attemptKey]attemptCount

func newAttemptHours() attemptHours { return attemptHours{} }

// Note counts an attempt.
func (h attemptHours) Note(change any) {
	o, is := change.(*Attempt)
	if !is {
		return
	}
	key := attemptKey{o.EndpointID, o.At - o.At%hourMillis}
	c, took := h[key], int64(o.Ended-o.At)
	if o.Reason == "" {
		c.succeeded++
	} else {
		c.failed++
	}
	if o.Status == postern.DeliveryExhausted {
		c.exhausted++
	}
	c.duration += took
	c.slowest = max(c.slowest, took)
	h[key] = c
}

// Write adds what was counted.
func (h attemptHours) Write(t *db.Tx) error {
	rows := make([][]any, 0, len(h))
	for k, c := range h {
		rows = append(rows, []any{k.endpoint, k.hour, c.succeeded, c.failed, c.exhausted, c.duration, c.slowest})
	}
	clear(h)
	_, err := t.Each(addAttemptHours, rows)
	return err
}

// Discard forgets what was counted.
func (h attemptHours) Discard() { clear(h) }

// OfEndpoint gives what an endpoint's attempts came to in the hours that begin
// from since until before until, oldest first. Hours without any are left out.
func (s Hours) OfEndpoint(ctx context.Context, ws postern.WorkspaceID, id postern.EndpointID, since, until postern.Time) (list []postern.EndpointHour, err error) {
	err = s.db.Rows(ctx, `SELECT hour, succeeded, failed, exhausted, duration, slowest FROM endpoint_hour
		WHERE endpoint_id = (SELECT id FROM endpoint WHERE workspace_id = $1 AND id = $2) AND hour >= $3 AND hour < $4 ORDER BY hour`,
		[]any{ws, id, since, until}, func(r *sql.Rows) error {
			h, err := scanEndpointHour(r)
			list = append(list, h)
			return err
		})
	return list, err
}

func scanEndpointHour(r db.Scanner) (h postern.EndpointHour, err error) {
	var duration int64
	err = r.Scan(&h.Hour, &h.Succeeded, &h.Failed, &h.Exhausted, &duration, &h.MaxMs)
	h.MeanMs = duration / max(h.Succeeded+h.Failed, 1)
	return h, err
}

// RemoveEndpointHours removes a chunk of the hours before a time, and says
// whether there may be more.
func (s Hours) RemoveEndpointHours(ctx context.Context, before postern.Time) (more bool, err error) {
	return s.remove(ctx, "endpoint_hour", "endpoint_id", before)
}
