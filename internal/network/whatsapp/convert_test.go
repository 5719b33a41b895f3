package whatsapp

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"postern/internal/network"
	"postern/internal/postern"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
)

func TestContent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		in         *waE2E.Message
		kind, body string
		ok         bool
	}{
		{"nothing", nil, "", "", false},
		{"text", text("hello"), postern.TypeText, "hello", true},
		{"empty text", text(""), postern.TypeText, "", true},
		{"text with a preview", &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: new("hello")}}, postern.TypeText, "hello", true},
		{"picture", &waE2E.Message{ImageMessage: &waE2E.ImageMessage{}}, postern.TypeUnsupported, "", true},
		{"picture with context", &waE2E.Message{ImageMessage: &waE2E.ImageMessage{}, MessageContextInfo: &waE2E.MessageContextInfo{}}, postern.TypeUnsupported, "", true},
		{"reaction", &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{}}, postern.TypeUnsupported, "", true},
		{"protocol", &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{}}, "", "", false},
		{"keys of a group", &waE2E.Message{SenderKeyDistributionMessage: &waE2E.SenderKeyDistributionMessage{}}, "", "", false},
		{"context alone", &waE2E.Message{MessageContextInfo: &waE2E.MessageContextInfo{}}, "", "", false},
		{"empty", &waE2E.Message{}, "", "", false},
	}
	for _, tt := range tests {
		kind, body, ok := content(tt.in)
		if ok != tt.ok || ok && (kind != tt.kind || body != tt.body) {
			t.Errorf("%s: content = %q, %q, %v, want %q, %q, %v", tt.name, kind, body, ok, tt.kind, tt.body, tt.ok)
		}
	}
}

func TestPeerNames(t *testing.T) {
	t.Parallel()
	pn, lid := types.NewJID("15550001111", types.DefaultUserServer), types.NewJID("123456789012345", types.HiddenUserServer)
	tests := []struct {
		name                string
		first, second       types.JID
		sender, chat, phone string
	}{
		{"both", lid, pn, "lid:123456789012345", "+15550001111", "+15550001111"},
		{"both, the other way", pn, lid, "lid:123456789012345", "+15550001111", "+15550001111"},
		{"number alone", pn, types.EmptyJID, "+15550001111", "+15550001111", "+15550001111"},
		{"hidden number", lid, types.EmptyJID, "lid:123456789012345", "lid:123456789012345", ""},
		{"with a device", types.JID{User: "15550001111", Device: 7, Server: types.DefaultUserServer}, lid, "lid:123456789012345", "+15550001111", "+15550001111"},
	}
	for _, tt := range tests {
		var p peer
		p.add(tt.first)
		p.add(tt.second)
		if p.sender() != tt.sender || p.chat() != tt.chat || p.phone() != tt.phone || p.isNobody() {
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
	if !nobody.isNobody() || nobody.names("") || nobody.names("+") || nobody.names("lid:") {
		t.Errorf("%+v is somebody", nobody)
	}
}

func TestIsDirect(t *testing.T) {
	t.Parallel()
	friend := types.NewJID("15550003333", types.DefaultUserServer)
	tests := []struct {
		name string
		in   types.MessageSource
		want bool
	}{
		{"number", types.MessageSource{Chat: friend, Sender: friend}, true},
		{"LID", types.MessageSource{Chat: types.NewJID("1234", types.HiddenUserServer), Sender: friend}, true},
		{"group", types.MessageSource{Chat: types.NewJID("1-2", types.GroupServer), Sender: friend, IsGroup: true}, false},
		{"status", types.MessageSource{Chat: types.StatusBroadcastJID, Sender: friend, IsGroup: true}, false},
		{"newsletter", types.MessageSource{Chat: types.NewJID("1", types.NewsletterServer)}, false},
		{"bot", types.MessageSource{Chat: types.NewJID("1", types.BotServer), Sender: types.NewJID("1", types.BotServer)}, false},
	}
	for _, tt := range tests {
		if got := isDirect(tt.in); got != tt.want {
			t.Errorf("%s: direct = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestReceiptKinds(t *testing.T) {
	t.Parallel()
	tests := map[types.ReceiptType]postern.MessageStatus{
		types.ReceiptTypeDelivered: postern.Delivered, types.ReceiptTypeRead: postern.Read, types.ReceiptTypePlayed: postern.Read,
		types.ReceiptTypeSender: "", types.ReceiptTypeReadSelf: "", types.ReceiptTypeRetry: "", types.ReceiptTypeInactive: "",
	}
	for kind, want := range tests {
		if got, ok := confirmed(kind); got != want || ok != (want != "") {
			t.Errorf("receipt %q = %q, %v, want %q", kind, got, ok, want)
		}
	}
}

func FuzzClip(f *testing.F) {
	for _, s := range []string{"", "hello", "\xff\x00", strings.Repeat("👋", 300), "-"} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if limit < 0 || limit > 1<<20 {
			return // no limit that is ever used
		}
		got := clip(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("clip(%q, %d) = %q", s, limit, got)
		}
		if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && !strings.HasPrefix(s, got) {
			t.Errorf("clip(%q, %d) = %q, want a prefix", s, limit, got)
		}
		if n := name(s); utf8.RuneCountInString(n) > maxName || !utf8.ValidString(n) {
			t.Errorf("name(%q) = %q", s, n)
		}
	})
}

func TestEndings(t *testing.T) {
	t.Parallel()
	now := time.Now()
	failure := func(attrs waBinary.Attrs) *waBinary.Node { return &waBinary.Node{Tag: "failure", Attrs: attrs} }
	stream := func(code, conflict string) *waBinary.Node {
		n := &waBinary.Node{Tag: "stream:error", Attrs: waBinary.Attrs{"code": code}}
		if conflict != "" {
			n.Content = []waBinary.Node{{Tag: "conflict", Attrs: waBinary.Attrs{"type": conflict}}}
		}
		return n
	}
	tests := []struct {
		in   *waBinary.Node
		want *network.Ended
	}{
		{failure(waBinary.Attrs{"reason": "401"}), &network.Ended{Status: postern.LoggedOut, Reason: "device-removed"}},
		{failure(waBinary.Attrs{"reason": "403"}), &network.Ended{Status: postern.Banned, Reason: "locked"}},
		{failure(waBinary.Attrs{"reason": "406"}), &network.Ended{Status: postern.Banned, Reason: "banned"}},
		{failure(waBinary.Attrs{"reason": "402", "code": "101", "expire": "60"}), &network.Ended{Status: postern.Restricted, Reason: "temporary-ban-101", Until: now.Add(time.Minute)}},
		{failure(waBinary.Attrs{"reason": "402", "code": "106"}), &network.Ended{Status: postern.Restricted, Reason: "temporary-ban-106"}},
		{failure(waBinary.Attrs{"reason": "405"}), disconnected("client-outdated")},
		{failure(waBinary.Attrs{"reason": "500"}), disconnected("vendor-unavailable")},
		{failure(waBinary.Attrs{"reason": "503"}), disconnected("vendor-unavailable")},
		{failure(waBinary.Attrs{"reason": "418"}), disconnected("refused-418")},
		{failure(waBinary.Attrs{"reason": "<b>"}), disconnected("refused-0")},
		{stream("401", "device_removed"), &network.Ended{Status: postern.LoggedOut, Reason: "device-removed"}},
		{stream("409", "replaced"), &network.Ended{Status: postern.Conflict, Reason: "replaced"}},
		{stream("", "replaced"), &network.Ended{Status: postern.Conflict, Reason: "replaced"}},
		{stream("503", ""), disconnected("vendor-unavailable")},
		{stream("515", ""), nil},
		{stream("516", ""), disconnected("stream-error-516")},
		{&waBinary.Node{Tag: "message"}, nil},
	}
	for _, tt := range tests {
		got := endedBy(tt.in, now)
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("endedBy(%v) = %+v, want %+v", tt.in, got, tt.want)
		}
	}
}

func TestCopyForTheRecipient(t *testing.T) {
	t.Parallel()
	recipient, own := types.NewJID("1234", types.HiddenUserServer), types.NewJID("99", types.HiddenUserServer)
	companion := recipient
	companion.Device = 5
	to := func(jid types.JID, content ...waBinary.Node) waBinary.Node {
		return waBinary.Node{Tag: "to", Attrs: waBinary.Attrs{"jid": jid}, Content: content}
	}
	enc := waBinary.Node{Tag: "enc", Attrs: waBinary.Attrs{"type": "msg"}}
	tests := []struct {
		name   string
		copies []waBinary.Node
		want   bool
	}{
		{"nobody", nil, false},
		{"own phone only", []waBinary.Node{to(own, enc)}, false},
		{"a companion only", []waBinary.Node{to(companion, enc)}, false},
		{"an empty copy", []waBinary.Node{to(recipient)}, false},
		{"the phone", []waBinary.Node{to(own, enc), to(recipient, enc)}, true},
	}
	for _, tt := range tests {
		stopped := false
		var o outgoing
		o.expect("ID", func() { stopped = true })
		o.saw(&waBinary.Node{Tag: "message", Attrs: waBinary.Attrs{"id": "OTHER", "to": recipient}, Content: []waBinary.Node{{Tag: "participants"}}})
		o.saw(&waBinary.Node{Tag: "message", Attrs: waBinary.Attrs{"id": "ID", "to": recipient}, Content: []waBinary.Node{enc}})
		if stopped || o.fate != unseen {
			t.Fatal("another stanza was taken for the message")
		}
		o.saw(&waBinary.Node{
			Tag: "message", Attrs: waBinary.Attrs{"id": "ID", "to": recipient},
			Content: []waBinary.Node{{Tag: "participants", Content: tt.copies}},
		})
		if want := map[bool]fate{true: left, false: refused}[tt.want]; o.done() != want || stopped == tt.want {
			t.Errorf("%s: fate %d, stopped %v, want a copy: %v", tt.name, o.fate, stopped, tt.want)
		}
	}
}

func TestRefusalsOfTheVendor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		code int
		want postern.FailureCode
	}{{463, postern.RestrictedSender}, {479, postern.NetworkRejected}, {400, postern.NetworkRejected}}
	for _, tt := range tests {
		err := rejected(serverError(tt.code))
		var r *network.Rejected
		if !asRejected(err, &r) || r.Code != tt.want || !strings.Contains(r.Detail, "4") {
			t.Errorf("code %d = %v, want %s", tt.code, err, tt.want)
		}
	}
}
