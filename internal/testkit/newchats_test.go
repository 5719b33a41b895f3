package testkit_test

import (
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

const (
	stranger = "+15550000031"
	another  = "+15550000032"
)

// While the vendor does not let an account start chats, messages that would start one are refused, and all others are
// sent.
func TestNewChatsAreLimited(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("device.limited", "device.unlimited", "message.received")
		d := c.Link(phone)
		if _, err := k.Vendor.Send(t.Context(), phone, ann, "hello"); err != nil {
			t.Fatal(err)
		}
		hooks.Await(postern.MessageReceived)
		_, chat := newGroup(t, k, ben, phone)
		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/faults", map[string]any{"kind": "limit"}, 204, nil)
		hooks.Await(postern.DeviceLimited)
		if got := c.Device(d.ID); got.NewChats.Allowed || got.NewChats.Until == 0 || got.Status != postern.Connected {
			t.Errorf("the device is %+v", got)
		}
		write := func(to string, status int) (m postern.Message) {
			t.Helper()
			c.Call("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": to, "body": "Hi"}, status, &m)
			return m
		}
		a := c.Do("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": stranger, "body": "Hi"})
		var p struct{ Code, Type string }
		if a.JSON(k, &p); a.Status != 409 || p.Code != "NEW_CHATS_BLOCKED" {
			t.Errorf("a new chat: %d %s", a.Status, a.Body)
		}
		c.AwaitMessage(write(ann, 202).ID, postern.Delivered)
		c.AwaitMessage(write(chat, 202).ID, postern.Delivered)
		receive := func(direct bool) {
			t.Helper()
			c.Call("PATCH", "/v1/devices/"+string(d.ID), map[string]any{"receive": map[string]any{"direct": direct}}, 200, nil)
		}
		receive(false) // now nobody knows who has written
		c.AwaitMessage(write(another, 202).ID, postern.Failed)
		receive(true)
		c.Call("POST", "/v1/sandbox/devices/"+string(d.ID)+"/faults", map[string]any{"kind": "unlimit"}, 204, nil)
		hooks.Await(postern.DeviceUnlimited)
		if got := c.Device(d.ID); !got.NewChats.Allowed || got.NewChats.Until != 0 || got.NewChats.Slowed != 1 {
			t.Errorf("the device is %+v", got)
		}
		c.AwaitMessage(write(stranger, 202).ID, postern.Delivered)
	})
}

// Without a notice, the first refusal tells of the limit. What was accepted before fails without being sent, and costs
// nothing. The limit ends when its time is over.
func TestNewChatsAreRefusedByTheVendor(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("device.limited", "device.unlimited")
	d := c.Link(phone)
	fault := func(f vendorsim.Fault) {
		t.Helper()
		if err := k.Vendor.Fault(t.Context(), phone, f); err != nil {
			t.Fatal(err)
		}
	}
	fault(vendorsim.FaultLimitSilently)
	used := usedMessages(c)
	fault(vendorsim.FaultDrop)
	c.Await(d.ID, postern.Disconnected)
	first, second := queue(c, d, "one"), postern.Message{}
	c.Call("POST", "/v1/messages", map[string]any{
		"deviceId": d.ID, "to": another, "body": "two", "whenDisconnected": "queue",
	}, 202, &second)
	for _, m := range []postern.Message{first, second} {
		if m = c.AwaitMessage(m.ID, postern.Failed); m.Error == nil || m.Error.Code != postern.RestrictedSender {
			t.Errorf("the error is %+v", m.Error)
		}
	}
	hooks.Await(postern.DeviceLimited)
	if got := c.Device(d.ID).NewChats; got.Allowed || got.Until != 0 {
		t.Errorf("new chats: %+v", got)
	}
	if now := usedMessages(c); now != used+1 {
		t.Errorf("%d messages are used, %d before", now, used)
	}
	fault("limit:1")
	hooks.AwaitCount(postern.DeviceLimited, 2) // with the time
	hooks.Await(postern.DeviceUnlimited)
	c.AwaitMessage(send(c, d, another, "three").ID, postern.Delivered)
}
