package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

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

// Receipt is the network's report of how far an outbound message got.
type Receipt struct {
	WorkspaceID postern.WorkspaceID // of the device
	DeviceID    postern.DeviceID
	NetworkID   string
	Chats       []string              // the chats that the receipt may be for
	Member      string                // who confirms in a group: "lid:" and digits, or a number; "" in a direct chat
	Number      string                // of the member; "" while the network hides it
	Status      postern.MessageStatus // Delivered, Read or Played
	At          postern.Time          // the network's time
	Now         postern.Time
}

// RecordReceipts advances outbound messages to the statuses that receipts report. Receipts
// for unknown messages, and from anyone but the recipient, are ignored.
func (s Messages) RecordReceipts(ctx context.Context, list []Receipt) error {
	return write(ctx, s.core, receipts(list))
}

// receipts are the receipts of one report of the network to a device.
type receipts []Receipt

// About lets workspaces take turns, because many devices may get receipts at once.
func (list receipts) About() db.About {
	if len(list) == 0 {
		return db.About{Fenced: true}
	}
	return db.About{Workspace: string(list[0].WorkspaceID), Urgency: db.Fair, Fenced: true}
}

// WriteAll advances messages in the order of the receipts.
//
// Single writer: change. saveMoved does not check the status that readSent has read.
func (receipts) WriteAll(t *db.Tx, list []db.Pending[receipts]) error {
	var all receipts
	for _, p := range list {
		all = append(all, p.Value...)
	}
	messages, err := all.messages(t)
	if err != nil {
		return err
	}
	before := make(map[*postern.Message]postern.MessageStatus, len(messages))
	left := countdown{t, map[postern.MessageID]int{}}
	var events []eventAt
	for _, o := range all {
		m := messages[sentAs{o.DeviceID, db.Clean(o.NetworkID)}]
		if m == nil {
			continue // not sent by Postern
		}
		if its, err := o.isFor(t, m); err != nil {
			return err
		} else if !its {
			continue // sent to somebody else
		}
		was := m.Status
		steps, err := o.apply(left, m)
		if err != nil {
			return err
		}
		if _, known := before[m]; !known && len(steps) > 0 {
			before[m] = was
		}
		events = append(events, steps...)
	}
	if err := errors.Join(left.save(), saveMoved(t, before)); err != nil {
		return err
	}
	return recordEvents(t, events)
}

// isFor reports whether the receipt is for the chat of a message, or for the chat of which that is about to become a part.
func (o Receipt) isFor(t *db.Tx, m *postern.Message) (bool, error) {
	if slices.Contains(o.Chats, m.ChatID) {
		return true, nil
	}
	var to string
	err := t.Row(`SELECT to_chat FROM chat_join WHERE device_id = $1 AND from_chat = $2`, []any{m.DeviceID, m.ChatID}, &to)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return slices.Contains(o.Chats, to), err
}

// countdown knows how many recipients of messages to groups have not confirmed the next status. So the receipts of a
// message are counted once for each status, and not at each of them.
type countdown struct {
	t    *db.Tx
	left map[postern.MessageID]int
}

const readLeft = `SELECT coalesce((SELECT receipts FROM receipt_left WHERE message_id = $1), 0)`

// isDue takes a recipient into account who has confirmed the next status, and reports whether all are to be counted.
func (c countdown) isDue(id postern.MessageID) (bool, error) {
	left, known := c.left[id]
	if !known {
		if err := c.t.Row(readLeft, []any{id}, &left); err != nil {
			return false, err
		}
	}
	c.left[id] = left - 1
	return left <= 1, nil
}

const writeLeft = `INSERT INTO receipt_left (message_id, receipts) VALUES ($1, $2)
	ON CONFLICT (message_id) DO UPDATE SET receipts = excluded.receipts`

func (c countdown) save() error {
	for id, left := range c.left {
		if err := c.t.Exec(writeLeft, id, max(left, 0)); err != nil {
			return err
		}
	}
	return nil
}

var saveReceipts = db.NewStatement("message, reached, sent, delivered, read, played",
	`UPDATE message SET status = @reached, error_code = '', error_detail = '', sent_at = @sent, delivered_at = @delivered,
		read_at = @read, played_at = @played
	[FROM @rows] WHERE id = @message`)

// saveMoved writes messages whose status changed; the map holds the previous status.
func saveMoved(t *db.Tx, moved map[*postern.Message]postern.MessageStatus) error {
	rows := make([][]any, 0, len(moved))
	for m, from := range moved {
		t.Note(MessageMoved{m, from, 0})
		rows = append(rows, []any{m.ID, m.Status, m.SentAt, m.DeliveredAt, m.ReadAt, m.PlayedAt})
	}
	return t.Each(saveReceipts, rows)
}

// sentAs identifies a message of a device by its network id.
type sentAs struct {
	device    postern.DeviceID
	networkID string
}

var readSent = db.NewStatement("device, network",
	`SELECT `+messageColumns+` FROM message [, @rows] WHERE device_id = @device AND network_id = @network AND sender = ''
		AND about = '' AND `+current("message"))

func (list receipts) messages(t *db.Tx) (map[sentAs]*postern.Message, error) {
	rows := make([][]any, len(list))
	for i, o := range list {
		rows[i] = []any{o.DeviceID, o.NetworkID}
	}
	found, err := scanMessages(t, readSent, rows)
	messages := make(map[sentAs]*postern.Message, len(found))
	for i, m := range found {
		key := sentAs{m.DeviceID, m.NetworkID}
		if messages[key] == nil {
			messages[key] = &found[i]
		}
	}
	return messages, err
}

// apply records the receipt. In a group, a message has the status that all recipients have confirmed.
func (o Receipt) apply(c countdown, m *postern.Message) (events []eventAt, err error) {
	if o.Member == "" {
		return o.move(m)
	}
	isNews, err := o.isNews(c.t, m)
	if err != nil {
		return nil, err
	}
	err = c.t.Exec(recordReceipt, m.ID, o.Member, o.Number, o.At, o.has(postern.Read), o.has(postern.Played))
	if err != nil || !isNews {
		return nil, err
	}
	if due, err := c.isDue(m.ID); !due {
		return nil, err
	}
	o.Status, c.left[m.ID], err = confirmedByAll(c.t, m.ID)
	if err != nil || o.Status == "" {
		return nil, err
	}
	return o.move(m)
}

// isNews reports whether it is the first receipt by which a member confirms the next status of a message.
func (o Receipt) isNews(t *db.Tx, m *postern.Message) (bool, error) {
	var read, played postern.Time
	err := t.Row(`SELECT read_at, played_at FROM receipt WHERE message_id = $1 AND member = $2`, []any{m.ID, o.Member},
		&read, &played)
	known := !errors.Is(err, sql.ErrNoRows)
	if err != nil && known {
		return false, err
	}
	switch {
	case m.Status.Rank() < postern.Delivered.Rank():
		return !known, nil
	case m.Status == postern.Delivered:
		return o.has(postern.Read) != 0 && read == 0, nil
	}
	return o.has(postern.Played) != 0 && played == 0, nil
}

// has returns the time of a status if the receipt includes it, and 0 otherwise.
func (o Receipt) has(s postern.MessageStatus) postern.Time {
	if o.Status.Rank() < s.Rank() {
		return 0
	}
	return o.At
}

// recordReceipt keeps the first time of each status.
const recordReceipt = `INSERT INTO receipt (message_id, member, number, delivered_at, read_at, played_at)
	VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (message_id, member) DO UPDATE SET
	number = CASE WHEN excluded.number = '' THEN receipt.number ELSE excluded.number END,
	read_at = CASE WHEN receipt.read_at = 0 THEN excluded.read_at ELSE receipt.read_at END,
	played_at = CASE WHEN receipt.played_at = 0 THEN excluded.played_at ELSE receipt.played_at END`

// confirmedByAll returns the furthest status that all recipients of a message to a group have confirmed; "" for none,
// and before it is known who they are. left is how many have not confirmed the status after it.
func confirmedByAll(t *db.Tx, id postern.MessageID) (s postern.MessageStatus, left int, err error) {
	var all, delivered, read, played int
	err = t.Row(`SELECT (SELECT recipients FROM message WHERE id = $1), count(*),
		coalesce(sum(CASE WHEN read_at > 0 THEN 1 ELSE 0 END), 0),
		coalesce(sum(CASE WHEN played_at > 0 THEN 1 ELSE 0 END), 0)
		FROM receipt WHERE message_id = $1`, []any{id}, &all, &delivered, &read, &played)
	switch {
	case err != nil || all == 0:
		return "", 0, err
	case delivered < all:
		return "", all - delivered, nil
	case played >= all:
		return postern.Played, all, nil
	case read >= all:
		return postern.Read, all - played, nil
	}
	return postern.Delivered, all - read, nil
}

// advanceInGroup gives a message to a group the status that all recipients have confirmed.
func advanceInGroup(t *db.Tx, m *postern.Message, at postern.Time) error {
	status, left, err := confirmedByAll(t, m.ID)
	if err == nil {
		err = countdown{t, map[postern.MessageID]int{m.ID: left}}.save()
	}
	if err != nil || status == "" {
		return err
	}
	was := m.Status
	events, err := Receipt{Status: status, At: at, Now: at}.move(m)
	if err != nil || len(events) == 0 {
		return err
	}
	return errors.Join(saveMoved(t, map[*postern.Message]postern.MessageStatus{m: was}), recordEvents(t, events))
}

// move advances the message one status at a time, so that each status has its event even
// when the network skipped one.
func (o Receipt) move(m *postern.Message) (events []eventAt, err error) {
	if !movable(*m) {
		return nil, nil
	}
	steps := []postern.MessageStatus{postern.Sent, postern.Delivered, postern.Read, postern.Played}
	for _, s := range steps[:slices.Index(steps, o.Status)+1] {
		if m.Status.Rank() >= s.Rank() {
			continue
		}
		*m = o.step(*m, s)
		e, err := statusEvent(*m, o.Now)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// movable reports whether a receipt may still change the message. Of the messages that have
// ended, only one that failed as unconfirmed can change.
func movable(m postern.Message) bool {
	if m.Source != postern.FromAPI {
		return false
	}
	return m.Status.Rank() > 0 || m.Status == postern.Failed && m.Error != nil && m.Error.Code == postern.Unconfirmed
}

// step returns the message with its next status, and with the times of statuses that the
// network skipped.
func (o Receipt) step(m postern.Message, s postern.MessageStatus) postern.Message {
	m.Status, m.Error = s, nil
	m.SentAt = cmp.Or(m.SentAt, o.At)
	if s.Rank() >= postern.Delivered.Rank() {
		m.DeliveredAt = cmp.Or(m.DeliveredAt, o.At)
	}
	if s.Rank() >= postern.Read.Rank() {
		m.ReadAt = cmp.Or(m.ReadAt, o.At)
	}
	if s == postern.Played {
		m.PlayedAt = cmp.Or(m.PlayedAt, o.At)
	}
	return m
}

// InChat returns the message of a chat with a network id, under the present number of the device; ok is false when no
// message has it. Another chat with the same person counts as the chat while messages move from one to the other.
func (s Messages) InChat(ctx context.Context, device postern.DeviceID,
	chat, networkID string,
) (m postern.Message, ok bool, err error) {
	m, err = s.inChat(ctx, device, chat, networkID)
	if errors.Is(err, sql.ErrNoRows) {
		m, err = s.inJoined(ctx, device, chat, networkID)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	return m, err == nil, err
}

func (s Messages) inChat(
	ctx context.Context, device postern.DeviceID, chat, networkID string,
) (postern.Message, error) {
	return scanMessage(s.db.One(ctx, `SELECT `+messageColumns+` FROM message WHERE device_id = $1 AND network_id = $2
		AND chat_id || '' = $3 AND about = '' AND NOT `+erased("message")+` AND `+current("message"), device, networkID, chat))
}

func (s Messages) inJoined(
	ctx context.Context, device postern.DeviceID, chat, networkID string,
) (m postern.Message, err error) {
	var other string
	if err = s.db.Row(ctx, joinedChat, []any{device, chat}, &other); err != nil {
		return m, err
	}
	return s.inChat(ctx, device, other, networkID)
}

// Oldest returns the oldest message of a chat that its phone knows; ok is false if there is none.
func (s Messages) Oldest(
	ctx context.Context, ws postern.WorkspaceID, device postern.DeviceID, chat string,
) (m postern.Message, ok bool, err error) {
	for direction, statuses := range map[string]string{
		postern.Inbound: `('received')`, postern.Outbound: `('sent', 'delivered', 'read', 'played')`,
	} {
		found, err := scanMessage(s.db.One(ctx, `SELECT `+messageColumns+` FROM message WHERE device_id = $1
			AND chat_id = $2 AND direction = $3 AND workspace_id = $4 AND about = '' AND type <> 'call'
			AND status IN `+statuses+` AND `+current("message")+` ORDER BY created_at LIMIT 1`, device, chat, direction, ws))
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return m, false, err
		case !ok || found.CreatedAt < m.CreatedAt:
			m, ok = found, true
		}
	}
	return m, ok, nil
}

// ByNetworkID returns the message that a device sent under its present number with a
// network id; ok is false when no message has it.
func (s Messages) ByNetworkID(ctx context.Context, device postern.DeviceID,
	networkID string,
) (m postern.Message, ok bool, err error) {
	m, err = scanMessage(s.db.One(ctx, `SELECT `+messageColumns+` FROM message WHERE device_id = $1 AND network_id = $2
		AND sender = '' AND direction = 'outbound' AND NOT `+erased("message")+` AND `+current("message"), device, networkID))
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	return m, err == nil, err
}
