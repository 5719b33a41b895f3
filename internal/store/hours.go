package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

// hourKey and minuteKey are what messages are counted by: the period in which they were accepted or arrived.
type (
	hourKey struct {
		ws   postern.WorkspaceID
		hour postern.Time
	}
	minuteKey struct {
		device postern.DeviceID
		minute postern.Time
	}
)

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
	hourMillis   = postern.Time(time.Hour / time.Millisecond)
	minuteMillis = hourMillis / 60
)

var (
	addMessageHours   = countMessages("message_hour", "workspace_id", "hour")
	addMessageMinutes = countMessages("message_minute", "device_id", "minute")
)

// countMessages returns the statement that adds counts to those of a table.
func countMessages(table, owner, start string) *db.Statement {
	columns := owner + `, ` + start + `, accepted, sent, delivered, failed, received`
	return db.NewStatement(columns, `INSERT INTO `+table+` AS h (`+columns+`) @values
		ON CONFLICT (`+owner+`, `+start+`) DO UPDATE SET accepted = h.accepted + excluded.accepted,
		sent = h.sent + excluded.sent, delivered = h.delivered + excluded.delivered,
		failed = h.failed + excluded.failed, received = h.received + excluded.received`)
}

// messageCounts counts messages by the hour and by the minute, once for all messages of a period in a group.
//
// Single writer: ledger.
type messageCounts struct {
	hours   map[hourKey]standing
	minutes map[minuteKey]standing
}

func newMessageCounts() messageCounts {
	return messageCounts{map[hourKey]standing{}, map[minuteKey]standing{}}
}

// Note counts a message that has moved from one status to its own.
func (c messageCounts) Note(change any) {
	moved, is := change.(MessageMoved)
	if !is {
		return
	}
	m := moved.Message
	before, after := standingOf(m, moved.From), standingOf(m, m.Status)
	if before == after {
		return
	}
	hour := hourKey{m.WorkspaceID, m.CreatedAt - m.CreatedAt%hourMillis}
	minute := minuteKey{m.DeviceID, m.CreatedAt - m.CreatedAt%minuteMillis}
	c.hours[hour] = c.hours[hour].plus(after, 1).plus(before, -1)
	c.minutes[minute] = c.minutes[minute].plus(after, 1).plus(before, -1)
}

// Write adds what was counted, in an order that is the same everywhere.
func (c messageCounts) Write(t *db.Tx) error {
	defer c.Discard()
	var hours, minutes [][]any
	for _, k := range slices.SortedFunc(maps.Keys(c.hours), hourKey.compare) {
		hours = c.hours[k].appendTo(hours, k.ws, k.hour)
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.minutes), minuteKey.compare) {
		minutes = c.minutes[k].appendTo(minutes, k.device, k.minute)
	}
	return errors.Join(t.Each(addMessageHours, hours), t.Each(addMessageMinutes, minutes))
}

// appendTo appends the row of an owner and a period, unless all counts are 0.
func (s standing) appendTo(rows [][]any, owner, start any) [][]any {
	if s == (standing{}) {
		return rows
	}
	return append(rows, []any{owner, start, s.accepted, s.sent, s.delivered, s.failed, s.received})
}

// Discard forgets what was counted.
func (c messageCounts) Discard() {
	clear(c.hours)
	clear(c.minutes)
}

func (k hourKey) compare(o hourKey) int {
	return cmp.Or(cmp.Compare(k.ws, o.ws), cmp.Compare(k.hour, o.hour))
}

func (k minuteKey) compare(o minuteKey) int {
	return cmp.Or(cmp.Compare(k.device, o.device), cmp.Compare(k.minute, o.minute))
}

const sumOfMessages = `CAST(sum(accepted) AS BIGINT), CAST(sum(sent) AS BIGINT), CAST(sum(delivered) AS BIGINT),
	CAST(sum(failed) AS BIGINT), CAST(sum(received) AS BIGINT)`

// MessageSpans returns the counts of a workspace's messages from since on, span by span,
// oldest first. span is a whole number of hours and since is the start of one, or whole minutes: those of the last
// day are kept. Spans without messages are left out.
func (s Hours) MessageSpans(ctx context.Context, ws postern.WorkspaceID, since postern.Time,
	span time.Duration,
) (list []postern.MessageSpan, err error) {
	from := `hour - hour % CAST($3 AS BIGINT), ` + sumOfMessages + ` FROM message_hour WHERE workspace_id = $1 AND hour >= $2`
	if span < time.Hour {
		from = `minute - minute % CAST($3 AS BIGINT), ` + sumOfMessages + ` FROM message_minute
			WHERE device_id IN (SELECT id FROM device WHERE workspace_id = $1) AND minute >= $2`
	}
	return s.messageSpans(ctx, `SELECT `+from+` GROUP BY 1 ORDER BY 1`, ws, since, span.Milliseconds())
}

// DeviceSpans is MessageSpans for one device, of the last day.
func (s Hours) DeviceSpans(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, since postern.Time,
	span time.Duration,
) ([]postern.MessageSpan, error) {
	return s.messageSpans(ctx, `SELECT minute - minute % CAST($4 AS BIGINT), `+sumOfMessages+` FROM message_minute
		WHERE device_id = (SELECT id FROM device WHERE workspace_id = $1 AND id = $2) AND minute >= $3
		GROUP BY 1 ORDER BY 1`, ws, id, since, span.Milliseconds())
}

func (s Hours) messageSpans(ctx context.Context, query string, args ...any) (list []postern.MessageSpan, err error) {
	err = s.db.Rows(ctx, query, args, func(r *sql.Rows) error {
		var s postern.MessageSpan
		err := r.Scan(&s.Start, &s.Accepted, &s.Sent, &s.Delivered, &s.Failed, &s.Received)
		list = append(list, s)
		return err
	})
	return list, err
}

// AttemptSpans returns the counts of the attempts of all endpoints of a workspace, as
// MessageSpans does for messages. Spans may also be whole minutes: those of the last day are kept.
func (s Hours) AttemptSpans(ctx context.Context, ws postern.WorkspaceID, since postern.Time,
	span time.Duration,
) (list []postern.EndpointHour, err error) {
	grain := hourly
	if span < time.Hour {
		grain = minutely
	}
	err = s.db.Rows(ctx, `SELECT `+grain.start+` - `+grain.start+` % CAST($3 AS BIGINT), `+sumOfAttempts+`
		FROM `+grain.table+` WHERE endpoint_id IN (SELECT id FROM endpoint WHERE workspace_id = $1) AND `+grain.start+` >= $2
		GROUP BY 1 ORDER BY 1`, []any{ws, since, span.Milliseconds()}, func(r *sql.Rows) error {
		h, err := scanEndpointHour(r)
		list = append(list, h)
		return err
	})
	return list, err
}

// RemoveMessageHours deletes a chunk of the message counts of the hours before a time; more
// reports that there may be others.
func (s Hours) RemoveMessageHours(ctx context.Context, before postern.Time) (more bool, err error) {
	return s.remove(ctx, grain{"message_hour", "hour", hourMillis}, "workspace_id", before)
}

// RemoveMessageMinutes is RemoveMessageHours for minutes.
func (s Hours) RemoveMessageMinutes(ctx context.Context, before postern.Time) (more bool, err error) {
	return s.remove(ctx, grain{"message_minute", "minute", minuteMillis}, "device_id", before)
}

// remove deletes a chunk of a table of counts. It reads before it writes, so that the common
// case costs no write.
func (s Hours) remove(ctx context.Context, g grain, owner string, before postern.Time) (more bool, err error) {
	old, err := s.exists(ctx, `SELECT count(*) FROM (SELECT 1 AS one FROM `+g.table+` WHERE `+g.start+` < $1 LIMIT 1) AS old`,
		before)()
	if err != nil || !old {
		return false, err
	}
	key := owner + `, ` + g.start
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`DELETE FROM `+g.table+` WHERE (`+key+`) IN (SELECT `+key+`
			FROM `+g.table+` WHERE `+g.start+` < $1 LIMIT $2 + 0)`, before, purgeChunk)
		more = n == purgeChunk
		return err
	}))
	return more, err
}

// grain is a table of counts, and the length of its periods.
type grain struct {
	table, start string // start is the column with the start of the period
	length       postern.Time
}

// Attempts are counted by the hour, for as long as events are kept, and by the minute, for [KeptMinutes].
var (
	hourly   = grain{"endpoint_hour", "hour", hourMillis}
	minutely = grain{"endpoint_minute", "minute", minuteMillis}
)

// KeptMinutes is for how long the counts of a minute are kept.
const KeptMinutes = 25 * time.Hour

// attemptKey is what attempts are counted by.
type attemptKey struct {
	endpoint postern.EndpointID
	start    postern.Time
}

// attemptCount is the sum over the attempts of a period.
type attemptCount struct {
	succeeded, failed, exhausted, duration, slowest int64
	took                                            postern.Took
}

// row returns the count as a row of a grain's table.
func (c attemptCount) row(k attemptKey) []any {
	row := []any{k.endpoint, k.start, c.succeeded, c.failed, c.exhausted, c.duration, c.slowest}
	for _, n := range c.took {
		row = append(row, n)
	}
	return row
}

// attemptSums are the columns that are added up; a row has the slowest attempt besides.
var attemptSums = append([]string{"succeeded", "failed", "exhausted", "duration"}, tookColumns()...)

// attemptColumns are those of a grain's table but for the start, in the order of [attemptCount.row].
var (
	attemptColumns = `succeeded, failed, exhausted, duration, slowest, ` + strings.Join(tookColumns(), ", ")
	sumOfAttempts  = sumOf("succeeded", "failed", "exhausted", "duration") + ", max(slowest), " + sumOf(tookColumns()...)
)

func sumOf(columns ...string) string {
	return `CAST(sum(` + strings.Join(columns, `) AS BIGINT), CAST(sum(`) + `) AS BIGINT)`
}

func tookColumns() (names []string) {
	for i := range (postern.Took{}) {
		names = append(names, fmt.Sprint("took_", i))
	}
	return names
}

// add returns the statement that adds counts to those of the grain.
func (g grain) add() *db.Statement {
	columns, sums := `endpoint_id, `+g.start+`, `+attemptColumns, make([]string, len(attemptSums))
	for i, c := range attemptSums {
		sums[i] = c + ` = h.` + c + ` + excluded.` + c
	}
	return db.NewStatement(columns, `INSERT INTO `+g.table+` AS h (`+columns+`) @values
		ON CONFLICT (endpoint_id, `+g.start+`) DO UPDATE SET `+strings.Join(sums, ", ")+`,
		slowest = CASE WHEN excluded.slowest > h.slowest THEN excluded.slowest ELSE h.slowest END`)
}

var addAttemptHours, addAttemptMinutes = hourly.add(), minutely.add()

// attemptCounts counts attempts by the hour and by the minute, once for all attempts of an endpoint in a group.
//
// Single writer: ledger.
type attemptCounts struct{ hours, minutes map[attemptKey]attemptCount }

func newAttemptCounts() attemptCounts {
	return attemptCounts{map[attemptKey]attemptCount{}, map[attemptKey]attemptCount{}}
}

// Note counts an attempt.
func (c attemptCounts) Note(change any) {
	if o, is := change.(*Attempt); is {
		hourly.count(c.hours, o)
		minutely.count(c.minutes, o)
	}
}

func (g grain) count(counts map[attemptKey]attemptCount, o *Attempt) {
	key := attemptKey{o.EndpointID, o.At - o.At%g.length}
	c, took := counts[key], int64(o.Ended-o.At)
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
	c.took.Add(took)
	counts[key] = c
}

// Write adds what was counted.
func (c attemptCounts) Write(t *db.Tx) error {
	defer c.Discard()
	return errors.Join(t.Each(addAttemptHours, rowsOf(c.hours)), t.Each(addAttemptMinutes, rowsOf(c.minutes)))
}

func rowsOf(counts map[attemptKey]attemptCount) [][]any {
	rows := make([][]any, 0, len(counts))
	for _, k := range slices.SortedFunc(maps.Keys(counts), attemptKey.compare) {
		rows = append(rows, counts[k].row(k))
	}
	return rows
}

func (k attemptKey) compare(o attemptKey) int {
	return cmp.Or(cmp.Compare(k.endpoint, o.endpoint), cmp.Compare(k.start, o.start))
}

// Discard forgets what was counted.
func (c attemptCounts) Discard() {
	clear(c.hours)
	clear(c.minutes)
}

// OfEndpoint returns the counts of an endpoint's attempts in the hours that begin from
// since until before until, oldest first. Hours without attempts are left out.
func (s Hours) OfEndpoint(ctx context.Context, ws postern.WorkspaceID, id postern.EndpointID, since,
	until postern.Time,
) (list []postern.EndpointHour, err error) {
	err = s.db.Rows(ctx, `SELECT hour, `+attemptColumns+` FROM endpoint_hour
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
	into := []any{&h.Hour, &h.Succeeded, &h.Failed, &h.Exhausted, &duration, &h.MaxMs}
	for i := range h.Took {
		into = append(into, &h.Took[i])
	}
	err = r.Scan(into...)
	h.MeanMs = duration / max(h.Succeeded+h.Failed, 1)
	return h, err
}

// RemoveEndpointHours deletes a chunk of the attempt counts of the hours before a time;
// more reports that there may be others.
func (s Hours) RemoveEndpointHours(ctx context.Context, before postern.Time) (more bool, err error) {
	return s.remove(ctx, hourly, "endpoint_id", before)
}

// RemoveEndpointMinutes is RemoveEndpointHours for minutes.
func (s Hours) RemoveEndpointMinutes(ctx context.Context, before postern.Time) (more bool, err error) {
	return s.remove(ctx, minutely, "endpoint_id", before)
}
