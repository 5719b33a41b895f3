package content

import (
	"encoding/hex"

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
	p := m.GetProtocolMessage()
	if p == nil {
		return in, false
	}
	switch p.GetType() {
	case waE2E.ProtocolMessage_REVOKE:
		return act(p.GetKey(), postern.Content{Kind: postern.KindRevoke}), true
	case waE2E.ProtocolMessage_MESSAGE_EDIT:
		edited, _ := FromWire(p.GetEditedMessage())
		c := postern.Content{Kind: postern.KindEdit, Text: edited.Content.Text, Truncated: edited.Content.Truncated}
		return act(p.GetKey(), c), true
	}
	return in, false
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
