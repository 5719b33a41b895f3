package vendorsim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// The types of messages that act on another message, [Content].Target.
const (
	TypeReaction = "reaction" // Body is the emoji, "" removes the reaction
	TypeEdit     = "edit"     // Body is the new text or caption
	TypeRevoke   = "revoke"   // deletes the message for everyone
	TypeVote     = "vote"     // Choices are the options of the poll; none withdraws the vote
	TypePin      = "pin"      // Seconds is for how long; 0 unpins
	// TypeStar is what the ledger calls a star that a companion has set, with the Body "1", or has taken
	// away. It is no message; see [Vendor.Star].
	TypeStar = "star"
)

var (
	// ErrNotAuthor is returned for an action that only the author of a message may do.
	ErrNotAuthor = errors.New("only the author of the message can do this")
	// ErrNoOption is returned for a vote for something that is not an option of the poll.
	ErrNoOption = errors.New("not an option of the poll")
)

// isAction reports whether messages of a type act on another message.
func isAction(contentType string) bool {
	switch contentType {
	case TypeReaction, TypeEdit, TypeRevoke, TypeVote, TypePin:
		return true
	}
	return false
}

// React adds an emoji to a message of the chat between an account and somebody, or removes it if
// emoji is "". by is who reacts: the other number of the chat, or the account itself, whose phone
// then does it. target is the id of the message on the network. The companions of the account get
// the action as a message, whose id React returns.
func (v *Vendor) React(ctx context.Context, account, by, target, emoji string) (networkID string, err error) {
	return v.messages.act(ctx, account, by, Content{Type: TypeReaction, Target: target, Body: emoji})
}

// Edit changes the text or the caption of a message that by has written; see [Vendor.React].
func (v *Vendor) Edit(ctx context.Context, account, by, target, body string) (networkID string, err error) {
	return v.messages.act(ctx, account, by, Content{Type: TypeEdit, Target: target, Body: body})
}

// EditSealed is like Edit, in the newer form that is encrypted with the secret of the message.
func (v *Vendor) EditSealed(ctx context.Context, account, by, target, body string) (networkID string, err error) {
	return v.messages.act(ctx, account, by, Content{Type: TypeEdit, Target: target, Body: body, Sealed: true})
}

// Revoke deletes a message that by has written, for everyone; see [Vendor.React].
func (v *Vendor) Revoke(ctx context.Context, account, by, target string) (networkID string, err error) {
	return v.messages.act(ctx, account, by, Content{Type: TypeRevoke, Target: target})
}

// Vote votes in a poll and replaces an earlier vote; see [Vendor.React].
func (v *Vendor) Vote(
	ctx context.Context, account, by, target string, choices ...string,
) (networkID string, err error) {
	return v.messages.act(ctx, account, by, Content{Type: TypeVote, Target: target, Choices: choices})
}

// Pin pins a message for a while, or unpins it if that is 0; see [Vendor.React].
func (v *Vendor) Pin(ctx context.Context, account, by, target string, d time.Duration) (networkID string, err error) {
	return v.messages.act(ctx, account, by, Content{Type: TypePin, Target: target, Seconds: int(d.Seconds())})
}

// act writes an action on a message in a chat of an account.
func (v messages) act(ctx context.Context, account, by string, c Content) (string, error) {
	own, err := v.devices.linkedNumber(account)
	if err != nil {
		return "", err
	}
	actor, err := knownNumber(by)
	if err != nil {
		return "", err
	}
	target, err := v.targetOf(actor, c.Target)
	if err == nil && target.Group == StatusID {
		return v.statusPosts.write(ctx, actor, target.Viewers, c)
	}
	if err == nil && target.Group != "" {
		return v.groupChats.write(ctx, actor, target.Group, c)
	}
	if actor != own { // its own phone has the message, even while that of the account cannot read it yet
		return v.write(ctx, actor, own, c)
	}
	if err != nil {
		return "", err
	}
	return v.write(ctx, actor, target.other(own), c)
}

// targetOf returns a message that the phone of a number shows.
func (v messages) targetOf(n number, id string) (Shown, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m := v.records.shown(n, id); m != nil {
		return *m, nil
	}
	return Shown{}, fmt.Errorf("%w: %s on the phone of %s", ErrUnknownMessage, id, n)
}

// other returns the other number of a message's chat; "" for a group.
func (m Shown) other(n number) number {
	if m.Group != "" {
		return ""
	}
	if m.From == n.String() {
		return number(m.To[1:])
	}
	return number(m.From[1:])
}

// writtenBy reports whether a number wrote the message.
func (m Shown) writtenBy(n number) bool { return m.From == n.String() }

// secret returns the secret of the message, nil if it has none.
func (m Shown) secret() []byte { return m.message().GetMessageContextInfo().GetMessageSecret() }

// action returns the network's form of an action of one number in its chat with another.
func (v messages) action(from, to number, c Content) (*waE2E.Message, error) {
	target, err := v.targetOf(from, c.Target)
	if err != nil {
		return nil, err
	}
	if target.other(from) != to {
		return nil, fmt.Errorf("%w: %s in the chat with %s", ErrUnknownMessage, c.Target, to)
	}
	if (c.Type == TypeEdit || c.Type == TypeRevoke) && !target.writtenBy(from) {
		return nil, fmt.Errorf("%w: %s", ErrNotAuthor, c.Target)
	}
	a := action{Content: c, by: from.lid(), author: number(target.From[1:]).lid(), target: target, key: &waCommon.MessageKey{
		RemoteJID: new(to.lid().String()), FromMe: new(target.writtenBy(from)), ID: &c.Target,
	}}
	if (c.Type == TypeVote || c.Sealed) && v.otherNames(from, to) {
		a.by = from.pn()
		if target.writtenBy(from) {
			a.author = from.pn()
		}
	}
	return a.message()
}

// message returns the network's form of an action.
func (a action) message() (*waE2E.Message, error) {
	switch a.Type {
	case TypeEdit:
		return a.edit()
	case TypeVote:
		return a.vote()
	}
	return a.plain(), nil
}

// action is an action to be written.
type action struct {
	Content
	by, author types.JID // who acts, and who wrote the message
	target     Shown
	key        *waCommon.MessageKey
}

// otherNames reports whether a fault names people by their numbers in what one phone seals for
// another.
func (v messages) otherNames(from, to number) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range []number{to, from} {
		if a := v.accounts[n]; a != nil && v.faults.takeFault(a, FaultOtherNames) {
			return true
		}
	}
	return false
}

// plain returns the network's form of an action that needs nothing of the message.
func (a action) plain() *waE2E.Message {
	at := new(time.Now().UnixMilli())
	switch a.Type {
	case TypeReaction:
		return &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{Key: a.key, Text: &a.Body, SenderTimestampMS: at}}
	case TypePin:
		kind := waE2E.PinInChatMessage_PIN_FOR_ALL
		if a.Seconds == 0 {
			kind = waE2E.PinInChatMessage_UNPIN_FOR_ALL
		}
		return &waE2E.Message{
			PinInChatMessage: &waE2E.PinInChatMessage{Key: a.key, Type: &kind, SenderTimestampMS: at},
			MessageContextInfo: &waE2E.MessageContextInfo{
				MessageAddOnDurationInSecs: new(uint32(a.Seconds)), //nolint:gosec // some weeks
			},
		}
	}
	return &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Key: a.key, Type: waE2E.ProtocolMessage_REVOKE.Enum(),
	}}
}

func (a action) edit() (*waE2E.Message, error) {
	change := &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Key: a.key, Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(), TimestampMS: new(time.Now().UnixMilli()),
		EditedMessage: rewritten(a.target.message(), a.Body),
	}}
	if !a.Sealed {
		return &waE2E.Message{EditedMessage: &waE2E.FutureProofMessage{Message: change}}, nil
	}
	payload, iv, err := a.seal(useEdit, change)
	return &waE2E.Message{SecretEncryptedMessage: &waE2E.SecretEncryptedMessage{
		TargetMessageKey: a.key, EncPayload: payload, EncIV: iv,
		SecretEncType: waE2E.SecretEncryptedMessage_MESSAGE_EDIT.Enum(),
	}}, err
}

func (a action) vote() (*waE2E.Message, error) {
	var ballot waE2E.PollVoteMessage
	for _, choice := range a.Choices {
		if a.target.Poll == nil || !slices.Contains(a.target.Poll.Options, choice) {
			return nil, fmt.Errorf("%w: %q", ErrNoOption, choice)
		}
		sum := sha256.Sum256([]byte(choice))
		ballot.SelectedOptions = append(ballot.SelectedOptions, sum[:])
	}
	payload, iv, err := a.seal(useVote, &ballot)
	return &waE2E.Message{PollUpdateMessage: &waE2E.PollUpdateMessage{
		PollCreationMessageKey: a.key, Vote: &waE2E.PollEncValue{EncPayload: payload, EncIV: iv},
		SenderTimestampMS: new(time.Now().UnixMilli()),
	}}, err
}

// seal encrypts an action with the secret of its message.
func (a action) seal(use string, m proto.Message) (payload, iv []byte, err error) {
	plain, err := proto.Marshal(m)
	if err != nil {
		return nil, nil, err
	}
	return secretUse{use, a.Target, a.author, a.by}.seal(a.target.secret(), plain)
}

// rewritten returns a copy of a message with another text or caption, and without its secret.
func rewritten(old *waE2E.Message, body string) *waE2E.Message {
	msg, _ := proto.Clone(old).(*waE2E.Message) // a clone has the type of its original
	msg.MessageContextInfo = nil
	inner, _ := unwrapped(msg)
	switch {
	case inner.ExtendedTextMessage != nil:
		inner.ExtendedTextMessage.Text = &body
	case inner.ImageMessage != nil:
		inner.ImageMessage.Caption = &body
	case inner.VideoMessage != nil:
		inner.VideoMessage.Caption = &body
	case inner.DocumentMessage != nil:
		inner.DocumentMessage.Caption = &body
		if wrapped(msg.DocumentWithCaptionMessage) == nil {
			return &waE2E.Message{DocumentWithCaptionMessage: &waE2E.FutureProofMessage{Message: msg}}
		}
	default:
		inner.Conversation = &body
	}
	return msg
}
