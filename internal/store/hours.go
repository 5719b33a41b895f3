package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

// hourKey is what messages are counted by: the hour in which they were accepted or arrived.
type hourKey struct {
	ws   postern.WorkspaceID
	hour postern.Time
}

// standing is what a message counts as: each number is 0 or 1. The counts of an hour are
// the sum over its messages.
type standing struct{ accepted, sent, delivered, failed, received int64 }

// standingOf returns what a message in a status counts as. A message that the account
// sent from another device counts as nothing: the network tells little about those.
func standingOf(m *postern.Message, status postern.MessageStatus) (s standing) {
	switch {
	case status == "":
		return s // the message did not exist yet
	case m.Direction == postern.Inbound:
		s.received = 1
		return s
	case m.Source != postern.FromAPI:
		return s
	}
	s.accepted = 1
	switch status {
	case postern.Delivered, postern.Read, postern.Played:
		s.sent, s.delivered = 1, 1
	case postern.Sent:
		s.sent = 1
	case postern.Failed, postern.Expired:
		s.failed = 1
	case postern.Scheduled, postern.Queued, postern.Sending, postern.Canceled, postern.Received:
	}
	return s
}

func (s standing) plus(o standing, times int64) standing {
	return standing{
		s.accepted + times*o.accepted, s.sent + times*o.sent, s.delivered + times*o.delivered,
		s.failed + times*o.failed, s.received + times*o.received,
	}
}

const (
	hourMillis  = postern.Time(time.Hour / time.Millisecond)
	hourColumns = `workspace_id, hour, accepted, sent, delivered, failed, received`
)

var addMessageHours = db.NewStatement(hourColumns,
	`INSERT INTO message_hour AS h (`+hourColumns+`) @values ON CONFLICT (workspace_id, hour) DO UPDATE
	SET accepted = h.accepted + excluded.accepted, sent = h.sent + excluded.sent,
	delivered = h.delivered + excluded.delivered,
	failed = h.failed + excluded.failed, received = h.received + excluded.received`)

// messageHours counts messages by the hour, once for all messages of an hour in a group.
//
// Single writer: ledger.
type messageHours map[hourKey]standing

func newMessageHours() messageHours { return messageHours{} }

// Note counts a message that has moved from one status to its own.
func (h messageHours) Note(change any) {
	c, is := change.(MessageMoved)
	if !is {
		return
	}
	m := c.Message
	before, after := standingOf(m, c.From), standingOf(m, m.Status)
	if before == after {
		return
	}
	key := hourKey{m.WorkspaceID, m.CreatedAt - m.CreatedAt%hourMillis}
	h[key] = h[key].plus(after, 1).plus(before, -1)
}

// Write adds what was counted, in an order that is the same everywhere.
func (h messageHours) Write(t *db.Tx) error {
	var rows [][]any
	for _, k := range slices.SortedFunc(maps.Keys(h), hourKey.compare) {
		if s := h[k]; s != (standing{}) {
			rows = append(rows, []any{k.ws, k.hour, s.accepted, s.sent, s.delivered, s.failed, s.received})
		}
	}
	clear(h)
	return t.Each(addMessageHours, rows)
}

// Discard forgets what was counted.
func (h messageHours) Discard() { clear(h) }

func (k hourKey) compare(o hourKey) int {
	return cmp.Or(cmp.Compare(k.ws, o.ws), cmp.Compare(k.hour, o.hour))
}

// MessageSpans returns the counts of a workspace's messages from since on, span by span,
// oldest first. span is a whole number of hours and since is the start of one. Spans
// without messages are left out.
func (s Hours) MessageSpans(ctx context.Context, ws postern.WorkspaceID, since postern.Time,
	span time.Duration,
) (list []postern.MessageSpan, err error) {
	err = s.db.Rows(ctx, `SELECT hour - hour % CAST($3 AS BIGINT), CAST(sum(accepted) AS BIGINT),
		CAST(sum(sent) AS BIGINT), CAST(sum(delivered) AS BIGINT), CAST(sum(failed) AS BIGINT), CAST(sum(received) AS BIGINT)
		FROM message_hour WHERE workspace_id = $1 AND hour >= $2 GROUP BY 1
		ORDER BY 1`, []any{ws, since, span.Milliseconds()}, func(r *sql.Rows) error {
		var s postern.MessageSpan
		err := r.Scan(&s.Start, &s.Accepted, &s.Sent, &s.Delivered, &s.Failed, &s.Received)
		list = append(list, s)
		return err
	})
	return list, err
}

// AttemptSpans returns the counts of the attempts of all endpoints of a workspace, as
// MessageSpans does for messages.
func (s Hours) AttemptSpans(ctx context.Context, ws postern.WorkspaceID, since postern.Time,
	span time.Duration,
) (list []postern.EndpointHour, err error) {
	err = s.db.Rows(ctx, `SELECT hour - hour % CAST($3 AS BIGINT), CAST(sum(succeeded) AS BIGINT),
		CAST(sum(failed) AS BIGINT), CAST(sum(exhausted) AS BIGINT), CAST(sum(duration) AS BIGINT), max(slowest)
		FROM endpoint_hour WHERE endpoint_id IN (SELECT id FROM endpoint WHERE workspace_id = $1) AND hour >= $2 GROUP BY 1
		ORDER BY 1`, []any{ws, since, span.Milliseconds()}, func(r *sql.Rows) error {
		h, err := scanEndpointHour(r)
		list = append(list, h)
		return err
	})
	return list, err
}

// RemoveMessageHours deletes a chunk of the message counts of the hours before a time; more
// reports that there may be others.
func (s Hours) RemoveMessageHours(ctx context.Context, before postern.Time) (more bool, err error) {
	return s.remove(ctx, "message_hour", "workspace_id", before)
}

// remove deletes a chunk of a table of hours. It reads before it writes, so that the common
// case costs no write.
func (s Hours) remove(ctx context.Context, table, owner string, before postern.Time) (more bool, err error) {
	old, err := s.exists(ctx, `SELECT count(*) FROM (SELECT hour FROM `+table+` WHERE hour < $1 LIMIT 1) AS old`,
		before)()
	if err != nil || !old {
		return false, err
	}
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`DELETE FROM `+table+` WHERE (`+owner+`, hour) IN (SELECT `+owner+`, hour
			FROM `+table+` WHERE hour < $1 LIMIT $2 + 0)`, before, purgeChunk)
		more = n == purgeChunk
		return err
	}))
	return more, err
}

// attemptKey is what attempts are counted by.
type attemptKey struct {
	endpoint postern.EndpointID
	hour     postern.Time
}

// attemptCount is the sum over the attempts of an hour.
type attemptCount struct{ succeeded, failed, exhausted, duration, slowest int64 }

const attemptHourColumns = `endpoint_id, hour, succeeded, failed, exhausted, duration, slowest`

var addAttemptHours = db.NewStatement(attemptHourColumns,
	`INSERT INTO endpoint_hour AS h (`+attemptHourColumns+`) @values ON CONFLICT (endpoint_id, hour) DO UPDATE
	SET succeeded = h.succeeded + excluded.succeeded, failed = h.failed + excluded.failed,
	exhausted = h.exhausted + excluded.exhausted,
	duration = h.duration + excluded.duration, slowest = CASE WHEN excluded.slowest > h.slowest THEN excluded.slowest
	ELSE h.slowest END`)

// attemptHours counts attempts by the hour, once for all attempts of an endpoint in a group.
//
// Single writer: ledger.
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
	return t.Each(addAttemptHours, rows)
}

// Discard forgets what was counted.
func (h attemptHours) Discard() { clear(h) }

// OfEndpoint returns the counts of an endpoint's attempts in the hours that begin from
// since until before until, oldest first. Hours without attempts are left out.
func (s Hours) OfEndpoint(ctx context.Context, ws postern.WorkspaceID, id postern.EndpointID, since,
	until postern.Time,
) (list []postern.EndpointHour, err error) {
	err = s.db.Rows(ctx, `SELECT hour, succeeded, failed, exhausted, duration, slowest FROM endpoint_hour
		WHERE endpoint_id = (SELECT id FROM endpoint WHERE workspace_id = $1 AND id = $2) AND hour >= $3 AND hour < $4
		ORDER BY hour`,
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

// RemoveEndpointHours deletes a chunk of the attempt counts of the hours before a time;
// more reports that there may be others.
func (s Hours) RemoveEndpointHours(ctx context.Context, before postern.Time) (more bool, err error) {
	return s.remove(ctx, "endpoint_hour", "endpoint_id", before)
}
