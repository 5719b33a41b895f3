package vendorsim

import (
	"crypto/sha256"
	"slices"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"
)

// actionOf returns the content of a message that acts on another one; ok is false for other
// messages. What is sealed is opened by [messages.opened].
func actionOf(msg *waE2E.Message) (c Content, ok bool) {
	p := msg.GetProtocolMessage()
	switch {
	case msg.ReactionMessage != nil:
		return Content{
			Type: TypeReaction, Body: msg.ReactionMessage.GetText(), Target: msg.ReactionMessage.GetKey().GetID(),
		}, true
	case p.GetEditedMessage() != nil:
		return Content{
			Type: TypeEdit, Body: partOf(unwrap(p.GetEditedMessage()), "").Body, Target: p.GetKey().GetID(),
		}, true
	case p != nil && p.Key != nil && p.GetType() == waE2E.ProtocolMessage_REVOKE:
		return Content{Type: TypeRevoke, Target: p.GetKey().GetID()}, true
	case msg.PollUpdateMessage != nil:
		return Content{Type: TypeVote, Target: msg.PollUpdateMessage.GetPollCreationMessageKey().GetID()}, true
	case msg.SecretEncryptedMessage.GetSecretEncType() == waE2E.SecretEncryptedMessage_MESSAGE_EDIT:
		return Content{
			Type: TypeEdit, Sealed: true, Target: msg.SecretEncryptedMessage.GetTargetMessageKey().GetID(),
		}, true
	case msg.PinInChatMessage != nil:
		c = Content{Type: TypePin, Target: msg.PinInChatMessage.GetKey().GetID()}
		if msg.PinInChatMessage.GetType() == waE2E.PinInChatMessage_PIN_FOR_ALL {
			c.Seconds = int(msg.GetMessageContextInfo().GetMessageAddOnDurationInSecs())
		}
		return c, true
	}
	return Content{}, false
}

func unwrap(msg *waE2E.Message) *waE2E.Message {
	inner, _ := unwrapped(msg)
	return inner
}

// opened completes content with what a companion has sealed in it for the phone of a reader, or
// marks it as unreadable.
func (v messages) opened(reader, writer number, msg *waE2E.Message, c Content) Content {
	if c.Type != TypeVote && !c.Sealed {
		return c
	}
	target, err := v.targetOf(reader, c.Target)
	if err == nil {
		inner := unwrap(msg)
		if c.Type == TypeVote {
			c.Choices, err = target.choices(writer, inner.GetPollUpdateMessage().GetVote())
		} else {
			c.Body, err = target.edited(writer, inner.GetSecretEncryptedMessage())
		}
	}
	c.Unreadable = err != nil
	return c
}

// choices returns the options of a poll that a sealed vote names.
func (m Shown) choices(voter number, vote *waE2E.PollEncValue) ([]string, error) {
	plain, err := sealedAction{
		use: useVote, id: m.ID, author: number(m.From[1:]), actor: voter,
		payload: vote.GetEncPayload(), iv: vote.GetEncIV(),
	}.open(m.secret())
	if err != nil {
		return nil, err
	}
	var ballot waE2E.PollVoteMessage
	if err := proto.Unmarshal(plain, &ballot); err != nil || m.Poll == nil {
		return nil, errSealed
	}
	choices := []string{}
	for _, sum := range ballot.GetSelectedOptions() {
		i := slices.IndexFunc(m.Poll.Options, func(option string) bool {
			of := sha256.Sum256([]byte(option))
			return string(of[:]) == string(sum)
		})
		if i < 0 {
			return nil, ErrNoOption
		}
		choices = append(choices, m.Poll.Options[i])
	}
	return choices, nil
}

// edited returns the text of a sealed edit.
func (m Shown) edited(by number, sealed *waE2E.SecretEncryptedMessage) (string, error) {
	plain, err := sealedAction{
		use: useEdit, id: m.ID, author: number(m.From[1:]), actor: by,
		payload: sealed.GetEncPayload(), iv: sealed.GetEncIV(),
	}.open(m.secret())
	if err != nil {
		return "", err
	}
	msg := new(waE2E.Message)
	if err := proto.Unmarshal(plain, msg); err != nil {
		return "", errSealed
	}
	c, ok := actionOf(unwrap(msg))
	if !ok || c.Type != TypeEdit || c.Target != m.ID {
		return "", errSealed
	}
	return c.Body, nil
}
