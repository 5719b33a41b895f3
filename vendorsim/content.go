package vendorsim

import (
	"strings"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

// Content is the content of a message. Only this file knows the network's form of each kind of
// content: a kind has one case in wire and one in contentOf.
type Content struct {
	Type string `json:"type"` // TypeText, TypeLocation, or a kind that phones only receive
	Body string `json:"body"` // the text, or the caption of a kind that has one
	// Location is the place of a TypeLocation.
	Location *Location `json:"location,omitempty"`
}

// TypeLocation is the type of a message that shows a place.
const TypeLocation = "location"

// Location is a place; degrees north and east are positive.
type Location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Name      string  `json:"name,omitempty"`
	Address   string  `json:"address,omitempty"`
	URL       string  `json:"url,omitempty"`
}

// wire returns the network's form of what a phone writes.
func (c Content) wire() *waE2E.Message {
	if l := c.Location; l != nil {
		return &waE2E.Message{LocationMessage: &waE2E.LocationMessage{
			DegreesLatitude: &l.Latitude, DegreesLongitude: &l.Longitude, Name: &l.Name, Address: &l.Address,
			URL: &l.URL,
		}}
	}
	return &waE2E.Message{Conversation: new(c.Body)}
}

// contentOf returns the content of a decrypted message. A kind that the simulator does not tell
// apart is named by kind, the type of the message's node.
func contentOf(msg *waE2E.Message, kind string) Content {
	if sent := msg.GetDeviceSentMessage().GetMessage(); sent != nil {
		msg = sent
	}
	switch {
	case msg.Conversation != nil:
		return Content{Type: TypeText, Body: msg.GetConversation()}
	case msg.ExtendedTextMessage != nil:
		return Content{Type: TypeText, Body: msg.GetExtendedTextMessage().GetText()}
	case msg.LocationMessage != nil:
		l := msg.GetLocationMessage()
		return Content{Type: TypeLocation, Location: &Location{
			l.GetDegreesLatitude(), l.GetDegreesLongitude(), l.GetName(), l.GetAddress(), l.GetURL(),
		}}
	case msg.ImageMessage != nil:
		return Content{Type: "image", Body: msg.GetImageMessage().GetCaption()}
	case msg.VideoMessage != nil:
		return Content{Type: "video", Body: msg.GetVideoMessage().GetCaption()}
	case msg.DocumentMessage != nil:
		return Content{Type: "document", Body: msg.GetDocumentMessage().GetCaption()}
	case msg.AudioMessage != nil:
		return Content{Type: "audio", Body: ""}
	case msg.ReactionMessage != nil:
		return Content{Type: "reaction", Body: msg.GetReactionMessage().GetText()}
	case msg.ProtocolMessage != nil:
		return Content{Type: "protocol", Body: strings.ToLower(msg.GetProtocolMessage().GetType().String())}
	default:
		return Content{Type: kind, Body: ""}
	}
}
