package store

import (
	"context"
	"database/sql"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
)

const messageColumns = `id, workspace_id, device_id, direction, type, chat_id, from_number, from_lid, from_name, to_number, body, reply_to, status, error_code, error_detail, network_id, source, metadata, created_at, sent_at, delivered_at, read_at, expires_at`

func scanMessage(s db.Scanner) (m postern.Message, err error) {
	var f postern.Failure
	err = s.Scan(&m.ID, &m.WorkspaceID, &m.DeviceID, &m.Direction, &m.Type, &m.ChatID, &m.From, &m.FromLID, &m.FromName, &m.To, &m.Body, &m.ReplyTo,
		&m.Status, &f.Code, &f.Detail, &m.NetworkID, &m.Source, jsonColumn{&m.Metadata}, &m.CreatedAt, &m.SentAt, &m.DeliveredAt, &m.ReadAt, &m.ExpiresAt)
	if f.Code != "" {
		m.Error = &f
	}
	return m, err
}

const newMessageColumns = `id, workspace_id, device_id, direction, type, chat_id, from_number, from_lid, from_name, ` +
	`to_number, body, reply_to, status, network_id, source, metadata, created_at, sent_at, delivered_at, read_at, ` +
	`expires_at, sender, undecryptable`

// newMessage is the row of a message that is not in the table yet.
func newMessage(m postern.Message, sender string, undecryptable bool) []any {
	return []any{
		m.ID, m.WorkspaceID, m.DeviceID, m.Direction, m.Type, m.ChatID, m.From, m.FromLID, m.FromName, m.To, m.Body, m.ReplyTo, m.Status,
		m.NetworkID, m.Source, asJSON(m.Metadata), m.CreatedAt, m.SentAt, m.DeliveredAt, m.ReadAt, m.ExpiresAt, sender, undecryptable,
	}
}

// addMessages numbers messages with n in the order of their rows; see singlewriter.go.
var addMessages = db.NewStatement(newMessageColumns,
	`INSERT INTO message (`+newMessageColumns+`, error_code, error_detail, frame_left)
	@values (@`+strings.ReplaceAll(newMessageColumns, ", ", ", @")+`, '', '', 0)
	ON CONFLICT (device_id, network_id, sender) DO NOTHING RETURNING id`)

// insertMessages adds rows and returns which were new: a device has one message of a
// network id and sender.
func insertMessages(t *db.Tx, rows [][]any) (fresh map[postern.MessageID]bool, err error) {
	fresh = make(map[postern.MessageID]bool, len(rows))
	err = t.EachRow(addMessages, rows, func(r *sql.Rows) error {
		var id postern.MessageID
		err := r.Scan(&id)
		fresh[id] = true
		return err
	})
	return fresh, err
}

// MessageMoved is the change of a message from one status to the one it has now; From is
// "" for a new message. The ledgers of hours and chats follow it.
type MessageMoved struct {
	Message *postern.Message
	From    postern.MessageStatus
}

// Get finds a message of the workspace.
func (s Messages) Get(ctx context.Context, ws postern.WorkspaceID, id postern.MessageID) (postern.Message, error) {
	m, err := scanMessage(s.db.One(ctx, `SELECT `+messageColumns+` FROM message WHERE workspace_id = $1 AND id = $2`, ws, id))
	return m, notFoundOr(err, s.exists(ctx, `SELECT count(*) FROM message WHERE id = $1 AND workspace_id <> $2`, id, ws), "message")
}

// MessageFilter narrows a list of messages; zero members ask for nothing.
type MessageFilter struct {
	Devices   []postern.DeviceID // nil: all
	ChatID    string
	Direction string
	Status    string
	Since     postern.Time // inclusive
	Until     postern.Time // exclusive
	Archived  bool         // those of numbers that a device had before, instead of the others
}

// current is true of a message, under its name in the statement, that belongs
// to the number which the device has now. A message's n tells: nothing is in the
// queue of a device while its number changes.
func current(message string) string {
	return message + `.n > (SELECT d.history_from FROM device d WHERE d.id = ` + message + `.device_id)`
}

// List lists a workspace's messages, newest first. The page's After is the
// id of the last message seen.
func (s Messages) List(ctx context.Context, ws postern.WorkspaceID, f MessageFilter, p Page) (list []postern.Message, err error) {
	err = s.db.Rows(ctx, `SELECT `+messageColumns+` FROM message WHERE workspace_id = $1
		AND ($2 = '' OR n < (SELECT n FROM message WHERE workspace_id = $1 AND id = $2))
		AND ($3 = 'null' OR device_id IN `+s.db.InList(3)+`) AND ($4 = '' OR chat_id = $4) AND ($5 = '' OR direction = $5) AND ($6 = '' OR status = $6)
		AND (CAST($7 AS BIGINT) = 0 OR created_at >= $7) AND (CAST($8 AS BIGINT) = 0 OR created_at < $8) AND (`+current("message")+`) = (CAST($10 AS BIGINT) = 0) ORDER BY n DESC LIMIT $9 + 0`,
		[]any{ws, p.After, asJSON(f.Devices), f.ChatID, f.Direction, f.Status, f.Since, f.Until, p.Limit, f.Archived}, func(r *sql.Rows) error {
			m, err := scanMessage(r)
			list = append(list, m)
			return err
		})
	return list, err
}
