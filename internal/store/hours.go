package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"postern/internal/postern"
)

// hourKey is what messages are counted by: the hour in which they were accepted
// or came.
type hourKey struct {
	ws   postern.WorkspaceID
	hour postern.Time
}

// standing is what a message counts as: each number is 0 or 1. Summed up, and
// with what it counted as before taken off, it is what an hour came to.
type standing struct{ accepted, sent, delivered, failed, received int64 }

// standingOf tells what a message in a status counts as. One that the account
// wrote elsewhere counts as nothing: the network says little of those.
func standingOf(m postern.Message, status postern.MessageStatus) (s standing) {
	switch {
	case status == "":
		return s // it was not there
	case m.Direction == postern.Inbound:
		s.received = 1
		return s
	case m.Source != postern.FromAPI:
		return s
	}
	s.accepted = 1
	switch status {
	case postern.Delivered, postern.Read:
		s.sent, s.delivered = 1, 1
	case postern.Sent:
		s.sent = 1
	case postern.Failed, postern.Expired:
		s.failed = 1
	case postern.Queued, postern.Sending, postern.Received:
	}
	return s
}

func (s standing) plus(o standing, times int64) standing {
	return standing{s.accepted + times*o.accepted, s.sent + times*o.sent, s.delivered + times*o.delivered, s.failed + times*o.failed, s.received + times*o.received}
}

// moved counts a message that has come from a status, "" for none, to its own. It
// is written at the end of the transaction, once for all messages of an hour.
func (t *tx) moved(m postern.Message, from postern.MessageStatus) {
	before, after := standingOf(m, from), standingOf(m, m.Status)
	if before == after {
		return
	}
	key := hourKey{m.WorkspaceID, m.CreatedAt - m.CreatedAt%hourMillis}
	t.hours[key] = t.hours[key].plus(after, 1).plus(before, -1)
}

const (
	hourColumns = `workspace_id, hour, accepted, sent, delivered, failed, received`
	addHour     = ` ON CONFLICT (workspace_id, hour) DO UPDATE SET accepted = h.accepted + excluded.accepted, sent = h.sent + excluded.sent,
		delivered = h.delivered + excluded.delivered, failed = h.failed + excluded.failed, received = h.received + excluded.received`
)

// writeHours writes what was counted. With PostgreSQL all of it is one statement:
// each is a way to the server and back.
func (t *tx) writeHours() error {
	rows := hourRows(t.hours)
	clear(t.hours)
	if t.w.dialect.remote && len(rows) > 1 {
		from, args := table(hourColumns, rows)
		return t.exec(`INSERT INTO message_hour AS h (`+hourColumns+`) SELECT `+hourColumns+` FROM `+from+addHour, args...)
	}
	for _, row := range rows {
		if err := t.exec(`INSERT INTO message_hour AS h (`+hourColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)`+addHour, row...); err != nil {
			return err
		}
	}
	return nil
}

func hourRows(hours map[hourKey]standing) (rows [][]any) {
	for _, k := range slices.SortedFunc(maps.Keys(hours), func(a, b hourKey) int { return cmp.Or(cmp.Compare(a.ws, b.ws), cmp.Compare(a.hour, b.hour)) }) {
		if s := hours[k]; s != (standing{}) {
			rows = append(rows, []any{k.ws, k.hour, s.accepted, s.sent, s.delivered, s.failed, s.received})
		}
	}
	return rows
}

// MessageSpans gives what became of a workspace's messages from since on, span by
// span, oldest first. A span is whole hours, since one of its starts; those
// without any message are left out.
func (s Hours) MessageSpans(ctx context.Context, ws postern.WorkspaceID, since postern.Time, span time.Duration) (list []postern.MessageSpan, err error) {
	err = s.db.rows(ctx, `SELECT hour - hour % CAST($3 AS BIGINT), CAST(sum(accepted) AS BIGINT), CAST(sum(sent) AS BIGINT), CAST(sum(delivered) AS BIGINT), CAST(sum(failed) AS BIGINT), CAST(sum(received) AS BIGINT)
		FROM message_hour WHERE workspace_id = $1 AND hour >= $2 GROUP BY 1 ORDER BY 1`, []any{ws, since, span.Milliseconds()}, func(r *sql.Rows) error {
		var s postern.MessageSpan
		err := r.Scan(&s.Start, &s.Accepted, &s.Sent, &s.Delivered, &s.Failed, &s.Received)
		list = append(list, s)
		return err
	})
	return list, err
}

// AttemptSpans is MessageSpans for the attempts of all endpoints of a workspace.
func (s Hours) AttemptSpans(ctx context.Context, ws postern.WorkspaceID, since postern.Time, span time.Duration) (list []postern.EndpointHour, err error) {
	err = s.db.rows(ctx, `SELECT hour - hour % CAST($3 AS BIGINT), CAST(sum(succeeded) AS BIGINT), CAST(sum(failed) AS BIGINT), CAST(sum(exhausted) AS BIGINT), CAST(sum(duration) AS BIGINT), max(slowest)
		FROM endpoint_hour WHERE endpoint_id IN (SELECT id FROM endpoint WHERE workspace_id = $1) AND hour >= $2 GROUP BY 1 ORDER BY 1`, []any{ws, since, span.Milliseconds()}, func(r *sql.Rows) error {
		h, err := scanEndpointHour(r)
		list = append(list, h)
		return err
	})
	return list, err
}

// RemoveMessageHours removes a chunk of the hours before a time, and says whether
// there may be more.
func (s Hours) RemoveMessageHours(ctx context.Context, before postern.Time) (more bool, err error) {
	return s.remove(ctx, "message_hour", "workspace_id", before)
}

// remove looks before it writes: the common case costs no write.
func (s Hours) remove(ctx context.Context, table, owner string, before postern.Time) (more bool, err error) {
	old, err := s.db.exists(ctx, `SELECT count(*) FROM (SELECT hour FROM `+table+` WHERE hour < $1 LIMIT 1) AS old`, before)()
	if err != nil || !old {
		return false, err
	}
	err = s.db.do(ctx, opFunc(func(t *tx) error {
		n, err := t.changed(`DELETE FROM `+table+` WHERE (`+owner+`, hour) IN (SELECT `+owner+`, hour FROM `+table+` WHERE hour < $1 LIMIT $2 + 0)`, before, purgeChunk)
		more = n == purgeChunk
		return err
	}))
	return more, err
}
