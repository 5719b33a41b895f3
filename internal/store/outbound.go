package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"postern/internal/postern"
)

// QueuedMessage is a message to send and whether an earlier attempt may have
// reached the network.
type QueuedMessage struct {
	postern.Message
	FrameLeft bool
}

// Next gives the oldest messages that a device still has to send.
func (s Outbox) Next(ctx context.Context, device postern.DeviceID, limit int) ([]QueuedMessage, error) {
	return s.queued(ctx, ``, device, limit)
}

// queued reads those for which more holds; the parameters are the
// device, the limit, and what more says.
func (s Outbox) queued(ctx context.Context, more string, args ...any) (list []QueuedMessage, err error) {
	err = s.db.rows(ctx, `SELECT `+messageColumns+`, frame_left FROM message m WHERE device_id = $1 AND status IN ('queued', 'sending')`+more+` ORDER BY n LIMIT $2 + 0`, args, func(r *sql.Rows) error {
		var q QueuedMessage
		m, err := scanMessage(withTail{r, []any{&q.FrameLeft}})
		q.Message = m
		list = append(list, q)
		return err
	})
	return list, err
}

// ChatKind is what is known of a queued message and the chat that it goes to.
type ChatKind string

// The kinds: the message itself may have left before; of the others, those to a
// chat from which an inbound message came lately, in which there is some message,
// and in which there is none that reached or may have reached the network.
const (
	Repeating ChatKind = "repeating"
	Answering ChatKind = "answering"
	Known     ChatKind = "known"
	Fresh     ChatKind = "fresh"
)

func wroteLately() string {
	return `EXISTS (SELECT 1 FROM message i WHERE i.device_id = m.device_id AND i.chat_id = m.chat_id AND i.direction = 'inbound' AND i.created_at > $3 AND ` + current("i") + `)`
}

func hasMessages() string {
	return `EXISTS (SELECT 1 FROM message o WHERE o.device_id = m.device_id AND o.chat_id = m.chat_id AND (o.frame_left = 1 OR o.status IN ('received', 'sent', 'delivered', 'read')) AND ` + current("o") + `)`
}

// NextOf gives the oldest messages of a kind that a device still has to
// send; since says what is lately.
func (s Outbox) NextOf(ctx context.Context, device postern.DeviceID, kind ChatKind, since postern.Time, limit int) ([]QueuedMessage, error) {
	if kind == Repeating {
		return s.queued(ctx, ` AND m.frame_left = 1`, device, limit)
	}
	where := map[ChatKind]string{
		Answering: wroteLately(),
		Known:     `NOT ` + wroteLately() + ` AND ` + hasMessages(),
		Fresh:     `NOT ` + wroteLately() + ` AND NOT ` + hasMessages(),
	}[kind]
	return s.queued(ctx, ` AND m.frame_left = 0 AND `+where, device, limit, since)
}

// MarkSending notes, before the first frame leaves, that a message may from
// now on have reached the network. ok is false when it is no longer queued.
func (s Outbox) MarkSending(ctx context.Context, id postern.MessageID) (ok bool, err error) {
	o := &markSending{id: id}
	err = s.db.do(ctx, o)
	return o.ok, err
}

type markSending struct {
	id postern.MessageID
	ok bool
}

func (o *markSending) apply(t *tx) error {
	n, err := t.changed(`UPDATE message SET status = 'sending', frame_left = 1 WHERE id = $1 AND status IN ('queued', 'sending')`, o.id)
	o.ok = n == 1
	return err
}

func (*markSending) applyAll(t *tx, list []pending) (rest []pending, err error) { //nolint:unparam // as batch asks
	values := make([][]any, len(list))
	for i, p := range list {
		values[i] = []any{p.op.(*markSending).id} //nolint:errcheck,forcetypeassert // a list of one kind
	}
	from, args := table("id", values)
	marked := map[postern.MessageID]bool{}
	err = t.rows(`UPDATE message AS m SET status = 'sending', frame_left = 1 FROM `+from+` WHERE m.id = u.id AND m.status IN ('queued', 'sending') RETURNING m.id`, args, func(r *sql.Rows) error {
		var id postern.MessageID
		err := r.Scan(&id)
		marked[id] = true
		return err
	})
	for _, p := range list {
		o := p.op.(*markSending) //nolint:errcheck,forcetypeassert // as above
		o.ok = marked[o.id]
	}
	return nil, err
}

// NoFrameLeft takes MarkSending's note back when the first attempt provably
// sent nothing.
func (s Outbox) NoFrameLeft(id postern.MessageID) {
	s.db.writer.later(opFunc(func(t *tx) error {
		return t.exec(`UPDATE message SET frame_left = 0 WHERE id = $1 AND status = 'sending'`, id)
	}))
}

// FinishOutbound ends the sending of a message: sent, failed or expired.
type FinishOutbound struct {
	MessageID postern.MessageID
	Status    postern.MessageStatus // Sent, Failed or Expired
	Failure   postern.Failure
	Refund    bool // no frame ever left
	At        postern.Time
	SentAt    postern.Time // the network's time, for Sent
}

func (o FinishOutbound) apply(t *tx) error {
	m, err := t.updateMessage(`UPDATE message SET status = $2, error_code = $3, error_detail = $4, sent_at = $5, frame_left = CASE WHEN $6 = 1 THEN 0 ELSE frame_left END
		WHERE id = $1 AND status IN ('queued', 'sending') RETURNING `+messageColumns, o.MessageID, o.Status, o.Failure.Code, o.Failure.Detail, o.SentAt, o.Refund)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // a receipt came first, or it was ended meanwhile
	}
	if err != nil {
		return err
	}
	t.moved(m, postern.Sending)
	if o.Refund {
		if err := refund(t, m); err != nil {
			return err
		}
	}
	return t.recordStatus(m, o.At)
}

// applyAll ends messages without a refund, each of which comes once in the
// list. The others are left over.
func (FinishOutbound) applyAll(t *tx, list []pending) (rest []pending, err error) {
	ops := map[postern.MessageID]FinishOutbound{}
	var values [][]any
	for _, p := range list {
		o := p.op.(FinishOutbound) //nolint:errcheck,forcetypeassert // a list of one kind
		if _, twice := ops[o.MessageID]; twice || o.Refund {
			rest = append(rest, p)
			continue
		}
		ops[o.MessageID] = o
		values = append(values, []any{o.MessageID, o.Status, o.Failure.Code, o.Failure.Detail, o.SentAt})
	}
	if len(values) == 0 {
		return rest, nil
	}
	from, args := table("id, status, error_code, error_detail, sent_at", values)
	events, err := t.finishMessages(`UPDATE message AS m SET status = u.status, error_code = u.error_code, error_detail = u.error_detail, sent_at = u.sent_at FROM `+from+`
		WHERE m.id = u.id AND m.status IN ('queued', 'sending') RETURNING `+messageColumnsOf("m"), args, func(m postern.Message) postern.Time { return ops[m.ID].At })
	if err != nil {
		return nil, err
	}
	return rest, t.recordAll(events)
}

// messageColumnsOf are the columns of a message where another table has columns
// of the same names.
func messageColumnsOf(table string) string {
	return table + "." + strings.ReplaceAll(messageColumns, ", ", ", "+table+".")
}

// finishMessages makes the events of the messages whose sending a query ends.
func (t *tx) finishMessages(query string, args []any, at func(postern.Message) postern.Time) (events []happening, err error) {
	err = t.rows(query, args, func(r *sql.Rows) error {
		m, err := scanMessage(r)
		if err != nil {
			return err
		}
		t.moved(m, postern.Sending)
		e, err := m.Event(postern.EventType("message." + string(m.Status)))
		events = append(events, happening{e, at(m)})
		return err
	})
	return events, err
}

func (t *tx) updateMessage(query string, args ...any) (postern.Message, error) {
	return scanMessage(t.one(query, args...))
}

// recordStatus makes the event that belongs to the message's status.
func (t *tx) recordStatus(m postern.Message, at postern.Time) error {
	e, err := m.Event(postern.EventType("message." + string(m.Status)))
	if err != nil {
		return err
	}
	return t.record(e, at)
}

// Finish ends the sending of a message. It does nothing when the
// message has moved on by itself.
func (s Outbox) Finish(ctx context.Context, o FinishOutbound) error { return s.db.do(ctx, o) }

// Expire ends up to limit messages whose time is over: expired, with
// their unit given back, when no frame ever left; failed and unconfirmed
// otherwise. It says how many.
func (s Outbox) Expire(ctx context.Context, now postern.Time, limit int) (n int, err error) {
	due, err := s.db.exists(ctx, `SELECT count(*) FROM message WHERE status IN ('queued', 'sending') AND expires_at <= $1`, now)()
	if err != nil || !due {
		return 0, err // the common case costs no write
	}
	err = s.db.do(ctx, opFunc(func(t *tx) error {
		due, err := overdue(t, now, limit)
		n = len(due)
		for _, q := range due {
			if err := expire(q, now).apply(t); err != nil {
				return err
			}
		}
		return err
	}))
	return n, err
}

func overdue(t *tx, now postern.Time, limit int) (list []QueuedMessage, err error) {
	err = t.rows(`SELECT id, frame_left FROM message WHERE status IN ('queued', 'sending') AND expires_at <= $1 LIMIT $2 + 0`, []any{now, limit}, func(r *sql.Rows) error {
		var q QueuedMessage
		err := r.Scan(&q.ID, &q.FrameLeft)
		list = append(list, q)
		return err
	})
	return list, err
}

func expire(q QueuedMessage, now postern.Time) FinishOutbound {
	if !q.FrameLeft {
		return FinishOutbound{MessageID: q.ID, Status: postern.Expired, Refund: true, At: now}
	}
	return FinishOutbound{MessageID: q.ID, Status: postern.Failed, At: now, Failure: postern.Failure{
		Code: postern.Unconfirmed, Detail: "the network did not confirm the message in time; it may have arrived",
	}}
}

// failQueued ends what a device still had to send when its link is gone.
func failQueued(t *tx, ws postern.WorkspaceID, device postern.DeviceID, at postern.Time) error {
	var list []QueuedMessage
	err := t.rows(`SELECT id, frame_left FROM message WHERE workspace_id = $1 AND device_id = $2 AND status IN ('queued', 'sending') ORDER BY n`, []any{ws, device}, func(r *sql.Rows) error {
		var q QueuedMessage
		err := r.Scan(&q.ID, &q.FrameLeft)
		list = append(list, q)
		return err
	})
	if err != nil {
		return err
	}
	for _, q := range list {
		o := FinishOutbound{MessageID: q.ID, Status: postern.Failed, Refund: !q.FrameLeft, At: at, Failure: postern.Failure{
			Code: postern.DeviceLoggedOut, Detail: "the device's link was removed before the message was sent",
		}}
		if err := o.apply(t); err != nil {
			return err
		}
	}
	return nil
}

// Receipt is the network's word on how far an outbound message got.
type Receipt struct {
	DeviceID  postern.DeviceID
	NetworkID string
	Status    postern.MessageStatus // Delivered or Read
	At        postern.Time          // the network's time
	Now       postern.Time
}

// receipts move outbound messages forward.
type receipts []Receipt

func (list receipts) apply(t *tx) error {
	for _, o := range list {
		m, err := t.updateMessage(`SELECT `+messageColumns+` FROM message WHERE device_id = $1 AND network_id = $2 AND sender = '' AND `+current("message"), o.DeviceID, o.NetworkID)
		if errors.Is(err, sql.ErrNoRows) {
			continue // not one of ours
		}
		if err != nil {
			return err
		}
		if err := o.apply(t, m); err != nil {
			return err
		}
	}
	return nil
}

func (o Receipt) apply(t *tx, m postern.Message) error {
	from := m.Status
	m, events, err := o.move(m)
	if err != nil || len(events) == 0 {
		return err
	}
	t.moved(m, from)
	err = t.exec(`UPDATE message SET status = $2, error_code = '', error_detail = '', sent_at = $3, delivered_at = $4, read_at = $5 WHERE id = $1`,
		m.ID, m.Status, m.SentAt, m.DeliveredAt, m.ReadAt)
	for _, e := range events {
		if err == nil {
			err = t.record(e.Event, e.now)
		}
	}
	return err
}

// move takes the message forward step by step, so that each state it passes
// has its event even when the network skipped one.
func (o Receipt) move(m postern.Message) (postern.Message, []happening, error) {
	if !movable(m) {
		return m, nil, nil
	}
	var events []happening
	steps := []postern.MessageStatus{postern.Sent, postern.Delivered, postern.Read}
	for _, s := range steps[:slices.Index(steps, o.Status)+1] {
		if m.Status.Rank() >= s.Rank() {
			continue
		}
		m = o.step(m, s)
		e, err := m.Event(postern.EventType("message." + string(m.Status)))
		if err != nil {
			return m, nil, err
		}
		events = append(events, happening{e, o.Now})
	}
	return m, events, nil
}

// movable tells whether a receipt may still change the message. One that
// failed for want of a confirmation is the one ended message that can.
func movable(m postern.Message) bool {
	if m.Source != postern.FromAPI {
		return false
	}
	return m.Status.Rank() > 0 || m.Status == postern.Failed && m.Error != nil && m.Error.Code == postern.Unconfirmed
}

// step gives the message its next state, and the times that the network passed
// over.
func (o Receipt) step(m postern.Message, s postern.MessageStatus) postern.Message {
	m.Status, m.Error = s, nil
	m.SentAt = cmp.Or(m.SentAt, o.At)
	if s == postern.Delivered || s == postern.Read {
		m.DeliveredAt = cmp.Or(m.DeliveredAt, o.At)
	}
	if s == postern.Read {
		m.ReadAt = cmp.Or(m.ReadAt, o.At)
	}
	return m
}

// applyAll moves the messages of many lists, in their order.
func (receipts) applyAll(t *tx, list []pending) (rest []pending, err error) { //nolint:unparam // as batch asks
	var all receipts
	for _, p := range list {
		all = append(all, p.op.(receipts)...) //nolint:errcheck,forcetypeassert // a list of one kind
	}
	messages, err := all.messages(t)
	if err != nil {
		return nil, err
	}
	moved := map[postern.MessageID]postern.Message{}
	var events []happening
	for _, o := range all {
		key := sentAs{o.DeviceID, clean(o.NetworkID)}
		m, happened, err := o.move(messages[key])
		if err != nil {
			return nil, err
		}
		if len(happened) > 0 {
			t.moved(m, messages[key].Status)
			messages[key], moved[m.ID], events = m, m, append(events, happened...)
		}
	}
	if err := t.storeMoved(moved); err != nil {
		return nil, err
	}
	return nil, t.recordAll(events)
}

// sentAs is what the network calls a message of a device.
type sentAs struct {
	device    postern.DeviceID
	networkID string
}

func (list receipts) messages(t *tx) (map[sentAs]postern.Message, error) {
	messages := map[sentAs]postern.Message{}
	if len(list) == 0 {
		return messages, nil
	}
	values := make([][]any, len(list))
	for i, o := range list {
		values[i] = []any{o.DeviceID, o.NetworkID}
	}
	from, args := table("device_id, network_id", values)
	err := t.rows(`SELECT `+messageColumnsOf("m")+` FROM message AS m JOIN `+from+` ON m.device_id = u.device_id AND m.network_id = u.network_id WHERE m.sender = '' AND `+current("m"), args, func(r *sql.Rows) error {
		m, err := scanMessage(r)
		messages[sentAs{m.DeviceID, m.NetworkID}] = m
		return err
	})
	return messages, err
}

func (t *tx) storeMoved(moved map[postern.MessageID]postern.Message) error {
	if len(moved) == 0 {
		return nil
	}
	values := make([][]any, 0, len(moved))
	for _, m := range moved {
		values = append(values, []any{m.ID, m.Status, m.SentAt, m.DeliveredAt, m.ReadAt})
	}
	from, args := table("id, status, sent_at, delivered_at, read_at", values)
	return t.exec(`UPDATE message AS m SET status = u.status, error_code = '', error_detail = '', sent_at = u.sent_at, delivered_at = u.delivered_at, read_at = u.read_at
		FROM `+from+` WHERE m.id = u.id`, args...)
}

// RecordReceipts moves outbound messages forward.
func (s Messages) RecordReceipts(ctx context.Context, list []Receipt) error {
	return s.db.do(ctx, receipts(list))
}

// ByNetworkID finds a message that the device sent under its present
// number; ok is false when there is none.
func (s Messages) ByNetworkID(ctx context.Context, device postern.DeviceID, networkID string) (m postern.Message, ok bool, err error) {
	m, err = scanMessage(s.db.one(ctx, `SELECT `+messageColumns+` FROM message WHERE device_id = $1 AND network_id = $2 AND sender = '' AND direction = 'outbound' AND `+current("message"), device, networkID))
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	return m, err == nil, err
}
