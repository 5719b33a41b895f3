package whatsapp

import (
	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// This file is the only place that knows how content looks on the network: one
// case per kind in toWire, and one in fromWire.

// toWire returns the network's form of content. The network takes no other
// form, so an error is final.
func toWire(c postern.Content) (*waE2E.Message, error) {
	switch c.Kind {
	case postern.KindText:
		return &waE2E.Message{Conversation: new(c.Text)}, nil
	case postern.KindLocation:
		return &waE2E.Message{LocationMessage: locationToWire(*c.Location)}, nil
	case postern.KindUnsupported:
	}
	return nil, &network.Rejected{Code: postern.NetworkRejected, Detail: "this kind of message cannot be sent"}
}

// fromWire returns the content of a message. It reports false if the message is
// not meant for people, such as one that only carries keys.
func fromWire(m *waE2E.Message) (c postern.Content, ok bool) {
	switch {
	case m == nil || m.ProtocolMessage != nil:
		return postern.Content{}, false
	case m.Conversation != nil:
		return textFromWire(m.GetConversation()), true
	case m.ExtendedTextMessage != nil:
		return textFromWire(m.GetExtendedTextMessage().GetText()), true
	case m.LocationMessage != nil:
		return locationFromWire(m.GetLocationMessage()), true
	}
	return postern.Unsupported(), hasContent(m)
}

func textFromWire(s string) postern.Content {
	c := postern.Content{Kind: postern.KindText}
	c.Text, c.Truncated = cut(s, postern.MaxText)
	return c
}

func locationToWire(l postern.Location) *waE2E.LocationMessage {
	return &waE2E.LocationMessage{
		DegreesLatitude: &l.Latitude, DegreesLongitude: &l.Longitude,
		Name: optional(l.Name), Address: optional(l.Address), URL: optional(l.URL),
	}
}

// optional returns nil for an empty text, so that it is left out on the network.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// locationFromWire returns unsupported content for a point that is not on the
// earth, such as NaN, which has no JSON.
func locationFromWire(m *waE2E.LocationMessage) postern.Content {
	l := postern.Location{
		Latitude: m.GetDegreesLatitude(), Longitude: m.GetDegreesLongitude(), Name: clip(m.GetName(), postern.MaxPlace),
		Address: clip(m.GetAddress(), postern.MaxPlace), URL: clip(m.GetURL(), postern.MaxURL),
	}
	if !l.IsValid() {
		return postern.Unsupported()
	}
	long := len(m.GetName()) > postern.MaxPlace || len(m.GetAddress()) > postern.MaxPlace ||
		len(m.GetURL()) > postern.MaxURL
	return postern.Content{Kind: postern.KindLocation, Truncated: long, Extra: postern.Extra{Location: &l}}
}

// hasContent reports whether a message has a part beside those that carry keys
// and context.
func hasContent(m *waE2E.Message) (ok bool) {
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		ok = !isCarrier(field.Name())
		return !ok
	})
	return ok
}

// isCarrier reports whether a part of a message only carries keys and context.
func isCarrier(part protoreflect.Name) bool {
	switch part {
	case "messageContextInfo", "senderKeyDistributionMessage", "fastRatchetKeySenderKeyDistributionMessage",
		"deviceSentMessage":
		return true
	}
	return false
}
