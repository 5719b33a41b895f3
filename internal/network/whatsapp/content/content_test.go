package whatsapp

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
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
	image := &waE2E.ImageMessage{}
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
		{"picture", &waE2E.Message{ImageMessage: image}, postern.Unsupported(), true},
		{"picture with context", &waE2E.Message{ImageMessage: image, MessageContextInfo: &waE2E.MessageContextInfo{}},
			postern.Unsupported(), true},
		{"point off the earth", &waE2E.Message{LocationMessage: &waE2E.LocationMessage{
			DegreesLatitude: new(math.NaN()),
		}}, postern.Unsupported(), true},
		{"reaction", &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{}}, postern.Unsupported(), true},
		{"protocol", &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{}}, none, false},
		{"keys of a group", &waE2E.Message{
			SenderKeyDistributionMessage: &waE2E.SenderKeyDistributionMessage{},
		}, none, false},
		{"context alone", &waE2E.Message{MessageContextInfo: &waE2E.MessageContextInfo{}}, none, false},
		{"empty", &waE2E.Message{}, none, false},
	}
	for _, tt := range tests {
		got, ok := fromWire(tt.in)
		if ok != tt.ok || ok && !reflect.DeepEqual(got, tt.want) {
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
	for _, want := range []postern.Content{
		postern.Text("hello"), postern.Text("Grüße, 👋\nsecond line"),
		{Kind: postern.KindLocation, Extra: postern.Extra{Location: &gate}},
		{Kind: postern.KindLocation, Extra: postern.Extra{Location: &postern.Location{}}},
	} {
		m, err := toWire(want)
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
		if got, ok := fromWire(read); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("content = %+v, %v, want %+v", got, ok, want)
		}
	}
}

func TestContentThatCannotBeSentIsRejected(t *testing.T) {
	t.Parallel()
	_, err := toWire(postern.Unsupported())
	var rejected *network.Rejected
	if !errors.As(err, &rejected) || rejected.Code != postern.NetworkRejected {
		t.Errorf("to wire = %v, want Rejected", err)
	}
}
