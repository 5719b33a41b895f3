package content

import (
	"cmp"
	"strings"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Outgoing is a message that is sent.
type Outgoing struct {
	Content postern.Content
	Quote   *Quote              // the message to which it replies; nil for none
	Secret  []byte              // of a poll: SecretSize random bytes, the same at each attempt
	File    *network.Attachment // of a kind that carries one
	Picture []byte              // of the content's LinkPreview; nil for none
	Timer   network.Timer       // of the chat
	Status  bool                // it is a status post
}

// Quote is a message to which another one replies.
type Quote struct {
	NetworkID string
	Author    types.JID
	Content   postern.Content
}

// Incoming is a message that is received.
type Incoming struct {
	Content postern.Content
	File    network.Ref // of the file that the content's Media describes; nil for none
	QuoteOf string      // network id of the message to which it replies; "" for none
	About   string      // network id of the message that an action is about; "" for a message

	BetterOf string // network id of the picture or video of which this is a better copy; "" for none
}

// context returns what a message says beside its own content, or nil if that is nothing.
func (m Outgoing) context() *waE2E.ContextInfo {
	if m.Quote == nil && !m.Content.Forwarded && len(m.Content.Mentions) == 0 && m.Timer.Seconds == 0 {
		return nil
	}
	info := &waE2E.ContextInfo{}
	if m.Timer.Seconds > 0 {
		info.Expiration = new(uint32(m.Timer.Seconds)) //nolint:gosec // at most maxTimer
		if !m.Timer.Since.IsZero() {
			info.EphemeralSettingTimestamp = new(m.Timer.Since.Unix())
		}
	}
	if q := m.Quote; q != nil {
		info.StanzaID, info.Participant = &q.NetworkID, new(q.Author.ToNonAD().String())
		info.QuotedMessage = q.message()
	}
	if m.Content.Forwarded {
		info.IsForwarded, info.ForwardingScore = new(true), new(uint32(1))
	}
	for _, who := range m.Content.Mentions {
		if who == postern.MentionAll {
			info.NonJIDMentions = new(uint32(1))
		} else {
			info.MentionedJID = append(info.MentionedJID, address(who).String())
		}
	}
	return info
}

// message returns the quoted message as apps show it until they find their own copy. Files
// are not repeated: of a message that carries one there is the caption, or else the kind.
func (q *Quote) message() *waE2E.Message {
	if q.Content.Kind.HasMedia() {
		return textToWire(cmp.Or(q.Content.Text, "["+string(q.Content.Kind)+"]"), nil)
	}
	m, err := ToWire(Outgoing{Content: q.Content.Bare()})
	if err != nil {
		return &waE2E.Message{Conversation: new(q.Content.Text)}
	}
	return m
}

// address returns the network's name of a person.
func address(who string) types.JID {
	if lid, ok := strings.CutPrefix(who, "lid:"); ok {
		return types.NewJID(lid, types.HiddenUserServer)
	}
	return types.NewJID(strings.TrimPrefix(who, "+"), types.DefaultUserServer)
}

// addContext reads what the part of a message says beside its content.
func (in *Incoming) addContext(part protoreflect.Value) {
	info := contextOf(part)
	if info == nil {
		return
	}
	in.QuoteOf = Clip(info.GetStanzaID(), maxID)
	in.Content.Forwarded = info.GetIsForwarded()
	in.Content.Mentions = mentioned(info.GetMentionedJID())
	if info.GetNonJIDMentions() > 0 {
		in.Content.Mentions = append(in.Content.Mentions, postern.MentionAll)
	}
}

// contextOf returns what the part of a message says beside its content, or nil.
func contextOf(part protoreflect.Value) *waE2E.ContextInfo {
	m, ok := part.Interface().(protoreflect.Message)
	if !ok {
		return nil
	}
	with, ok := m.Interface().(interface{ GetContextInfo() *waE2E.ContextInfo })
	if !ok {
		return nil
	}
	return with.GetContextInfo()
}

// mentioned returns the people whom a message mentions, and leaves out what is no person.
func mentioned(list []string) (who []string) {
	for _, s := range list[:min(len(list), postern.MaxMentions)] {
		if chat, err := postern.ParseChat(s); err == nil && postern.IsDirect(chat) {
			who = append(who, chat)
		}
	}
	return who
}
