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

// A name whose messages an endpoint still waits for rests for some seconds, and is removed after that.
func TestErasedNamesThatWaitRest(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		now := postern.TimeOf(time.Now())
		e := postern.Endpoint{
			ID: postern.NewEndpointID(), WorkspaceID: "ws_1", URL: "https://example.com", Events: []string{"message.received"},
			Status: postern.EndpointPending, Secret: []byte{1}, CreatedAt: now, MaxInFlight: 8, DueAt: now,
		}
		check(t, s.Endpoints.Create(t.Context(), e, 20, nil))
		check(t, s.Endpoints.Activate(t.Context(), e.ID, now))
		for chat, kind := range map[string]postern.EventType{"+1777": postern.MessageReceived, "+1888": postern.MessageEcho} {
			check(t, s.Messages.RecordInbound(t.Context(), store.RecordInbound{
				Sender: chat, Type: kind, Now: now, Message: postern.Message{
					ID: postern.NewMessageID(), WorkspaceID: "ws_1", DeviceID: "dev_1", Direction: postern.Inbound, ChatID: chat,
					From: postern.Maybe(chat), Content: postern.Text("x"), Status: postern.Received, NetworkID: chat,
					Source: postern.FromContact, Metadata: map[string]string{}, CreatedAt: now, SentAt: now,
				},
			}))
		}
		do := func(query string) {
			t.Helper()
			check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error { return tx.Exec(query) })))
		}
		do(`INSERT INTO erasure (workspace_id, name, upto, at) VALUES ('ws_1', '+1777', 1000000, 1), ('ws_1', '+1888', 1000000, 2)`)
		var waiting contacts.Waiting
		pass := func(after time.Duration, want int) {
			t.Helper()
			clock := func() postern.Time { return now.Add(after) }
			check(t, contacts.Of(s).RemoveErased(t.Context(), s, &waiting, clock, 365*24*time.Hour*100))
			var n int
			check(t, s.Engine().Row(t.Context(), `SELECT count(*) FROM message`, nil, &n))
			if n != want {
				t.Errorf("after %s, %d messages are left, want %d", after, n, want)
			}
		}
		pass(0, 1) // the other name is not held up
		do(`UPDATE delivery SET status = 'succeeded'`)
		pass(time.Second, 1)
		pass(6*time.Second, 0)
	})
}

// A message of the history that was stored later is not the newest one of the chat that it moves to.
func TestTheNewestMessageOfAJoinedChatIsTheNewestByTime(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		now := postern.TimeOf(time.Now())
		live := postern.Message{
			ID: postern.NewMessageID(), WorkspaceID: "ws_1", DeviceID: "dev_1", ChatID: "lid:77", NetworkID: "A",
			Direction: postern.Inbound, Status: postern.Received, Source: postern.FromContact,
			Content: postern.Text("x"), Metadata: map[string]string{}, CreatedAt: now, SentAt: now,
		}
		past := live
		past.ID, past.NetworkID, past.History = postern.NewMessageID(), "B", true
		past.CreatedAt, past.SentAt = now.Add(-time.Hour), now.Add(-time.Hour)
		check(t, s.Messages.RecordInbound(t.Context(), store.RecordInbound{
			Message: live, Sender: "lid:77", Type: postern.MessageReceived, Now: now,
		}))
		check(t, s.Messages.RecordHistory(t.Context(), store.RecordHistory{
			DeviceID: "dev_1", WorkspaceID: "ws_1", List: []store.RecordInbound{{Message: past, Sender: "lid:77", Now: now}},
		}))
		check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
			return tx.Exec(`INSERT INTO chat_join (device_id, from_chat, to_chat) VALUES ('dev_1', 'lid:77', '+1777')`)
		})))
		check(t, contacts.Of(s).JoinChats(t.Context()))
		var newest string
		check(t, s.Engine().Row(t.Context(), `SELECT m.id FROM chat c JOIN message m ON m.n = c.newest
			WHERE c.device_id = 'dev_1' AND c.chat_id = '+1777'`, nil, &newest))
		if newest != string(live.ID) {
			t.Error("the newest message of the chat is one of the history")
		}
	})
}

// A group stays when the newest message in it is by a person who is erased, with what was read and what was not.
func TestGroupOutlivesAnErasedMember(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		now := postern.TimeOf(time.Now())
		write := func(from, body string) postern.MessageID {
			m := postern.Message{
				ID: postern.NewMessageID(), WorkspaceID: "ws_1", DeviceID: "dev_1", Direction: postern.Inbound, ChatID: "group:9",
				From: postern.Maybe(from), Content: postern.Text(body), Status: postern.Received, NetworkID: body,
				Source: postern.FromContact, Metadata: map[string]string{}, CreatedAt: now, SentAt: now,
			}
			check(t, s.Messages.RecordInbound(t.Context(), store.RecordInbound{
				Sender: from, Type: postern.MessageReceived, Now: now, Message: m,
			}))
			return m.ID
		}
		read := write("+1888", "one")
		write("+1888", "two")
		newest := write("+1888", "three")
		write("+1777", "four")
		do := func(query string, args ...any) {
			t.Helper()
			check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error { return tx.Exec(query, args...) })))
		}
		do(`UPDATE chat SET unread = 3, read_to = (SELECT n FROM message WHERE id = $1)`, read)
		do(`INSERT INTO erasure (workspace_id, name, upto, at) VALUES ('ws_1', '+1777', 1000000, 1)`)
		check(t, contacts.Of(s).RemoveErased(t.Context(), s, &contacts.Waiting{}, func() postern.Time { return now }, time.Hour))
		var got, readTo postern.MessageID
		var unread int
		check(t, s.Engine().Row(t.Context(), `SELECT (SELECT id FROM message WHERE n = newest),
			(SELECT id FROM message WHERE n = read_to), unread FROM chat WHERE chat_id = 'group:9'`, nil, &got, &readTo, &unread))
		if got != newest || readTo != read || unread != 2 {
			t.Errorf("the group's newest message is %s, want %s; read up to %s, want %s; unread %d, want 2",
				got, newest, readTo, read, unread)
		}
	})
}

// What waits in a chat that is being joined with another one keeps the timer of the person.
func TestWaitingMessagesKeepTheTimerOfAJoinedChat(t *testing.T) {
	onEach(t, func(t *testing.T, s *store.Store) {
		check(t, s.Chats.SetTimer(t.Context(), "dev_1", "+1777", store.Timer{Seconds: 86_400, Since: 1}))
		check(t, s.Engine().Do(t.Context(), db.Func(func(tx *db.Tx) error {
			return tx.Exec(`INSERT INTO chat_join (device_id, from_chat, to_chat) VALUES ('dev_1', 'lid:77', '+1777')`)
		})))
		timers, err := s.Chats.Timers(t.Context(), "dev_1")
		if err != nil || len(timers) != 2 || timers["lid:77"] != timers["+1777"] || timers["lid:77"].Seconds != 86_400 {
			t.Errorf("timers %v, %v", timers, err)
		}
	})
}
