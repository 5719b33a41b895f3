package testkit_test

import (
	"fmt"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

// pause returns a device that is linked but queues messages until it is resumed.
func pause(c *testkit.Client) postern.Device {
	d := c.Link(phone)
	c.Call("POST", path(d, "/pause"), nil, 200, nil)
	return d
}

// queueAs queues a text with a priority.
func queueAs(c *testkit.Client, d postern.Device, priority, to, body string) (m postern.Message) {
	c.Call("POST", "/v1/messages", map[string]any{
		"deviceId": d.ID, "to": to, "body": body, "priority": priority, "whenDisconnected": "queue",
	}, 202, &m)
	return m
}

// left returns the texts that a vendor was given, in their order.
func left(k *testkit.Kit) (list []string) {
	for _, e := range k.Vendor.Ledger(0, 0) {
		if e.Direction == vendorsim.Outbound {
			list = append(list, e.Body)
		}
	}
	return list
}

// positions returns the texts of queued messages in the order in which they say that they leave.
func positions(t *testing.T, c *testkit.Client) []string {
	t.Helper()
	var list struct{ Data []postern.Message }
	c.Call("GET", "/v1/messages?status=queued", nil, 200, &list)
	texts := make([]string, len(list.Data))
	for _, m := range list.Data {
		if m.Position != nil {
			t.Errorf("a list shows the position %d", *m.Position)
		}
		var one struct {
			Body     string
			Position *int
		}
		c.Call("GET", "/v1/messages/"+string(m.ID), nil, 200, &one)
		if one.Position == nil || *one.Position >= len(texts) || texts[*one.Position] != "" {
			t.Fatalf("%s has the position %v", one.Body, one.Position)
		}
		texts[*one.Position] = one.Body
	}
	return texts
}

// Messages leave by their priority, those of one chat in the order in which they were accepted,
// also after a restart, and in the order of their positions.
func TestMessagesLeaveByPriority(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := pause(c)
		to := func(n int) string { return fmt.Sprint("+1500556", 1000+n) }
		for i := range 4 {
			queueAs(c, d, "low", to(i), fmt.Sprint("low", i))
			queueAs(c, d, "normal", to(10+i), fmt.Sprint("normal", i))
		}
		last := queueAs(c, d, "high", to(0), "high")
		var scheduled postern.Message
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": to(20), "body": "scheduled", "priority": "low", "sendAt": in(time.Hour),
		}, 202, &scheduled)
		if last.Priority != postern.HighPriority || scheduled.Priority != postern.LowPriority {
			t.Errorf("priorities = %q and %q", last.Priority, scheduled.Priority)
		}
		var changed postern.Message
		c.Call("PATCH", "/v1/messages/"+string(scheduled.ID), map[string]any{"priority": "normal"}, 202, &changed)
		c.Call("GET", "/v1/messages/"+string(scheduled.ID), nil, 200, &changed)
		if changed.Priority != "" {
			t.Errorf("changed priority = %q", changed.Priority)
		}
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": to(0), "body": "x", "priority": "urgent",
		}, 422, nil)
		c.Call("PATCH", "/v1/messages/"+string(last.ID), map[string]any{"priority": "low"}, 409, nil)
		expected := fmt.Sprint(positions(t, c))
		k.Stop()
		k.Boot()
		c.Call("POST", path(d, "/resume"), nil, 200, nil)
		testkit.Eventually(t, "all are sent", func() (bool, any) { return len(left(k)) == 9, left(k) })
		want := "[low0 normal0 low1 high normal1 normal2 normal3 low2 low3]"
		if got := fmt.Sprint(left(k)); got != want {
			t.Errorf("messages left in the order %s, want %s", got, want)
		}
		if expected != want {
			t.Errorf("by their positions, messages leave in the order %s, want %s", expected, want)
		}
		var gone map[string]any
		c.Call("GET", "/v1/messages/"+string(last.ID), nil, 200, &gone)
		if gone["position"] != nil {
			t.Errorf("a message that was sent has the position %v", gone["position"])
		}
	})
}
