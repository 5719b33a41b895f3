package contacts_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/contacts"
)

// Chats whose messages wait to be sent hold up no others that have to move.
func TestChatsThatWaitHoldUpNoOthers(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		now := postern.TimeOf(time.Now())
		m := postern.Message{
			WorkspaceID: "ws_1", Content: postern.Text("x"), Metadata: map[string]string{}, CreatedAt: now, SentAt: now,
		}
		for i := range 30 {
			waits := m
			waits.ID, waits.DeviceID, waits.ChatID = postern.NewMessageID(), "dev_1", fmt.Sprint("lid:", 100+i)
			waits.Direction, waits.Status, waits.Source = postern.Outbound, postern.Scheduled, postern.FromAPI
			waits.NetworkID, waits.SendAt, waits.ExpiresAt = postern.NewNetworkID(), now.Add(time.Hour), now.Add(2*time.Hour)
			check(t, s.Messages.Queue(t.Context(), store.QueueMessage{Message: waits, Month: store.MonthOf(now)}))
		}
		m.ID, m.DeviceID, m.ChatID, m.NetworkID = postern.NewMessageID(), "dev_2", "lid:9", "N"
		m.Direction, m.Status, m.Source = postern.Inbound, postern.Received, postern.FromContact
		check(t, s.Messages.RecordInbound(t.Context(), store.RecordInbound{
			Message: m, Sender: "lid:9", Type: postern.MessageReceived, Now: now,
		}))
		check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) (err error) {
			for i := range 30 {
				err = errors.Join(err, tx.Exec(`INSERT INTO chat_join (device_id, from_chat, to_chat) VALUES ('dev_1', $1, '+1')`,
					fmt.Sprint("lid:", 100+i)))
			}
			return errors.Join(err,
				tx.Exec(`INSERT INTO chat_join (device_id, from_chat, to_chat) VALUES ('dev_2', 'lid:9', '+1555')`))
		})))
		check(t, contacts.Of(s).JoinChats(t.Context()))
		got, err := s.Messages.Get(t.Context(), "ws_1", m.ID)
		if err != nil || got.ChatID != "+1555" {
			t.Errorf("the chat is %s (%v)", got.ChatID, err)
		}
	})
}
