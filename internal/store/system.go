package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/postern"
)

// SystemStatus counts what the store holds and what waits, over all workspaces.
type SystemStatus struct {
	Engine  string // "SQLite 3.50.4"
	Size    int64  // of the database, in bytes
	Devices map[postern.Status]int

	Queued  int64 // messages that wait to be sent, at most MessagesCounted,
	Sending int64 // and those of them that may have left, likewise

	Waiting   int64        // deliveries, at most DeliveriesCounted,
	Due       int64        // those of them that an active endpoint should have been sent, likewise,
	OldestDue postern.Time // and since when the oldest should have been; 0: none is due
}

// The device is named where nothing is asked of it so that SQLite takes the index of
// what has left, and does not go through the whole queue.
const (
	devicesByState = `SELECT status, count(*) FROM device WHERE deleted_at = 0 GROUP BY status`
	messagesQueued = `SELECT count(*) FROM (SELECT n FROM message WHERE status IN ('queued', 'sending') LIMIT $1 + 0) counted`
	messagesLeft   = `SELECT count(*) FROM (SELECT n FROM message WHERE frame_left = 1 AND device_id > '' AND status IN ('queued', 'sending') LIMIT $1 + 0) counted`
	deliveriesWait = `SELECT count(*) FROM (SELECT d.n FROM endpoint e JOIN delivery d ON d.endpoint_id = e.id WHERE d.status = 'pending' LIMIT $1 + 0) counted`
	// SQLite takes the tables of a CROSS JOIN in their order: what is not due is not gone through.
	deliveriesDue = `SELECT count(*) FROM (SELECT d.n FROM endpoint e CROSS JOIN delivery d WHERE e.status = 'active' AND d.endpoint_id = e.id AND d.status = 'pending' AND d.due_at <= $2 LIMIT $1 + 0) counted`
	// Of each endpoint the first is looked up: the queue of one that is down may be long.
	oldestDue = `SELECT coalesce(min(due_at), 0) FROM (SELECT (SELECT min(d.due_at) FROM delivery d WHERE d.endpoint_id = e.id AND d.status = 'pending') AS due_at
		FROM endpoint e WHERE e.status = 'active') firsts WHERE due_at <= $1`
)

// Get reads the figures of the whole server. Queues are counted through
// indexes that hold nothing else.
func (s System) Get(ctx context.Context, now postern.Time) (st SystemStatus, err error) {
	st.Devices = map[postern.Status]int{}
	err = errors.Join(
		s.readSize(ctx, &st),
		s.db.Row(ctx, messagesQueued, []any{MessagesCounted}, &st.Queued),
		s.db.Row(ctx, messagesLeft, []any{MessagesCounted}, &st.Sending),
		s.db.Row(ctx, deliveriesWait, []any{DeliveriesCounted}, &st.Waiting),
		s.db.Row(ctx, deliveriesDue, []any{DeliveriesCounted, now}, &st.Due),
		s.db.Row(ctx, oldestDue, []any{now}, &st.OldestDue),
		s.db.Rows(ctx, devicesByState, nil, func(r *sql.Rows) error {
			var status postern.Status
			var n int
			err := r.Scan(&status, &n)
			st.Devices[status] = n
			return err
		}),
	)
	return st, err
}

const (
	allMessageHours = `SELECT hour, CAST(sum(accepted) AS BIGINT), CAST(sum(sent) AS BIGINT), CAST(sum(delivered) AS BIGINT), CAST(sum(failed) AS BIGINT), CAST(sum(received) AS BIGINT)
		FROM message_hour WHERE hour >= $1 GROUP BY hour ORDER BY hour`
	allAttemptHours = `SELECT hour, CAST(sum(succeeded) AS BIGINT), CAST(sum(failed) AS BIGINT), CAST(sum(exhausted) AS BIGINT), CAST(sum(duration) AS BIGINT), max(slowest)
		FROM endpoint_hour WHERE hour >= $1 GROUP BY hour ORDER BY hour`
)

// AllMessages is MessageSpans by the hour, over all workspaces.
func (s Hours) AllMessages(ctx context.Context, since postern.Time) (list []postern.MessageSpan, err error) {
	err = s.db.Rows(ctx, allMessageHours, []any{since}, func(r *sql.Rows) error {
		var s postern.MessageSpan
		err := r.Scan(&s.Start, &s.Accepted, &s.Sent, &s.Delivered, &s.Failed, &s.Received)
		list = append(list, s)
		return err
	})
	return list, err
}

// AllAttempts is AttemptSpans by the hour, over all workspaces.
func (s Hours) AllAttempts(ctx context.Context, since postern.Time) (list []postern.EndpointHour, err error) {
	err = s.db.Rows(ctx, allAttemptHours, []any{since}, func(r *sql.Rows) error {
		h, err := scanEndpointHour(r)
		list = append(list, h)
		return err
	})
	return list, err
}

func (s System) readSize(ctx context.Context, st *SystemStatus) (err error) {
	st.Engine, st.Size, err = s.db.Size(ctx)
	return err
}
