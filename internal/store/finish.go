package store

import (
	"context"
	"database/sql"

	"postern/internal/db"
	"postern/internal/postern"
)

// FinishOutbound ends the sending of a message: sent, failed or expired.
type FinishOutbound struct {
	MessageID postern.MessageID
	Status    postern.MessageStatus // Sent, Failed or Expired
	Failure   postern.Failure
	Refund    bool // no frame ever left
	At        postern.Time
	SentAt    postern.Time // the network's time, for Sent
}

// Finish ends the sending of a message. It does nothing when the message has another
// status by now.
func (s Outbox) Finish(ctx context.Context, o FinishOutbound) error { return write(ctx, s.core, o) }

// About keeps the outcome in its place.
func (o FinishOutbound) About() db.About { return db.About{} }

var finishMessages = db.NewStatement("message, outcome, code, detail, at, refund",
	`UPDATE message SET status = @outcome, error_code = @code, error_detail = @detail, sent_at = @at,
	frame_left = CASE WHEN @refund = 1 THEN 0 ELSE frame_left END [FROM @rows]
	WHERE id = @message AND status IN ('queued', 'sending') RETURNING `+messageColumns)

// WriteAll ends messages. What is no longer queued, because a receipt came first or it
// was ended before, stays as it is.
func (FinishOutbound) WriteAll(t *db.Tx, list []db.Pending[FinishOutbound]) error {
	outcomes := make(map[postern.MessageID]FinishOutbound, len(list))
	rows := make([][]any, 0, len(list))
	for _, p := range list {
		o := p.Value
		if _, twice := outcomes[o.MessageID]; twice {
			continue // only the first can change anything
		}
		outcomes[o.MessageID] = o
		rows = append(rows, []any{o.MessageID, o.Status, o.Failure.Code, o.Failure.Detail, o.SentAt, o.Refund})
	}
	ended, err := scanMessages(t, finishMessages, rows)
	if err != nil {
		return err
	}
	return recordEnded(t, ended, outcomes)
}

// recordEnded records what follows from the end of messages: counters, refunds, events.
func recordEnded(t *db.Tx, ended []postern.Message, outcomes map[postern.MessageID]FinishOutbound) error {
	var refunds []postern.Message
	events := make([]eventAt, 0, len(ended))
	for i := range ended {
		m := &ended[i]
		t.Note(MessageMoved{m, postern.Sending})
		o := outcomes[m.ID]
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

// statusEvent is the event that belongs to a message's status.
func statusEvent(m postern.Message, at postern.Time) (eventAt, error) {
	e, err := m.Event(postern.EventType("message." + string(m.Status)))
	return eventAt{e, at}, err
}

// Expire ends up to limit messages whose time is over: expired, with their unit refunded,
// when no frame ever left; failed and unconfirmed otherwise. It returns how many.
func (s Outbox) Expire(ctx context.Context, now postern.Time, limit int) (n int, err error) {
	due, err := s.exists(ctx, `SELECT count(*) FROM message WHERE status IN ('queued', 'sending') AND expires_at <= $1`, now)()
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

func overdue(t *db.Tx, now postern.Time, limit int) (list []QueuedMessage, err error) {
	err = t.Rows(`SELECT id, frame_left FROM message WHERE status IN ('queued', 'sending') AND expires_at <= $1 LIMIT $2 + 0`, []any{now, limit}, func(r *sql.Rows) error {
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

// failQueued fails what a device still had to send when its link is gone.
func failQueued(t *db.Tx, ws postern.WorkspaceID, device postern.DeviceID, at postern.Time) error {
	var list []QueuedMessage
	err := t.Rows(`SELECT id, frame_left FROM message WHERE workspace_id = $1 AND device_id = $2 AND status IN ('queued', 'sending') ORDER BY n`, []any{ws, device}, func(r *sql.Rows) error {
		var q QueuedMessage
		err := r.Scan(&q.ID, &q.FrameLeft)
		list = append(list, q)
		return err
	})
	if err != nil {
		return err
	}
	outcomes := make([]FinishOutbound, len(list))
	for i, q := range list {
		outcomes[i] = FinishOutbound{MessageID: q.ID, Status: postern.Failed, Refund: !q.FrameLeft, At: at, Failure: postern.Failure{
			Code: postern.DeviceLoggedOut, Detail: "the device's link was removed before the message was sent",
		}}
	}
	return db.WriteNow(t, outcomes...)
}
