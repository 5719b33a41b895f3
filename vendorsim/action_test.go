package vendorsim_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// acted waits for an action that was written, and returns it as alice's client gets it.
func (c *client) acted(id string, err error) *events.Message {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	return c.arrived(id)
}

func TestPeopleReact(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	target := a.send(bob, "hello")

	m := a.acted(v.React(t.Context(), alice, bob, target, "👍"))
	r := m.Message.GetReactionMessage()
	if r.GetText() != "👍" || r.GetKey().GetID() != target || r.GetKey().GetFromMe() || m.Info.Type != "reaction" {
		t.Errorf("reaction is %v of type %s", r, m.Info.Type)
	}
	a.sent(a.wa.BuildReaction(jid(bob), types.EmptyJID, target, "🎉"))
	both := []vendorsim.Reaction{{From: bob, Emoji: "👍"}, {From: alice, Emoji: "🎉"}}
	for _, phone := range []string{alice, bob} {
		if got := shown(t, v, phone, target); !slices.Equal(got.Reactions, both) || got.Body != "hello" {
			t.Errorf("the phone of %s shows %+v, want %v", phone, got, both)
		}
		if n := len(v.Shown(phone)); n != 1 {
			t.Errorf("the phone of %s shows %d messages, want 1", phone, n)
		}
	}
	a.acted(v.React(t.Context(), alice, bob, target, "❤️"))
	m = a.acted(v.React(t.Context(), alice, bob, target, ""))
	if m.Info.Edit != types.EditAttributeSenderRevoke || m.Message.GetReactionMessage().GetText() != "" {
		t.Errorf("removal is %v with edit=%q", m.Message, m.Info.Edit)
	}
	id := a.sent(a.wa.BuildReaction(jid(bob), types.EmptyJID, target, ""))
	if got := shown(t, v, bob, target).Reactions; len(got) != 0 {
		t.Errorf("reactions are %v, want none", got)
	}
	if e := entry(t, v, id); e.Type != vendorsim.TypeReaction || e.Target != target || e.Body != "" {
		t.Errorf("entry is %+v", e.Content)
	}
}

func TestPeopleEditAndRevoke(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	theirs := write(t, v, bob, "helo")
	a.message("helo")

	m := a.acted(v.Edit(t.Context(), alice, bob, theirs, "hello"))
	p := m.Message.GetProtocolMessage()
	if !m.IsEdit || m.Info.Edit != types.EditAttributeMessageEdit || p.GetKey().GetID() != theirs ||
		!p.GetKey().GetFromMe() || p.GetEditedMessage().GetConversation() != "hello" {
		t.Errorf("edit is %v with edit=%q", m.Message, m.Info.Edit)
	}
	if got := shown(t, v, alice, theirs); got.Body != "hello" || !got.Edited {
		t.Errorf("alice's phone shows %+v, want the new text", got)
	}
	m = a.acted(v.Revoke(t.Context(), alice, bob, theirs))
	p = m.Message.GetProtocolMessage()
	if m.Info.Edit != types.EditAttributeSenderRevoke || p.GetType() != waE2E.ProtocolMessage_REVOKE ||
		p.GetKey().GetID() != theirs {
		t.Errorf("revoke is %v with edit=%q", m.Message, m.Info.Edit)
	}
	if got := shown(t, v, alice, theirs); got.Body != "" || !got.Deleted || got.Raw != nil {
		t.Errorf("alice's phone shows %+v, want nothing of it", got)
	}

	mine := a.send(bob, "wrong")
	id := a.sent(a.wa.BuildEdit(jid(bob), mine, textOf("right")))
	if got := shown(t, v, bob, mine); got.Body != "right" || !got.Edited {
		t.Errorf("bob's phone shows %+v, want the new text", got)
	}
	if e := entry(t, v, id); e.Type != vendorsim.TypeEdit || e.Target != mine || e.Body != "right" {
		t.Errorf("entry is %+v", e.Content)
	}
	id = a.sent(a.wa.BuildRevoke(jid(bob), types.EmptyJID, mine))
	if got := shown(t, v, bob, mine); got.Body != "" || !got.Deleted {
		t.Errorf("bob's phone shows %+v, want nothing of it", got)
	}
	if e := entry(t, v, id); e.Type != vendorsim.TypeRevoke || e.Target != mine {
		t.Errorf("entry is %+v", e.Content)
	}
}

func TestCaptionIsEdited(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	for _, kind := range []string{vendorsim.TypeImage, vendorsim.TypeVideo, vendorsim.TypeDocument} {
		id := written(t, v, a, vendorsim.Content{Type: kind, Media: &vendorsim.Media{Data: []byte("x")}}).Info.ID
		for _, caption := range []string{"first", "second"} {
			m := a.acted(v.Edit(t.Context(), alice, bob, id, caption))
			edited := (&events.Message{RawMessage: m.Message.GetProtocolMessage().GetEditedMessage()}).UnwrapRaw().Message
			got := edited.GetImageMessage().GetCaption() + edited.GetVideoMessage().GetCaption() +
				edited.GetDocumentMessage().GetCaption()
			if got != caption {
				t.Errorf("%s is edited to %q, want %q", kind, got, caption)
			}
		}
		if got := shown(t, v, alice, id); got.Body != "second" || got.Media == nil || got.Media.Size != 1 {
			t.Errorf("alice's phone shows %+v", got)
		}
	}
}

func TestSealedEdits(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	theirs := written(t, v, a, vendorsim.Content{Type: vendorsim.TypeText, Body: "helo", Secret: true}).Info.ID
	for _, body := range []string{"hello", "hello!"} {
		m := a.acted(v.EditSealed(t.Context(), alice, bob, theirs, body))
		inner, err := a.wa.DecryptSecretEncryptedMessage(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		p := inner.GetProtocolMessage()
		if p.GetKey().GetID() != theirs || p.GetEditedMessage().GetConversation() != body || m.IsEdit {
			t.Errorf("sealed edit is %v", inner)
		}
		if got := shown(t, v, alice, theirs); got.Body != body || !got.Edited {
			t.Errorf("alice's phone shows %+v, want %q", got, body)
		}
	}

	secret := bytes.Repeat([]byte{7}, 32)
	mine := a.sent(&waE2E.Message{
		Conversation: new("wrong"), MessageContextInfo: &waE2E.MessageContextInfo{MessageSecret: secret},
	})
	id := a.sent(a.sealedEdit(mine, "right"))
	if got := shown(t, v, bob, mine); got.Body != "right" || !got.Edited {
		t.Errorf("bob's phone shows %+v, want the new text", got)
	}
	if e := entry(t, v, id); e.Type != vendorsim.TypeEdit || !e.Sealed || e.Target != mine || e.Body != "right" ||
		e.Unreadable {
		t.Errorf("entry is %+v", e.Content)
	}
	plain := a.send(bob, "no secret")
	if _, err := v.EditSealed(t.Context(), alice, alice, plain, "x"); !errors.Is(err, vendorsim.ErrNoSecret) {
		t.Errorf("sealed edit of a message without a secret: %v, want %v", err, vendorsim.ErrNoSecret)
	}
}

// sealedEdit seals an edit of a message of the client to bob.
func (c *client) sealedEdit(id, body string) *waE2E.Message {
	c.t.Helper()
	own, to := c.wa.Store.GetLID().ToNonAD(), c.lidOf(bob)
	plain := mustMarshal(c.t, c.wa.BuildEdit(to, id, textOf(body)).GetEditedMessage().GetMessage())
	internals := c.wa.DangerousInternals() //nolint:staticcheck // whatsmeow seals edits only there
	payload, iv, err := internals.EncryptMsgSecret(c.t.Context(), own, to, own, id, whatsmeow.EncSecretMessageEdit, plain)
	if err != nil {
		c.t.Fatal(err)
	}
	return &waE2E.Message{SecretEncryptedMessage: &waE2E.SecretEncryptedMessage{
		TargetMessageKey: c.wa.BuildMessageKey(to, types.EmptyJID, id), EncPayload: payload, EncIV: iv,
		SecretEncType: waE2E.SecretEncryptedMessage_MESSAGE_EDIT.Enum(),
	}}
}

// lidOf returns the hidden address of a number, as the client knows it.
func (c *client) lidOf(number string) types.JID {
	c.t.Helper()
	lid, err := c.device.LIDs.GetLIDForPN(c.t.Context(), jid(number))
	if err != nil || lid.IsEmpty() {
		c.t.Fatalf("hidden address of %s: %v, %v", number, lid, err)
	}
	return lid
}

func TestPeopleVote(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	options := []string{"tea", "coffee", "water"}

	mine := a.sent(a.wa.BuildPollCreation("drink?", options, 2))
	m := a.acted(v.Vote(t.Context(), alice, bob, mine, "coffee", "tea"))
	ballot, err := a.wa.DecryptPollVote(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	hashes := whatsmeow.HashPollOptions([]string{"coffee", "tea"})
	if !reflect.DeepEqual(ballot.GetSelectedOptions(), hashes) || m.Info.Type != "poll" {
		t.Errorf("vote is %x of type %s, want %x", ballot.GetSelectedOptions(), m.Info.Type, hashes)
	}
	a.acted(v.Vote(t.Context(), alice, bob, mine, "water"))
	want := []vendorsim.Vote{{From: bob, Choices: []string{"water"}}}
	if got := shown(t, v, alice, mine).Votes; !reflect.DeepEqual(got, want) {
		t.Errorf("alice's phone shows %v, want %v", got, want)
	}
	a.acted(v.Vote(t.Context(), alice, bob, mine))
	if got := shown(t, v, alice, mine).Votes; len(got) != 0 {
		t.Errorf("alice's phone shows %v, want no vote", got)
	}

	poll := written(t, v, a, vendorsim.Content{
		Type: vendorsim.TypePoll, Poll: &vendorsim.Poll{Question: "drink?", Options: options},
	})
	vote, err := a.wa.BuildPollVote(t.Context(), &poll.Info, []string{"tea", "water"})
	if err != nil {
		t.Fatal(err)
	}
	id := a.sent(vote)
	if e := entry(t, v, id); e.Type != vendorsim.TypeVote || e.Target != poll.Info.ID ||
		!slices.Equal(e.Choices, []string{"tea", "water"}) {
		t.Errorf("entry is %+v", e.Content)
	}
	want = []vendorsim.Vote{{From: alice, Choices: []string{"tea", "water"}}}
	if got := shown(t, v, bob, poll.Info.ID).Votes; !reflect.DeepEqual(got, want) {
		t.Errorf("bob's phone shows %v, want %v", got, want)
	}

	vote.PollUpdateMessage.Vote.EncPayload[0] ^= 1
	if e := entry(t, v, a.sent(vote)); !e.Unreadable || e.Choices != nil {
		t.Errorf("damaged vote is %+v, want one that cannot be read", e.Content)
	}
	if _, err := v.Vote(t.Context(), alice, bob, mine, "beer"); !errors.Is(err, vendorsim.ErrNoOption) {
		t.Errorf("vote for beer: %v, want %v", err, vendorsim.ErrNoOption)
	}
}

func TestMessagesArePinned(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	target := a.send(bob, "remember")
	m := a.acted(v.Pin(t.Context(), alice, bob, target, 24*time.Hour))
	pin := m.Message.GetPinInChatMessage()
	if m.Info.Edit != types.EditAttributePinInChat || pin.GetKey().GetID() != target ||
		m.Message.GetMessageContextInfo().GetMessageAddOnDurationInSecs() != 86400 {
		t.Errorf("pin is %v with edit=%q", m.Message, m.Info.Edit)
	}
	if !shown(t, v, bob, target).Pinned {
		t.Error("bob's phone shows no pin")
	}
	pin.Type = waE2E.PinInChatMessage_UNPIN_FOR_ALL.Enum()
	id := a.sent(&waE2E.Message{PinInChatMessage: pin})
	if e := entry(t, v, id); e.Type != vendorsim.TypePin || e.Target != target || e.Seconds != 0 {
		t.Errorf("entry is %+v", e.Content)
	}
	if shown(t, v, bob, target).Pinned {
		t.Error("bob's phone shows a pin")
	}
}

func TestMessagesDisappear(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	m := written(t, v, a, vendorsim.Content{Type: vendorsim.TypeTimer, Seconds: 86400})
	if p := m.Message.GetProtocolMessage(); p.GetType() != waE2E.ProtocolMessage_EPHEMERAL_SETTING ||
		p.GetEphemeralExpiration() != 86400 {
		t.Errorf("timer is %v", m.Message)
	}
	m = written(t, v, a, vendorsim.Content{Type: vendorsim.TypeText, Body: "soon gone", Expires: 86400})
	if got := m.Message.GetExtendedTextMessage(); got.GetText() != "soon gone" ||
		got.GetContextInfo().GetExpiration() != 86400 {
		t.Errorf("message is %v", m.Message)
	}
	if err := a.wa.SetDisappearingTimer(t.Context(), jid(bob), 0, time.Time{}); err != nil {
		t.Fatal(err)
	}
	list := v.Shown(bob)
	if got := list[len(list)-1]; got.Type != vendorsim.TypeTimer || got.From != alice || got.Seconds != 0 {
		t.Errorf("bob's phone shows %+v, want the end of the timer", got)
	}
	id := a.sent(forwarded(t, m))
	if got := shown(t, v, bob, id); got.Expires != 86400 || got.Body != "soon gone" {
		t.Errorf("bob's phone shows %+v", got)
	}
}

func TestOwnerActsOnThePhone(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	mine, theirs := a.send(bob, "mine"), write(t, v, bob, "theirs")
	a.message("theirs")
	m := a.acted(v.React(t.Context(), alice, alice, theirs, "👀"))
	if key := m.Message.GetReactionMessage().GetKey(); !m.Info.IsFromMe || key.GetFromMe() || key.GetID() != theirs ||
		m.Info.RecipientAlt.User != bob[1:] {
		t.Errorf("reaction is %v in %+v", m.Message, m.Info.MessageSource)
	}
	m = a.acted(v.Revoke(t.Context(), alice, alice, mine))
	if key := m.Message.GetProtocolMessage().GetKey(); !m.Info.IsFromMe || !key.GetFromMe() || key.GetID() != mine {
		t.Errorf("revoke is %v in %+v", m.Message, m.Info.MessageSource)
	}
	if !shown(t, v, bob, mine).Deleted || len(shown(t, v, bob, theirs).Reactions) != 1 {
		t.Errorf("bob's phone shows %+v", v.Shown(bob))
	}
}

func TestActionsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	mine, theirs := a.send(bob, "mine"), write(t, v, bob, "theirs")
	a.message("theirs")
	elsewhere := a.send(carol, "to carol")
	for name, tt := range map[string]struct {
		act  func(context.Context) (string, error)
		want error
	}{
		"edit of another's": {func(ctx context.Context) (string, error) {
			return v.Edit(ctx, alice, bob, mine, "x")
		}, vendorsim.ErrNotAuthor},
		"revoke of another's": {func(ctx context.Context) (string, error) {
			return v.Revoke(ctx, alice, bob, mine)
		}, vendorsim.ErrNotAuthor},
		"of nothing": {func(ctx context.Context) (string, error) {
			return v.React(ctx, alice, bob, "nothing", "x")
		}, vendorsim.ErrUnknownMessage},
		"in another chat": {func(ctx context.Context) (string, error) {
			return v.React(ctx, alice, bob, elsewhere, "x")
		}, vendorsim.ErrUnknownMessage},
		"of nobody": {func(ctx context.Context) (string, error) {
			return v.React(ctx, carol, bob, mine, "x")
		}, vendorsim.ErrUnknownAccount},
	} {
		if _, err := tt.act(t.Context()); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	a.sent(a.wa.BuildEdit(jid(bob), theirs, textOf("forged")))
	if got := shown(t, v, bob, theirs); got.Body != "theirs" || got.Edited {
		t.Errorf("bob's phone shows %+v after an edit that alice may not do", got)
	}
}

// A phone knows nothing of a message that it no longer shows.
func TestPhonesShowTheNewest(t *testing.T) {
	t.Parallel()
	v, err := vendorsim.Open(vendorsim.Options{Keys: testKeys, Shown: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	a := link(t, v, alice)
	ids := []string{a.send(bob, "one"), a.send(bob, "two"), a.send(bob, "three")}
	a.sent(a.wa.BuildEdit(jid(bob), ids[0], textOf("eins")))
	a.sent(a.wa.BuildEdit(jid(bob), ids[1], textOf("zwei")))
	if got := v.Shown(bob); len(got) != 2 || got[0].Body != "zwei" || got[1].Body != "three" {
		t.Errorf("bob's phone shows %+v", got)
	}
}

func TestActionsSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := openVendor(t, dir)
	a := link(t, v, alice)
	ids := []string{a.send(bob, "one"), a.send(bob, "two"), a.send(bob, "three")}
	a.acted(v.React(t.Context(), alice, bob, ids[0], "👍"))
	a.sent(a.wa.BuildEdit(jid(bob), ids[1], textOf("zwei")))
	a.wa.Disconnect()
	want := v.Shown(bob)
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if got := openVendor(t, dir).Shown(bob); !reflect.DeepEqual(got, want) || got[1].Body != "zwei" {
		t.Errorf("bob's phone shows %+v, want %+v", got, want)
	}
}

func TestPlayed(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	id := a.send(bob, "listen")
	if err := v.Receipt(t.Context(), alice, id, vendorsim.Played); err != nil {
		t.Fatal(err)
	}
	a.receipt(id, types.ReceiptTypePlayed)
	if e := entry(t, v, id); e.PlayedAt == nil || e.ReadAt == nil {
		t.Errorf("entry is %+v, want one that was played", e)
	}
	m := written(t, v, a, vendorsim.Content{Type: vendorsim.TypeVoice, Media: &vendorsim.Media{}})
	err := a.wa.MarkRead(t.Context(), []types.MessageID{m.Info.ID}, time.Now(), m.Info.Chat, m.Info.Sender,
		types.ReceiptTypePlayed)
	if err != nil {
		t.Fatal(err)
	}
	until(t, v, "it was played", func() bool { return entry(t, v, m.Info.ID).PlayedAt != nil })
}

// TestSealedForOtherNames seals for phone numbers, which whatsmeow can open only after both names of
// the sender are exchanged.
func TestSealedForOtherNames(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	poll := a.sent(a.wa.BuildPollCreation("drink?", []string{"tea", "coffee"}, 1))
	theirs := written(t, v, a, vendorsim.Content{Type: vendorsim.TypeText, Body: "helo", Secret: true}).Info.ID
	fault(t, v, alice, vendorsim.FaultOtherNames)
	vote := a.acted(v.Vote(t.Context(), alice, bob, poll, "tea"))
	fault(t, v, alice, vendorsim.FaultOtherNames)
	edit := a.acted(v.EditSealed(t.Context(), alice, bob, theirs, "hello"))
	for name, m := range map[string]*events.Message{"vote": vote, "edit": edit} {
		open := func() error {
			if name == "vote" {
				_, err := a.wa.DecryptPollVote(t.Context(), m)
				return err
			}
			_, err := a.wa.DecryptSecretEncryptedMessage(t.Context(), m)
			return err
		}
		if err := open(); err == nil {
			t.Errorf("the %s is opened with the hidden address", name)
		}
		m.Info.Sender, m.Info.SenderAlt = m.Info.SenderAlt, m.Info.Sender
		if err := open(); err != nil {
			t.Errorf("the %s is not opened with the phone number: %v", name, err)
		}
	}
	if _, err := a.wa.DecryptPollVote(t.Context(), a.acted(v.Vote(t.Context(), alice, bob, poll, "coffee"))); err != nil {
		t.Errorf("the vote after the fault: %v", err)
	}
}
