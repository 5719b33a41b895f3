package testkit_test

import (
	"slices"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
)

// bodies are the texts of a list of messages, oldest first.
func bodies(c *testkit.Client, query string) (list []string) {
	var page struct{ Data []postern.Message }
	c.Call("GET", "/v1/messages?"+query, nil, 200, &page)
	for _, m := range page.Data {
		list = append(list, m.Content.Text)
	}
	slices.Reverse(list)
	return list
}

func wantBodies(t *testing.T, c *testkit.Client, query string, want ...string) {
	t.Helper()
	if got := bodies(c, query); !slices.Equal(got, want) {
		t.Errorf("%s = %q, want %q", query, got, want)
	}
}

// relink unlinks a device, and has the phone of a number scan its new code. It
// gives what the phone was told and how the attempt ended.
func relink(t *testing.T, c *testkit.Client, d postern.Device, number string,
	body map[string]any,
) (status int, l postern.Link) {
	t.Helper()
	if d.Status.HoldsSlot() {
		c.Call("POST", path(d, "/unlink"), nil, 200, nil)
	}
	c.Call("POST", path(d, "/link"), body, 201, nil)
	status = enter(c, d, map[string]any{"phoneNumber": number}).Status
	return status, awaitLink(t, c, d, func(l postern.Link) bool { return !l.Status.Open() })
}

func accountsOf(k *testkit.Kit) (linked []string) {
	for _, a := range k.Vendor.Accounts() {
		if a.Companions > 0 {
			linked = append(linked, a.Number)
		}
	}
	return linked
}

// A phone with another number than the device or the attempt expects is refused, and none of
// its keys are stored.
func TestAnotherNumberIsRefusedBeforeAnyKeyIsKept(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	for _, tt := range []struct {
		name   string
		device postern.Device
		body   map[string]any
		reason postern.Maybe
	}{
		{"another number than before", d, map[string]any{}, "other-number"},
		{"another number than is expected", create(c), map[string]any{"expectedPhoneNumber": "+15550008888"}, "unexpected-number"},
		{"another number than is expected, new ones allowed", d, map[string]any{"expectedPhoneNumber": phone, "allowNewNumber": true}, "unexpected-number"},
	} {
		status, l := relink(t, c, c.Device(tt.device.ID), "+15550009999", tt.body)
		if status != 409 || l.Status != postern.LinkFailed || l.Reason != tt.reason {
			t.Errorf("%s: the phone got %d, the attempt is %s (%s), want 409 and %s", tt.name, status, l.Status,
				l.Reason, tt.reason)
		}
		if now := c.Await(tt.device.ID, postern.Unlinked); now.StatusReason != tt.reason {
			t.Errorf("%s: the device is unlinked for %q", tt.name, now.StatusReason)
		}
	}
	if got := accountsOf(k); len(got) != 0 {
		t.Errorf("the network has companions of %q", got)
	}
	if keys := k.SessionAccounts(); len(keys) != 0 {
		t.Errorf("keys are kept for %q", keys)
	}
}

// TestANewNumberArchivesTheHistory and loses none of it.
func TestANewNumberArchivesTheHistory(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		d := c.Link(phone)
		const number = "+15550009999"
		old := send(c, d, reader, "from the old number")
		c.AwaitMessage(old.ID, postern.Read)
		if _, err := k.Vendor.Send(t.Context(), phone, customer, "to the old number"); err != nil {
			t.Fatal(err)
		}
		device := "deviceId=" + string(d.ID)
		testkit.Eventually(t, "the inbound message",
			func() (bool, any) { return len(bodies(c, device)) == 2, bodies(c, device) })

		if status, l := relink(t, c, d, number, map[string]any{"allowNewNumber": true}); status != 200 ||
			l.Status != postern.LinkLinked {
			t.Fatalf("the phone got %d, the attempt is %s (%s)", status, l.Status, l.Reason)
		}
		if now := c.Await(d.ID, postern.Connected); now.PhoneNumber != number || now.ID != d.ID {
			t.Errorf("the device has the number %s, want %s", now.PhoneNumber, number)
		}
		wantBodies(t, c, device)
		wantBodies(t, c, "")
		wantBodies(t, c, "archived=true", "from the old number", "to the old number")
		m := send(c, d, reader, "from the new number")
		c.AwaitMessage(m.ID, postern.Read)
		wantBodies(t, c, device, "from the new number")
		wantBodies(t, c, device+"&archived=true", "from the old number", "to the old number")
		c.AwaitMessage(old.ID, postern.Read) // it can be read by its id

		// The same number again archives nothing.
		if _, l := relink(t, c, c.Device(d.ID), number,
			map[string]any{"allowNewNumber": true}); l.Status != postern.LinkLinked {
			t.Fatalf("the attempt is %s (%s)", l.Status, l.Reason)
		}
		wantBodies(t, c, device, "from the new number")

		// What was not read of the old number is not unread now.
		if _, err := k.Vendor.Send(t.Context(), number, customer, "to the new number"); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the chat with one unread message", func() (bool, any) {
			var chats struct{ Data []postern.Chat }
			c.Call("GET", "/v1/chats?"+device, nil, 200, &chats)
			i := slices.IndexFunc(chats.Data, func(o postern.Chat) bool { return o.ChatID == customer })
			return i >= 0 && chats.Data[i].UnreadCount == 1, chats
		})
	})
}
