package store

import (
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store/contactid"
)

// linkTo opens a link attempt and finishes it with a number.
func linkTo(t *testing.T, db *Store, d postern.Device, number string) {
	t.Helper()
	unlink := SetDeviceState{
		WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Status: postern.Unlinked,
		Desired: postern.WantIdle, DropAccount: true, At: testNow,
	}
	open := openLinkOf(d, 5)
	e, err := d.Event(postern.DeviceLinked)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []opFunc{
		unlink.apply, open.apply,
		FinishLink{
			LinkID: open.Link.ID, WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Account: number, Number: number,
			At: testNow, Event: e,
		}.apply,
	} {
		if err := db.db.Do(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	connect := SetDeviceState{WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Status: postern.Connected, At: testNow}
	if err := db.Devices.SetState(t.Context(), connect); err != nil {
		t.Fatal(err)
	}
}

func listed(t *testing.T, db *Store, ws postern.WorkspaceID, q MessageSearch) (ids []string) {
	t.Helper()
	for _, m := range messagesOf(t, db, ws, q) {
		ids = append(ids, string(m.ID))
	}
	return ids
}

func TestHistoryOfAnEarlierNumberIsApart(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		ws := newWorkspace(t, db)
		d, other := newDevice(t, db, ws, postern.Unlinked), newDevice(t, db, ws, postern.Connected)
		linkTo(t, db, d, "+15550001111")
		old, beside := queue(t, db, d), queue(t, db, other)
		if err := db.Outbox.Finish(t.Context(), FinishOutbound{
			MessageID: old.ID, Status: postern.Sent, SentAt: testNow,
			At: testNow,
		}); err != nil {
			t.Fatal(err)
		}
		if err := db.Chats.SetTimer(t.Context(), d.ID, old.ChatID, Timer{86400, testNow}); err != nil {
			t.Fatal(err)
		}
		timers := func() int { return count(t, db, `SELECT count(*) FROM chat_timer WHERE device_id = $1`, d.ID) }
		linkTo(t, db, d, "+15550001111") // the same number keeps its history, and the timers of its chats
		if timers() != 1 {
			t.Error("the timer of a chat is gone")
		}
		sameText(t, "before", listed(t, db, ws, MessageSearch{}), string(beside.ID), string(old.ID))

		linkTo(t, db, d, "+15550009999")
		if timers() != 0 {
			t.Error("the timer of the old number's chat is left")
		}
		sameText(t, "all", listed(t, db, ws, MessageSearch{}), string(beside.ID))
		sameText(t, "archived", listed(t, db, ws, MessageSearch{Archived: true}), string(old.ID))
		if m, err := db.Messages.Get(t.Context(), ws, old.ID); err != nil || m.Status != postern.Sent {
			t.Errorf("the old message = %s, %v", m.Status, err)
		}
		fresh := queue(t, db, d)
		sameText(t, "of the device", listed(t, db, ws, MessageSearch{Devices: []postern.DeviceID{d.ID}}),
			string(fresh.ID))
		if list, err := db.Outbox.NextOf(t.Context(), d.ID, Fresh, 0, nil, 5); err != nil || len(list[postern.NormalLane]) != 1 {
			t.Errorf("the chat is no new one for the new number: %d, %v", len(list), err)
		}
		forged := Receipt{
			DeviceID: d.ID, NetworkID: old.NetworkID, Chats: []string{old.ChatID}, Status: postern.Read,
			At: testNow, Now: testNow,
		}
		if err := db.Messages.RecordReceipts(t.Context(), []Receipt{forged}); err != nil {
			t.Fatal(err)
		}
		if m, err := db.Messages.Get(t.Context(), ws, old.ID); err != nil || m.Status != postern.Sent {
			t.Errorf("a receipt for the new number makes the old message %s, %v", m.Status, err)
		}
		if _, ok, err := db.Messages.ByNetworkID(t.Context(), d.ID, old.NetworkID); ok || err != nil {
			t.Errorf("the old message can be asked for again: %v, %v", ok, err)
		}
	})
}

// SQLite numbers messages anew when the newest ones are removed. A message of the present
// number must not count as archived then.
func TestRemovingTheNewestMessagesArchivesNothing(t *testing.T) {
	remove := map[string]func(*testing.T, *Store, postern.Device){
		"retention": func(t *testing.T, db *Store, d postern.Device) {
			if _, _, err := db.Messages.Remove(t.Context(), d.WorkspaceID, testNow+1, 0); err != nil {
				t.Fatal(err)
			}
		},
		"purge": func(t *testing.T, db *Store, d postern.Device) {
			if _, err := db.Devices.Purge(t.Context(), d.ID, new(PurgePlace)); err != nil {
				t.Fatal(err)
			}
		},
	}
	forEachEngine(t, func(t *testing.T, on engine) {
		for name, remove := range remove {
			db := on.open(t)
			d := newDevice(t, db, newWorkspace(t, db), postern.Unlinked)
			linkTo(t, db, d, "+15550001111")
			for range 3 {
				m := queue(t, db, d)
				if err := db.Outbox.Finish(t.Context(),
					FinishOutbound{
						MessageID: m.ID, Status: postern.Sent,
						SentAt: testNow,
						At:     testNow,
					}); err != nil {
					t.Fatal(err)
				}
			}
			linkTo(t, db, d, "+15550009999")
			remove(t, db, d)
			fresh := queue(t, db, d)
			sameText(t, "after "+name, listed(t, db, d.WorkspaceID, MessageSearch{}), string(fresh.ID))
			if _, ok, err := db.Messages.ByNetworkID(t.Context(), d.ID, fresh.NetworkID); !ok || err != nil {
				t.Errorf("after %s the message cannot be found by its network id: %v, %v", name, ok, err)
			}
		}
	})
}

// Messages that the phone had before are read, also after they have moved to another chat with the same person.
func TestAMovedHistoryIsRead(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		s := on.open(t)
		d := newDevice(t, s, newWorkspace(t, s), postern.Connected)
		past := inboundOf(d, "A", "lid:1", "before")
		past.Message.History, past.Message.ChatID, past.Message.From, past.Message.FromLID = true, "lid:1", "", "1"
		o := RecordHistory{WorkspaceID: d.WorkspaceID, DeviceID: d.ID, List: []RecordInbound{past}}
		if err := s.Messages.RecordHistory(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if err := s.Messages.RecordInbound(t.Context(), inboundOf(d, "B", "lid:1", "now")); err != nil {
			t.Fatal(err)
		}
		if err := s.db.Do(t.Context(), db.Func(func(t *db.Tx) error {
			return contactid.Join(t, d.ID, "lid:1", "+15551234567")
		})); err != nil {
			t.Fatal(err)
		}
		if n := count(t, s, `SELECT unread FROM chat WHERE chat_id = '+15551234567'`); n != 1 {
			t.Errorf("%d messages are unread, want the one that arrived", n)
		}
	})
}

// Old messages of a history are removed although younger ones were stored before them.
func TestRetentionRemovesOldMessagesOfAHistory(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		receiveN(t, db, d, 1)
		past := inboundOf(d, "P", "lid:1", "long ago")
		past.Message.History, past.Message.CreatedAt = true, testNow.Add(-time.Hour)
		err := db.Messages.RecordHistory(t.Context(), RecordHistory{
			WorkspaceID: d.WorkspaceID, DeviceID: d.ID, List: []RecordInbound{past},
		})
		if err != nil {
			t.Fatal(err)
		}
		if more, err := db.Messages.RemovePast(t.Context(), d.WorkspaceID, testNow.Add(-time.Minute)); more || err != nil {
			t.Fatal(more, err)
		}
		list := messagesOf(t, db, d.WorkspaceID, MessageSearch{})
		if len(list) != 1 || list[0].History {
			t.Errorf("left are %+v, want the one that was received", list)
		}
	})
}
