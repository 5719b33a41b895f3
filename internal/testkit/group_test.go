package testkit_test

import (
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"
)

const (
	ann = "+15550000011"
	ben = "+15550000012"
)

func newGroup(t *testing.T, k *testkit.Kit, members ...string) (g vendorsim.Group, chat string) {
	t.Helper()
	g, err := k.Vendor.CreateGroup("Support", members...)
	if err != nil {
		t.Fatal(err)
	}
	return g, "group:" + g.ID
}

func writeIn(t *testing.T, k *testkit.Kit, g vendorsim.Group, from, body string) string {
	t.Helper()
	id, err := k.Vendor.WriteInGroup(t.Context(), g.ID, from, vendorsim.Content{Type: vendorsim.TypeText, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// What members of a group write arrives with the group as its chat and the member as its sender. Only the author of a
// message can change it.
func TestGroupMessagesAreReceived(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.*")
		c.Link(phone)
		g, chat := newGroup(t, k, ann, phone, ben)
		first := writeIn(t, k, g, ann, "one")
		writeIn(t, k, g, ben, "two")
		if _, err := k.Vendor.React(t.Context(), phone, ben, first, "👍"); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Vendor.Edit(t.Context(), phone, ann, first, "one, edited"); err != nil {
			t.Fatal(err)
		}
		writeIn(t, k, g, phone, "mine")
		for i, got := range hooks.AwaitCount(postern.MessageReceived, 2) {
			m, _ := got.Event["message"].(map[string]any)
			from, body := []string{ann, ben}[i], []string{"one", "two"}[i]
			if m["chatId"] != chat || m["from"] != from || m["body"] != body || m["fromName"] != "Phone "+from || m["to"] != phone {
				t.Errorf("message.received = %s", got.Body)
			}
		}
		echo := hooks.AwaitCount(postern.MessageEcho, 1)[0]
		if m, _ := echo.Event["message"].(map[string]any); m["chatId"] != chat || m["body"] != "mine" || m["to"] != nil {
			t.Errorf("message.echo = %s", echo.Body)
		}
		edited := hooks.AwaitCount(postern.MessageEdited, 1)[0]
		if m, _ := edited.Event["message"].(map[string]any); m["body"] != "one, edited" || m["chatId"] != chat {
			t.Errorf("message.edited = %s", edited.Body)
		}
		hooks.AwaitCount(postern.MessageReaction, 1)
		var list struct{ Data []postern.Message }
		c.Call("GET", "/v1/messages?chatId="+chat, nil, 200, &list)
		if len(list.Data) != 3 || len(list.Data[2].State.Reactions) != 1 || list.Data[2].State.Reactions[0].From != ben {
			t.Errorf("the messages of the group are %+v", list.Data)
		}
	})
}

// A device that does not want groups acknowledges what is written in them, and stores nothing.
func TestGroupsCanBeLeftOut(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("message.received")
	d := c.Link(phone)
	c.Call("PATCH", path(d, ""), map[string]any{"receive": map[string]any{"groups": false}}, 200, nil)
	g, _ := newGroup(t, k, ann, phone)
	writeIn(t, k, g, ann, "not wanted")
	if _, err := k.Vendor.Send(t.Context(), phone, ann, "wanted"); err != nil {
		t.Fatal(err)
	}
	hooks.AwaitCount(postern.MessageReceived, 1)
	testkit.Eventually(t, "both are acknowledged", func() (bool, any) {
		acked := 0
		for _, e := range k.Vendor.Ledger(0, 0) {
			if e.Account == phone && e.AckedAt != nil {
				acked++
			}
		}
		return acked == 2, k.Vendor.Ledger(0, 0)
	})
	if n := len(hooks.All()); n != 2 { // with the challenge
		t.Errorf("%d deliveries", n)
	}
}
