// Package channels keeps what the accounts of devices know of channels: their names, which posts do not contain.
package channels

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// Table has the channels that devices know.
type Table struct{ db *db.DB }

// Of returns the channels of a store.
func Of(s *store.Store) Table { return Table{s.Engine()} }

// Save stores channels as a device's account knows them. It can be repeated.
func (t Table) Save(ctx context.Context, id postern.DeviceID, list []postern.Channel) error {
	if len(list) == 0 {
		return nil
	}
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		for _, c := range list {
			err := tx.Exec(`INSERT INTO channel (device_id, chat_id, name, role) VALUES ($1, $2, $3, $4)
				ON CONFLICT (device_id, chat_id) DO UPDATE SET name = excluded.name, role = excluded.role
				WHERE channel.name <> excluded.name OR channel.role <> excluded.role`, id, c.ChatID, c.Name, c.Role)
			if err != nil {
				return err
			}
		}
		return nil
	})))
}

// Get returns the name of a channel, and what the account of a device is in it; "" if that is not known.
func (t Table) Get(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, chat string,
) (name, role string, err error) {
	err = t.db.One(ctx, `SELECT c.name, c.role FROM channel c JOIN device d ON d.id = c.device_id
		WHERE d.workspace_id = $1 AND c.device_id = $2 AND c.chat_id = $3`, ws, id, chat).Scan(&name, &role)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", nil
	}
	return name, role, err
}

// Unnamed returns channels of a device that have messages and are not known.
func (t Table) Unnamed(ctx context.Context, id postern.DeviceID, most int) (chats []string, err error) {
	err = t.db.Rows(ctx, `SELECT c.chat_id FROM chat c WHERE c.device_id = $1 AND c.chat_id >= 'channel:'
		AND c.chat_id < 'channel;' AND NOT EXISTS (SELECT 1 FROM channel n WHERE n.device_id = c.device_id
		AND n.chat_id = c.chat_id) ORDER BY c.chat_id LIMIT $2 + 0`, []any{id, most}, func(r *sql.Rows) error {
		var chat string
		err := r.Scan(&chat)
		chats = append(chats, chat)
		return err
	})
	return chats, err
}
