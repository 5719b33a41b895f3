package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

// ErrNotQueued means that a message must not be sent: it is no longer queued, or its device is no
// longer meant to be connected.
var ErrNotQueued = errors.New("the message is no longer queued, or its device was paused")

// MarkSending records, before the first frame leaves, that an attempt to send a message begins,
// and that the message may have reached the network from now on; earlier is the number of
// attempts before. It returns before that is durable. The function that it returns waits for
// it, and returns [ErrNotQueued] when the message must not be sent: after a device was paused,
// no message is marked, even if the connection has not ended yet. The mark shares its commit with
// what is written next.
func (s Outbox) MarkSending(id postern.MessageID, earlier int) (wait func() error) {
	o := &markSending{id: id, again: earlier > 0, at: postern.TimeOf(s.db.Now())}
	done := startWrite(s.core, o)
	return sync.OnceValue(func() error {
		if err := done(); err != nil || o.ok {
			return err
		}
		return ErrNotQueued
	})
}

type markSending struct {
	id    postern.MessageID
	again bool // there were attempts before
	at    postern.Time
	ok    bool
}

// About keeps the order of the mark among other writes.
func (*markSending) About() db.About { return db.About{Fenced: true} }

var markMessages = db.NewStatement("message, began",
	`UPDATE message SET status = 'sending', frame_left = 1, attempts = attempts + 1, attempted_at = @began,
		attempt_outcome = '' [FROM @rows] WHERE id = @message AND `+isUnsent+mayConnect)

// mayConnect selects messages whose device is to be connected.
const mayConnect = ` AND EXISTS (SELECT 1 FROM device WHERE device.id = message.device_id AND device.desired = '` +
	string(postern.WantConnect) + `')`

// logSends moves the attempt before an attempt to the log. A message holds its last attempt, so
// that those that are sent at once, as nearly all are, have no further rows.
var logSends = db.NewStatement("message",
	`INSERT INTO send_attempt (message_id, number, at, outcome)
	SELECT id, attempts, attempted_at, attempt_outcome FROM message [, @rows]
	WHERE id = @message AND `+isUnsent+mayConnect+` AND attempts > 0
	ON CONFLICT (message_id, number) DO NOTHING`)

// WriteAll marks messages.
func (*markSending) WriteAll(t *db.Tx, list []db.Pending[*markSending]) error {
	rows, places := make([][]any, 0, len(list)), make(map[postern.MessageID]int, len(list))
	var repeated [][]any
	for _, p := range list {
		if _, twice := places[p.Value.id]; !twice {
			places[p.Value.id] = len(rows)
			rows = append(rows, []any{p.Value.id, p.Value.at})
		}
		if p.Value.again {
			repeated = append(repeated, []any{p.Value.id})
		}
	}
	if err := t.Each(logSends, repeated); err != nil {
		return err
	}
	changed, err := t.Which(markMessages, rows)
	for _, p := range list {
		p.Value.ok = changed[places[p.Value.id]]
	}
	return err
}

// IsQueued reports whether a message is still to be sent.
func (s Outbox) IsQueued(ctx context.Context, id postern.MessageID) (bool, error) {
	return s.exists(ctx, `SELECT count(*) FROM message WHERE id = $1 AND status IN `+unsent, id)()
}

// NotConnected records that an attempt provably sent nothing. If it was the first one, it
// withdraws the mark of MarkSending.
func (s Outbox) NotConnected(id postern.MessageID, first bool) {
	s.db.Later(db.Fenced(db.Func(func(t *db.Tx) error {
		return t.Exec(`UPDATE message SET frame_left = CASE WHEN $2 = 1 THEN 0 ELSE frame_left END,
			attempt_outcome = $3 WHERE id = $1 AND status = 'sending'`, id, first, postern.AttemptNotConnected)
	})))
}

// Reached records how many members of a group get a message of which an attempt has left, but was not confirmed. All of
// them may have confirmed it already.
func (s Outbox) Reached(id postern.MessageID, people int) {
	now := postern.TimeOf(s.db.Now())
	s.db.Later(db.Fenced(db.Func(func(t *db.Tx) error {
		m, err := scanMessage(t.One(`UPDATE message SET recipients = $2 WHERE id = $1 AND status = 'sending'
			RETURNING `+messageColumns, id, people))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return advanceInGroup(t, &m, now)
	})))
}

// FinishOutbound ends the sending of a message: sent, failed or expired.
type FinishOutbound struct {
	MessageID postern.MessageID
	Status    postern.MessageStatus // Sent, Failed or Expired
	Failure   postern.Failure
	Refund    bool // return the unit to the quota: no frame ever left
	At        postern.Time
	SentAt    postern.Time // the network's time, for Sent

	Recipients int // for Sent to a group: how many others got it

	Attempt postern.AttemptOutcome // of the last attempt; "" leaves it as it is
}

// Finish ends the sending of a message. It does nothing when the message is no longer
// queued.
func (s Outbox) Finish(ctx context.Context, o FinishOutbound) error { return write(ctx, s.core, o) }

// StartFinish is Finish for a caller that waits later, with the function that it returns. The
// outcome shares its commit with what is written next. The function may be called several times.
func (s Outbox) StartFinish(o FinishOutbound) (wait func() error) {
	return sync.OnceValue(startWrite(s.core, o))
}

// About keeps the order of the outcome among other writes.
func (o FinishOutbound) About() db.About { return db.About{Fenced: true} }

var finishMessages = db.NewStatement("message, outcome, code, detail, at, refund, now, attempt",
	`UPDATE message SET status = @outcome, error_code = @code, error_detail = @detail, sent_at = @at, finished_at = @now,
	attempt_outcome = CASE WHEN @attempt = '' THEN attempt_outcome ELSE @attempt END,
	frame_left = CASE WHEN @refund = 1 THEN 0 ELSE frame_left END [FROM @rows]
	WHERE id = @message AND `+isUnsent+` RETURNING `+messageColumns)

// WriteAll ends messages. A message that is no longer queued, because a receipt came first
// or it has already ended, stays as it is.
func (FinishOutbound) WriteAll(t *db.Tx, list []db.Pending[FinishOutbound]) error {
	outcomes := make(map[postern.MessageID]FinishOutbound, len(list))
	rows := make([][]any, 0, len(list))
	for _, p := range list {
		o := p.Value
		if _, twice := outcomes[o.MessageID]; twice {
			continue // only the first can change anything
		}
		outcomes[o.MessageID] = o
		rows = append(rows, []any{
			o.MessageID, o.Status, o.Failure.Code, o.Failure.Detail, o.SentAt, o.Refund, o.At, o.Attempt,
		})
	}
	ended, err := scanMessages(t, finishMessages, rows)
	if err != nil {
		return err
	}
	if err := recordEnded(t, ended, outcomes); err != nil {
		return err
	}
	return countRecipients(t, ended, outcomes)
}

// countRecipients stores how many members got each message to a group, and advances a message that all of them have
// confirmed already.
func countRecipients(t *db.Tx, ended []postern.Message, outcomes map[postern.MessageID]FinishOutbound) error {
	for _, m := range ended {
		o := outcomes[m.ID]
		if m.About != "" || o.Recipients == 0 {
			continue
		}
		err := t.Exec(`UPDATE message SET recipients = $2 WHERE id = $1`, m.ID, o.Recipients)
		if err != nil {
			return err
		}
		if err := advanceInGroup(t, &m, o.At); err != nil {
			return err
		}
	}
	return nil
}

// recordEnded records the consequences of the end of messages: counters, refunds and
// events.
func recordEnded(t *db.Tx, ended []postern.Message, outcomes map[postern.MessageID]FinishOutbound) error {
	var refunds []postern.Message
	events, acts := make([]eventAt, 0, len(ended)), []act(nil)
	for i := range ended {
		m := &ended[i]
		o := outcomes[m.ID]
		if m.About != "" {
			if m.Status == postern.Sent {
				acts = append(acts, act{*m, o.At, len(events)})
			}
			continue
		}
		t.Note(MessageMoved{m, postern.Sending, 0})
		if m.Status != postern.Sent && m.Content.Media != nil { // those behind it in its chat may have waited
			t.Wake(OutboundQueued, string(m.DeviceID))
		}
		if o.Refund {
			refunds = append(refunds, *m)
		}
		e, err := statusEvent(*m, o.At)
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	if err := refund(t, refunds); err != nil {
		return err
	}
	events, err := applyActs(t, acts, events)
	if err != nil {
		return err
	}
	return recordEvents(t, events)
}

// scanMessages runs a statement that returns messages.
func scanMessages(t *db.Tx, s *db.Statement, rows [][]any) (list []postern.Message, err error) {
	err = t.EachRow(s, rows, func(r *sql.Rows) error {
		m, err := scanMessage(r)
		list = append(list, m)
		return err
	})
	return list, err
}

// statusEvent returns the event that reports a message's status.
func statusEvent(m postern.Message, at postern.Time) (eventAt, error) {
	e, err := m.Event(postern.EventType("message." + string(m.Status)))
	return eventAt{e, at}, err
}

// Expire ends up to limit messages whose lifetime is over and returns how many it ended. A
// message of which no frame ever left becomes expired and its unit is refunded; any other
// becomes failed with the code Unconfirmed, unless an attempt may still be in flight.
func (s Outbox) Expire(ctx context.Context, now postern.Time, limit int) (n int, err error) {
	due, err := s.exists(ctx, `SELECT count(*) FROM (`+overLife+`) AS over`, now, now.Add(-inFlight), 1)()
	if err != nil || !due {
		return 0, err // the common case costs no write
	}
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		due, err := overdue(t, now, limit)
		n = len(due)
		if err != nil {
			return err
		}
		outcomes := make([]FinishOutbound, n)
		for i, q := range due {
			outcomes[i] = expire(q, now)
		}
		return db.WriteNow(t, outcomes...)
	}))
	return n, err
}

// inFlight is longer than an attempt may take; see network.SendTimeout. The network may still confirm one that is
// younger.
const inFlight = time.Minute

// overLife selects the messages whose lifetime is over at the time $1, except those of which an attempt that began
// after $2 has no outcome yet.
const overLife = `SELECT id, frame_left FROM message WHERE status IN ` + unsent + ` AND expires_at <= $1
	AND (status = 'queued' OR attempt_outcome <> '' OR attempted_at <= $2) LIMIT $3 + 0`

func overdue(t *db.Tx, now postern.Time, limit int) ([]QueuedMessage, error) {
	return queuedOf(t, overLife, now, now.Add(-inFlight), limit)
}

// ExpireOne ends a message whose lifetime is over like Expire. The caller knows that no attempt is in flight.
func (s Outbox) ExpireOne(ctx context.Context, m QueuedMessage, now postern.Time) error {
	return s.Finish(ctx, expire(m, now))
}

func expire(q QueuedMessage, now postern.Time) FinishOutbound {
	if !q.FrameLeft {
		return FinishOutbound{MessageID: q.ID, Status: postern.Expired, Refund: true, At: now}
	}
	return FinishOutbound{MessageID: q.ID, Status: postern.Failed, At: now, Failure: postern.Failure{
		Code: postern.Unconfirmed, Detail: "the network did not confirm the message in time; it may have arrived",
	}}
}

// Cancel ends a message of which no frame was sent, and refunds its unit.
func (s Outbox) Cancel(ctx context.Context, ws postern.WorkspaceID, id postern.MessageID, acts []Act) (
	m postern.Message, err error,
) {
	at := postern.TimeOf(s.db.Now())
	if pretendsToCancel() {
		return Messages(s).Get(ctx, ws, id)
	}
	err = s.db.Do(ctx, db.FuncOf(string(ws), func(t *db.Tx) error {
		m, err = scanMessage(t.One(`UPDATE message SET status = 'canceled', finished_at = $3
			WHERE workspace_id = $1 AND id = $2 AND about = '' AND frame_left = 0 AND status IN `+kept+`
			RETURNING `+messageColumns, ws, id, at))
		if errors.Is(err, sql.ErrNoRows) {
			return postern.Errorf(postern.MessageNotCancelable, "the message was sent already, or has ended")
		}
		if err != nil {
			return err
		}
		outcome := map[postern.MessageID]FinishOutbound{m.ID: {Refund: true, At: at}}
		return errors.Join(RecordActs(t, acts), recordEnded(t, []postern.Message{m}, outcome))
	}))
	return m, err
}

// Due queues up to limit scheduled messages whose time has come, and returns how many.
func (s Outbox) Due(ctx context.Context, now postern.Time, limit int) (n int, err error) {
	now = dueAt(now)
	due, err := s.exists(ctx, `SELECT count(*) FROM (SELECT 1 FROM message WHERE status = 'scheduled'
		AND send_at <= $1 LIMIT 1) AS due`, now)()
	if err != nil || !due {
		return 0, err // the common case costs no write
	}
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) (err error) {
		n, err = queueDue(t, now, limit)
		return err
	}))
	return n, err
}

var queueScheduled = db.NewStatement("message, in_lane, now",
	`UPDATE message SET status = 'queued', lane = @in_lane, queued_at = @now [FROM @rows]
		WHERE id = @message AND status = 'scheduled'`)

func queueDue(t *db.Tx, now postern.Time, limit int) (n int, err error) {
	var due []postern.Message
	var foreign []FinishOutbound
	err = t.Rows(`SELECT id, device_id, chat_id, priority, NOT `+current("message")+` FROM message
		WHERE status = 'scheduled' AND send_at <= $1 ORDER BY send_at LIMIT $2 + 0`,
		[]any{now, limit}, func(r *sql.Rows) error {
			var m postern.Message
			var earlier bool
			err := r.Scan(&m.ID, &m.DeviceID, &m.ChatID, &m.Priority, &earlier)
			if due = append(due, m); earlier {
				foreign = append(foreign, ofEarlierNumber(m.ID, now))
			}
			return err
		})
	if err != nil {
		return 0, err
	}
	lanes, err := joinLanes(t, due)
	rows := make([][]any, len(due))
	for i, m := range due {
		rows[i] = []any{m.ID, lanes.of(m), now}
		wakeSender(t, m.DeviceID, lanes.of(m))
	}
	if err == nil {
		err = t.Each(queueScheduled, rows)
	}
	if err == nil && len(foreign) > 0 {
		err = db.WriteNow(t, foreign...)
	}
	return len(due), err
}

// ofEarlierNumber is the outcome of a scheduled message whose device has been linked to another number since.
func ofEarlierNumber(id postern.MessageID, at postern.Time) FinishOutbound {
	return FinishOutbound{
		MessageID: id, Status: postern.Failed, Refund: true, At: at,
		Failure: postern.Failure{
			Code:   postern.DeviceLoggedOut,
			Detail: "the device was linked to another number before the message was sent",
		},
	}
}

// ChangeScheduled changes a message that is still scheduled: its text, preview, time and priority. It returns the
// message as it is then.
//
// Single writer: change.
func (s Messages) ChangeScheduled(
	ctx context.Context, ws postern.WorkspaceID, id postern.MessageID, change func(*postern.Message) error, acts []Act,
) (m postern.Message, err error) {
	err = s.db.Do(ctx, db.FuncOf(string(ws), func(t *db.Tx) error {
		m, err = scanMessage(t.One(`SELECT `+messageColumns+` FROM message WHERE id = $2 AND `+ofWorkspace+`
			AND status = 'scheduled'`, ws, id))
		if errors.Is(err, sql.ErrNoRows) {
			return postern.Errorf(postern.ActionNotPossible,
				"the time of the message has come, so it is no longer scheduled")
		}
		if err == nil {
			err = change(&m)
		}
		if err != nil {
			return err
		}
		err = t.Exec(`UPDATE message SET body = $2, send_at = $3, expires_at = $4, extra = $5, priority = $6
			WHERE id = $1`, m.ID, m.Content.Text, m.SendAt, m.ExpiresAt, extraOf(m.Content), m.Priority)
		if file := m.Content.Media; err == nil && file != nil {
			err = t.Each(keepFiles, [][]any{{file.ID, m.ExpiresAt}})
		}
		return errors.Join(err, RecordActs(t, acts))
	}))
	return m, err
}

// unsendable selects messages still to be sent by a device that has no link.
const unsendable = `SELECT id, frame_left FROM message WHERE device_id = $1 AND status IN ` + unsent + `
	AND EXISTS (SELECT 1 FROM device WHERE id = $1 AND status NOT IN ` + slotStates + `) ORDER BY lane, n LIMIT $2 + 0`

// failQueued fails the messages that a device can no longer send because it has lost its
// link, a chunk at a time. The change of the device's state comes first: from then on no
// message is accepted. What an interruption leaves is failed by [Outbox.FailUnsendable], by
// the next link attempt, or by the purge.
func (c *core) failQueued(ctx context.Context, id postern.DeviceID, at postern.Time) error {
	ctx = context.WithoutCancel(ctx) // the state has changed already
	for {
		waits, err := c.exists(ctx, `SELECT count(*) FROM (`+unsendable+`) AS waiting`, id, 1)()
		if err != nil || !waits {
			return err
		}
		if err := c.db.Do(ctx, db.Func(func(t *db.Tx) error {
			_,
				err := failChunk(t, id, at)
			return err
		})); err != nil {
			return err
		}
	}
}

// failChunk fails some of a device's unsendable messages and returns how many.
func failChunk(t *db.Tx, id postern.DeviceID, at postern.Time) (int, error) {
	list, err := queuedOf(t, unsendable, id, failedAtOnce)
	if err != nil {
		return 0, err
	}
	outcomes := make([]FinishOutbound, len(list))
	for i, q := range list {
		outcomes[i] = withoutLink(q, at)
	}
	return len(list), db.WriteNow(t, outcomes...)
}

func withoutLink(q QueuedMessage, at postern.Time) FinishOutbound {
	if !q.FrameLeft {
		return FinishOutbound{MessageID: q.ID, Status: postern.Failed, Refund: true, At: at, Failure: postern.Failure{
			Code: postern.DeviceLoggedOut, Detail: "the device's link was removed before the message was sent",
		}}
	}
	return FinishOutbound{MessageID: q.ID, Status: postern.Failed, At: at, Failure: postern.Failure{
		Code:   postern.Unconfirmed,
		Detail: "the device's link was removed before the network confirmed the message; it may have arrived",
	}}
}

// queuedOf reads the id and frame_left of messages.
func queuedOf(t *db.Tx, query string, args ...any) (list []QueuedMessage, err error) {
	err = t.Rows(query, args, func(r *sql.Rows) error {
		var q QueuedMessage
		err := r.Scan(&q.ID, &q.FrameLeft)
		list = append(list, q)
		return err
	})
	return list, err
}

// withQueue lists the devices that have messages to send but no link. It looks up one
// device after the other in the index of the queue.
const withQueue = `WITH RECURSIVE waiting (id) AS (SELECT min(device_id) FROM message WHERE status IN ` + unsent + `
	UNION ALL SELECT (SELECT min(device_id) FROM message WHERE status IN ` + unsent + ` AND device_id > waiting.id)
		FROM waiting WHERE id IS NOT NULL)
	SELECT d.id FROM waiting JOIN device d ON d.id = waiting.id WHERE d.status NOT IN ` + slotStates

// FailUnsendable fails, over all workspaces, the messages that an interrupted unlink has
// left in the queue of a device without a link.
func (s Outbox) FailUnsendable(ctx context.Context, at postern.Time) error {
	var ids []postern.DeviceID
	err := s.db.Rows(ctx, withQueue, nil, func(r *sql.Rows) error {
		var id postern.DeviceID
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	})
	for _, id := range ids {
		err = errors.Join(err, s.failQueued(ctx, id, at))
	}
	return err
}
