package content

import (
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

// SecretSize is the size of the secret of a poll, with which votes are encrypted.
const SecretSize = 32

func pollToWire(p postern.Poll, secret []byte, info *waE2E.ContextInfo) *waE2E.Message {
	options := make([]*waE2E.PollCreationMessage_Option, len(p.Options))
	for i := range p.Options {
		options[i] = &waE2E.PollCreationMessage_Option{OptionName: &p.Options[i]}
	}
	return &waE2E.Message{
		PollCreationMessage: &waE2E.PollCreationMessage{
			Name: &p.Question, Options: options, ContextInfo: info,
			SelectableOptionsCount: new(uint32(p.MaxSelections)), //nolint:gosec // at most len(options)
		},
		MessageContextInfo: &waE2E.MessageContextInfo{MessageSecret: secret},
	}
}

// pollOf returns the poll of a message in any of its versions, or nil if there is none.
func pollOf(m *waE2E.Message) *waE2E.PollCreationMessage {
	for _, p := range []*waE2E.PollCreationMessage{
		m.PollCreationMessage, m.PollCreationMessageV2, m.PollCreationMessageV3, m.PollCreationMessageV5,
		m.PollCreationMessageV6,
	} {
		if p != nil {
			return p
		}
	}
	return nil
}

func pollFromWire(m *waE2E.PollCreationMessage) postern.Content {
	var text clipper
	options := m.GetOptions()
	if len(options) > maxOptions {
		options, text.cut = options[:maxOptions], true
	}
	p := postern.Poll{
		Question: text.runes(m.GetName(), postern.MaxPlace), Options: make([]string, len(options)),
		MaxSelections: min(int(m.GetSelectableOptionsCount()), maxOptions),
	}
	for i, o := range options {
		p.Options[i] = text.runes(o.GetOptionName(), postern.MaxPlace)
	}
	return postern.Content{Kind: postern.KindPoll, Truncated: text.cut, Extra: postern.Extra{Poll: &p}}
}
