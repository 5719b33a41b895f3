package testkit_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow/proto/waE2E" //nolint:depguard // what a phone writes
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

// timeline returns a message's timeline, which it reads in pages of two entries, without the
// times.
func timeline(t *testing.T, c *testkit.Client, id postern.MessageID) (lines []string) {
	t.Helper()
	var last postern.Time
	for next := "/v1/messages/" + string(id) + "/timeline?limit=2"; ; {
		var page struct {
			Data       []postern.TimelineEntry
			NextCursor string
		}
		c.Call("GET", next, nil, 200, &page)
		for _, e := range page.Data {
			if e.At < last {
				t.Errorf("%s is at %s, before %s", e.Type, e.At, last)
			}
			last = e.At
			lines = append(lines, line(e))
		}
		if page.NextCursor == "" {
			return lines
		}
		next = "/v1/messages/" + string(id) + "/timeline?limit=2&cursor=" + page.NextCursor
	}
}

func line(e postern.TimelineEntry) string {
	s := e.Type
	switch {
	case e.Attempt != nil:
		s += fmt.Sprint(" ", e.Attempt.Number, " ", e.Attempt.Outcome)
	case e.Action != nil:
		s += fmt.Sprint(" ", e.Action.Type, " ", e.Action.From, " ", e.Action.Emoji, " ", e.Action.Status)
		if e.Action.Error != nil {
			s += fmt.Sprint(" ", e.Action.Error.Code, ": ", e.Action.Error.Detail)
		}
	case e.Webhook != nil:
		s += fmt.Sprint(" ", e.Webhook.EventType, " ", e.Webhook.Number, " ", e.Webhook.Status)
	case e.Error != nil:
		s += fmt.Sprint(" ", e.Error.Code)
	}
	return s
}

// A timeline shows the way of a message, what was done with it, also if it failed, and who was
// told.
func TestTimeline(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		m := send(a.c, a.d, reader, "hello")
		a.c.AwaitMessage(m.ID, postern.Read)
		a.act("PUT", string(m.ID), "/reaction", map[string]any{"emoji": "👍"})
		a.event(postern.MessageReaction, 1)
		a.write(&waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Key: key(m.NetworkID), Text: new("🎉")}})
		a.event(postern.MessageReaction, 2)
		a.act("PUT", string(m.ID), "/pin", map[string]any{"duration": 86400})
		a.event(postern.MessagePinned, 1)
		a.act("DELETE", string(m.ID), "/pin", nil)
		a.event(postern.MessageUnpinned, 1)
		a.act("PUT", string(m.ID), "/star", nil)
		a.event(postern.MessageStarred, 1)
		a.star(m.NetworkID, false)
		a.event(postern.MessageUnstarred, 1)
		a.write(edit(m.NetworkID, "I owe you a million")) // has no effect
		a.write(&waE2E.Message{Conversation: new("bye")})
		a.event(postern.MessageReceived, 1)
		a.c.Call("POST", path(a.d, "/pause"), nil, 200, nil)
		a.act("PATCH", string(m.ID), "", map[string]any{"body": "hello again"})
		a.c.Call("POST", path(a.d, "/unlink"), nil, 200, nil)

		way := []string{"accepted", "queued", "attempt 1 sent", "sent", "delivered", "read"}
		acts := []string{
			"action reaction " + phone + " 👍 sent", "action reaction " + reader + " 🎉 received",
			"action pin " + phone + "  sent", "action unpin " + phone + "  sent",
			"action star " + phone + "  sent", "action unstar " + phone + "  sent",
			"action edit " + phone + "  failed DEVICE_LOGGED_OUT: the device's link was removed before the message was sent",
		}
		told := []string{
			"webhook message.sent 1 200", "webhook message.delivered 1 200", "webhook message.read 1 200",
			"webhook message.reaction 1 200", "webhook message.reaction 1 200",
			"webhook message.pinned 1 200", "webhook message.unpinned 1 200",
			"webhook message.starred 1 200", "webhook message.unstarred 1 200",
		}
		want := slices.Sorted(slices.Values(slices.Concat(way, acts, told)))
		var got []string
		testkit.Eventually(t, "all posts are recorded", func() (bool, any) {
			got = timeline(t, a.c, m.ID)
			return len(got) >= len(want), got
		})
		if sorted := slices.Sorted(slices.Values(got)); !slices.Equal(sorted, want) {
			t.Errorf("the timeline shows\n%q, want\n%q", sorted, want)
		}
		only := k.Key(a.c.Workspace, gateway.NewKey{Name: "x", Scopes: []postern.Scope{postern.MessagesRead}})
		if got, want := timeline(t, only, m.ID), slices.Concat(way, acts); !slices.Equal(got, want) {
			t.Errorf("without webhooks:read, the timeline shows\n%q, want\n%q", got, want)
		}
	})
}

// The timelines of messages that were not sent say why, and those of others when they waited.
func TestTimelinesOfOtherMessages(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		failed := send(a.c, a.d, absent, "hello")
		a.c.AwaitMessage(failed.ID, postern.Failed)
		var scheduled, canceled postern.Message
		for i, m := range []*postern.Message{&scheduled, &canceled} {
			a.c.Call("POST", "/v1/messages", map[string]any{
				"deviceId": a.d.ID, "to": reader, "body": "x", "sendAt": in(time.Duration(1+i) * time.Hour),
			}, 202, m)
		}
		a.act("PATCH", string(scheduled.ID), "", map[string]any{"sendAt": in(-time.Hour)})
		a.c.AwaitMessage(scheduled.ID, postern.Read)
		a.c.Call("POST", "/v1/messages/"+string(canceled.ID)+"/cancel", nil, 200, nil)
		a.write(&waE2E.Message{Conversation: new("bye")})
		received, _ := a.event(postern.MessageReceived, 1)["id"].(string)
		only := k.Key(a.c.Workspace, gateway.NewKey{Name: "x", Scopes: []postern.Scope{postern.MessagesRead}})
		for id, want := range map[postern.MessageID]string{
			failed.ID:                   "[accepted queued attempt 1 refused failed RECIPIENT_NOT_FOUND]",
			scheduled.ID:                "[accepted queued attempt 1 sent sent delivered read]",
			canceled.ID:                 "[accepted canceled]",
			postern.MessageID(received): "[received]",
		} {
			if got := fmt.Sprint(timeline(t, only, id)); got != want {
				t.Errorf("timeline = %s, want %s", got, want)
			}
		}
	})
}
