package chats_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/chats"
	"postern/internal/store/migrated"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Binary{M: m}.Run()) }

const (
	ws  = postern.WorkspaceID("ws_1")
	id  = postern.DeviceID("dev_1")
	ann = "+15550000011"
	ben = "+15550000012"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a store with a connected device.
func open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: migrated.Dir(t, url), URL: url})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
		return errors.Join(
			tx.Exec(`INSERT INTO workspace (id, name, plan, created_at) VALUES ('ws_1', 'acme', 'growth', 1)`),
			tx.Exec(`INSERT INTO device (id, workspace_id, name, mode, status, status_reason, desired, account,
				phone_number, display_name, metadata, created_at, linked_at, connected_at, last_seen_at, sequence,
				last_event_at, deleted_at) VALUES ('dev_1', 'ws_1', '', 'live', 'connected', '', 'connect', '', '', '', '{}',
				1, 0, 0, 0, 0, 0, 0)`))
	})))
	return s
}

// What was sent before the account read the chat on its phone, and arrives here after that, is read. What was sent later
// is not.
func TestMessagesThatWereReadBeforeTheyArrived(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func() string{
		"sqlite": func() string { return "" }, "postgres": func() string { return migrated.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, url())
			table, start, n := chats.Of(s), s.Now(), 0
			arrives := func(chat string, sent time.Duration) {
				t.Helper()
				n++
				check(t, s.Messages.RecordInbound(t.Context(), store.RecordInbound{
					Sender: chat, Type: postern.MessageReceived, Now: start.Add(time.Minute), Message: postern.Message{
						ID: postern.NewMessageID(), WorkspaceID: ws, DeviceID: id, Direction: postern.Inbound, ChatID: chat,
						From: postern.Maybe(chat), Content: postern.Text("hello"), Status: postern.Received,
						NetworkID: fmt.Sprint("N", n), Source: postern.FromContact, Metadata: map[string]string{},
						CreatedAt: start, SentAt: start.Add(sent),
					},
				}))
			}
			unread := func(chat string, want int) {
				t.Helper()
				c, err := table.Get(t.Context(), ws, id, chat, start)
				if err != nil || c.UnreadCount != want {
					t.Errorf("%d unread in %s, %v; want %d", c.UnreadCount, chat, err, want)
				}
			}
			read := func(chat string, until time.Duration) {
				t.Helper()
				check(t, table.Set(t.Context(), id, []chats.Setting{{ChatID: chat, ReadUntil: start.Add(until)}}))
			}
			arrives(ann, 0)
			read(ann, 10*time.Second)
			unread(ann, 0)
			arrives(ann, 5*time.Second)
			arrives(ann, 10*time.Second)
			unread(ann, 0)
			arrives(ann, 11*time.Second)
			arrives(ann, 30*time.Second)
			unread(ann, 2)
			read(ann, 5*time.Second)
			unread(ann, 2)
			read(ben, 10*time.Second) // nobody has written in it yet
			arrives(ben, 5*time.Second)
			unread(ben, 0)
			arrives(ben, 11*time.Second)
			unread(ben, 1)
		})
	}
}
