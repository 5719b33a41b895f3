package content

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// text is a message of kind text as it is on the network.
func text(body string) *waE2E.Message { return &waE2E.Message{Conversation: new(body)} }

func TestContentFromTheNetwork(t *testing.T) {
	t.Parallel()
	none := postern.Content{}
	extended := func(body string) *waE2E.Message {
		return &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: new(body)}}
	}
	image := &waE2E.ImageMessage{Caption: new("look"), Mimetype: new("image/png")}
	picture := postern.Content{Kind: postern.KindImage, Text: "look", Media: &postern.Media{
		MIMEType: "image/png", Status: postern.MediaPending,
	}}
	key := &waCommon.MessageKey{ID: new("3EB0")}
	long, chinese := strings.Repeat("x", postern.MaxText), strings.Repeat("字", postern.MaxText)
	begun := func(text string) postern.Content {
		return postern.Content{Kind: postern.KindText, Text: text, Truncated: true}
	}
	place := strings.Repeat("p", postern.MaxPlace)
	tests := []struct {
		name string
		in   *waE2E.Message
		want postern.Content
		ok   bool
	}{
		{"nothing", nil, none, false},
		{"text", text("hello"), postern.Text("hello"), true},
		{"empty text", text(""), postern.Text(""), true},
		{"text that is too long", text(long + "x"), begun(long), true},
		{"longest text in Chinese", text(chinese), postern.Text(chinese), true},
		{"text in Chinese that is too long", extended(chinese + "字"), begun(chinese), true},
		{"name of a place that is too long", &waE2E.Message{LocationMessage: &waE2E.LocationMessage{
			Name: new(place + "p"),
		}}, postern.Content{
			Kind: postern.KindLocation, Truncated: true, Extra: postern.Extra{Location: &postern.Location{Name: place}},
		}, true},
		{"text with a preview", extended("hello"), postern.Text("hello"), true},
		{"picture", &waE2E.Message{ImageMessage: image}, picture, true},
		{
			"picture with context", &waE2E.Message{ImageMessage: image, MessageContextInfo: &waE2E.MessageContextInfo{}},
			picture, true,
		},
		{
			"pack of stickers", &waE2E.Message{StickerPackMessage: &waE2E.StickerPackMessage{Caption: new("mine")}},
			postern.Content{Kind: postern.KindUnsupported, Text: "mine", ReceivedOnly: postern.ReceivedOnly{
				UnknownKind: "stickerPack",
			}},
			true,
		},
		{"point off the earth", &waE2E.Message{LocationMessage: &waE2E.LocationMessage{
			DegreesLatitude: new(math.NaN()),
		}}, postern.Unsupported("location"), true},
		{"reaction to nothing", &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{}}, none, false},
		{
			"reaction", &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Key: key, Text: new("👍")}},
			postern.Content{Kind: postern.KindReaction, Text: "👍"},
			true,
		},
		{"edit", nested(1, &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
			Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(), Key: key, EditedMessage: &waE2E.Message{
				ImageMessage: &waE2E.ImageMessage{Caption: new("better")},
			},
		}}), postern.Content{Kind: postern.KindEdit, Text: "better"}, true},
		{"deletion", &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
			Type: waE2E.ProtocolMessage_REVOKE.Enum(), Key: key,
		}}, postern.Content{Kind: postern.KindRevoke}, true},
		{"pin", pinned(waE2E.PinInChatMessage_PIN_FOR_ALL, 86400), postern.PinFor(86400), true},
		{"pin for centuries", pinned(waE2E.PinInChatMessage_PIN_FOR_ALL, 1<<32-1), postern.PinFor(maxPin), true},
		{"pin for no time", pinned(waE2E.PinInChatMessage_PIN_FOR_ALL, 0), postern.PinFor(604800), true},
		{"album", &waE2E.Message{AlbumMessage: &waE2E.AlbumMessage{ExpectedImageCount: new(uint32(3))}}, none, false},
		{"unpin", pinned(waE2E.PinInChatMessage_UNPIN_FOR_ALL, 0), postern.PinFor(0), true},
		{"another pin", pinned(7, 86400), postern.Unsupported("pinInChat"), true},
		{"pin of nothing", &waE2E.Message{PinInChatMessage: &waE2E.PinInChatMessage{
			Type: waE2E.PinInChatMessage_PIN_FOR_ALL.Enum(),
		}}, none, false},
		{"protocol", &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{}}, none, false},
		{"keys of a group", &waE2E.Message{
			SenderKeyDistributionMessage: &waE2E.SenderKeyDistributionMessage{},
		}, none, false},
		{"context alone", &waE2E.Message{MessageContextInfo: &waE2E.MessageContextInfo{}}, none, false},
		{"empty", &waE2E.Message{}, none, false},
		{"text that disappears", &waE2E.Message{EphemeralMessage: wrap(text("hello"))}, postern.Text("hello"), true},
		{"text in five wrappers", nested(5, text("hello")), postern.Text("hello"), true},
		{"text in too many wrappers", nested(1000, text("hello")), postern.Unsupported("ephemeral"), true},
		{"nothing in a wrapper", &waE2E.Message{EphemeralMessage: wrap(nil)}, postern.Unsupported("ephemeral"), true},
		{"poll with 10,000 options", manyOptions(10_000), postern.Content{
			Kind: postern.KindPoll, Truncated: true,
			Extra: postern.Extra{Poll: &postern.Poll{Options: make([]string, maxOptions)}},
		}, true},
		{"contact with a broken card", &waE2E.Message{ContactMessage: &waE2E.ContactMessage{
			DisplayName: new("Ada"), Vcard: new("BEGIN:VCARD\nTEL"),
		}}, postern.Content{Kind: postern.KindContact, Truncated: true, Extra: postern.Extra{
			Contacts: []postern.Contact{{Name: "Ada", PhoneNumbers: []string{}}},
		}}, true},
		{"contact of a phone", &waE2E.Message{ContactMessage: &waE2E.ContactMessage{
			DisplayName: new("Ada"), Vcard: new("BEGIN:VCARD\nVERSION:3.0\nN:;Ada;;;\nFN:Ada\nORG:Engines;\n" +
				"item1.TEL;waid=15557654321:+1 555 765-4321\nitem1.X-ABLabel:Mobile\nTEL:110\nEND:VCARD"),
		}}, postern.Content{Kind: postern.KindContact, Extra: postern.Extra{Contacts: []postern.Contact{
			{Name: "Ada", Organization: "Engines", PhoneNumbers: []string{"+15557654321", "110"}},
		}}}, true},
		{"live location", &waE2E.Message{LiveLocationMessage: &waE2E.LiveLocationMessage{
			DegreesLatitude: new(52.5), DegreesLongitude: new(13.3), AccuracyInMeters: new(uint32(20)), Caption: new("here"),
		}}, postern.Content{Kind: postern.KindLiveLocation, Text: "here", ReceivedOnly: postern.ReceivedOnly{
			LiveLocation: &postern.LiveLocation{Latitude: 52.5, Longitude: 13.3, Accuracy: 20},
		}}, true},
		{"event", &waE2E.Message{EventMessage: &waE2E.EventMessage{
			Name: new("Party"), StartTime: new(int64(1_796_144_400)), EndTime: new(int64(math.MaxInt64)),
		}}, postern.Content{Kind: postern.KindEvent, ReceivedOnly: postern.ReceivedOnly{
			Event: &postern.CalendarEvent{Name: "Party", StartsAt: 1_796_144_400_000},
		}}, true},
	}
	for _, tt := range tests {
		got, ok := FromWire(tt.in)
		if ok != tt.ok || ok && !reflect.DeepEqual(got.Content, tt.want) {
			t.Errorf("%s: content = %+v, %v, want %+v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

// TestContentIsTheSameAfterTheNetwork sends each kind that can be sent through
// the bytes of the protocol.
func TestContentIsTheSameAfterTheNetwork(t *testing.T) {
	t.Parallel()
	gate := postern.Location{
		Latitude: 52.5163, Longitude: -13.3777, Name: "Gate", Address: "Pariser Platz", URL: "https://example.com",
	}
	ada := postern.Contact{
		Name: "Lovelace; Ada, \\ Countess", PhoneNumbers: []string{"+15557654321", "+447700900123"}, Organization: "A; B, C",
	}
	for _, want := range []postern.Content{
		postern.Text("hello"), postern.Text("Grüße, 👋\nsecond line"),
		{Kind: postern.KindLocation, Extra: postern.Extra{Location: &gate}},
		{Kind: postern.KindLocation, Extra: postern.Extra{Location: &postern.Location{}}},
		{Kind: postern.KindContact, Extra: postern.Extra{Contacts: []postern.Contact{ada}}},
		{Kind: postern.KindContact, Extra: postern.Extra{Contacts: []postern.Contact{ada, ada}}},
		{Kind: postern.KindPoll, Extra: postern.Extra{Poll: &postern.Poll{
			Question: "Where?", Options: []string{"Here", "There"}, MaxSelections: 1,
		}}},
		{Kind: postern.KindText, Text: "@15557654321", Extra: postern.Extra{
			Mentions: []string{"+15557654321", "lid:123456789"}, Forwarded: true,
		}},
	} {
		m, err := ToWire(Outgoing{Content: want})
		if err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		read := &waE2E.Message{}
		if err := proto.Unmarshal(b, read); err != nil {
			t.Fatal(err)
		}
		if got, ok := FromWire(read); !ok || !reflect.DeepEqual(got.Content, want) {
			t.Errorf("content = %+v, %v, want %+v", got, ok, want)
		}
	}
}

// A preview is part of a text once its page was found.
func TestPreviewsGoBothWays(t *testing.T) {
	t.Parallel()
	c := postern.Text("see https://example.com/a")
	c.LinkPreview = &postern.LinkPreview{URL: "https://example.com/a", Title: "A", Description: "Letter"}
	m, err := ToWire(Outgoing{Content: c, Picture: []byte("jpeg"), Timer: network.Timer{Seconds: 60}})
	if err != nil {
		t.Fatal(err)
	}
	e := m.GetExtendedTextMessage()
	if e.GetText() != c.Text || e.GetMatchedText() != c.LinkPreview.URL || string(e.GetJPEGThumbnail()) != "jpeg" ||
		e.GetContextInfo().GetExpiration() != 60 {
		t.Errorf("to wire = %v", m)
	}
	if in, ok := FromWire(m); !ok || !reflect.DeepEqual(in.Content, c) {
		t.Errorf("from wire = %+v, %v, want %+v", in, ok, c)
	}
	c.LinkPreview.Title = ""
	if m, err := ToWire(Outgoing{Content: c}); err != nil || m.GetConversation() != c.Text {
		t.Errorf("without a title: %v, %v", m, err)
	}
	long := &waE2E.ExtendedTextMessage{
		MatchedText: new("https://example.com"), Title: new(strings.Repeat("ä", 301) + "\x00"), Text: new("x"),
	}
	in, _ := FromWire(&waE2E.Message{ExtendedTextMessage: long})
	if in.Content.LinkPreview == nil || in.Content.LinkPreview.Title != strings.Repeat("ä", 300) {
		t.Errorf("a long title is read as %+v", in.Content.LinkPreview)
	}
	long.MatchedText = new(strings.Repeat("x", maxLink+1))
	if in, _ := FromWire(&waE2E.Message{ExtendedTextMessage: long}); in.Content.LinkPreview != nil {
		t.Errorf("a long link is read as %+v", in.Content.LinkPreview)
	}
}

func TestContentThatCannotBeSentIsRejected(t *testing.T) {
	t.Parallel()
	_, err := ToWire(Outgoing{Content: postern.Unsupported("")})
	var rejected *network.Rejected
	if !errors.As(err, &rejected) || rejected.Code != postern.NetworkRejected {
		t.Errorf("to wire = %v, want Rejected", err)
	}
}

func pinned(kind waE2E.PinInChatMessage_Type, seconds uint32) *waE2E.Message {
	return &waE2E.Message{
		PinInChatMessage:   &waE2E.PinInChatMessage{Key: &waCommon.MessageKey{ID: new("3EB0")}, Type: &kind},
		MessageContextInfo: &waE2E.MessageContextInfo{MessageAddOnDurationInSecs: &seconds},
	}
}

func wrap(m *waE2E.Message) *waE2E.FutureProofMessage { return &waE2E.FutureProofMessage{Message: m} }

func nested(depth int, m *waE2E.Message) *waE2E.Message {
	for range depth {
		m = &waE2E.Message{EphemeralMessage: wrap(m)}
	}
	return m
}

func manyOptions(n int) *waE2E.Message {
	options := make([]*waE2E.PollCreationMessage_Option, n)
	for i := range options {
		options[i] = &waE2E.PollCreationMessage_Option{}
	}
	return &waE2E.Message{PollCreationMessageV3: &waE2E.PollCreationMessage{Options: options}}
}

// A reply names the message, its author and what it says.
func TestReplyNamesItsMessage(t *testing.T) {
	t.Parallel()
	out := Outgoing{Content: postern.Text("yes"), Quote: &Quote{
		NetworkID: "3EB0", Author: types.NewADJID("123456789", 0, 3), Content: postern.Text("really?"),
	}}
	m, err := ToWire(out)
	if err != nil {
		t.Fatal(err)
	}
	info := m.GetExtendedTextMessage().GetContextInfo()
	if info.GetStanzaID() != "3EB0" || info.GetParticipant() != out.Quote.Author.ToNonAD().String() ||
		info.GetQuotedMessage().GetConversation() != "really?" {
		t.Errorf("the context is %v", info)
	}
	if in, ok := FromWire(m); !ok || in.QuoteOf != "3EB0" {
		t.Errorf("read back: %+v, %v", in, ok)
	}
}

// FuzzCard reads hostile vCards.
func FuzzCard(f *testing.F) {
	for _, s := range []string{"", "BEGIN:VCARD\nVERSION:3.0\nFN:x\nTEL;waid=15557654321:1\nEND:VCARD", "BEGIN:VCARD\n:\n", "A.B;C=\"D"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := contactsFromWire([]*waE2E.ContactMessage{{Vcard: &s}})
		if len(c.Contacts) != 1 || len(c.Contacts[0].PhoneNumbers) > maxNumbers {
			t.Errorf("%q is read as %+v", s, c)
		}
		if _, err := postern.EncodeJSON(c.Extra); err != nil {
			t.Errorf("%q has no JSON: %v", s, err)
		}
	})
}
