package testkit_test

import (
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"
)

// in is a time in the form of a request, from now on.
func in(d time.Duration) string { return postern.TimeOf(time.Now().Add(d)).String() }

// A scheduled message waits for its time, may be changed until then, and is sent once.
func TestScheduledMessageIsSentAtItsTime(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := c.Link(phone)
		var m postern.Message
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": reader, "body": "see you tomorow", "sendAt": in(24 * time.Hour),
		}, 202, &m)
		if m.Status != postern.Scheduled || m.SendAt == 0 || m.ExpiresAt != m.SendAt.Add(24*time.Hour) {
			t.Errorf("accepted message = %+v", m)
		}
		now := send(c, d, reader, "see you")
		c.AwaitMessage(now.ID, postern.Read) // what is accepted later does not wait for it
		c.Call("PATCH", "/v1/messages/"+string(m.ID), map[string]any{"body": "see you now"}, 202, &m)
		if m.Status != postern.Scheduled || m.Content.Text != "see you now" {
			t.Errorf("changed message = %+v", m)
		}
		c.Call("PATCH", "/v1/messages/"+string(m.ID), map[string]any{"sendAt": in(-time.Hour)}, 202, nil)
		if m = c.AwaitMessage(m.ID, postern.Read); m.Content.Text != "see you now" {
			t.Errorf("sent message = %+v", m)
		}
		if shown := k.Vendor.Shown(reader); len(shown) != 2 || shown[1].Body != "see you now" {
			t.Errorf("the phone shows %+v", shown)
		}
		c.Call("PATCH", "/v1/messages/"+string(m.ID), map[string]any{"sendAt": in(time.Hour)}, 409, nil)
	})
}

// fromOldNumber schedules a message before its device is linked to another number.
func fromOldNumber(c *testkit.Client, d postern.Device) (m postern.Message) {
	c.Call("POST", "/v1/messages", map[string]any{
		"deviceId": d.ID, "to": reader, "body": "from the old number", "sendAt": in(time.Hour),
	}, 202, &m)
	return m
}

// A message that was scheduled for another number of the device is not sent from the new one.
func TestScheduledMessageOfAnEarlierNumberFails(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := c.Link(phone)
		m := fromOldNumber(c, d)
		const number = "+15550009999"
		if _, l := relink(t, c, d, number, map[string]any{"allowNewNumber": true}); l.Status != postern.LinkLinked {
			t.Fatalf("the attempt is %s (%s)", l.Status, l.Reason)
		}
		c.Await(d.ID, postern.Connected)
		c.Call("PATCH", "/v1/messages/"+string(m.ID), map[string]any{"sendAt": in(-time.Hour)}, 202, nil)
		if m = c.AwaitMessage(m.ID, postern.Failed); m.Error.Code != postern.DeviceLoggedOut {
			t.Errorf("the message failed with %+v", m.Error)
		}
		now := send(c, d, reader, "from the new number")
		c.AwaitMessage(now.ID, postern.Read)
		if shown := k.Vendor.Shown(reader); len(shown) != 1 || shown[0].From != number {
			t.Errorf("the phone shows %+v", shown)
		}
	})
}

// The same holds if its time comes while the attempt is open that links another number.
func TestScheduledMessageThatFallsDueDuringALinkFails(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := c.Link(phone)
		m := fromOldNumber(c, d)
		c.Call("POST", path(d, "/unlink"), nil, 200, nil)
		c.Call("POST", path(d, "/link"), map[string]any{"allowNewNumber": true}, 201, nil)
		c.Call("PATCH", "/v1/messages/"+string(m.ID), map[string]any{"sendAt": in(-time.Hour)}, 202, nil)
		c.AwaitMessage(m.ID, postern.Queued)
		enter(c, d, map[string]any{"phoneNumber": "+15550009999"})
		c.Await(d.ID, postern.Connected)
		if m = c.AwaitMessage(m.ID, postern.Failed); m.Error.Code != postern.DeviceLoggedOut {
			t.Errorf("the message failed with %+v", m.Error)
		}
		now := send(c, d, reader, "from the new number")
		c.AwaitMessage(now.ID, postern.Read)
		if shown := k.Vendor.Shown(reader); len(shown) != 1 || shown[0].Body != "from the new number" {
			t.Errorf("the phone shows %+v", shown)
		}
	})
}

// An edit of a message that is canceled before it was sent is not sent either.
func TestEditOfACanceledMessageIsNotSent(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := c.Link(phone)
		c.Call("POST", "/v1/devices/"+string(d.ID)+"/pause", nil, 200, nil)
		var m postern.Message
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": reader, "body": "a", "whenDisconnected": "queue",
		}, 202, &m)
		path := "/v1/messages/" + string(m.ID)
		c.Call("PATCH", path, map[string]any{"body": "a secret"}, 202, nil)
		c.Call("POST", path+"/cancel", nil, 200, nil)
		c.Call("POST", "/v1/devices/"+string(d.ID)+"/resume", nil, 200, nil)
		c.Await(d.ID, postern.Connected)
		after := send(c, d, reader, "b") // in the same chat, so behind the edit
		c.AwaitMessage(after.ID, postern.Read)
		for _, e := range k.Vendor.Ledger(0, 0) {
			if e.Body != "b" {
				t.Errorf("the vendor got %+v", e)
			}
		}
		if m = c.AwaitMessage(m.ID, postern.Canceled); m.Content.Text != "a" || m.State.EditedAt != 0 {
			t.Errorf("the message is %+v", m)
		}
	})
}

// A message is canceled before its first attempt, and its unit goes back to the quota.
func TestMessageIsCanceled(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.canceled")
		d := c.Link(phone)
		used := func() int {
			var u struct{ Messages struct{ Used int } }
			c.Call("GET", "/v1/usage", nil, 200, &u)
			return u.Messages.Used
		}
		c.Call("POST", "/v1/devices/"+string(d.ID)+"/pause", nil, 200, nil)
		var queued, scheduled postern.Message
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": reader, "body": "x", "whenDisconnected": "queue",
		}, 202, &queued)
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": reader, "body": "x", "sendAt": in(time.Hour),
		}, 202, &scheduled)
		if n := used(); n != 2 {
			t.Errorf("%d units are used, want 2", n)
		}
		for i, m := range []postern.Message{queued, scheduled} {
			c.Call("POST", "/v1/messages/"+string(m.ID)+"/cancel", nil, 200, &m)
			if hooks.AwaitCount(postern.MessageCanceled, i+1); m.Status != postern.Canceled {
				t.Errorf("canceled message = %+v", m)
			}
			c.Call("POST", "/v1/messages/"+string(m.ID)+"/cancel", nil, 409, nil)
		}
		if n := used(); n != 0 {
			t.Errorf("%d units are used after both were canceled, want 0", n)
		}
		c.Call("POST", "/v1/devices/"+string(d.ID)+"/resume", nil, 200, nil)
		c.Await(d.ID, postern.Connected)
		last := send(c, d, reader, "this one")
		c.AwaitMessage(last.ID, postern.Read)
		c.Call("POST", "/v1/messages/"+string(last.ID)+"/cancel", nil, 409, nil)
		if shown := k.Vendor.Shown(reader); len(shown) != 1 {
			t.Errorf("the phone shows %+v, want only the message that was not canceled", shown)
		}
	})
}
