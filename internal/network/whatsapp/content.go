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
		return postern.Text(clip(m.GetConversation(), postern.MaxText)), true
	case m.ExtendedTextMessage != nil:
		return postern.Text(clip(m.GetExtendedTextMessage().GetText(), postern.MaxText)), true
	}
	return postern.Unsupported(), hasContent(m)
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
