package testkit_test

import (
	"bytes"
	"image/png"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"
)

// news is a channel with a device whose account may follow it.
type news struct {
	t    *testing.T
	k    *testkit.Kit
	c    *testkit.Client
	d    postern.Device
	ch   vendorsim.Channel
	chat string
}

// newNews links a device that receives channels, and creates a channel of ann.
func newNews(t *testing.T, k *testkit.Kit) news {
	t.Helper()
	c := k.Workspace("growth")
	d := c.Link(phone)
	c.Call("PATCH", path(d, ""), map[string]any{"receive": map[string]any{"channels": true}}, 200, nil)
	ch, err := k.Vendor.Channels().Create(ann, "Opening hours", "When our shops are open")
	if err != nil {
		t.Fatal(err)
	}
	return news{t, k, c, d, ch, "channel:" + ch.ID}
}

func (n news) follow() {
	n.t.Helper()
	n.c.Call("PUT", path(n.d, "/channels/"+n.chat), nil, 200, nil)
}

// posts lets the owner of the channel post.
func (n news) posts(body string) (networkID string) {
	n.t.Helper()
	id, err := n.k.Vendor.Channels().Post(n.ch.ID, ann, vendorsim.Content{Type: vendorsim.TypeText, Body: body})
	if err != nil {
		n.t.Fatal(err)
	}
	return id
}

// admin makes the account an administrator of the channel.
func (n news) admin() {
	n.t.Helper()
	if err := n.k.Vendor.Channels().Promote(n.ch.ID, phone); err != nil {
		n.t.Fatal(err)
	}
}

// says sends a text to the channel.
func (n news) says(body string) (m postern.Message) {
	n.t.Helper()
	n.c.Call("POST", "/v1/messages", map[string]any{"deviceId": n.d.ID, "to": n.chat, "body": body}, 202, &m)
	return m
}

func (n news) followed() []postern.Channel {
	n.t.Helper()
	var list struct{ Data []postern.Channel }
	n.c.Call("GET", path(n.d, "/channels"), nil, 200, &list)
	return list.Data
}

// A device follows a channel, receives a post and its new text, posts as an administrator, and leaves the channel.
func TestChannels(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		n := newNews(t, k)
		hooks := n.c.Receive("message.*")
		if list := n.followed(); len(list) != 0 {
			t.Errorf("the account follows %+v", list)
		}
		var one postern.Channel
		n.c.Call("POST", path(n.d, "/channels/follow"), map[string]any{"invite": "https://chat.example.com/channel/" + n.ch.Invite},
			200, &one)
		if one.ChatID != n.chat || one.Name != "Opening hours" || one.Role != postern.ChannelFollower ||
			one.Description != "When our shops are open" || !strings.HasSuffix(string(one.URL), n.ch.Invite) || one.CreatedAt == 0 {
			t.Errorf("the channel is %+v", one)
		}
		n.follow()
		if list := n.followed(); len(list) != 1 || list[0].ChatID != n.chat || list[0].Followers != 2 {
			t.Errorf("the account follows %+v", list)
		}
		first := n.posts("We are open.")
		if err := k.Vendor.Channels().Edit(n.ch.ID, ann, first, "We are closed."); err != nil {
			t.Fatal(err)
		}
		m := members(t, hooks.AwaitCount(postern.MessageReceived, 1)[0], "message")
		_, from := m["from"]
		if m["chatId"] != n.chat || m["body"] != "We are open." || from || m["fromLid"] != nil || m["contactId"] != nil {
			t.Errorf("message.received has %v", m)
		}
		if m := members(t, hooks.AwaitCount(postern.MessageEdited, 1)[0], "message"); m["body"] != "We are closed." {
			t.Errorf("message.edited has %v", m)
		}
		n.admin()
		sent := n.says("We are open again.")
		n.c.AwaitMessage(sent.ID, postern.Sent)
		n.posts("from the owner")
		hooks.AwaitCount(postern.MessageReceived, 2) // the network gives back what was posted, and that is no event
		if got := len(hooks.AwaitCount(postern.MessageSent, 1)); got != 1 {
			t.Errorf("%d events about what was posted", got)
		}
		for _, num := range []string{ann, phone} {
			if shown := k.Vendor.Shown(num); len(shown) != 3 || shown[1].Body != "We are open again." || shown[1].Channel != n.ch.ID {
				t.Errorf("the phone of %s shows %+v", num, shown)
			}
		}
		n.isListed()
		n.c.Call("DELETE", path(n.d, "/channels/"+n.chat), nil, 204, nil)
		if list := n.followed(); len(list) != 0 {
			t.Errorf("the account follows %+v", list)
		}
	})
}

// isListed checks the chat of the channel, and marks it as read.
func (n news) isListed() {
	n.t.Helper()
	var chats struct{ Data []postern.Chat }
	n.c.Call("GET", "/v1/chats?deviceId="+string(n.d.ID), nil, 200, &chats)
	if len(chats.Data) != 1 || chats.Data[0].ChatID != n.chat || chats.Data[0].Kind != postern.ChannelChat ||
		chats.Data[0].Name != "Opening hours" || chats.Data[0].UnreadCount != 2 {
		n.t.Errorf("the chats are %+v", chats.Data)
	}
	n.c.Call("POST", path(n.d, "/chats/"+n.chat+"/read"), nil, 202, nil)
	testkit.Eventually(n.t, "the posts are read", func() (bool, any) {
		read := 0
		for _, e := range n.k.Vendor.Ledger(0, 0) {
			if e.Channel == n.ch.ID && e.ReadAt != nil {
				read++
			}
		}
		return read == 2, n.k.Vendor.Ledger(0, 0)
	})
	var month struct{ Messages struct{ Used int } }
	n.c.Call("GET", "/v1/usage", nil, 200, &month)
	if month.Messages.Used != 1 {
		n.t.Errorf("%d messages count", month.Messages.Used)
	}
}

// What was posted while the gateway was down arrives afterwards, and a channel that was followed on the phone has its
// name, without a request of anybody. A device that does not want channels acknowledges posts, and stores nothing.
func TestChannelPostsAreStored(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		n := newNews(t, k)
		k.Stop()
		if err := k.Vendor.Channels().Follow(n.ch.ID, phone); err != nil {
			t.Fatal(err)
		}
		look := vendorsim.Content{
			Type: vendorsim.TypeImage, Body: "missed", Media: &vendorsim.Media{Data: picture(t, png.Encode)},
		}
		if _, err := k.Vendor.Channels().Post(n.ch.ID, ann, look); err != nil {
			t.Fatal(err)
		}
		k.Boot()
		var chats struct{ Data []postern.Chat }
		testkit.Eventually(t, "the channel is listed with its name", func() (bool, any) {
			n.c.Call("GET", "/v1/chats", nil, 200, &chats)
			return len(chats.Data) == 1 && chats.Data[0].Name == "Opening hours", chats.Data
		})
		n.c.Await(n.d.ID, postern.Connected)
		n.c.Call("PATCH", path(n.d, ""), map[string]any{"receive": map[string]any{"channels": false}}, 200, nil)
		n.posts("not wanted")
		testkit.Eventually(t, "both are acknowledged", func() (bool, any) {
			acked := 0
			for _, e := range k.Vendor.Ledger(0, 0) {
				if e.Channel != "" && e.AckedAt != nil {
					acked++
				}
			}
			return acked == 2, k.Vendor.Ledger(0, 0)
		})
		var list struct{ Data []postern.Message }
		if n.c.Call("GET", "/v1/messages", nil, 200, &list); len(list.Data) != 1 || list.Data[0].Content.Text != "missed" {
			t.Fatalf("the messages are %+v", list.Data)
		}
		file := list.Data[0].Content.Media.ID
		testkit.Eventually(t, "the picture is there", func() (bool, any) {
			var m postern.Media
			n.c.Call("GET", "/v1/media/"+string(file), nil, 200, &m)
			return m.Status == postern.MediaReady, m
		})
		if got := n.c.Download(file); !bytes.Equal(got, picture(t, png.Encode)) {
			t.Errorf("the picture has %d bytes", len(got))
		}
	})
}

// A post whose acknowledgement is lost is repeated under the same id, and is one post and one message of the quota. What
// the network refuses ends as failed.
func TestChannelPostsAreSentOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		n := newNews(t, k)
		n.follow()
		refused := n.c.AwaitMessage(n.says("not mine").ID, postern.Failed)
		if refused.Error == nil || refused.Error.Code != postern.NetworkRejected ||
			!strings.Contains(refused.Error.Detail, "administrators") {
			t.Errorf("a follower's post is %+v", refused.Error)
		}
		n.admin()
		if err := k.Vendor.Fault(t.Context(), phone, vendorsim.FaultDropBeforeAck); err != nil {
			t.Fatal(err)
		}
		sent := n.c.AwaitMessage(n.says("once").ID, postern.Sent)
		var posts []vendorsim.Entry
		for _, e := range k.Vendor.Ledger(0, 0) {
			if e.Direction == vendorsim.Outbound {
				posts = append(posts, e)
			}
		}
		if len(posts) != 1 || posts[0].NetworkID != string(sent.NetworkID) || posts[0].Copies != 2 {
			t.Errorf("the network got %+v", posts)
		}
		var month struct{ Messages struct{ Used int } }
		if n.c.Call("GET", "/v1/usage", nil, 200, &month); month.Messages.Used != 2 {
			t.Errorf("%d messages count", month.Messages.Used)
		}
		var list struct{ Data []postern.Message }
		if n.c.Call("GET", "/v1/messages", nil, 200, &list); len(list.Data) != 2 {
			t.Errorf("there are %d messages, want those that were sent", len(list.Data))
		}
	})
}

// An image that was sent to a person is uploaded again for a channel, without encryption, and once for all posts.
func TestChannelsTakeImages(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		n := newNews(t, k)
		n.admin()
		var file postern.Media
		n.c.Upload("a.png", bytes.NewReader(picture(t, png.Encode)), &file)
		shows := func(to, number string, last postern.MessageStatus) *vendorsim.Media {
			t.Helper()
			var m postern.Message
			n.c.Call("POST", "/v1/messages", map[string]any{
				"deviceId": n.d.ID, "to": to, "type": "image", "body": "look", "media": map[string]any{"id": file.ID},
			}, 202, &m)
			m = n.c.AwaitMessage(m.ID, last)
			shown, err := k.Vendor.ShownMessage(number, m.NetworkID)
			if err != nil || shown.Body != "look" || shown.Media == nil {
				t.Fatalf("the phone of %s shows %+v, %v", number, shown, err)
			}
			return shown.Media
		}
		direct := shows(customer, customer, postern.Delivered)
		first, second := shows(n.chat, ann, postern.Sent), shows(n.chat, ann, postern.Sent)
		if len(direct.Key) == 0 || len(first.Key) > 0 || first.Path == direct.Path || second.Path != first.Path {
			t.Errorf("the files are %+v, %+v and %+v", direct, first, second)
		}
		r, err := k.Vendor.OpenMedia(*first)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if img, err := png.Decode(r); err != nil || img.Bounds().Empty() {
			t.Errorf("the post shows no picture: %v", err)
		}
	})
}

// Odd posts arrive as what they can be shown as, and nothing in a post acts on the account, or on what others wrote.
func TestHostilePosts(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		n := newNews(t, k)
		n.admin()
		hooks := n.c.Receive("message.*", "poll.vote")
		mine := n.says("mine")
		n.c.AwaitMessage(mine.ID, postern.Sent)
		n.c.Call("GET", "/v1/messages/"+string(mine.ID), nil, 200, &mine)
		odd := func(m *waE2E.Message) {
			t.Helper()
			raw, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := k.Vendor.Channels().Post(n.ch.ID, ann, vendorsim.Content{Raw: raw}); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]int{"text": 1, "unsupported": 6} // the last one, and votes that cannot be opened
		for kind, list := range hostile() {
			for _, m := range list {
				odd(m)
				want[kind]++
			}
		}
		for _, m := range meddling(t, mine.NetworkID, "somebody-else", mine.NetworkID) {
			odd(m)
		}
		for _, p := range []*waE2E.ProtocolMessage{
			{Type: waE2E.ProtocolMessage_EPHEMERAL_SETTING.Enum(), EphemeralExpiration: new(uint32(86400))},
			{Type: waE2E.ProtocolMessage_APP_STATE_SYNC_KEY_SHARE.Enum(), AppStateSyncKeyShare: &waE2E.AppStateSyncKeyShare{
				Keys: []*waE2E.AppStateSyncKey{{KeyID: &waE2E.AppStateSyncKeyId{KeyID: []byte{1}}}},
			}},
			{Type: waE2E.ProtocolMessage_HISTORY_SYNC_NOTIFICATION.Enum(), HistorySyncNotification: &waE2E.HistorySyncNotification{
				SyncType: waE2E.HistorySyncType_RECENT.Enum(), InitialHistBootstrapInlinePayload: []byte("x"),
			}},
		} {
			odd(&waE2E.Message{ProtocolMessage: p})
		}
		n.posts("the last one")
		checkHarmless(acting{t, k, n.c, hooks, n.d}, want)
		var now postern.Message
		n.c.Call("GET", "/v1/messages/"+string(mine.ID), nil, 200, &now)
		if s := now.State; now.Content.Text != "mine" || s.EditedAt != 0 || s.DeletedAt != 0 || len(s.Reactions) != 0 {
			t.Errorf("the account's post is now %+v", now)
		}
		again := n.says("again")
		n.c.AwaitMessage(again.ID, postern.Sent)
		n.c.Call("GET", "/v1/messages/"+string(again.ID), nil, 200, &again)
		if shown, err := k.Vendor.ShownMessage(ann, again.NetworkID); err != nil || shown.Expires != 0 {
			t.Errorf("the next post is %+v, %v", shown, err)
		}
	})
}

// What channels cannot carry, and requests about channels that are not there, are refused with the reason.
func TestChannelsRefuse(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	n := newNews(t, k)
	n.follow()
	n.posts("Hello")
	var list struct{ Data []postern.Message }
	testkit.Eventually(t, "the post is stored", func() (bool, any) {
		n.c.Call("GET", "/v1/messages", nil, 200, &list)
		return len(list.Data) == 1, list.Data
	})
	post := string(list.Data[0].ID)
	for pointer, more := range map[string]map[string]any{
		"/replyTo": {"body": "x", "replyTo": post}, "/mentions": {"body": "x", "mentions": []string{ann}},
		"/type":        {"type": "poll", "poll": map[string]any{"question": "?", "options": []string{"a", "b"}}},
		"/linkPreview": {"body": "https://example.com", "linkPreview": true}, "/forwarded": {"body": "x", "forwarded": true},
	} {
		more["deviceId"], more["to"] = n.d.ID, n.chat
		if a := n.c.Do("POST", "/v1/messages", more); a.Status != 422 || !strings.Contains(string(a.Body), pointer) {
			t.Errorf("%s: %d %s", pointer, a.Status, a.Body)
		}
	}
	refuse := func(method, path string, body any, status int, reason postern.Reason) {
		t.Helper()
		if a := n.c.Do(method, path, body); a.Status != status || !strings.Contains(string(a.Body), string(reason)) {
			t.Errorf("%s %s: %d %s", method, path, a.Status, a.Body)
		}
	}
	refuse("PUT", "/v1/messages/"+post+"/reaction", map[string]any{"emoji": "👍"}, 409, postern.ActionNotPossible)
	refuse("PUT", path(n.d, "/channels/channel:1"), nil, 404, postern.NotFound)
	refuse("DELETE", path(n.d, "/channels/channel:1"), nil, 404, postern.NotFound)
	refuse("PUT", path(n.d, "/channels/group:1"), nil, 404, postern.NotFound)
	refuse("POST", path(n.d, "/channels/follow"), map[string]any{"invite": "nothing"}, 409, postern.InviteNotValid)
	own, err := k.Vendor.Channels().Create(phone, "Own", "")
	if err != nil {
		t.Fatal(err)
	}
	refuse("DELETE", path(n.d, "/channels/channel:"+own.ID), nil, 409, postern.NetworkRefused)
	n.c.Call("POST", path(n.d, "/pause"), nil, 200, nil)
	refuse("GET", path(n.d, "/channels"), nil, 409, postern.DeviceNotConnected)
}
