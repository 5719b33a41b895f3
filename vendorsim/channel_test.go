package vendorsim_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

func newChannel(t *testing.T, v *vendorsim.Vendor, owner string) (ch vendorsim.Channel, address types.JID) {
	t.Helper()
	ch, err := v.Channels().Create(owner, "News", "What is new")
	if err != nil {
		t.Fatal(err)
	}
	return ch, types.NewJID(ch.ID, types.NewsletterServer)
}

func post(t *testing.T, v *vendorsim.Vendor, ch vendorsim.Channel, from, body string) string {
	t.Helper()
	id, err := v.Channels().Post(ch.ID, from, vendorsim.Content{Type: vendorsim.TypeText, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// refusedWith reports whether a send was refused with a code.
func refusedWith(err error, code string) bool {
	return errors.Is(err, whatsmeow.ErrServerReturnedError) && strings.HasSuffix(err.Error(), " "+code)
}

// TestChannel follows a channel by its invitation, gets its posts and edits, also those from before a login, and leaves
// it. Everything outlives a restart.
func TestChannel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := openVendor(t, dir)
	a := link(t, v, alice)
	ch, address := newChannel(t, v, bob)
	info, err := a.wa.GetNewsletterInfoWithInvite(t.Context(), whatsmeow.NewsletterLinkPrefix+ch.Invite)
	if err != nil || info.ID != address || info.ThreadMeta.Name.Text != "News" || info.ViewerMeta != nil {
		t.Fatalf("the invitation leads to %+v, %v", info, err)
	}
	if err := a.wa.FollowNewsletter(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	list, err := a.wa.GetSubscribedNewsletters(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != address || list[0].ViewerMeta.Role != types.NewsletterRoleSubscriber ||
		list[0].ThreadMeta.SubscriberCount != 2 {
		t.Fatalf("followed are %+v, %v", list, err)
	}
	id := post(t, v, ch, bob, "open")
	got := a.message("open")
	if got.Info.Chat != address || got.Info.ID != id || got.Info.ServerID != 1 || got.Info.IsFromMe {
		t.Errorf("the post is %+v", got.Info)
	}
	if err := v.Channels().Edit(ch.ID, bob, id, "closed"); err != nil {
		t.Fatal(err)
	}
	if got := a.message("closed"); got.Info.ID != id || got.NewsletterMeta == nil || got.NewsletterMeta.EditTS.IsZero() {
		t.Errorf("the edit is %+v", got)
	}
	a.wa.Disconnect()
	picture := vendorsim.Content{Type: vendorsim.TypeImage, Body: "missed", Media: &vendorsim.Media{Data: portrait(t, 8)}}
	if id, err = v.Channels().Post(ch.ID, bob, picture); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	v = openVendor(t, dir)
	a = newClient(t, v, a.device)
	a.connect()
	if got, err := a.wa.Download(t.Context(), a.arrived(id).Message.ImageMessage); !bytes.Equal(got, portrait(t, 8)) {
		t.Errorf("the picture has %d bytes, %v", len(got), err)
	}
	await(a, "being up to date", func(*events.OfflineSyncCompleted) bool { return true })
	if err := a.wa.UnfollowNewsletter(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	post(t, v, ch, bob, "not for alice")
	if n := len(v.Shown(alice)); n != 2 || v.Shown(alice)[0].Body != "closed" || v.Shown(alice)[0].From != "" {
		t.Errorf("the phone shows %+v", v.Shown(alice))
	}
}

// TestChannelPosts lets companions post: the administrators' posts reach those who follow the channel, the account of
// the writer included, and all others are refused.
func TestChannelPosts(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a, b := link(t, v, alice), link(t, v, bob)
	ch, address := newChannel(t, v, alice)
	if err := v.Channels().Follow(ch.ID, bob); err != nil {
		t.Fatal(err)
	}
	await(b, "the notice", func(e *events.NewsletterJoin) bool { return e.ID == address })
	text := func(body string) *waE2E.Message { return &waE2E.Message{Conversation: &body} }
	if _, err := b.wa.SendMessage(t.Context(), address, text("mine")); !refusedWith(err, "403") {
		t.Errorf("a follower posts: %v", err)
	}
	if _, err := a.wa.SendMessage(t.Context(), types.NewJID("1", types.NewsletterServer), text("x")); !refusedWith(err, "404") {
		t.Errorf("a post in an unknown channel: %v", err)
	}
	poll := a.wa.BuildPollCreation("Tea?", []string{"yes", "no"}, 1)
	if _, err := a.wa.SendMessage(t.Context(), address, poll); !refusedWith(err, "479") {
		t.Errorf("a poll: %v", err)
	}
	image := &waE2E.Message{ImageMessage: &waE2E.ImageMessage{DirectPath: new("/v/1"), FileSHA256: make([]byte, 32)}}
	if _, err := a.wa.SendMessage(t.Context(), address, image); !refusedWith(err, "479") {
		t.Errorf("a picture without a handle: %v", err)
	}
	up, err := a.wa.UploadNewsletter(t.Context(), []byte("a picture"), whatsmeow.MediaImage)
	if err != nil {
		t.Fatal(err)
	}
	image.ImageMessage = &waE2E.ImageMessage{
		URL: &up.URL, DirectPath: &up.DirectPath, FileSHA256: up.FileSHA256, FileLength: &up.FileLength,
	}
	shown, err := a.wa.SendMessage(t.Context(), address, image, whatsmeow.SendRequestExtra{MediaHandle: up.Handle})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.wa.Download(t.Context(), b.arrived(shown.ID).Message.ImageMessage); string(got) != "a picture" {
		t.Errorf("the picture is %q, %v", got, err)
	}
	resp, err := a.wa.SendMessage(t.Context(), address, text("hello"))
	if err != nil || resp.ServerID != 2 {
		t.Fatalf("the post is %+v, %v", resp, err)
	}
	if _, err := a.wa.SendMessage(t.Context(), address, text("hello"), whatsmeow.SendRequestExtra{ID: resp.ID}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*client{a, b} {
		if got := c.message("hello"); got.Info.ID != resp.ID || got.Info.Chat != address {
			t.Errorf("%s gets %+v", c.number, got.Info)
		}
	}
	var sent []vendorsim.Entry
	for _, e := range v.Ledger(0, 0) {
		if e.Direction == vendorsim.Outbound {
			sent = append(sent, e)
		}
	}
	if len(sent) != 2 || sent[1].Channel != ch.ID || sent[1].Copies != 2 || sent[1].AckedAt == nil {
		t.Errorf("the ledger has %+v", sent)
	}
	if err := a.wa.UnfollowNewsletter(t.Context(), address); err == nil {
		t.Error("the owner has left the channel")
	}
	if err := a.wa.FollowNewsletter(t.Context(), types.NewJID("1", types.NewsletterServer)); err == nil {
		t.Error("somebody follows what is not there")
	}
	if err := v.Receipt(t.Context(), alice, resp.ID, vendorsim.Read); !errors.Is(err, vendorsim.ErrUnknownMessage) {
		t.Errorf("a receipt for a post: %v", err)
	}
}
