package store

import (
	"context"
	"database/sql"
	"time"

	"postern/internal/postern"
)

// tallyKey is what attempts are counted by.
type tallyKey struct {
	endpoint postern.EndpointID
	hour     postern.Time
}

// tally is what attempts came to.
type tally struct{ succeeded, failed, exhausted, duration, slowest int64 }

const hourMillis = postern.Time(time.Hour / time.Millisecond)

// count adds an attempt to what the transaction will write at its end, once for
// all attempts of an endpoint.
func (t *tx) count(o Attempt) {
	key := tallyKey{o.EndpointID, o.At - o.At%hourMillis}
	c, took := t.tallies[key], int64(o.Ended-o.At)
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
	t.tallies[key] = c
}

const addTally = ` ON CONFLICT (endpoint_id, hour) DO UPDATE SET succeeded = h.succeeded + excluded.succeeded, failed = h.failed + excluded.failed, exhausted = h.exhausted + excluded.exhausted,
	duration = h.duration + excluded.duration, slowest = CASE WHEN excluded.slowest > h.slowest THEN excluded.slowest ELSE h.slowest END`

// writeTallies writes what was counted, of attempts and of messages, and the chats
// of these.
func (t *tx) writeTallies() error {
	for key, c := range t.tallies {
		if err := t.exec(`INSERT INTO endpoint_hour AS h (endpoint_id, hour, succeeded, failed, exhausted, duration, slowest) VALUES ($1, $2, $3, $4, $5, $6, $7)`+addTally,
			key.endpoint, key.hour, c.succeeded, c.failed, c.exhausted, c.duration, c.slowest); err != nil {
			return err
		}
	}
	clear(t.tallies)
	if err := t.writeHours(); err != nil {
		return err
	}
	return t.writeChats()
}

// OfEndpoint gives what an endpoint's attempts came to in the hours that begin
// from since until before until, oldest first. Hours without any are left out.
func (s Hours) OfEndpoint(ctx context.Context, ws postern.WorkspaceID, id postern.EndpointID, since, until postern.Time) (list []postern.EndpointHour, err error) {
	err = s.db.rows(ctx, `SELECT hour, succeeded, failed, exhausted, duration, slowest FROM endpoint_hour
		WHERE endpoint_id = (SELECT id FROM endpoint WHERE workspace_id = $1 AND id = $2) AND hour >= $3 AND hour < $4 ORDER BY hour`,
		[]any{ws, id, since, until}, func(r *sql.Rows) error {
			h, err := scanEndpointHour(r)
			list = append(list, h)
			return err
		})
	return list, err
}

func scanEndpointHour(r scanner) (h postern.EndpointHour, err error) {
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
