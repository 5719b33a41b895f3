package vendorsim

import (
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
)

// maxWrappers bounds the wrappers around a message.
const maxWrappers = 8

// stanza is what the node of a message says about its encrypted content.
type stanza struct {
	kind      string // its type: text, media, poll or reaction
	mediaType string
	edit      string // 1 edit, 2 pin, 7 own revoke or removed reaction, 8 revoke by an administrator
	pollType  string
	hide      bool // a client that cannot decrypt it shows nothing
}

func stanzaOf(msg *waE2E.Message) stanza {
	inner, _ := unwrapped(msg)
	s := stanza{kind: TypeText, mediaType: mediaType(inner), edit: editOf(inner)}
	switch {
	case inner.ReactionMessage != nil:
		s.kind = TypeReaction
	case inner.PollUpdateMessage != nil:
		s.kind, s.pollType = TypePoll, "vote"
	case inner.PollCreationMessage != nil:
		s.kind, s.pollType = TypePoll, "creation"
	case s.mediaType != "":
		s.kind = "media"
	}
	s.hide = s.edit != "" || s.kind == TypeReaction || s.pollType == "vote"
	return s
}

func mediaType(msg *waE2E.Message) string {
	switch {
	case msg.ExtendedTextMessage != nil && msg.ExtendedTextMessage.Title != nil:
		return "url"
	case msg.ImageMessage != nil:
		return "image"
	case msg.StickerMessage != nil:
		return "sticker"
	case msg.DocumentMessage != nil:
		return "document"
	case msg.AudioMessage.GetPTT():
		return "ptt"
	case msg.AudioMessage != nil:
		return "audio"
	case msg.VideoMessage.GetGifPlayback():
		return "gif"
	case msg.VideoMessage != nil:
		return "video"
	case msg.ContactMessage != nil:
		return "vcard"
	case msg.ContactsArrayMessage != nil:
		return "contact_array"
	}
	return ""
}

func editOf(msg *waE2E.Message) string {
	p := msg.GetProtocolMessage()
	switch {
	case p.GetEditedMessage() != nil:
		return "1"
	case msg.PinInChatMessage != nil:
		return "2"
	case p != nil && p.Key != nil && p.GetType() == waE2E.ProtocolMessage_REVOKE:
		if p.GetKey().GetFromMe() {
			return "7"
		}
		return "8"
	case msg.ReactionMessage != nil && msg.ReactionMessage.GetText() == "":
		return "7"
	}
	return ""
}

// mark adds to the attributes of a message and of its encrypted content, and returns the children
// of the message.
func (s stanza) mark(attrs waBinary.Attrs, enc waBinary.Node) []waBinary.Node {
	attrs["type"] = s.kind
	if s.edit != "" {
		attrs["edit"] = s.edit
	}
	if s.mediaType != "" {
		enc.Attrs["mediatype"] = s.mediaType
	}
	if s.hide {
		enc.Attrs["decrypt-fail"] = "hide"
	}
	if s.pollType == "" {
		return []waBinary.Node{enc}
	}
	return []waBinary.Node{enc, {Tag: "meta", Attrs: waBinary.Attrs{"polltype": s.pollType}}}
}

// unwrapped returns the message inside of wrappers, and whether one of them allows one view only.
func unwrapped(msg *waE2E.Message) (inner *waE2E.Message, viewOnce bool) {
	for range maxWrappers {
		once := wrapped(msg.ViewOnceMessage, msg.ViewOnceMessageV2, msg.ViewOnceMessageV2Extension)
		next := wrapped(msg.EphemeralMessage, msg.DocumentWithCaptionMessage, msg.LottieStickerMessage, msg.EditedMessage)
		switch {
		case msg.GetDeviceSentMessage().GetMessage() != nil:
			msg = msg.GetDeviceSentMessage().GetMessage()
		case once != nil:
			msg, viewOnce = once, true
		case next != nil:
			msg = next
		default:
			return msg, viewOnce
		}
	}
	return msg, viewOnce
}

// wrapped returns the message in the first wrapper that has one.
func wrapped(wrappers ...*waE2E.FutureProofMessage) *waE2E.Message {
	for _, w := range wrappers {
		if w.GetMessage() != nil {
			return w.GetMessage()
		}
	}
	return nil
}
