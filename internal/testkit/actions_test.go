package testkit_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow/proto/waCommon" //nolint:depguard // what a phone writes
	"go.mau.fi/whatsmeow/proto/waE2E"    //nolint:depguard // what a phone writes
	"google.golang.org/protobuf/proto"
)

// acting is a device with a conversation whose messages can be acted on.
type acting struct {
	t     *testing.T
	kit   *testkit.Kit
	c     *testkit.Client
	hooks *testkit.Receiver
	d     postern.Device
}

func newActing(t *testing.T, k *testkit.Kit) acting {
	t.Helper()
	c := k.Workspace("growth")
	hooks := c.Receive("message.*", "poll.vote")
	return acting{t, k, c, hooks, c.Link(phone)}
}

// write lets a contact write a message in the network's form.
func (a acting) write(m *waE2E.Message) string {
	a.t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		a.t.Fatal(err)
	}
	id, err := a.kit.Vendor.SendContent(a.t.Context(), phone, reader, vendorsim.Content{Raw: raw})
	if err != nil {
		a.t.Fatal(err)
	}
	return id
}

// shown returns what the device sent last, in the network's form, as the recipient's phone
// decrypted it.
func (a acting) shown() *waE2E.Message {
	a.t.Helper()
	m := &waE2E.Message{}
	for _, e := range slices.Backward(a.kit.Vendor.Ledger(0, 0)) {
		if e.Direction == vendorsim.Outbound {
			if err := proto.Unmarshal(e.Raw, m); err != nil {
				a.t.Fatal(err)
			}
			break
		}
	}
	return m
}

// event returns the message of the n-th event of a type.
func (a acting) event(kind postern.EventType, n int) map[string]any {
	a.t.Helper()
	a.hooks.AwaitCount(kind, n)
	message, _ := a.hooks.Await(kind)[n-1].Event["message"].(map[string]any)
	return message
}

// act requests an action on a message, which must be accepted.
func (a acting) act(method string, id any, path string, body any) {
	a.t.Helper()
	text, _ := id.(string)
	a.c.Call(method, "/v1/messages/"+text+path, body, 202, nil)
}

func key(id string) *waCommon.MessageKey {
	return &waCommon.MessageKey{ID: &id, FromMe: new(false), RemoteJID: new("1@lid")}
}

// Reactions reach the other end, replace each other, and are taken back.
func TestReactionsGoBothWays(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		m := send(a.c, a.d, reader, "hello")
		a.c.AwaitMessage(m.ID, postern.Read)

		a.write(&waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Key: key(m.NetworkID), Text: new("👍")}})
		if e := a.event(postern.MessageReaction, 1); e["id"] != string(m.ID) || from(e["reaction"], "emoji") != "👍" ||
			from(e["reaction"], "from") != reader {
			t.Errorf("message.reaction = %v", e)
		}
		a.act("PUT", string(m.ID), "/reaction", map[string]any{"emoji": "🎉"})
		a.event(postern.MessageReaction, 2)
		if r := a.shown().GetReactionMessage(); r.GetText() != "🎉" || r.GetKey().GetID() != m.NetworkID ||
			!r.GetKey().GetFromMe() {
			t.Errorf("the phone gets %v", a.shown())
		}
		a.write(&waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Key: key(m.NetworkID), Text: new("❤️")}})
		a.event(postern.MessageReaction, 3)
		a.c.Call("GET", "/v1/messages/"+string(m.ID), nil, 200, &m)
		if got := emoji(m); !reflect.DeepEqual(got, []string{phone + " 🎉", reader + " ❤️"}) {
			t.Errorf("reactions = %v", got)
		}
		a.act("DELETE", string(m.ID), "/reaction", nil)
		a.event(postern.MessageReaction, 4)
		a.write(&waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Key: key(m.NetworkID), Text: new("")}})
		a.event(postern.MessageReaction, 5)
		m = postern.Message{ID: m.ID}
		a.c.Call("GET", "/v1/messages/"+string(m.ID), nil, 200, &m)
		if len(m.State.Reactions) != 0 {
			t.Errorf("after all were taken back, reactions = %v", m.State.Reactions)
		}
	})
}

func from(v any, member string) any {
	object, _ := v.(map[string]any)
	return object[member]
}

func emoji(m postern.Message) (list []string) {
	for _, r := range m.State.Reactions {
		list = append(list, string(r.From)+" "+r.Emoji)
	}
	return list
}

// Messages are pinned by both ends, for everyone, and unpinned by either.
func TestPinsGoBothWays(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		m := send(a.c, a.d, reader, "We meet at nine.")
		a.c.AwaitMessage(m.ID, postern.Read)

		a.act("PUT", string(m.ID), "/pin", map[string]any{"duration": 86400})
		a.pinned(postern.MessagePinned, 1, m.ID, phone, 24*time.Hour)
		sent := a.shown()
		if p := sent.GetPinInChatMessage(); p.GetType() != waE2E.PinInChatMessage_PIN_FOR_ALL ||
			p.GetKey().GetID() != m.NetworkID || !p.GetKey().GetFromMe() || p.GetSenderTimestampMS() == 0 ||
			sent.GetMessageContextInfo().GetMessageAddOnDurationInSecs() != 86400 {
			t.Errorf("the phone gets %v", sent)
		}
		if shown, err := k.Vendor.ShownMessage(reader, m.NetworkID); err != nil || !shown.Pinned {
			t.Errorf("the contact's phone shows %+v, %v", shown, err)
		}
		if _, err := k.Vendor.Pin(t.Context(), phone, reader, m.NetworkID, 0); err != nil {
			t.Fatal(err)
		}
		a.pinned(postern.MessageUnpinned, 1, m.ID, reader, 0)
		if _, err := k.Vendor.Pin(t.Context(), phone, phone, m.NetworkID, 30*24*time.Hour); err != nil {
			t.Fatal(err)
		}
		a.pinned(postern.MessagePinned, 2, m.ID, phone, 30*24*time.Hour)
		a.act("DELETE", string(m.ID), "/pin", nil)
		a.pinned(postern.MessageUnpinned, 2, m.ID, phone, 0)
		if shown, err := k.Vendor.ShownMessage(phone, m.NetworkID); err != nil || shown.Pinned {
			t.Errorf("the phone shows %+v, %v", shown, err)
		}
		a.act("PUT", string(m.ID), "/pin", nil)
		a.pinned(postern.MessagePinned, 3, m.ID, phone, postern.DefaultPin)
	})
}

// pinned checks the n-th event of a type, about a message that somebody pinned for a time, or
// unpinned.
func (a acting) pinned(kind postern.EventType, n int, id postern.MessageID, by string, lasts time.Duration) {
	a.t.Helper()
	e := a.event(kind, n)
	if e["id"] != string(id) || from(e["pin"], "from") != by {
		a.t.Errorf("%s = %v, want one by %s", kind, e, by)
	}
	var m postern.Message
	a.c.Call("GET", "/v1/messages/"+string(id), nil, 200, &m)
	if got := m.State.PinnedUntil.Std().Sub(m.State.PinnedAt.Std()); got != lasts {
		a.t.Errorf("the message is pinned for %v, want %v", got, lasts)
	}
}

// Messages are edited and deleted by their senders, and by nobody else.
func TestEditsAndDeletionsGoBothWays(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		mine := send(a.c, a.d, reader, "helo")
		a.c.AwaitMessage(mine.ID, postern.Read)
		theirs := a.write(&waE2E.Message{Conversation: new("god morning")})
		id := a.event(postern.MessageReceived, 1)["id"]

		a.act("PATCH", string(mine.ID), "", map[string]any{"body": "hello"})
		if e := a.event(postern.MessageEdited, 1); e["body"] != "hello" || e["editedAt"] == nil {
			t.Errorf("message.edited = %v", e)
		}
		p := a.shown().GetEditedMessage().GetMessage().GetProtocolMessage()
		if p.GetKey().GetID() != mine.NetworkID || p.GetEditedMessage().GetConversation() != "hello" {
			t.Errorf("the phone gets %v", a.shown())
		}
		a.write(edit(theirs, "good morning"))
		if e := a.event(postern.MessageEdited, 2); e["id"] != id || e["body"] != "good morning" {
			t.Errorf("message.edited = %v", e)
		}
		a.write(edit(mine.NetworkID, "I owe you a million"))
		a.write(&waE2E.Message{ProtocolMessage: revoke(mine.NetworkID)}) // not theirs either
		a.write(&waE2E.Message{ProtocolMessage: revoke(theirs)})
		if e := a.event(postern.MessageDeleted, 1); e["id"] != id || e["deletedAt"] == nil {
			t.Errorf("message.deleted = %v", e)
		}
		a.act("DELETE", string(mine.ID), "", nil)
		if e := a.event(postern.MessageDeleted, 2); e["id"] != string(mine.ID) || e["body"] != "hello" {
			t.Errorf("message.deleted = %v", e)
		}
		if p := a.shown().GetProtocolMessage(); p.GetType() != waE2E.ProtocolMessage_REVOKE ||
			p.GetKey().GetID() != mine.NetworkID {
			t.Errorf("the phone gets %v", a.shown())
		}
		a.c.Call("PATCH", "/v1/messages/"+string(mine.ID), map[string]any{"body": "x"}, 409, nil)
		text, _ := id.(string)
		a.c.Call("DELETE", "/v1/messages/"+text, nil, 409, nil)
		var list struct{ Data []postern.Message }
		if a.c.Call("GET", "/v1/messages", nil, 200, &list); len(list.Data) != 2 {
			t.Errorf("%d messages are listed, want 2: actions are none", len(list.Data))
		}
	})
}

func revoke(id string) *waE2E.ProtocolMessage {
	return &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_REVOKE.Enum(), Key: key(id)}
}

func edit(id, text string) *waE2E.Message {
	return &waE2E.Message{EditedMessage: &waE2E.FutureProofMessage{Message: &waE2E.Message{
		ProtocolMessage: &waE2E.ProtocolMessage{
			Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(), Key: key(id), EditedMessage: &waE2E.Message{Conversation: &text},
		},
	}}}
}

// The caption of a file is edited like a text, at both ends, and the file stays.
func TestCaptionsAreEdited(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		for i, tt := range []struct{ kind, name string }{{"image", "a.jpg"}, {"document", "a.pdf"}} {
			content := picture(t, asJPEG)
			file := uploadFile(t, a.c, tt.name, content)
			post := func(more map[string]any) (m postern.Message) {
				t.Helper()
				body := withFile(file, map[string]any{"type": tt.kind, "deviceId": a.d.ID, "to": reader}, more)
				a.c.Call("POST", "/v1/messages", body, 202, &m)
				return a.c.AwaitMessage(m.ID, postern.Read)
			}
			m := post(map[string]any{"body": "helo"})
			a.act("PATCH", string(m.ID), "", map[string]any{"body": "hello"})
			e := a.event(postern.MessageEdited, 2*i+1)
			if e["body"] != "hello" || e["editedAt"] == nil || from(e["media"], "id") != string(file.ID) {
				t.Errorf("message.edited = %v", e)
			}
			shown, err := k.Vendor.ShownMessage(reader, m.NetworkID)
			if err != nil || shown.Body != "hello" || !shown.Edited || shown.Type != tt.kind || shown.Media == nil {
				t.Fatalf("the phone shows %+v, %v", shown, err)
			}
			sent := a.shown().GetEditedMessage().GetMessage().GetProtocolMessage().GetEditedMessage()
			if inner := sent.GetDocumentWithCaptionMessage().GetMessage(); inner != nil {
				sent = inner
			}
			if c := sent.GetImageMessage().GetCaption() + sent.GetDocumentMessage().GetCaption(); c != "hello" ||
				len(sent.GetImageMessage().GetMediaKey())+len(sent.GetDocumentMessage().GetMediaKey()) == 0 {
				t.Errorf("the phone gets %v", sent)
			}
			bare := post(nil)
			a.c.Call("PATCH", "/v1/messages/"+string(bare.ID), map[string]any{"body": "x"}, 409, nil)

			a.c.Call("POST", "/v1/sandbox/devices/"+string(a.d.ID)+"/inbound",
				withFile(file, map[string]any{"type": tt.kind, "from": reader, "body": "god morning"}, nil), 200, nil)
			id, _ := a.event(postern.MessageReceived, i+1)["id"].(string)
			var theirs postern.Message
			a.c.Call("GET", "/v1/messages/"+id, nil, 200, &theirs)
			if _, err := k.Vendor.Edit(t.Context(), phone, reader, theirs.NetworkID, "good morning"); err != nil {
				t.Fatal(err)
			}
			e = a.event(postern.MessageEdited, 2*i+2)
			if e["id"] != id || e["body"] != "good morning" || e["type"] != tt.kind || e["media"] == nil {
				t.Errorf("message.edited = %v", e)
			}
		}
	})
}

// The caption of a picture that the owner sent on the phone is edited, too.
func TestCaptionsOfThePhoneAreEdited(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		networkID, err := k.Vendor.TypeContent(t.Context(), phone, reader, vendorsim.Content{
			Type: vendorsim.TypeImage, Body: "helo", Media: &vendorsim.Media{Data: picture(t, asJPEG)},
		})
		if err != nil {
			t.Fatal(err)
		}
		a.act("PATCH", a.event(postern.MessageEcho, 1)["id"], "", map[string]any{"body": "hello"})
		a.event(postern.MessageEdited, 1)
		shown, err := k.Vendor.ShownMessage(reader, networkID)
		if err != nil || shown.Body != "hello" || !shown.Edited || shown.Media == nil {
			t.Errorf("the phone shows %+v, %v", shown, err)
		}
	})
}

// Votes are decrypted in both directions, replace each other, and are counted.
func TestVotesGoBothWays(t *testing.T) {
	onEachEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		ours := send(a.c, a.d, reader, "hello")
		a.c.AwaitMessage(ours.ID, postern.Read)
		var m postern.Message
		a.c.Call("POST", "/v1/messages", map[string]any{
			"deviceId": a.d.ID, "to": reader, "type": "poll", "replyTo": ours.ID,
			"poll": map[string]any{"question": "Where?", "options": []string{"Here", "There"}, "maxSelections": 1},
		}, 202, &m)
		m = a.c.AwaitMessage(m.ID, postern.Read)
		poll := a.shown()
		account := poll.GetPollCreationMessage().GetContextInfo().GetParticipant() // it quotes the account
		secret := poll.GetMessageContextInfo().GetMessageSecret()

		theirs, err := proto.Marshal(&waE2E.Message{
			PollCreationMessage: &waE2E.PollCreationMessage{
				Name: new("When?"), Options: []*waE2E.PollCreationMessage_Option{{OptionName: new("Now")}, {OptionName: new("Later")}},
			},
			MessageContextInfo: &waE2E.MessageContextInfo{MessageSecret: []byte("0123456789abcdef0123456789abcdef")},
		})
		if err != nil {
			t.Fatal(err)
		}
		id, err := a.kit.Vendor.SendContent(t.Context(), phone, reader, vendorsim.Content{Raw: theirs})
		if err != nil {
			t.Fatal(err)
		}
		asked := a.event(postern.MessageReceived, 1)
		lid, _ := asked["fromLid"].(string)
		contact := strings.TrimPrefix(lid, "lid:") + "@lid"

		for i, choice := range []string{"Here", "There"} {
			a.write(ballot(t, m.NetworkID, account, contact, secret, choice))
			e := a.event(postern.PollVote, i+1)
			if got := from(e["vote"], "options"); !reflect.DeepEqual(got, []any{choice}) || from(e["vote"], "from") != reader {
				t.Errorf("poll.vote = %v", e)
			}
		}
		a.act("POST", string(m.ID), "/votes", map[string]any{"options": []string{"There"}})
		e := a.event(postern.PollVote, 3)
		want := []any{map[string]any{"option": "Here", "votes": 0.0}, map[string]any{"option": "There", "votes": 2.0}}
		if !reflect.DeepEqual(e["tally"], want) {
			t.Errorf("tally = %v, want %v", e["tally"], want)
		}

		a.act("POST", asked["id"], "/votes", map[string]any{"options": []string{"Later"}})
		a.event(postern.PollVote, 4)
		u := a.shown().GetPollUpdateMessage()
		sealed := gcm(t, []byte("0123456789abcdef0123456789abcdef"), id, contact, account)
		plain, err := sealed.Open(nil, u.GetVote().GetEncIV(), u.GetVote().GetEncPayload(), []byte(id+"\x00"+account))
		var vote waE2E.PollVoteMessage
		if err = errors.Join(err, proto.Unmarshal(plain, &vote)); err != nil ||
			hex.EncodeToString(vote.GetSelectedOptions()[0]) != postern.HashOfOption("Later") {
			t.Errorf("the phone gets the vote %v, %v", &vote, err)
		}
	})
}

// gcm is the cipher with which a vote is sealed.
func gcm(t *testing.T, secret []byte, poll, author, voter string) cipher.AEAD {
	t.Helper()
	key, err := hkdf.Key(sha256.New, secret, nil, poll+author+voter+"Poll Vote", 32)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return aead
}

// ballot is a vote as a phone seals it.
func ballot(t *testing.T, poll, author, voter string, secret []byte, option string) *waE2E.Message {
	t.Helper()
	hash := sha256.Sum256([]byte(option))
	plain, err := proto.Marshal(&waE2E.PollVoteMessage{SelectedOptions: [][]byte{hash[:]}})
	if err != nil {
		t.Fatal(err)
	}
	iv := []byte(option + "0123456789ab")[:12]
	sealed := gcm(t, secret, poll, author, voter).Seal(nil, iv, plain, []byte(poll+"\x00"+voter))
	return &waE2E.Message{PollUpdateMessage: &waE2E.PollUpdateMessage{
		PollCreationMessageKey: &waCommon.MessageKey{ID: &poll, FromMe: new(false), RemoteJID: &author},
		Vote:                   &waE2E.PollEncValue{EncPayload: sealed, EncIV: iv},
	}}
}

// Marking a received message as read sends a receipt.
func TestReceivedMessagesAreMarkedRead(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		theirs := a.write(&waE2E.Message{Conversation: new("hello")})
		a.act("POST", a.event(postern.MessageReceived, 1)["id"], "/read", nil)
		testkit.Eventually(t, "the message is read", func() (bool, any) {
			for _, e := range a.kit.Vendor.Ledger(0, 0) {
				if e.NetworkID == theirs && e.ReadAt != nil {
					return true, nil
				}
			}
			return false, a.kit.Vendor.Ledger(0, 0)
		})
	})
}

// An action on a message that does not allow it is refused.
func TestActionsAreChecked(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	a := newActing(t, k)
	m := send(a.c, a.d, reader, "hello")
	for _, tt := range []struct {
		method, path string
		body         map[string]any
		status       int
	}{
		{"POST", "/votes", map[string]any{"options": []string{"x"}}, 409},
		{"POST", "/read", map[string]any{}, 409},
		{"PATCH", "", map[string]any{"body": ""}, 422},
		{"PUT", "/reaction", map[string]any{"emoji": ""}, 422},
		{"PUT", "/reaction", map[string]any{"emoji": "\n"}, 422},
		{"PUT", "/reaction", map[string]any{"emoji": "ok"}, 422},
		{"PUT", "/reaction", map[string]any{"emoji": "👍👍"}, 422},
		{"PATCH", "", map[string]any{"body": "x", "type": "text"}, 422},
		{"PUT", "/pin", map[string]any{"duration": 60}, 422},
		{"PUT", "/star", map[string]any{"duration": 60}, 422},
	} {
		a.c.Call(tt.method, "/v1/messages/"+string(m.ID)+tt.path, tt.body, tt.status, nil)
	}
	a.c.Call("POST", "/v1/messages", map[string]any{
		"deviceId": a.d.ID, "to": reader, "body": "later", "sendAt": time.Now().Add(time.Hour).UTC(),
	}, 202, &m)
	a.c.Call("DELETE", "/v1/messages/"+string(m.ID), nil, 409, nil) // or it would be deleted before it is sent
	a.c.Call("PUT", "/v1/messages/"+string(m.ID)+"/reaction", map[string]any{"emoji": "👍"}, 409, nil)
	a.c.Call("PUT", "/v1/messages/"+string(m.ID)+"/star", nil, 409, nil)
	a.c.Call("DELETE", "/v1/messages/msg_none/star", nil, 404, nil)
}

// Newer phones seal an edit with the secret of the message. It is opened, no matter who wrote it.
func TestSealedEditsAreOpened(t *testing.T) {
	onOneEngine(t, func(t *testing.T, k *testkit.Kit) {
		a := newActing(t, k)
		v, ctx := k.Vendor, t.Context()
		theirs, err := v.SendContent(ctx, phone, reader, vendorsim.Content{Body: "frist", Secret: true})
		if err != nil {
			t.Fatal(err)
		}
		received := a.event(postern.MessageReceived, 1)
		if _, err := v.EditSealed(ctx, phone, reader, theirs, "first"); err != nil {
			t.Fatal(err)
		}
		if e := a.event(postern.MessageEdited, 1); e["id"] != received["id"] || e["body"] != "first" {
			t.Errorf("message.edited = %v", e)
		}
		typed, err := v.TypeContent(ctx, phone, reader, vendorsim.Content{Body: "secnod", Secret: true})
		if err != nil {
			t.Fatal(err)
		}
		echoed := a.event(postern.MessageEcho, 1)
		if _, err := v.EditSealed(ctx, phone, phone, typed, "second"); err != nil {
			t.Fatal(err)
		}
		if e := a.event(postern.MessageEdited, 2); e["id"] != echoed["id"] || e["body"] != "second" {
			t.Errorf("message.edited = %v", e)
		}
	})
}
