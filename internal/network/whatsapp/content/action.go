package content

import (
	"encoding/hex"
	"time"

	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
)

// action returns the action that a message carries; ok is false if it carries none.
func action(m *waE2E.Message) (in Incoming, ok bool) {
	if r := m.GetReactionMessage(); r != nil {
		emoji := Clip(r.GetText(), maxEmoji)
		return act(r.GetKey(), postern.Content{Kind: postern.KindReaction, Text: emoji}), true
	}
	if p := m.GetPinInChatMessage(); p != nil {
		return pin(p, m.GetMessageContextInfo())
	}
	p := m.GetProtocolMessage()
	if p == nil {
		return in, false
	}
	switch p.GetType() {
	case waE2E.ProtocolMessage_REVOKE:
		return act(p.GetKey(), postern.Content{Kind: postern.KindRevoke}), true
	case waE2E.ProtocolMessage_MESSAGE_EDIT:
		edited, _ := FromWire(p.GetEditedMessage())
		return act(p.GetKey(), EditOf(edited.Content)), true
	default:
		return in, false
	}
}

// EditOf returns the edit that gives a message the text of c, with what belongs to the text.
func EditOf(c postern.Content) postern.Content {
	edit := postern.Content{Kind: postern.KindEdit, Text: c.Text, Truncated: c.Truncated}
	edit.Mentions, edit.LinkPreview = c.Mentions, c.LinkPreview
	return edit
}

// pin returns the pin that a message carries; ok is false if it is of an unknown type.
func pin(p *waE2E.PinInChatMessage, info *waE2E.MessageContextInfo) (in Incoming, ok bool) {
	seconds := 0
	switch p.GetType() {
	case waE2E.PinInChatMessage_PIN_FOR_ALL:
		seconds = int(min(info.GetMessageAddOnDurationInSecs(), maxPin))
		if seconds == 0 {
			seconds = int(postern.DefaultPin.Seconds())
		}
	case waE2E.PinInChatMessage_UNPIN_FOR_ALL:
	default:
		return in, false
	}
	return act(p.GetKey(), postern.PinFor(seconds)), true
}

// PinToWire returns the network's form of a pin.
func PinToWire(key *waCommon.MessageKey, c postern.Content, at time.Time) *waE2E.Message {
	kind, seconds := waE2E.PinInChatMessage_PIN_FOR_ALL, c.PinSeconds()
	if seconds == 0 {
		kind = waE2E.PinInChatMessage_UNPIN_FOR_ALL
	}
	return &waE2E.Message{
		PinInChatMessage: &waE2E.PinInChatMessage{Key: key, Type: &kind, SenderTimestampMS: new(at.UnixMilli())},
		MessageContextInfo: &waE2E.MessageContextInfo{
			MessageAddOnDurationInSecs: new(uint32(seconds)), //nolint:gosec // at most 30 days
		},
	}
}

func act(key *waCommon.MessageKey, c postern.Content) Incoming {
	return Incoming{Content: c, About: Clip(key.GetID(), maxID)}
}

// Vote returns a vote in a poll, after its decryption.
func Vote(key *waCommon.MessageKey, vote *waE2E.PollVoteMessage) Incoming {
	options := []string{}
	for _, hash := range vote.GetSelectedOptions()[:min(len(vote.GetSelectedOptions()), maxOptions)] {
		options = append(options, hex.EncodeToString(hash[:min(len(hash), maxHash)]))
	}
	return act(key, postern.Content{
		Kind: postern.KindVote, Extra: postern.Extra{Poll: &postern.Poll{Options: options}},
	})
}
