package testkit_test

import (
	"slices"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"
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
			if m["chatId"] != chat || m["from"] != from || m["fromName"] != "Phone "+from || m["body"] != body ||
				m["to"] != phone {
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

// receipt is what a member has confirmed.
type receipt struct {
	From                          string
	DeliveredAt, ReadAt, PlayedAt postern.Time
}

// A message to a group is read by the phones of all members. It is delivered, and read, when all who got it are said to
// have it; the receipts say who has.
func TestGroupMessagesAreSent(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.*")
		d := c.Link(phone)
		g, chat := newGroup(t, k, ann, phone, ben, reader)
		theirs := writeIn(t, k, g, ann, "hello")
		asked := hooks.AwaitCount(postern.MessageReceived, 1)[0]
		hello, _ := asked.Event["message"].(map[string]any)
		var m postern.Message
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": chat, "body": "welcome", "replyTo": hello["id"],
		}, 202, &m)
		c.AwaitMessage(m.ID, postern.Delivered)
		for _, member := range []string{ann, ben, reader, phone} {
			shown := k.Vendor.Shown(member)
			if last := shown[len(shown)-1]; last.Body != "welcome" || last.Group != g.ID || last.ReplyTo != theirs {
				t.Errorf("the phone of %s shows %+v", member, last)
			}
		}
		testkit.Eventually(t, "one of three has read it", func() (bool, any) {
			var list struct{ Data []receipt }
			c.Call("GET", "/v1/messages/"+string(m.ID)+"/receipts", nil, 200, &list)
			read := 0
			for _, r := range list.Data {
				if r.ReadAt != 0 {
					read++
				}
				if r.DeliveredAt == 0 || r.From == "" || r.PlayedAt != 0 {
					t.Errorf("the receipts are %+v", list.Data)
				}
			}
			return len(list.Data) == 3 && read == 1, list.Data
		})
		for _, member := range []string{ann, ben} {
			if err := k.Vendor.GroupReceipt(phone, member, m.NetworkID, vendorsim.Read); err != nil {
				t.Fatal(err)
			}
		}
		c.AwaitMessage(m.ID, postern.Read)
		hooks.AwaitCount(postern.MessageDelivered, 1)
		hooks.AwaitCount(postern.MessageRead, 1)
	})
}

func TestActionsInGroups(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("message.received")
	d := c.Link(phone)
	g, chat := newGroup(t, k, ann, phone, ben)
	theirs := writeIn(t, k, g, ann, "hello")
	received, _ := hooks.AwaitCount(postern.MessageReceived, 1)[0].Event["message"].(map[string]any)
	var mine postern.Message
	c.Call("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": chat, "body": "first"}, 202, &mine)
	c.AwaitMessage(mine.ID, postern.Delivered)
	on := "/v1/messages/" + received["id"].(string)
	c.Call("PUT", on+"/reaction", map[string]any{"emoji": "👍"}, 202, nil)
	c.Call("POST", on+"/read", nil, 202, nil)
	c.Call("PATCH", "/v1/messages/"+string(mine.ID), map[string]any{"body": "second"}, 202, nil)
	testkit.Eventually(t, "the actions on the phones", func() (bool, any) {
		shown := k.Vendor.Shown(ben)
		return len(shown) == 2 && len(shown[0].Reactions) == 1 && shown[1].Body == "second" && shown[1].Edited, shown
	})
	testkit.Eventually(t, "the message to be read", func() (bool, any) {
		for _, e := range k.Vendor.Ledger(0, 0) {
			if e.NetworkID == theirs && e.ReadAt != nil {
				return true, nil
			}
		}
		return false, k.Vendor.Ledger(0, 0)
	})
	c.Call("DELETE", "/v1/messages/"+string(mine.ID), nil, 202, nil)
	testkit.Eventually(t, "the deletion", func() (bool, any) {
		shown := k.Vendor.Shown(ann)
		return shown[1].Deleted, shown
	})
}

// Votes are sealed with the names of the voter and of the poll's author, and a star names the author of its message.
func TestVotesAndStarsInGroups(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("message.received", "poll.vote", "message.starred", "message.unstarred")
	d := c.Link(phone)
	g, chat := newGroup(t, k, ann, phone, ben)
	poll := vendorsim.Poll{Question: "When?", Options: []string{"now", "later"}, MaxSelections: 1}
	theirs, err := k.Vendor.WriteInGroup(t.Context(), g.ID, ann, vendorsim.Content{Type: vendorsim.TypePoll, Poll: &poll})
	if err != nil {
		t.Fatal(err)
	}
	received, _ := hooks.AwaitCount(postern.MessageReceived, 1)[0].Event["message"].(map[string]any)
	on := "/v1/messages/" + received["id"].(string)
	c.Call("POST", on+"/votes", map[string]any{"options": []string{"later"}}, 202, nil)
	if _, err := k.Vendor.Vote(t.Context(), phone, ben, theirs, "now"); err != nil {
		t.Fatal(err)
	}
	hooks.AwaitCount(postern.PollVote, 2)
	testkit.Eventually(t, "both votes on a phone", func() (bool, any) {
		shown := k.Vendor.Shown(ben)[0]
		return len(shown.Votes) == 2 && shown.Votes[0].Choices[0] != shown.Votes[1].Choices[0], shown.Votes
	})
	var mine postern.Message
	c.Call("POST", "/v1/messages", map[string]any{
		"deviceId": d.ID, "to": chat, "type": "poll", "poll": map[string]any{"question": "Who?", "options": []string{"a", "b"}},
	}, 202, &mine)
	c.AwaitMessage(mine.ID, postern.Delivered)
	if _, err := k.Vendor.Vote(t.Context(), phone, ann, mine.NetworkID, "b"); err != nil {
		t.Fatal(err)
	}
	hooks.AwaitCount(postern.PollVote, 3)
	for _, message := range []string{on, "/v1/messages/" + string(mine.ID)} {
		c.Call("PUT", message+"/star", nil, 202, nil)
	}
	hooks.AwaitCount(postern.MessageStarred, 2)
	testkit.Eventually(t, "both stars on the account's phone", func() (bool, any) {
		shown := k.Vendor.Shown(phone)
		return shown[0].Starred && shown[1].Starred, shown
	})
	if err := k.Vendor.Star(t.Context(), phone, theirs, false); err != nil {
		t.Fatal(err)
	}
	hooks.AwaitCount(postern.MessageUnstarred, 1)
}

// A message to a group that the account is not in fails before it costs anything.
func TestMessageToAForeignGroupFails(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	d := c.Link(phone)
	_, foreign := newGroup(t, k, ann, ben)
	for _, chat := range []string{foreign, "group:120300000000000001"} {
		var m postern.Message
		c.Call("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": chat, "body": "x"}, 202, &m)
		m = c.AwaitMessage(m.ID, postern.Failed)
		if m.Error == nil || m.Error.Code != postern.NotInGroup {
			t.Errorf("it failed with %+v", m.Error)
		}
	}
	var usage struct{ Messages struct{ Used int } }
	c.Call("GET", "/v1/usage", nil, 200, &usage)
	if usage.Messages.Used != 0 {
		t.Errorf("%d messages are counted", usage.Messages.Used)
	}
}

// In a group whose members have hidden numbers, phones show only mentions of those. Both ways, callers see numbers.
func TestMentionsInGroups(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.received", "message.edited")
		d := c.Link(phone)
		g, chat := newGroup(t, k, ann, phone, ben)
		text := "@" + ann[1:] + ", ask @" + ben[1:] + "0 and @" + ben[1:] + "."
		send := func(mentions ...string) (m postern.Message) {
			t.Helper()
			c.Call("POST", "/v1/messages", map[string]any{
				"deviceId": d.ID, "to": chat, "body": text, "mentions": mentions,
			}, 202, &m)
			c.AwaitMessage(m.ID, postern.Delivered)
			if m.Content.Text != text || !slices.Equal(m.Content.Mentions, mentions) {
				t.Errorf("the message is %+v", m.Content)
			}
			shown := k.Vendor.Shown(ben)
			if last := shown[len(shown)-1]; last.Body != text || !slices.Equal(last.Mentions, mentions) {
				t.Errorf("the phone shows %q with %v", last.Body, last.Mentions)
			}
			return m
		}
		asked := send(ann, ben)
		send("all")
		c.Call("PATCH", "/v1/messages/"+string(asked.ID), map[string]any{"body": "@" + ben[1:] + "0, or @" + ann[1:]}, 202, nil)
		hooks.AwaitCount(postern.MessageEdited, 1)
		c.Call("GET", "/v1/messages/"+string(asked.ID), nil, 200, &asked)
		if !slices.Equal(asked.Content.Mentions, []string{ann}) {
			t.Errorf("the edited message mentions %v, want %s", asked.Content.Mentions, ann)
		}
		if info, text := lastEdit(t, k); len(info.GetMentionedJID()) != 1 || strings.Contains(text, ann[1:]) ||
			!strings.HasSuffix(text, "@"+strings.TrimSuffix(info.GetMentionedJID()[0], "@lid")) {
			t.Errorf("the phone gets %q with %v", text, info.GetMentionedJID())
		}
		_, err := k.Vendor.WriteInGroup(t.Context(), g.ID, ann, vendorsim.Content{
			Type: vendorsim.TypeText, Body: "@" + phone[1:] + " and @" + ben[1:], Mentions: []string{phone, ben, "all"},
		})
		if err != nil {
			t.Fatal(err)
		}
		var e struct{ Message postern.Message }
		decode(t, hooks.AwaitCount(postern.MessageReceived, 1)[0], &e)
		if got := e.Message.Content; got.Text != "@"+phone[1:]+" and @"+ben[1:] ||
			!slices.Equal(got.Mentions, []string{phone, ben, "all"}) {
			t.Errorf("received %+v", got)
		}
		c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": d.ID, "to": ann, "body": "x", "mentions": []string{"all"},
		}, 422, nil)
	})
}

// lastEdit returns the text of the edit that was sent last, and what it says beside the text.
func lastEdit(t *testing.T, k *testkit.Kit) (*waE2E.ContextInfo, string) {
	t.Helper()
	var m waE2E.Message
	list := k.Vendor.Ledger(0, 0)
	if err := proto.Unmarshal(list[len(list)-1].Raw, &m); err != nil {
		t.Fatal(err)
	}
	text := m.GetEditedMessage().GetMessage().GetProtocolMessage().GetEditedMessage().GetExtendedTextMessage()
	return text.GetContextInfo(), text.GetText()
}

// Administrators of a group delete what others have written, and nobody else does.
func TestAdministratorsDeleteMessages(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		c := k.Workspace("growth")
		hooks := c.Receive("message.*", "group.*")
		d := linked(t, k, c)
		g := k.Vendor.Groups(phone)[0]
		chat := "group:" + g.ID
		received := func(n int) (on string) {
			m, _ := hooks.AwaitCount(postern.MessageReceived, n)[n-1].Event["message"].(map[string]any)
			return "/v1/messages/" + m["id"].(string)
		}
		theirs := writeIn(t, k, g, ann, "rude")
		on := received(1)
		if a := c.Do("DELETE", on, nil); a.Status != 409 || !strings.Contains(string(a.Body), "group-not-allowed") {
			t.Errorf("a member's deletion: %d %s", a.Status, a.Body)
		}
		var mine postern.Message
		c.Call("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": chat, "body": "mine"}, 202, &mine)
		c.AwaitMessage(mine.ID, postern.Delivered)
		if _, err := k.Vendor.Revoke(t.Context(), phone, ann, mine.NetworkID); err != nil {
			t.Fatal(err)
		}
		deleted := func(n int) (m struct {
			ID       postern.MessageID
			Deletion *postern.Deletion
		}) {
			t.Helper()
			var e struct{ Message any }
			e.Message = &m
			decode(t, hooks.AwaitCount(postern.MessageDeleted, n)[n-1], &e)
			return m
		}
		if e := deleted(1); e.ID != mine.ID || e.Deletion == nil || e.Deletion.From != ann {
			t.Errorf("message.deleted = %+v", e)
		}
		change := vendorsim.GroupChange{Add: []string{ben}, Promote: []string{phone}}
		if err := k.Vendor.ChangeGroup(g.ID, ann, change); err != nil {
			t.Fatal(err)
		}
		hooks.AwaitCount(postern.GroupParticipants, 2)
		c.Call("DELETE", on, nil, 202, nil)
		if a := c.Do("GET", on+"/timeline", nil); !strings.Contains(string(a.Body), `"type":"delete"`) {
			t.Errorf("the timeline does not have the deletion: %s", a.Body)
		}
		if e := deleted(2); "/v1/messages/"+string(e.ID) != on || e.Deletion == nil || e.Deletion.From != phone {
			t.Errorf("message.deleted = %+v", e)
		}
		for _, member := range []string{ann, phone} {
			if shown := k.Vendor.Shown(member); !shown[0].Deleted || shown[0].ID != theirs || !shown[1].Deleted {
				t.Errorf("the phone of %s shows %+v", member, shown)
			}
		}
		forged := &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
			Type: waE2E.ProtocolMessage_REVOKE.Enum(), Key: &waCommon.MessageKey{
				ID: new(writeIn(t, k, g, ann, "stays")), RemoteJID: new(g.ID + "@g.us"), FromMe: new(false),
			},
		}}
		raw, err := proto.Marshal(forged)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Vendor.WriteInGroup(t.Context(), g.ID, ben, vendorsim.Content{Raw: raw}); err != nil {
			t.Fatal(err)
		}
		writeIn(t, k, g, ben, "last")
		received(3)
		var list struct{ Data []postern.Message }
		c.Call("GET", "/v1/messages?chatId="+chat, nil, 200, &list)
		if list.Data[1].State.DeletedAt != 0 || list.Data[1].Content.Text != "stays" {
			t.Errorf("a member has deleted %+v", list.Data[1])
		}
	})
}
