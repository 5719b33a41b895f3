package vendorsim

import (
	"strings"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

// Content is the content of a message. Only this file knows the network's form of each kind of
// content: a kind has one case in wire and one in contentOf.
type Content struct {
	Type string `json:"type"` // TypeText, or a kind that phones only receive
	Body string `json:"body"` // the text, or the caption of a kind that has one
}

// wire returns the network's form of content that a phone sends.
func (c Content) wire() *waE2E.Message { return &waE2E.Message{Conversation: new(c.Body)} }

// contentOf returns the content of a decrypted message. A kind that the simulator does not tell
// apart is named by kind, the type of the message's node.
func contentOf(msg *waE2E.Message, kind string) Content {
	if sent := msg.GetDeviceSentMessage().GetMessage(); sent != nil {
		msg = sent
	}
	switch {
	case msg.Conversation != nil:
		return Content{TypeText, msg.GetConversation()}
	case msg.ExtendedTextMessage != nil:
		return Content{TypeText, msg.GetExtendedTextMessage().GetText()}
	case msg.ImageMessage != nil:
		return Content{"image", msg.GetImageMessage().GetCaption()}
	case msg.VideoMessage != nil:
		return Content{"video", msg.GetVideoMessage().GetCaption()}
	case msg.DocumentMessage != nil:
		return Content{"document", msg.GetDocumentMessage().GetCaption()}
	case msg.AudioMessage != nil:
		return Content{"audio", ""}
	case msg.ReactionMessage != nil:
		return Content{"reaction", msg.GetReactionMessage().GetText()}
	case msg.ProtocolMessage != nil:
		return Content{"protocol", strings.ToLower(msg.GetProtocolMessage().GetType().String())}
	default:
		return Content{kind, ""}
	}
}
