package testkit_test

import (
	"bytes"
	"fmt"
	"image/png"
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

// newAudience links a device whose account has contacts.
func newAudience(t *testing.T, k *testkit.Kit, numbers ...string) book {
	t.Helper()
	b := newBook(t, k)
	b.knows(numbers...)
	return b
}

// knows saves people in the address book of the phone. A post that is sent right after that reaches them.
func (b book) knows(numbers ...string) {
	b.t.Helper()
	list := make([]vendorsim.BookEntry, len(numbers))
	for i, number := range numbers {
		list[i] = vendorsim.BookEntry{Number: number, Name: fmt.Sprint("Contact ", i)}
	}
	b.save(list...)
}

// posts accepts a status post.
func (b book) posts(members map[string]any) (m postern.Message) {
	b.t.Helper()
	members["deviceId"], members["to"] = b.d.ID, "status"
	b.c.Call("POST", "/v1/messages", members, 202, &m)
	return m
}

// posted accepts a status post, and waits until it has a status.
func (b book) posted(body string, status postern.MessageStatus) postern.Message {
	b.t.Helper()
	return b.c.AwaitMessage(b.posts(map[string]any{"body": body}).ID, status)
}

// see checks which of some phones show a status post.
func (b book) see(m postern.Message, phones ...string) {
	b.t.Helper()
	for _, number := range []string{ann, customer, reader} {
		_, err := b.k.Vendor.ShownMessage(number, m.NetworkID)
		if want := slices.Contains(phones, number); want != (err == nil) {
			b.t.Errorf("%s sees the post %q: %v, want %v", number, m.Content.Text, err == nil, want)
		}
	}
}

// A status post reaches the phones of all contacts, is one message of the quota, and can be deleted. Its last status is
// sent, although viewers confirm it.
func TestStatusPosts(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newAudience(t, k, ann, reader)
		hooks := b.c.Receive("message.*")
		first := b.posted("We are closed on Monday.", postern.Sent)
		b.see(first, ann, reader)
		if first.ChatID != "status" || first.To != "" {
			t.Errorf("the post is %+v", first)
		}
		testkit.Eventually(t, "a viewer confirms the post", func() (bool, any) {
			list := k.Vendor.Ledger(0, 0)
			return len(list) == 1 && list[0].ReadAt != nil, list
		})
		second := b.posted("We are open again.", postern.Sent)
		b.see(second, ann, reader)
		b.c.Call("DELETE", "/v1/messages/"+string(first.ID), nil, 202, nil)
		hooks.AwaitCount(postern.MessageDeleted, 1)
		for _, number := range []string{ann, reader, phone} {
			if shown := k.Vendor.Shown(number); len(shown) != 2 || !shown[0].Deleted || shown[1].Deleted ||
				shown[1].Group != vendorsim.StatusID {
				t.Errorf("the phone of %s shows %+v", number, shown)
			}
		}
		var now postern.Message
		b.c.Call("GET", "/v1/messages/"+string(first.ID), nil, 200, &now)
		if now.Status != postern.Sent || now.DeliveredAt != 0 || now.State.DeletedAt == 0 {
			t.Errorf("the post is %+v", now)
		}
		var chats struct{ Data []postern.Chat }
		b.c.Call("GET", "/v1/chats", nil, 200, &chats)
		if len(chats.Data) != 1 || chats.Data[0].Kind != postern.StatusChat || chats.Data[0].Name != "" {
			t.Errorf("the chats are %+v", chats.Data)
		}
		if n := usedMessages(b.c); n != 2 {
			t.Errorf("%d messages count", n)
		}
	})
}

// A post whose acknowledgement is lost is sent again under the same id, also after a restart, and phones show it
// once. A phone that could not decrypt it gets another copy.
func TestStatusPostsAreSentOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newAudience(t, k, ann)
		fault := func(f vendorsim.Fault) {
			t.Helper()
			if err := k.Vendor.Fault(t.Context(), phone, f); err != nil {
				t.Fatal(err)
			}
		}
		fault(vendorsim.FaultDropBeforeAck)
		first := b.posted("once", postern.Sent)
		fault(vendorsim.FaultNoAck)
		second := b.posts(map[string]any{"body": "twice"})
		testkit.Eventually(t, "the network has the post", func() (bool, any) {
			list := k.Vendor.Ledger(0, 0)
			return len(list) == 2, list
		})
		k.Stop()
		k.Boot()
		second = b.c.AwaitMessage(second.ID, postern.Sent)
		fault(vendorsim.FaultRetry)
		third := b.posted("again", postern.Sent)
		testkit.Eventually(t, "the phone has its copy", func() (bool, any) {
			shown := k.Vendor.Shown(ann)
			return len(shown) == 3, shown
		})
		list := k.Vendor.Ledger(0, 0)
		for i, m := range []postern.Message{first, second, third} {
			if e := list[i]; e.NetworkID != m.NetworkID || e.Copies != 2 || len(e.Missing) > 0 {
				t.Errorf("the network got %+v of %+v", e, m)
			}
		}
		if len(list) != 3 {
			t.Errorf("the network got %+v", list)
		}
		if n := usedMessages(b.c); n != 3 {
			t.Errorf("%d messages count", n)
		}
	})
}

// The privacy that the owner has chosen on the phone decides who gets a post. A post that nobody would see fails, and
// does not count.
func TestStatusPostsFollowThePrivacyOfTheAccount(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		nobody := func() {
			t.Helper()
			m := b.posted("for nobody", postern.Failed)
			if m.Error == nil || m.Error.Code != postern.RecipientNotFound || !strings.Contains(m.Error.Detail, "contact") {
				t.Errorf("the post ends with %+v", m.Error)
			}
		}
		nobody()
		b.knows(ann, customer, phone)
		allows := func(who vendorsim.StatusPrivacy, list ...string) {
			t.Helper()
			if err := k.Vendor.Status().SetPrivacy(phone, who, list...); err != nil {
				t.Fatal(err)
			}
		}
		b.see(b.posted("all", postern.Sent), ann, customer)
		allows(vendorsim.StatusExcept, customer, ann) // the network names one by the number, and one by the LID
		nobody()
		allows(vendorsim.StatusExcept, customer)
		b.see(b.posted("except one", postern.Sent), ann)
		allows(vendorsim.StatusOnly, reader)
		b.see(b.posted("only one", postern.Sent), reader)
		allows("friends of friends")
		if m := b.posted("unclear", postern.Failed); m.Error == nil || m.Error.Code != postern.EncryptionFailed {
			t.Errorf("the post ends with %+v", m.Error)
		}
		if n := usedMessages(b.c); n != 3 {
			t.Errorf("%d messages count", n)
		}
	})
}

// Files are posted like texts. What a status post cannot be is refused with the reason.
func TestKindsOfStatusPosts(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newAudience(t, k, ann)
		for kind, content := range map[string][]byte{
			"image": picture(t, png.Encode), "voice": sample(t, "voice.ogg"), "video": movie(t),
		} {
			var file postern.Media
			b.c.Upload("a", bytes.NewReader(content), &file)
			m := b.c.AwaitMessage(b.posts(map[string]any{"type": kind, "media": map[string]any{"id": file.ID}}).ID, postern.Sent)
			shown, err := k.Vendor.ShownMessage(ann, m.NetworkID)
			if err != nil || shown.Type != kind || shown.Media == nil {
				t.Fatalf("%s: the phone shows %+v, %v", kind, shown, err)
			}
			r, err := k.Vendor.OpenMedia(*shown.Media)
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
		}
		m := b.posted("hello", postern.Sent)
		for pointer, more := range map[string]map[string]any{
			"/replyTo": {"body": "x", "replyTo": m.ID}, "/mentions": {"body": "x", "mentions": []string{ann}},
			"/type":      {"type": "location", "location": map[string]any{"latitude": 1, "longitude": 1}},
			"/forwarded": {"body": "x", "forwarded": true},
		} {
			more["deviceId"], more["to"] = b.d.ID, "status"
			if a := b.c.Do("POST", "/v1/messages", more); a.Status != 422 || !strings.Contains(string(a.Body), pointer) {
				t.Errorf("%s: %d %s", pointer, a.Status, a.Body)
			}
		}
		a := b.c.Do("PATCH", "/v1/messages/"+string(m.ID), map[string]any{"body": "x"})
		if a.Status != 409 || !strings.Contains(string(a.Body), string(postern.ActionNotPossible)) {
			t.Errorf("an edit: %d %s", a.Status, a.Body)
		}
	})
}

// contactPosts lets a simulated contact post as status.
func (b book) contactPosts(from string, what vendorsim.Content) (networkID string) {
	b.t.Helper()
	id, err := b.k.Vendor.Status().Post(b.t.Context(), from, what, phone)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// meddle lets a person edit and delete what somebody else has posted, and set a timer, none of which has an effect.
func (b book) meddle(from, networkID string) {
	b.t.Helper()
	key := &waCommon.MessageKey{RemoteJID: new("status@broadcast"), ID: &networkID, FromMe: new(true)}
	for _, p := range []*waE2E.ProtocolMessage{
		{Type: waE2E.ProtocolMessage_REVOKE.Enum(), Key: key},
		{Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(), Key: key, EditedMessage: &waE2E.Message{Conversation: new("mine")}},
		{Type: waE2E.ProtocolMessage_EPHEMERAL_SETTING.Enum(), EphemeralExpiration: new(uint32(86400))},
	} {
		raw, err := proto.Marshal(&waE2E.Message{ProtocolMessage: p})
		if err != nil {
			b.t.Fatal(err)
		}
		b.contactPosts(from, vendorsim.Content{Raw: raw})
	}
}

// acked waits until the device has acknowledged a number of inbound messages.
func (b book) acked(n int) {
	b.t.Helper()
	testkit.Eventually(b.t, "everything is acknowledged", func() (bool, any) {
		list := b.k.Vendor.Ledger(0, 0)
		return len(list) == n && !slices.ContainsFunc(list, func(e vendorsim.Entry) bool { return e.AckedAt == nil }), list
	})
}

// Posts of contacts are acknowledged and not stored, until the owner wants them. Then they arrive with their authors,
// who can delete them; so does what the account posts on its phone.
func TestStatusPostsOfContacts(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		b := newBook(t, k)
		hooks := b.c.Receive("message.*")
		says := func(from, body string) string {
			t.Helper()
			return b.contactPosts(from, vendorsim.Content{Type: vendorsim.TypeText, Body: body})
		}
		says(ann, "not wanted")
		b.acked(1)
		b.c.Call("PATCH", path(b.d, ""), map[string]any{"receive": map[string]any{"status": true}}, 200, nil)
		first := says(ann, "wanted")
		m := members(t, hooks.AwaitCount(postern.MessageReceived, 1)[0], "message")
		if m["chatId"] != "status" || m["body"] != "wanted" || m["from"] != ann || m["contactId"] == nil {
			t.Errorf("message.received has %v", m)
		}
		wanted := m["id"].(string)
		b.c.Call("POST", "/v1/messages/"+wanted+"/read", nil, 202, nil)
		testkit.Eventually(t, "the post is read", func() (bool, any) {
			list := k.Vendor.Ledger(0, 0)
			return list[1].ReadAt != nil, list
		})
		k.Stop()
		b.contactPosts(customer, vendorsim.Content{
			Type: vendorsim.TypeImage, Body: "missed", Media: &vendorsim.Media{Data: picture(t, png.Encode)},
		})
		k.Boot()
		m = members(t, hooks.AwaitCount(postern.MessageReceived, 2)[1], "message")
		if m["from"] != customer || m["body"] != "missed" || m["media"] == nil {
			t.Errorf("message.received has %v", m)
		}
		b.meddle(customer, first)
		b.acked(6)
		var now postern.Message
		b.c.Call("GET", "/v1/messages/"+wanted, nil, 200, &now)
		if now.State.DeletedAt != 0 || now.State.EditedAt != 0 || now.Content.Text != "wanted" {
			t.Errorf("somebody else has changed the post: %+v", now)
		}
		if _, err := k.Vendor.Revoke(t.Context(), phone, ann, first); err != nil {
			t.Fatal(err)
		}
		if e := members(t, hooks.AwaitCount(postern.MessageDeleted, 1)[0], "message"); e["from"] != ann {
			t.Errorf("message.deleted has %v", e)
		}
		says(phone, "mine")
		e := members(t, hooks.AwaitCount(postern.MessageEcho, 1)[0], "message")
		if e["chatId"] != "status" || e["to"] != nil {
			t.Errorf("message.echo has %v", e)
		}
		var chats struct{ Data []postern.Chat }
		b.c.Call("GET", "/v1/chats", nil, 200, &chats)
		if len(chats.Data) != 1 || chats.Data[0].UnreadCount != 0 || chats.Data[0].Name != "" {
			t.Errorf("the chats are %+v", chats.Data)
		}
	})
}
