package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/postern"
)

const messageColumns = `id, workspace_id, device_id, direction, type, chat_id, from_number, from_lid, from_name, to_number, body, reply_to, status, error_code, error_detail, network_id, source, metadata, created_at, sent_at, delivered_at, read_at, expires_at`

func scanMessage(s scanner) (m postern.Message, err error) {
	var f postern.Failure
	err = s.Scan(&m.ID, &m.WorkspaceID, &m.DeviceID, &m.Direction, &m.Type, &m.ChatID, &m.From, &m.FromLID, &m.FromName, &m.To, &m.Body, &m.ReplyTo,
		&m.Status, &f.Code, &f.Detail, &m.NetworkID, &m.Source, jsonColumn{&m.Metadata}, &m.CreatedAt, &m.SentAt, &m.DeliveredAt, &m.ReadAt, &m.ExpiresAt)
	if f.Code != "" {
		m.Error = &f
	}
	return m, err
}

// insertMessage adds a row; ok is false when the device already has a message
// of this network id from this sender.
func (t *tx) insertMessage(m postern.Message, sender string, undecryptable bool) (ok bool, err error) {
	n, err := t.changed(`INSERT INTO message (`+messageColumns+`, sender, frame_left, undecryptable)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, '', '', $14, $15, $16, $17, $18, $19, $20, $21, $22, 0, $23)
		ON CONFLICT (device_id, network_id, sender) DO NOTHING`,
		m.ID, m.WorkspaceID, m.DeviceID, m.Direction, m.Type, m.ChatID, m.From, m.FromLID, m.FromName, m.To, m.Body, m.ReplyTo, m.Status,
		m.NetworkID, m.Source, asJSON(m.Metadata), m.CreatedAt, m.SentAt, m.DeliveredAt, m.ReadAt, m.ExpiresAt, sender, undecryptable)
	return n == 1, err
}

// QueueMessage accepts an outbound message: it spends a unit of the month's
// quota, writes the row and wakes the device's sender, all or nothing.
type QueueMessage struct {
	Message          postern.Message
	Month            string // such as 2026-11
	Quota            int
	WhenDisconnected string // "fail" or "queue"
	Once             *Once
}

func (o QueueMessage) apply(t *tx) error {
	if err := o.Once.claim(t); err != nil {
		return err
	}
	if err := o.checkDevice(t); err != nil {
		return err
	}
	if err := spend(t, o.Message.WorkspaceID, o.Month, o.Quota); err != nil {
		return err
	}
	if err := countUnit(t, o.Message, o.Month, 1); err != nil {
		return err
	}
	ok, err := t.insertMessage(o.Message, "", false)
	if err == nil && !ok {
		err = errors.New("a network id was chosen twice")
	}
	t.wake(OutboundQueued, string(o.Message.DeviceID))
	return err
}

func (o QueueMessage) checkDevice(t *tx) error {
	var status postern.Status
	err := t.row(`SELECT status FROM device WHERE workspace_id = $1 AND id = $2 AND deleted_at = 0`, []any{o.Message.WorkspaceID, o.Message.DeviceID}, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return postern.Errorf(postern.NotFound, "there is no such device")
	}
	if err != nil || status == postern.Connected {
		return err
	}
	if o.WhenDisconnected == "queue" && status.HoldsSlot() && status != postern.Linking {
		return nil
	}
	return postern.Errorf(postern.DeviceNotConnected, "the device is %s; wait until it is connected, or send with whenDisconnected set to queue", status)
}

// spend takes one unit of the month's quota, or refuses. The condition is part
// of the statement: two sends can never both see the last unit free.
func spend(t *tx, ws postern.WorkspaceID, month string, quota int) error {
	n, err := t.changed(`INSERT INTO usage (workspace_id, month, messages) SELECT $1, $2, 1 WHERE CAST($3 AS BIGINT) > 0
		ON CONFLICT (workspace_id, month) DO UPDATE SET messages = usage.messages + 1 WHERE usage.messages < $3`, ws, month, quota)
	if err == nil && n == 0 {
		return postern.Errorf(postern.QuotaExhausted, "the plan's %d messages of this month are used up; the month ends at %s", quota, MonthEnd(month))
	}
	return err
}

// refund gives one unit back to the month in which a message was accepted.
func refund(t *tx, m postern.Message) error {
	month := MonthOf(m.CreatedAt)
	err := t.exec(`UPDATE usage SET messages = messages - 1 WHERE workspace_id = $1 AND month = $2 AND messages > 0`, m.WorkspaceID, month)
	if err != nil {
		return err
	}
	return countUnit(t, m, month, -1)
}

// countUnit counts a unit, or takes it off, for the message's device.
func countUnit(t *tx, m postern.Message, month string, n int) error {
	return t.exec(`INSERT INTO device_usage (workspace_id, month, device_id, messages) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, month, device_id) DO UPDATE SET messages = device_usage.messages + excluded.messages`, m.WorkspaceID, month, m.DeviceID, n)
}

// QueueMessage accepts an outbound message.
func (db *DB) QueueMessage(ctx context.Context, o QueueMessage) error { return db.do(ctx, o) }

// Message finds a message of the workspace.
func (db *DB) Message(ctx context.Context, ws postern.WorkspaceID, id postern.MessageID) (postern.Message, error) {
	m, err := scanMessage(db.one(ctx, `SELECT `+messageColumns+` FROM message WHERE workspace_id = $1 AND id = $2`, ws, id))
	return m, notFoundOr(err, db.exists(ctx, `SELECT count(*) FROM message WHERE id = $1 AND workspace_id <> $2`, id, ws), "message")
}

// MessageFilter narrows a list of messages; zero members ask for nothing.
type MessageFilter struct {
	Devices   []postern.DeviceID // nil: all
	ChatID    string
	Direction string
	Status    string
	Since     postern.Time // inclusive
	Until     postern.Time // exclusive
}

// Messages lists a workspace's messages, newest first. The page's After is the
// id of the last message seen.
func (db *DB) Messages(ctx context.Context, ws postern.WorkspaceID, f MessageFilter, p Page) (list []postern.Message, err error) {
	err = db.rows(ctx, `SELECT `+messageColumns+` FROM message WHERE workspace_id = $1
		AND ($2 = '' OR n < (SELECT n FROM message WHERE workspace_id = $1 AND id = $2))
		AND ($3 = 'null' OR device_id IN `+db.dialect.inList(3)+`) AND ($4 = '' OR chat_id = $4) AND ($5 = '' OR direction = $5) AND ($6 = '' OR status = $6)
		AND (CAST($7 AS BIGINT) = 0 OR created_at >= $7) AND (CAST($8 AS BIGINT) = 0 OR created_at < $8) ORDER BY n DESC LIMIT $9 + 0`,
		[]any{ws, p.After, asJSON(f.Devices), f.ChatID, f.Direction, f.Status, f.Since, f.Until, p.Limit}, func(r *sql.Rows) error {
			m, err := scanMessage(r)
			list = append(list, m)
			return err
		})
	return list, err
}
