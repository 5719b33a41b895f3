package chats_test

import (
	"errors"
	"testing"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store/chats"
	"postern/internal/store/contactid"
	"postern/internal/store/migrated"
)

// A note follows its chat when the network says whose chat it is. Who leaves the workspace takes care of nothing.
func TestNotesFollowTheirChats(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func() string{
		"sqlite": func() string { return "" }, "postgres": func() string { return migrated.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, url())
			table := chats.Of(s)
			do := func(f func(tx *db.Tx) error) {
				t.Helper()
				check(t, s.Engine().Do(t.Context(), db.Func(f)))
			}
			do(func(tx *db.Tx) error {
				return errors.Join(
					tx.Exec(`INSERT INTO users (id, email, password_hash, created_at) VALUES ('usr_1', 'ada@example.com', '', 1)`),
					tx.Exec(`INSERT INTO member (user_id, workspace_id, role, joined_at) VALUES ('usr_1', 'ws_1', 'agent', 1)`))
			})
			noted := func(chat string, want postern.ChatNote) {
				t.Helper()
				if got, err := table.Note(t.Context(), ws, id, chat); err != nil || got != want {
					t.Errorf("%s: %+v (%v), want %+v", chat, got, err, want)
				}
			}
			const hidden = "lid:123456789012345"
			noted(ann, postern.ChatNote{})
			check(t, table.SetNote(t.Context(), ws, id, hidden, "Pays late."))
			check(t, table.Assign(t.Context(), ws, id, hidden, "ada@example.com"))
			check(t, table.SetNote(t.Context(), ws, id, ann, "Calls back."))
			noted(ann, postern.ChatNote{Text: "Calls back."})
			do(func(tx *db.Tx) error { return contactid.Join(tx, id, hidden, ann) })
			noted(hidden, postern.ChatNote{})
			noted(ann, postern.ChatNote{Assignee: "usr_1", Email: "ada@example.com", Text: "Calls back.\nPays late."})
			do(func(tx *db.Tx) error { return contactid.Join(tx, id, ann, ben) })
			noted(ben, postern.ChatNote{Assignee: "usr_1", Email: "ada@example.com", Text: "Calls back.\nPays late."})
			err := table.Assign(t.Context(), "ws_2", id, ben, "ada@example.com")
			if postern.ReasonOf(err) != postern.ValidationFailed {
				t.Errorf("a member of another workspace is assigned: %v", err)
			}
			do(func(tx *db.Tx) error { return tx.Exec(`DELETE FROM member WHERE user_id = 'usr_1'`) })
			noted(ben, postern.ChatNote{Text: "Calls back.\nPays late."})
		})
	}
}
