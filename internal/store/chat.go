package store

import (
	"context"
	"database/sql"
	"math"

	"postern/internal/postern"
)

// chatKey is a chat of a device.
type chatKey struct {
	device postern.DeviceID
	chat   string
}

// writeChats notes the newest message of each chat that this transaction has added
// one to. PostgreSQL does it by itself, in a trigger for each statement.
func (t *tx) writeChats() error {
	if t.w.dialect.remote {
		clear(t.chats)
	}
	for k := range t.chats {
		err := t.exec(`INSERT INTO chat (device_id, chat_id, newest) SELECT $1, $2, n FROM message WHERE device_id = $1 AND chat_id = $2 ORDER BY n DESC LIMIT 1
			ON CONFLICT (device_id, chat_id) DO UPDATE SET newest = excluded.newest`, k.device, k.chat)
		if err != nil {
			return err
		}
	}
	clear(t.chats)
	return nil
}

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
	err = s.db.rows(ctx, chatsOf, []any{ws, device, before, limit}, func(r *sql.Rows) error {
		var c Chat
		m, err := scanMessage(withTail{r, []any{&c.Place, &c.Name}})
		c.Newest = m
		list = append(list, c)
		return err
	})
	return list, err
}
