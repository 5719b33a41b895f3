package chats

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// assigned selects who takes care of a chat, of table n. Who is no longer a member takes care of nothing.
const (
	assigned   = `coalesce(a.user_id, ''), coalesce(u.email, '')`
	assignedBy = ` LEFT JOIN member a ON a.user_id = n.assignee AND a.workspace_id = n.workspace_id
		LEFT JOIN users u ON u.id = a.user_id`
)

// Note returns what the people of a workspace have noted about a chat.
func (t Table) Note(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, chat string,
) (n postern.ChatNote, err error) {
	err = t.db.One(ctx, `SELECT `+assigned+`, n.note FROM chat_note n`+assignedBy+`
		WHERE n.workspace_id = $1 AND n.device_id = $2 AND n.chat_id = $3`, ws, id, chat).Scan(&n.Assignee, &n.Email, &n.Text)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return n, err
}

// Assign lets the member with an email address take care of a chat of a device of the workspace; for "", nobody.
func (t Table) Assign(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, chat, email string,
) error {
	return t.db.Do(ctx, db.FuncOf(string(ws), func(tx *db.Tx) error {
		user, err := member(tx, ws, email)
		if err != nil {
			return err
		}
		if chat, err = current(tx, id, chat); err != nil {
			return err
		}
		err = tx.Exec(`INSERT INTO chat_note (workspace_id, device_id, chat_id, assignee) VALUES ($1, $2, $3, $4)
			ON CONFLICT (device_id, chat_id) DO UPDATE SET assignee = excluded.assignee`, ws, id, chat, user)
		return errors.Join(err, removeEmpty(tx, id, chat))
	}))
}

func member(tx *db.Tx, ws postern.WorkspaceID, email string) (user postern.UserID, err error) {
	if email == "" {
		return "", nil
	}
	err = tx.Row(`SELECT m.user_id FROM member m JOIN users u ON u.id = m.user_id WHERE m.workspace_id = $1
		AND u.email = $2`, []any{ws, email}, &user)
	if errors.Is(err, sql.ErrNoRows) {
		err = postern.Invalid("/assignee", "no member of the workspace has this email address")
	}
	return user, err
}

// SetNote replaces the text that is noted about a chat of a device of the workspace.
func (t Table) SetNote(ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, chat, text string) error {
	return t.db.Do(ctx, db.FuncOf(string(ws), func(tx *db.Tx) error {
		chat, err := current(tx, id, chat)
		if err != nil {
			return err
		}
		err = tx.Exec(`INSERT INTO chat_note (workspace_id, device_id, chat_id, note) VALUES ($1, $2, $3, $4)
			ON CONFLICT (device_id, chat_id) DO UPDATE SET note = excluded.note`, ws, id, chat, text)
		return errors.Join(err, removeEmpty(tx, id, chat))
	}))
}

// removeEmpty removes what is noted about a chat if that is nothing.
func removeEmpty(tx *db.Tx, id postern.DeviceID, chat string) error {
	return tx.Exec(`DELETE FROM chat_note WHERE device_id = $1 AND chat_id = $2 AND assignee = '' AND note = ''`, id, chat)
}
