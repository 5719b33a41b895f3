// Package content converts what a message says between Postern's form and that of the
// network. It is the only place that knows how content looks on the network: a kind that
// can be sent has a case in [ToWire], and each kind that can be received has one in
// [FromWire].
package content

import (
	"cmp"
	"strings"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	maxName     = 256   // characters of a contact's own name, bytes of a number in an unknown form
	maxID       = 256   // bytes of a network id
	maxEmoji    = 64    // bytes of a reaction
	maxHash     = 32    // bytes of the name of an option in a vote
	maxWrappers = 8     // messages within each other
	maxKind     = 64    // bytes of the name of an unknown kind
	maxOptions  = 1000  // of a poll
	maxCards    = 300   // contacts of a message
	maxNumbers  = 30    // of a contact
	maxCard     = 64000 // bytes of a contact
	maxDetail   = 5000  // characters of an event's description

	maxPin = 366 * 24 * 60 * 60 // seconds for which a pin is believed; apps offer 30 days
)

// ToWire returns the network's form of a message. The network takes no other form, so an
// error is final.
func ToWire(m Outgoing) (*waE2E.Message, error) {
	info := m.context()
	switch c := m.Content; c.Kind {
	case postern.KindText:
		if m.Status {
			return previewToWire(statusToWire(c.Text), c.LinkPreview, m.Picture), nil
		}
		return previewToWire(textToWire(c.Text, info), c.LinkPreview, m.Picture), nil
	case postern.KindLocation:
		l := locationToWire(*c.Location)
		l.ContextInfo = info
		return &waE2E.Message{LocationMessage: l}, nil
	case postern.KindContact:
		return contactsToWire(c.Contacts, info)
	case postern.KindPoll:
		return pollToWire(*c.Poll, m.Secret, info), nil
	case postern.KindImage, postern.KindVideo, postern.KindAudio, postern.KindVoice, postern.KindDocument,
		postern.KindSticker:
		return mediaToWire(m, info)
	default:
		return nil, &network.Rejected{Code: postern.NetworkRejected, Detail: "this kind of message cannot be sent"}
	}
}

func textToWire(text string, info *waE2E.ContextInfo) *waE2E.Message {
	if info == nil {
		return &waE2E.Message{Conversation: &text}
	}
	return &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: &text, ContextInfo: info}}
}

// The colours of a text that is posted as status, with their opacity.
const (
	statusText       = 0xFFFFFFFF // white
	statusBackground = 0xFF1F5F5B // dark green
)

// statusToWire returns a text as a status post, which fills the screen.
func statusToWire(text string) *waE2E.Message {
	return &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{
		Text: &text, TextArgb: new(uint32(statusText)), BackgroundArgb: new(uint32(statusBackground)),
		Font: waE2E.ExtendedTextMessage_SYSTEM.Enum(),
	}}
}

// FromWire returns what a message says. It reports false if the message is not meant for
// people, such as one that only carries keys.
func FromWire(m *waE2E.Message) (in Incoming, ok bool) {
	outer := m
	m, viewOnce := unwrap(m)
	if in, ok := action(m); ok {
		return in, in.About != ""
	}
	if m == nil || m.ProtocolMessage != nil {
		return Incoming{}, false
	}
	part := partOf(m)
	if part == nil {
		return Incoming{}, false
	}
	in, ok = mediaFromWire(m)
	if !ok {
		in.Content = read(m, part)
	}
	in.Content.ViewOnce = in.Content.ViewOnce || viewOnce && in.Content.Media != nil
	in.addContext(m.ProtoReflect().Get(part))
	if in.Content.Media != nil {
		in.BetterOf = cmp.Or(betterOf(m), betterOf(outer))
	}
	return in, true
}

// read returns the content of the part of a message without a file that says something.
func read(m *waE2E.Message, part protoreflect.FieldDescriptor) postern.Content {
	switch {
	case m.Conversation != nil:
		return textFromWire(m.GetConversation())
	case m.ExtendedTextMessage != nil:
		c := textFromWire(m.GetExtendedTextMessage().GetText())
		c.LinkPreview = previewFromWire(m.GetExtendedTextMessage())
		return c
	case m.LocationMessage != nil:
		return locationFromWire(m.GetLocationMessage())
	case m.LiveLocationMessage != nil:
		return liveLocationFromWire(m.GetLiveLocationMessage())
	case m.ContactMessage != nil:
		return contactsFromWire([]*waE2E.ContactMessage{m.GetContactMessage()})
	case m.ContactsArrayMessage != nil:
		return contactsFromWire(m.GetContactsArrayMessage().GetContacts())
	case m.EventMessage != nil:
		return eventFromWire(m.GetEventMessage())
	}
	if p := pollOf(m); p != nil {
		return pollFromWire(p)
	}
	return unsupported(m.ProtoReflect().Get(part), part)
}

func textFromWire(s string) postern.Content {
	c := postern.Content{Kind: postern.KindText}
	c.Text, c.Truncated = Cut(s, postern.MaxText)
	return c
}

// unsupported returns the content of a part of an unknown kind, with its caption.
func unsupported(value protoreflect.Value, part protoreflect.FieldDescriptor) postern.Content {
	name := strings.TrimSuffix(string(part.Name()), "Message")
	c := postern.Unsupported(Clip(name, maxKind))
	if part.Kind() != protoreflect.MessageKind || part.IsList() {
		return c
	}
	if captioned, ok := value.Message().Interface().(interface{ GetCaption() string }); ok {
		c.Text, c.Truncated = Cut(captioned.GetCaption(), postern.MaxText)
	}
	return c
}

// unwrap returns the message inside the wrappers by which the network marks messages, such
// as those that disappear, and whether one of them says that it can be opened once. A message
// with too many of them is returned as it is.
func unwrap(m *waE2E.Message) (inner *waE2E.Message, viewOnce bool) {
	for range maxWrappers {
		inner, once := wrapped(m)
		if inner == nil {
			return m, viewOnce
		}
		m, viewOnce = inner, viewOnce || once
	}
	return m, viewOnce
}

// wrapped returns the message in a wrapper, or nil if m is none.
func wrapped(m *waE2E.Message) (inner *waE2E.Message, viewOnce bool) {
	part := partOf(m)
	if part == nil || part.Kind() != protoreflect.MessageKind || part.IsList() {
		return nil, false
	}
	w, ok := m.ProtoReflect().Get(part).Message().Interface().(*waE2E.FutureProofMessage)
	if !ok {
		return nil, false
	}
	return w.GetMessage(), strings.HasPrefix(string(part.Name()), "viewOnceMessage")
}

// partOf returns the first part of a message beside those that carry keys and context, or
// nil if there is none.
func partOf(m *waE2E.Message) protoreflect.FieldDescriptor {
	if m == nil {
		return nil
	}
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); r.Has(f) && !isCarrier(f.Name()) {
			return f
		}
	}
	return nil
}

// isCarrier reports whether a part of a message only carries keys and context, or announces other
// messages.
func isCarrier(part protoreflect.Name) bool {
	switch part {
	case "messageContextInfo", "senderKeyDistributionMessage", "fastRatchetKeySenderKeyDistributionMessage",
		"deviceSentMessage", "albumMessage": // the pictures of an album are messages of their own
		return true
	}
	return false
}

// optional returns nil for an empty text, so that it is left out on the network.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
