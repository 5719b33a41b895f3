package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

func TestReceiptCountsOnlyFromTheRecipient(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		m := queue(t, db, d)
		if err := db.Outbox.Finish(t.Context(), FinishOutbound{
			MessageID: m.ID, Status: postern.Sent, SentAt: testNow,
			At: testNow,
		}); err != nil {
			t.Fatal(err)
		}
		for _, chats := range [][]string{nil, {""}, {"+15550009999", "lid:9"}, {m.ChatID + "0"}} {
			if err := db.Messages.RecordReceipts(t.Context(), []Receipt{{
				DeviceID: d.ID, NetworkID: m.NetworkID,
				Chats: chats, Status: postern.Read, At: testNow, Now: testNow,
			}}); err != nil {
				t.Fatal(err)
			}
			if got, err := db.Messages.Get(t.Context(), d.WorkspaceID, m.ID); err != nil || got.Status != postern.Sent {
				t.Errorf("after a receipt from %q the message is %s, %v", chats, got.Status, err)
			}
		}
	})
}

func TestReceiptMakesEveryStateItPasses(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		m := queue(t, db, d)
		receipt := func(s postern.MessageStatus) {
			t.Helper()
			if err := db.Messages.RecordReceipts(t.Context(),
				[]Receipt{{
					DeviceID: d.ID, NetworkID: m.NetworkID, Chats: []string{"lid:9", m.ChatID}, Status: s, At: testNow,
					Now: testNow,
				}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Outbox.MarkSending(m.ID, 0)(); err != nil {
			t.Fatal(err)
		}
		receipt(postern.Read) // before the network's answer to the send
		if err := db.Outbox.Finish(t.Context(), FinishOutbound{
			MessageID: m.ID, Status: postern.Sent, SentAt: testNow,
			At: testNow,
		}); err != nil {
			t.Fatal(err)
		}
		receipt(postern.Delivered) // late
		receipt(postern.Read)      // again
		sameText(t, "events", eventTypes(t, db, d.ID), "message.sent", "message.delivered", "message.read")
		got, err := db.Messages.Get(t.Context(), d.WorkspaceID, m.ID)
		if err != nil || got.Status != postern.Read || got.SentAt == 0 || got.DeliveredAt == 0 || got.ReadAt == 0 {
			t.Errorf("message = %+v (%v), want read with all times", got, err)
		}
	})
}

func TestExpiryTellsWhatNeverLeftFromWhatMayHaveArrived(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		never, maybe, took := queue(t, db, d), queue(t, db, d), queue(t, db, d)
		for _, m := range []postern.Message{maybe, took} {
			if err := db.Outbox.MarkSending(m.ID, 0)(); err != nil {
				t.Fatal(err)
			}
		}
		db.Outbox.NotConnected(took.ID, true)
		young := max(never.ExpiresAt, postern.TimeOf(db.db.Now())) // the attempt may still be confirmed
		if n, err := db.Outbox.Expire(t.Context(), young, 10); n != 2 || err != nil {
			t.Fatalf("ExpireOutbound = %d, %v, want the 2 that are not in flight", n, err)
		}
		n, err := db.Outbox.Expire(t.Context(), young.Add(time.Hour), 10)
		if n != 1 || err != nil {
			t.Fatalf("ExpireOutbound = %d, %v, want 1", n, err)
		}
		for m, want := range map[postern.MessageID]postern.MessageStatus{
			never.ID: postern.Expired,
			took.ID:  postern.Expired,
			maybe.ID: postern.Failed,
		} {
			got, err := db.Messages.Get(t.Context(), d.WorkspaceID, m)
			if err != nil || got.Status != want {
				t.Errorf("message is %s (%v), want %s", got.Status, err, want)
			}
		}
		if used, err := db.Usage.Messages(t.Context(), d.WorkspaceID, MonthOf(testNow)); used != 1 || err != nil {
			t.Errorf("used %d (%v), want 1: only what may have arrived costs", used, err)
		}
		// The one exception: a receipt moves an unconfirmed message on.
		if err := db.Messages.RecordReceipts(t.Context(),
			[]Receipt{
				{
					DeviceID: d.ID, NetworkID: maybe.NetworkID, Chats: []string{maybe.ChatID}, Status: postern.Delivered,
					At: testNow, Now: testNow,
				},
				{
					DeviceID: d.ID, NetworkID: never.NetworkID, Chats: []string{never.ChatID}, Status: postern.Delivered,
					At: testNow, Now: testNow,
				},
			}); err != nil {
			t.Fatal(err)
		}
		if got, err := db.Messages.Get(t.Context(), d.WorkspaceID, maybe.ID); got.Status != postern.Delivered ||
			got.Error != nil {
			t.Errorf("unconfirmed message after its receipt: %s, error %v (%v), want delivered", got.Status, got.Error,
				err)
		}
		if got, err := db.Messages.Get(t.Context(), d.WorkspaceID, never.ID); got.Status != postern.Expired {
			t.Errorf("expired message after a receipt: %s (%v), want expired", got.Status, err)
		}
	})
}

// From the moment a pause is committed no message is marked, even while the connection still ends.
func TestMessageOfAPausedDeviceIsNotMarked(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		other := newDevice(t, db, d.WorkspaceID, postern.Connected)
		m, free := queue(t, db, d), queue(t, db, other)
		_, err := db.Devices.Decide(t.Context(), d.WorkspaceID, d.ID, testNow,
			func(d *postern.Device, _ bool) (postern.EventType, error) {
				d.Status, d.Desired = postern.Paused, postern.WantIdle
				return postern.DevicePaused, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		paused, open := db.Outbox.MarkSending(m.ID, 0), db.Outbox.MarkSending(free.ID, 0)
		if err := paused(); !errors.Is(err, ErrNotQueued) {
			t.Errorf("the mark of a message of a paused device = %v, want ErrNotQueued", err)
		}
		if err := open(); err != nil {
			t.Errorf("the mark of another device's message = %v", err)
		}
		if got, err := db.Messages.Get(t.Context(), d.WorkspaceID, m.ID); got.Status != postern.Queued {
			t.Errorf("message = %+v (%v), want it queued", got, err)
		}
		for m, want := range map[postern.MessageID]bool{m.ID: true, free.ID: true, postern.NewMessageID(): false} {
			if queued, err := db.Outbox.IsQueued(t.Context(), m); queued != want || err != nil {
				t.Errorf("queued: %t, %v, want %t", queued, err, want)
			}
		}
	})
}

func TestMessagesLeaveInTheOrderTheyWereAccepted(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		var want []string
		for range 100 {
			want = append(want, string(queue(t, db, d).ID))
		}
		waiting, err := db.Outbox.Next(t.Context(), d.ID, nil, 1000)
		if err != nil {
			t.Fatal(err)
		}
		list := waiting[postern.NormalLane]
		got := make([]string, len(list))
		for i, m := range list {
			got[i] = string(m.ID)
		}
		sameText(t, "order", got, want...)
	})
}

// The messages of a chat that wait are in one lane, in the order in which they were accepted.
func TestAChatWaitsInOneLane(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		accept := func(p postern.Priority, status postern.MessageStatus, chat, body string) {
			t.Helper()
			m := outbound(d)
			m.Priority, m.ChatID, m.Content, m.Status, m.SendAt = p, chat, postern.Text(body), status, testNow
			o := QueueMessage{Message: m, Month: MonthOf(testNow)}
			if err := db.Messages.Queue(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		accept(postern.LowPriority, postern.Queued, "+1", "a")
		accept(postern.LowPriority, postern.Queued, "+2", "b")
		accept(postern.HighPriority, postern.Scheduled, "+2", "c")
		wantLanes(t, db, d, "", "", "a b")
		accept("", postern.Queued, "+1", "d")
		wantLanes(t, db, d, "", "a d", "b") // d takes the messages before it along
		accept(postern.HighPriority, postern.Queued, "+3", "e")
		accept(postern.LowPriority, postern.Queued, "+3", "f") // does not hold up what is before it
		wantLanes(t, db, d, "e f", "a d", "b")
		if n, err := db.Outbox.Due(t.Context(), testNow, 10); err != nil || n != 1 {
			t.Fatalf("%d are due, %v", n, err)
		}
		wantLanes(t, db, d, "b c e f", "a d", "")
		o := QueueAction{Action: outbound(d)}
		o.Action.About, o.Action.ChatID, o.Action.Content = "x", "+3", postern.Content{Kind: postern.KindReaction, Text: "g"}
		queued := func() int {
			n, err := db.Devices.Queued(t.Context(), d.WorkspaceID, d.ID)
			if err != nil {
				t.Fatal(err)
			}
			return n[d.ID]
		}
		before := queued()
		if err := db.Messages.QueueAction(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if n := queued(); n != before {
			t.Errorf("with an action, %d messages are queued, want %d", n, before)
		}
		wantLanes(t, db, d, "b c e f g", "a d", "")
	})
}

func wantLanes(t *testing.T, s *Store, d postern.Device, want ...string) {
	t.Helper()
	waiting, err := s.Outbox.Next(t.Context(), d.ID, nil, 10)
	if err != nil {
		t.Fatal(err)
	}
	for lane, list := range waiting {
		var got []string
		for _, m := range list {
			got = append(got, m.Content.Text)
		}
		if all := strings.Join(got, " "); all != want[lane] {
			t.Errorf("lane %d = %q, want %q", lane, all, want[lane])
		}
	}
}

func inboundOf(d postern.Device, networkID, sender, body string) RecordInbound {
	return RecordInbound{Sender: sender, Type: postern.MessageReceived, Now: testNow, Message: postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Direction: postern.Inbound,
		ChatID: "+15551234567", From: "+15551234567",
		Content: postern.Text(body), Status: postern.Received, NetworkID: networkID, Source: postern.FromContact,
		Metadata: map[string]string{}, CreatedAt: testNow, SentAt: testNow,
	}}
}

func TestWhatTheNetworkGivesAgainMakesNoSecondEvent(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		for _, o := range []RecordInbound{
			inboundOf(d, "A", "lid:1", "one"), inboundOf(d, "A", "lid:1", "one"),
			inboundOf(d, "A", "lid:2", "another contact chose the same id"), inboundOf(d, "B", "lid:1", "two"),
		} {
			if err := db.Messages.RecordInbound(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		sameText(t, "events", eventTypes(t, db, d.ID), "message.received", "message.received", "message.received")
	})
}

func TestMessageThatCouldNotBeReadIsCompletedOnce(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		dark := inboundOf(d, "A", "lid:1", "")
		dark.Type, dark.Undecryptable, dark.Message.Content = postern.MessageUndecryptable, true, postern.Unsupported("")
		readable := inboundOf(d, "A", "lid:1", "now it can be read")
		readable.Message.ReplyTo, readable.Message.FromName = "msg_answered", "Ada"
		for _, o := range []RecordInbound{dark, dark, readable, readable, dark} {
			if err := db.Messages.RecordInbound(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		sameText(t, "events", eventTypes(t, db, d.ID), "message.undecryptable", "message.received")
		list := messagesOf(t, db, d.WorkspaceID, MessageSearch{})
		if len(list) != 1 || list[0].Content.Text != "now it can be read" || list[0].ID != dark.Message.ID {
			t.Errorf("messages = %+v, want the one, completed", list)
		}
		if m := list[0]; m.ReplyTo != "msg_answered" || m.FromName != "Ada" {
			t.Errorf("the message replies to %q and is from %q", m.ReplyTo, m.FromName)
		}
	})
}

// An action that could not be decrypted at first is no message any more once it is, and has its effect.
func TestActionThatCouldNotBeReadTakesEffect(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		text, dark := inboundOf(d, "A", "lid:1", "befor"), inboundOf(d, "B", "lid:1", "")
		dark.Type, dark.Undecryptable, dark.Message.Content = postern.MessageUndecryptable, true, postern.Unsupported("")
		edit := inboundOf(d, "B", "lid:1", "before")
		edit.Message.Content, edit.Message.About = postern.Content{Kind: postern.KindEdit, Text: "before"}, "A"
		for _, o := range []RecordInbound{text, dark, edit, edit} {
			if err := db.Messages.RecordInbound(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		sameText(t, "events", eventTypes(t, db, d.ID), "message.received", "message.undecryptable", "message.edited")
		list := messagesOf(t, db, d.WorkspaceID, MessageSearch{})
		if len(list) != 1 || list[0].Content.Text != "before" {
			t.Errorf("messages = %+v, want the edited one", list)
		}
		if n := count(t, db, `SELECT count(*) FROM chat c JOIN message m ON m.n = c.newest
			WHERE c.device_id = $1 AND c.unread = 1 AND m.network_id = 'A'`, d.ID); n != 1 {
			t.Error("the chat does not have the edited message alone")
		}
	})
}

func TestForeignRowsCannotBeSeen(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		m := queue(t, db, d)
		other := newWorkspace(t, db)
		_, err := db.Messages.Get(t.Context(), other, m.ID)
		if got := postern.ReasonOf(err); got != postern.ResourceNotAllowed {
			t.Errorf("another workspace's message: %s, want resource-not-allowed", got)
		}
		_, err = db.Messages.Get(t.Context(), other, "msg_none")
		if got := postern.ReasonOf(err); got != postern.NotFound {
			t.Errorf("no message: %s, want not-found", got)
		}
		if list := messagesOf(t, db, other, MessageSearch{}); len(list) != 0 {
			t.Errorf("another workspace lists %d messages", len(list))
		}
	})
}

func TestUnlinkingFailsWhatWaitsAndGivesItBack(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		queue(t, db, d)
		left := queue(t, db, d)
		if err := db.Outbox.MarkSending(left.ID, 0)(); err != nil {
			t.Fatal(err)
		}
		e, err := d.Event(postern.DeviceUnlinked)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Devices.RequestUnlink(t.Context(),
			SetDeviceState{
				WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Status: postern.Unlinked,
				Desired:    postern.WantUnlink,
				FailQueued: true, At: testNow, Event: &e,
			})
		if err != nil {
			t.Fatal(err)
		}
		sameText(t, "events", eventTypes(t, db, d.ID), "device.unlinked", "message.failed", "message.failed")
		if used, err := db.Usage.Messages(t.Context(), d.WorkspaceID, MonthOf(testNow)); used != 1 || err != nil {
			t.Errorf("used %d (%v), want 1: one frame may have left", used, err)
		}
		m, err := db.Messages.Get(t.Context(), d.WorkspaceID, left.ID)
		if err != nil || m.Error == nil || m.Error.Code != postern.Unconfirmed {
			t.Errorf("the message whose frame left is %+v (%v), want one that may have arrived", m, err)
		}
	})
}

// A long queue fails in chunks, so that other writes do not wait.
func TestALongQueueFailsInChunks(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := withUnsendable(t, db, failedAtOnce+1)
		for _, want := range []int{failedAtOnce, 1, 0} {
			err := db.db.Do(t.Context(), opFunc(func(tx *tx) error {
				n, err := failChunk(tx, d.ID, testNow)
				if n != want {
					t.Errorf("%d messages failed at once, want %d", n, want)
				}
				return err
			}))
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// withUnsendable returns a device whose unlink was interrupted: it has no link, and n
// messages are queued.
func withUnsendable(t *testing.T, s *Store, n int) postern.Device {
	t.Helper()
	d := newDevice(t, s, newWorkspace(t, s), postern.Connected)
	list := make([]QueueMessage, n)
	for i := range list {
		list[i] = queued(d)
	}
	writeAll(t, s, list...)
	unlink := SetDeviceState{WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Status: postern.Unlinked, At: testNow}
	if err := s.Devices.SetState(t.Context(), unlink); err != nil {
		t.Fatal(err)
	}
	return d
}

// Whatever comes after an interrupted unlink, each message fails and costs nothing.
func TestWhatAnInterruptedUnlinkLeavesFails(t *testing.T) {
	next := map[string]func(*testing.T, *Store, postern.Device) error{
		"maintenance": func(t *testing.T, db *Store, _ postern.Device) error {
			return db.Outbox.FailUnsendable(t.Context(), testNow)
		},
		"a link attempt": func(t *testing.T, db *Store, d postern.Device) error {
			return db.Links.Open(t.Context(), openLinkOf(d, 5))
		},
		"the same change again": func(t *testing.T, db *Store, d postern.Device) error {
			return db.Devices.SetState(t.Context(), SetDeviceState{
				WorkspaceID: d.WorkspaceID, DeviceID: d.ID,
				FailQueued: true, From: []postern.Status{postern.Connected}, At: testNow,
			})
		},
		"the purge": func(t *testing.T, db *Store, d postern.Device) error {
			_, err := db.Devices.Purge(t.Context(), d.ID, new(PurgePlace))
			return err
		},
	}
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		busy := newDevice(t, db, newWorkspace(t, db), postern.Paused)
		m := outbound(busy)
		if err := db.Messages.Queue(t.Context(), QueueMessage{
			Message: m, Month: MonthOf(testNow),
			WhenDisconnected: "queue",
		}); err != nil {
			t.Fatal(err)
		}
		for what, do := range next {
			d := withUnsendable(t, db, 2)
			if err := do(t, db, d); err != nil {
				t.Fatal(what, err)
			}
			used, err := db.Usage.Messages(t.Context(), d.WorkspaceID, MonthOf(testNow))
			if failed := count(t, db, `SELECT count(*) FROM event WHERE device_id = $1 AND type = 'message.failed'`,
				d.ID); failed != 2 || used != 0 || err != nil {
				t.Errorf("after %s %d messages have failed and %d are used (%v), want 2 and 0", what, failed, used, err)
			}
		}
		if m, err := db.Messages.Get(t.Context(), m.WorkspaceID, m.ID); err != nil || m.Status != postern.Queued {
			t.Errorf("the message of a paused device is %s (%v), want queued", m.Status, err)
		}
	})
}

// scheduled queues a message that is to be sent in an hour.
func scheduled(t *testing.T, db *Store, d postern.Device) postern.Message {
	t.Helper()
	m := outbound(d)
	m.Status, m.SendAt, m.ExpiresAt = postern.Scheduled, testNow.Add(time.Hour), testNow.Add(2*time.Hour)
	if err := db.Messages.Queue(t.Context(), QueueMessage{Message: m, Month: MonthOf(testNow)}); err != nil {
		t.Fatal(err)
	}
	return m
}

// A scheduled message of a deleted device fails, and gives back its unit of the quota.
func TestScheduledMessagesOfADeletedDeviceFail(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		scheduled(t, db, d)
		if err := db.Devices.RequestDelete(t.Context(), d.WorkspaceID, d.ID, nil, testNow); err != nil {
			t.Fatal(err)
		}
		failed := count(t, db, `SELECT count(*) FROM event WHERE device_id = $1 AND type = 'message.failed'`, d.ID)
		used, err := db.Usage.Messages(t.Context(), d.WorkspaceID, MonthOf(testNow))
		if failed != 1 || used != 0 || err != nil {
			t.Errorf("%d messages have failed and %d are used (%v), want 1 and 0", failed, used, err)
		}
	})
}

func TestDeletedDeviceLeavesIdsOnly(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		for range 3 {
			if err := db.Messages.RecordInbound(t.Context(),
				inboundOf(d, postern.NewNetworkID(), "lid:1", "secret words")); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Devices.RequestDelete(t.Context(), d.WorkspaceID, d.ID, nil, testNow); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Devices.Get(t.Context(), d.WorkspaceID, d.ID); postern.ReasonOf(err) != postern.NotFound {
			t.Errorf("a deleted device can be read: %v", err)
		}
		var at PurgePlace
		for i := 0; ; i++ {
			purged, err := db.Devices.Purge(t.Context(), d.ID, &at)
			if err != nil || i > 10 {
				t.Fatalf("PurgeDevice, round %d: %v", i, err)
			}
			if purged == PurgeDone {
				break
			}
		}
		if n := count(t, db, `SELECT count(*) FROM message`) + count(t, db, `SELECT count(*)
			FROM device`) + count(t, db, `SELECT count(*) FROM event WHERE length(body) > 0`); n != 0 {
			t.Errorf("%d rows with content are left", n)
		}
		if n := count(t, db, `SELECT count(*) FROM event`); n != 3 {
			t.Errorf("%d events are left, want 3 with their ids", n)
		}
	})
}

func TestPagesFollowEachOther(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		var want []string
		for range 7 {
			want = append([]string{string(queue(t, db, d).ID)}, want...)
		}
		for name, q := range map[string]MessageSearch{
			"of a device": {Devices: []postern.DeviceID{d.ID}, Direction: postern.Outbound},
			"of a period": {DeviceID: d.ID, Since: testNow, Until: testNow.Add(time.Hour)},
		} {
			sameText(t, "pages "+name, finds(t, db, d.WorkspaceID, q, 3), want...)
		}
	})
}

// A group may hold messages of one device that count in two months, and ids of devices that
// belong to another workspace.
func TestEachMessageOfAGroupIsCheckedInItsOwnMonthAndWorkspace(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		mine, other := newWorkspace(t, db), newWorkspace(t, db)
		limitMessages(t, db, mine, 1)
		d := newDevice(t, db, mine, postern.Connected)
		send := func(ws postern.WorkspaceID, month string) op {
			m := outbound(d)
			m.WorkspaceID = ws
			return hot(QueueMessage{Message: m, Month: month})
		}
		if err := db.db.Do(t.Context(), send(mine, "2026-10")); err != nil {
			t.Fatal(err)
		}
		got := grouped(db, send(other, "2026-11"), send(mine, "2026-10"), send(mine, "2026-11"), send(mine, "2026-11"))
		for i, want := range []postern.Reason{postern.NotFound, postern.QuotaExhausted, "", postern.QuotaExhausted} {
			if (got[i] == nil) != (want == "") || got[i] != nil && postern.ReasonOf(got[i]) != want {
				t.Errorf("message %d: %v, want %q", i, got[i], want)
			}
		}
	})
}

// Receipts take turns with the writes of other workspaces: a workspace may have thousands
// of devices that get them at once.
func TestReceiptsTakeTurns(t *testing.T) {
	t.Parallel()
	got, want := receipts{{WorkspaceID: "ws_1"}}.About(), db.About{Workspace: "ws_1", Urgency: db.Fair, Fenced: true}
	if got != want {
		t.Errorf("about %+v, want %+v", got, want)
	}
}

// Each change of a scheduled message begins with the message as the change before it has left it.
func TestChangesOfAScheduledMessageAddUp(t *testing.T) {
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		m := scheduled(t, db, d)
		for _, change := range []func(*postern.Message){
			func(m *postern.Message) { m.Content.Text = "corrected" },
			func(m *postern.Message) { m.SendAt = testNow.Add(time.Minute) },
		} {
			_, err := db.Messages.ChangeScheduled(t.Context(), m.WorkspaceID, m.ID, func(m *postern.Message) error {
				change(m)
				return nil
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
		}
		got, err := db.Messages.Get(t.Context(), m.WorkspaceID, m.ID)
		if err != nil || got.Content.Text != "corrected" || got.SendAt != testNow.Add(time.Minute) {
			t.Errorf("the message is %+v (%v)", got, err)
		}
		_, err = db.Messages.ChangeScheduled(t.Context(), "ws_other", m.ID, nil, nil)
		if postern.ReasonOf(err) != postern.ActionNotPossible {
			t.Errorf("a change of another workspace: %v", err)
		}
	})
}

// A message to a group that was not confirmed moves on once all who got it have confirmed it.
func TestUnconfirmedMessageToAGroupIsConfirmedByItsMembers(t *testing.T) {
	for _, order := range [][]string{
		{"reached", "over", "lid:1", "lid:2"}, {"lid:1", "lid:2", "reached", "over"}, {"lid:1", "reached", "over", "lid:2"},
	} {
		t.Run(order[0]+" "+order[1], func(t *testing.T) { confirmedByMembers(t, order) })
	}
}

func confirmedByMembers(t *testing.T, order []string) {
	t.Helper()
	forEachEngine(t, func(t *testing.T, on engine) {
		db := on.open(t)
		d := newDevice(t, db, newWorkspace(t, db), postern.Connected)
		o := queued(d)
		o.Message.ChatID, o.Message.To = "group:1", ""
		if err := db.Messages.Queue(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if err := db.Outbox.MarkSending(o.Message.ID, 0)(); err != nil {
			t.Fatal(err)
		}
		m := QueuedMessage{Message: o.Message, FrameLeft: true}
		steps := map[string]func() error{
			"reached": func() error { db.Outbox.Reached(o.Message.ID, 2); return nil },
			"over":    func() error { return db.Outbox.ExpireOne(t.Context(), m, testNow.Add(2*time.Hour)) },
		}
		for _, member := range []string{"lid:1", "lid:2"} {
			steps[member] = func() error {
				return db.Messages.RecordReceipts(t.Context(), []Receipt{{
					WorkspaceID: d.WorkspaceID, DeviceID: d.ID, NetworkID: o.Message.NetworkID, Chats: []string{"group:1"}, Member: member,
					Status: postern.Delivered, At: testNow, Now: testNow,
				}})
			}
		}
		for _, step := range order {
			if err := steps[step](); err != nil {
				t.Fatal(step, err)
			}
		}
		got, err := db.Messages.Get(t.Context(), d.WorkspaceID, o.Message.ID)
		if err != nil || got.Status != postern.Delivered || got.Error != nil {
			t.Errorf("the message is %s (%+v, %v), want delivered", got.Status, got.Error, err)
		}
	})
}
