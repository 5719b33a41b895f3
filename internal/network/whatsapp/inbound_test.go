package whatsapp

import (
	"strings"
	"testing"

	"postern/internal/network/networktest"
	"postern/internal/postern"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow/types"
)

func TestPeerNames(t *testing.T) {
	t.Parallel()
	pn, lid := types.NewJID(
		"15550001111",
		types.DefaultUserServer,
	), types.NewJID(
		"123456789012345",
		types.HiddenUserServer,
	)
	tests := []struct {
		name                string
		first, second       types.JID
		sender, chat, phone string
	}{
		{"both", lid, pn, "lid:123456789012345", "+15550001111", "+15550001111"},
		{"both, the other way", pn, lid, "lid:123456789012345", "+15550001111", "+15550001111"},
		{"number alone", pn, types.EmptyJID, "+15550001111", "+15550001111", "+15550001111"},
		{"hidden number", lid, types.EmptyJID, "lid:123456789012345", "lid:123456789012345", ""},
		{
			"with a device",
			types.JID{User: "15550001111", Device: 7, Server: types.DefaultUserServer},
			lid,
			"lid:123456789012345",
			"+15550001111",
			"+15550001111",
		},
	}
	for _, tt := range tests {
		var p peer
		p.add(tt.first)
		p.add(tt.second)
		if p.sender() != tt.sender || p.chat() != tt.chat || p.phone() != tt.phone || p.isEmpty() {
			t.Errorf("%s: sender %q, chat %q, phone %q", tt.name, p.sender(), p.chat(), p.phone())
		}
		if !p.names(tt.chat) || p.names("") || p.names("+1") || p.names("lid:1") {
			t.Errorf("%s: names the wrong chats", tt.name)
		}
	}
	var nobody peer
	for _, user := range []string{"", "0", "abc", "1 2", "١٢٣", strings.Repeat("1", 21)} {
		nobody.add(types.NewJID(user, types.DefaultUserServer))
		nobody.add(types.NewJID(user, types.HiddenUserServer))
	}
	if !nobody.isEmpty() || nobody.names("") || nobody.names("+") || nobody.names("lid:") {
		t.Errorf("%+v is somebody", nobody)
	}
}

func TestIsOfChat(t *testing.T) {
	t.Parallel()
	friend := types.NewJID("15550003333", types.DefaultUserServer)
	tests := []struct {
		name string
		in   types.MessageSource
		want bool
	}{
		{"number", types.MessageSource{Chat: friend, Sender: friend}, true},
		{"LID", types.MessageSource{Chat: types.NewJID("1234", types.HiddenUserServer), Sender: friend}, true},
		{"group", types.MessageSource{Chat: types.NewJID("1-2", types.GroupServer), Sender: friend, IsGroup: true}, true},
		{"status", types.MessageSource{Chat: types.StatusBroadcastJID, Sender: friend, IsGroup: true}, true},
		{"broadcast list", types.MessageSource{Chat: types.NewJID("1", types.BroadcastServer), Sender: friend, IsGroup: true}, true},
		{
			"broadcast list of the account",
			types.MessageSource{Chat: types.NewJID("1", types.BroadcastServer), Sender: friend, IsGroup: true, IsFromMe: true},
			false,
		},
		{"channel", types.MessageSource{Chat: types.NewJID("1", types.NewsletterServer)}, true},
		{
			"bot",
			types.MessageSource{Chat: types.NewJID("1", types.BotServer), Sender: types.NewJID("1", types.BotServer)},
			false,
		},
	}
	for _, tt := range tests {
		if got := isOfChat(tt.in); got != tt.want {
			t.Errorf("%s: of a chat = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestReceiptKinds(t *testing.T) {
	t.Parallel()
	tests := map[types.ReceiptType]postern.MessageStatus{
		types.ReceiptTypeDelivered: postern.Delivered,
		types.ReceiptTypeRead:      postern.Read,
		types.ReceiptTypePlayed:    postern.Played,
		types.ReceiptTypeSender:    "",
		types.ReceiptTypeReadSelf:  "",
		types.ReceiptTypeRetry:     "",
		types.ReceiptTypeInactive:  "",
	}
	for kind, want := range tests {
		if got, ok := confirmed(kind); got != want || ok != (want != "") {
			t.Errorf("receipt %q = %q, %v, want %q", kind, got, ok, want)
		}
	}
}

// What a contact sends through a broadcast list is a message of the chat with that contact.
func TestMessageThroughABroadcastListArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	id, err := w.vendor.SendContent(t.Context(), ownNumber, friendNumber, vendorsim.Content{
		Type: vendorsim.TypeText, Body: "to many", List: "1700000000",
	})
	if err != nil {
		t.Fatal(err)
	}
	m := networktest.Wait(t, c.Host, 1, byID(id))
	if m.ChatID != friendNumber || m.From != friendNumber || m.Content.Text != "to many" {
		t.Errorf("got %+v, want a message of the chat with %s", m, friendNumber)
	}
}
