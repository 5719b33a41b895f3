package store

import (
	"context"
	"database/sql"
	"math"

	"postern/internal/db"
	"postern/internal/postern"
)

// chatKey is a chat of a device.
type chatKey struct {
	device postern.DeviceID
	chat   string
}

var summarizeChats = db.NewStatement("device, chat",
	`INSERT INTO chat (device_id, chat_id, newest) SELECT @device, @chat, n FROM message
	WHERE device_id = @device AND chat_id = @chat ORDER BY n DESC LIMIT 1
	ON CONFLICT (device_id, chat_id) DO UPDATE SET newest = excluded.newest`)

// chatSummaries keep the newest message of each chat, once for all new messages of a chat
// in a group. With PostgreSQL a trigger for each statement does this.
type chatSummaries map[chatKey]struct{}

func newChatSummaries() chatSummaries { return chatSummaries{} }

// Note takes a new message.
func (s chatSummaries) Note(change any) {
	if c, is := change.(MessageMoved); is && c.From == "" {
		s[chatKey{c.Message.DeviceID, c.Message.ChatID}] = struct{}{}
	}
}

// Write writes the newest message of each chat that got one.
func (s chatSummaries) Write(t *db.Tx) error {
	rows := make([][]any, 0, len(s))
	for k := range s {
		rows = append(rows, []any{k.device, k.chat})
	}
	clear(s)
	if t.Postgres() {
		return nil
	}
	_, err := t.Each(summarizeChats, rows)
	return err
}

// Discard forgets the messages.
func (s chatSummaries) Discard() { clear(s) }

// Chat is what a device and somebody write to each other.
type Chat struct {
	Name   string // that who wrote last has on the network; "" while nobody wrote
	Newest postern.Message
	Place  int64 // in the list
}

// chatsOf lists the chats of a device through their newest messages. Those of a
// number that the device had before are behind all others.
const chatsOf = `SELECT ` + messageColumns + `, n, coalesce((SELECT i.from_name FROM message i
		WHERE i.device_id = m.device_id AND i.chat_id = m.chat_id AND i.direction = 'inbound' ORDER BY i.created_at DESC LIMIT 1), '')
	FROM message m WHERE n IN (SELECT c.newest FROM chat c WHERE c.device_id = $2 AND c.newest < $3
		AND c.newest > (SELECT d.history_from FROM device d WHERE d.id = $2 AND d.workspace_id = $1) ORDER BY c.newest DESC LIMIT $4 + 0)
	ORDER BY n DESC`

// List lists the chats of a device from below a place; 0 is the first. The one
// with the newest message comes first.
func (s Chats) List(ctx context.Context, ws postern.WorkspaceID, device postern.DeviceID, before int64, limit int) (list []Chat, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	err = s.db.Rows(ctx, chatsOf, []any{ws, device, before, limit}, func(r *sql.Rows) error {
		var c Chat
		m, err := scanMessage(withTail{r, []any{&c.Place, &c.Name}})
		c.Newest = m
		list = append(list, c)
		return err
	})
	return list, err
}
