package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"postern/internal/postern"
)

// QueuedMessage is a message to send and whether an earlier attempt may have
// reached the network.
type QueuedMessage struct {
	postern.Message
	FrameLeft bool
}

// NextOutbound gives the oldest messages that a device still has to send.
func (db *DB) NextOutbound(ctx context.Context, device postern.DeviceID, limit int) (list []QueuedMessage, err error) {
	err = db.rows(ctx, `SELECT `+messageColumns+`, frame_left FROM message WHERE device_id = $1 AND status IN ('queued', 'sending') ORDER BY n LIMIT $2 + 0`,
		[]any{device, limit}, func(r *sql.Rows) error {
			var q QueuedMessage
			m, err := scanMessage(withTail{r, []any{&q.FrameLeft}})
			q.Message = m
			list = append(list, q)
			return err
		})
	return list, err
}

// MarkSending notes, before the first frame leaves, that a message may from
// now on have reached the network. ok is false when it is no longer queued.
func (db *DB) MarkSending(ctx context.Context, id postern.MessageID) (ok bool, err error) {
	o := &markSending{id: id}
	err = db.do(ctx, o)
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

// NoFrameLeft takes MarkSending's note back when the first attempt provably
// sent nothing.
func (db *DB) NoFrameLeft(id postern.MessageID) {
	db.writer.later(opFunc(func(t *tx) error {
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
	if o.Refund {
		if err := refund(t, m); err != nil {
			return err
		}
	}
	return t.recordStatus(m, o.At)
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

// FinishOutbound ends the sending of a message. It does nothing when the
// message has moved on by itself.
func (db *DB) FinishOutbound(ctx context.Context, o FinishOutbound) error { return db.do(ctx, o) }

// ExpireOutbound ends up to limit messages whose time is over: expired, with
// their unit given back, when no frame ever left; failed and unconfirmed
// otherwise. It says how many.
func (db *DB) ExpireOutbound(ctx context.Context, now postern.Time, limit int) (n int, err error) {
	due, err := db.exists(ctx, `SELECT count(*) FROM message WHERE status IN ('queued', 'sending') AND expires_at <= $1`, now)()
	if err != nil || !due {
		return 0, err // the common case costs no write
	}
	err = db.do(ctx, opFunc(func(t *tx) error {
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

// apply moves the message forward step by step, so that each state it passes
// has its event even when the network skipped one.
func (o Receipt) apply(t *tx) error {
	m, err := t.updateMessage(`SELECT `+messageColumns+` FROM message WHERE device_id = $1 AND network_id = $2 AND sender = ''`, o.DeviceID, o.NetworkID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // not one of ours
	}
	if err != nil || !movable(m) {
		return err
	}
	steps := []postern.MessageStatus{postern.Sent, postern.Delivered, postern.Read}
	for _, s := range steps[:slices.Index(steps, o.Status)+1] {
		if m.Status.Rank() >= s.Rank() {
			continue
		}
		if m, err = o.step(t, m.ID, s); err != nil {
			return err
		}
	}
	return nil
}

// movable tells whether a receipt may still change the message. One that
// failed for want of a confirmation is the one ended message that can.
func movable(m postern.Message) bool {
	if m.Source != postern.FromAPI {
		return false
	}
	return m.Status.Rank() > 0 || m.Status == postern.Failed && m.Error != nil && m.Error.Code == postern.Unconfirmed
}

func (o Receipt) step(t *tx, id postern.MessageID, s postern.MessageStatus) (postern.Message, error) {
	m, err := t.updateMessage(`UPDATE message SET status = $2, error_code = '', error_detail = '',
		sent_at = CASE WHEN sent_at = 0 THEN $3 ELSE sent_at END,
		delivered_at = CASE WHEN $2 IN ('delivered', 'read') AND delivered_at = 0 THEN $3 ELSE delivered_at END,
		read_at = CASE WHEN $2 = 'read' AND read_at = 0 THEN $3 ELSE read_at END
		WHERE id = $1 RETURNING `+messageColumns, id, s, o.At)
	if err != nil {
		return m, err
	}
	return m, t.recordStatus(m, o.Now)
}

// RecordReceipts moves outbound messages forward.
func (db *DB) RecordReceipts(ctx context.Context, list []Receipt) error {
	return db.do(ctx, receipts(list))
}

type receipts []Receipt

func (list receipts) apply(t *tx) error {
	for _, o := range list {
		if err := o.apply(t); err != nil {
			return err
		}
	}
	return nil
}

// OutboundByNetworkID finds a message that the device sent; ok is false when
// there is none.
func (db *DB) OutboundByNetworkID(ctx context.Context, device postern.DeviceID, networkID string) (m postern.Message, ok bool, err error) {
	m, err = scanMessage(db.one(ctx, `SELECT `+messageColumns+` FROM message WHERE device_id = $1 AND network_id = $2 AND sender = '' AND direction = 'outbound'`, device, networkID))
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	return m, err == nil, err
}
