package gateway

import (
	"cmp"
	"context"
	"time"
	"unicode/utf8"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/trace"
)

// Actions are what can be done with a message that was sent or received. Each is durable
// when its method returns the message; the session engine sends it in the order of its chat,
// and the message changes when the network has taken the action. Actions cost no quota.
type Actions struct{ *core }

// React reacts to a message with an emoji, in place of an earlier reaction; "" takes the
// reaction back.
func (g Actions) React(
	ctx context.Context, c access.Caller, id postern.MessageID, emoji string,
) (postern.Message, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Message{}, err
	}
	if emoji != "" && (len(emoji) > maxEmoji || !postern.IsEmoji(emoji)) {
		return postern.Message{}, postern.Invalid("/emoji", "a reaction is exactly one emoji")
	}
	return g.queue(ctx, c, id, postern.Content{Kind: postern.KindReaction, Text: emoji}, alive)
}

// MessageChange changes a message. A scheduled message changes at once; of any other, the
// text can be changed, for everyone.
type MessageChange struct {
	Text     string           // "" leaves it
	SendAt   postern.Time     // of a scheduled message; 0 leaves it
	Priority postern.Priority // of a scheduled message; "" leaves it
}

// Edit changes a message that the account sent or will send.
func (g Actions) Edit(
	ctx context.Context, c access.Caller, id postern.MessageID, change MessageChange,
) (postern.Message, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Message{}, err
	}
	if utf8.RuneCountInString(change.Text) > postern.MaxText {
		return postern.Message{}, postern.Errorf(postern.PayloadTooLarge,
			"a text may have at most %d characters", postern.MaxText)
	}
	m, err := g.messages().get(ctx, c, id)
	switch {
	case err != nil:
		return m, err
	case m.Status == postern.Scheduled:
		return g.changeScheduled(ctx, c, m, change)
	case change.SendAt != 0:
		return m, postern.Errorf(postern.ActionNotPossible, "only a scheduled message has a time to change")
	case change.Priority != "":
		return m, postern.Errorf(postern.ActionNotPossible, "only a scheduled message has a priority to change")
	case change.Text == "":
		return m, postern.Invalid("/body", "the new text must not be empty; delete the message instead")
	}
	return g.queue(ctx, c, id, m.Content.Edit(change.Text), g.editable)
}

func (g Actions) changeScheduled(
	ctx context.Context, c access.Caller, m postern.Message, change MessageChange,
) (postern.Message, error) {
	now := g.db.Now()
	if err := checkSendAt(change.SendAt, now); err != nil {
		return m, err
	}
	acts := did(c, now, "message.changed", string(m.ID), "")
	apply := func(m *postern.Message) error { return change.apply(m, now) }
	return g.db.Messages.ChangeScheduled(ctx, m.WorkspaceID, m.ID, apply, acts)
}

// apply changes a scheduled message.
func (c MessageChange) apply(m *postern.Message, now postern.Time) error {
	if c.Text != "" {
		if !m.Content.Kind.HasText() {
			return postern.Errorf(postern.ActionNotPossible, "a message of this kind has no text to edit")
		}
		m.Content.Mentions = m.Content.Edit(c.Text).Mentions
		m.Content.Text, m.Content.LinkPreview = c.Text, previewOf(c.Text, m.Content.LinkPreview != nil)
	}
	if c.Priority != "" {
		m.Priority = c.Priority.Stored()
	}
	if c.SendAt != 0 {
		m.ExpiresAt += max(c.SendAt, now) - m.SendAt
		m.SendAt = max(c.SendAt, now)
	}
	return nil
}

// Cancel ends a message that has not been sent, and returns its unit to the quota.
func (g Actions) Cancel(ctx context.Context, c access.Caller, id postern.MessageID) (postern.Message, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Message{}, err
	}
	m, err := g.messages().get(ctx, c, id)
	if err != nil {
		return m, err
	}
	return g.db.Outbox.Cancel(ctx, c.Workspace(), id, did(c, g.db.Now(), "message.canceled", string(id), ""))
}

// Delete deletes a message for everyone: one that the account sent, or any of a group of which it is an administrator.
func (g Actions) Delete(ctx context.Context, c access.Caller, id postern.MessageID) (postern.Message, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Message{}, err
	}
	return g.queue(ctx, c, id, postern.Content{Kind: postern.KindRevoke}, func(m postern.Message) error {
		if m.Direction == postern.Outbound || !postern.IsGroup(m.ChatID) {
			return own(m)
		}
		in, err := g.groups().Get(ctx, m.WorkspaceID, m.DeviceID, m.ChatID)
		if err == nil && in.Role != postern.GroupAdmin && in.Role != postern.GroupOwner {
			err = postern.Errorf(postern.GroupNotAllowed,
				"only administrators of a group can delete what others have written in it")
		}
		return cmp.Or(err, deletable(m))
	})
}

// Vote votes for options of a poll, in place of an earlier vote; no options take it back.
func (g Actions) Vote(
	ctx context.Context, c access.Caller, id postern.MessageID, options []string,
) (postern.Message, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Message{}, err
	}
	vote := postern.Content{Kind: postern.KindVote, Extra: postern.Extra{Poll: &postern.Poll{Options: options}}}
	return g.queue(ctx, c, id, vote, func(m postern.Message) error {
		return cmp.Or(alive(m), m.Content.Poll.CheckVote(options))
	})
}

// Pin pins a message in its chat for everyone, in place of an earlier pin of the message. The
// network knows only the durations of [postern.IsPinDuration].
func (g Actions) Pin(
	ctx context.Context, c access.Caller, id postern.MessageID, duration time.Duration,
) (postern.Message, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Message{}, err
	}
	if !postern.IsPinDuration(duration) {
		return postern.Message{}, postern.Invalid("/duration", "a message is pinned for 86400, 604800 or 2592000 seconds")
	}
	return g.queue(ctx, c, id, postern.PinFor(int(duration.Seconds())), alive)
}

// Unpin unpins a message for everyone.
func (g Actions) Unpin(ctx context.Context, c access.Caller, id postern.MessageID) (postern.Message, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Message{}, err
	}
	return g.queue(ctx, c, id, postern.PinFor(0), alive)
}

// Star stars a message for the account itself; nobody else sees the star.
func (g Actions) Star(ctx context.Context, c access.Caller, id postern.MessageID) (postern.Message, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Message{}, err
	}
	return g.queue(ctx, c, id, postern.StarOf(true), alive)
}

// Unstar takes the star of a message away.
func (g Actions) Unstar(ctx context.Context, c access.Caller, id postern.MessageID) (postern.Message, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Message{}, err
	}
	return g.queue(ctx, c, id, postern.StarOf(false), alive)
}

// MarkRead tells the sender of a message that it was read.
func (g Actions) MarkRead(ctx context.Context, c access.Caller, id postern.MessageID) (postern.Message, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Message{}, err
	}
	return g.queue(ctx, c, id, postern.Content{Kind: postern.KindRead}, func(m postern.Message) error {
		if m.Direction != postern.Inbound || m.Content.Kind == postern.KindCall {
			return postern.Errorf(postern.ActionNotPossible, "only received messages can be marked as read")
		}
		return nil
	})
}

// MarkPlayed tells the sender of a voice message or a video that it was played.
func (g Actions) MarkPlayed(ctx context.Context, c access.Caller, id postern.MessageID) (postern.Message, error) {
	if err := c.Permit(postern.MessagesWrite); err != nil {
		return postern.Message{}, err
	}
	return g.queue(ctx, c, id, postern.Content{Kind: postern.KindPlayed}, func(m postern.Message) error {
		if m.Direction != postern.Inbound || !m.Content.Kind.IsPlayed() {
			return postern.Errorf(postern.ActionNotPossible,
				"only received voice messages, audio and videos can be marked as played")
		}
		return nil
	})
}

// queue accepts an action on a message if check finds nothing against it.
func (g Actions) queue(
	ctx context.Context, c access.Caller, id postern.MessageID, what postern.Content, check func(postern.Message) error,
) (postern.Message, error) {
	m, err := g.messages().get(ctx, c, id)
	if err == nil {
		err = cmp.Or(onPost(m, what), check(m))
	}
	if err != nil {
		return postern.Message{}, err
	}
	now := g.db.Now()
	action := postern.Message{
		ID: postern.NewMessageID(), WorkspaceID: m.WorkspaceID, DeviceID: m.DeviceID, Direction: postern.Outbound,
		ChatID: m.ChatID, From: accountOf(m), To: postern.Maybe(postern.NumberOfChat(m.ChatID)), Content: what,
		About: m.NetworkID, Status: postern.Queued, NetworkID: postern.NewNetworkID(), Source: postern.FromAPI,
		Metadata: map[string]string{}, CreatedAt: now, ExpiresAt: actionExpiry(m, what.Kind, now),
		Trace: trace.Parent(ctx),
	}
	acts := did(c, now, "message."+string(what.Kind), string(m.ID), "")
	return m, g.db.Messages.QueueAction(ctx, store.QueueAction{Action: action, Acts: acts})
}

// actionExpiry is the time after which an action on a message is not sent any more. While the message itself waits, the
// action outlives it: otherwise a message that was deleted would still be sent.
func actionExpiry(m postern.Message, kind postern.Kind, now postern.Time) postern.Time {
	switch {
	case m.Status == postern.Queued || m.Status == postern.Sending:
		return max(now, m.ExpiresAt).Add(defaultExpiry)
	case kind == postern.KindEdit:
		return cmp.Or(m.SentAt, m.CreatedAt).Add(editsTaken)
	}
	return now.Add(defaultExpiry)
}

// onPost refuses what cannot be done with a post in a channel or a status post yet.
func onPost(m postern.Message, what postern.Content) error {
	switch {
	case what.Kind == postern.KindRead:
	case postern.IsChannel(m.ChatID):
		return postern.Errorf(postern.ActionNotPossible, "posts in channels can be marked as read, and nothing else yet")
	case m.ChatID == postern.StatusChat && what.Kind != postern.KindRevoke:
		return postern.Errorf(postern.ActionNotPossible,
			"status posts can be marked as read or, if they are the account's own, deleted; nothing else is possible yet")
	}
	return nil
}

// accountOf returns the number of the account at whose end a message is.
func accountOf(m postern.Message) postern.Maybe {
	if m.Direction == postern.Outbound {
		return m.From
	}
	return m.To
}

// alive refuses actions on a message that the network never got or will get later, or that was
// deleted.
func alive(m postern.Message) error {
	switch {
	case m.Status == postern.Scheduled: // the action would be sent before it
		return postern.Errorf(postern.ActionNotPossible, "the message is scheduled; to stop it, cancel it")
	case m.State.DeletedAt != 0:
		return postern.Errorf(postern.ActionNotPossible, "the message was deleted")
	case m.Content.Kind == postern.KindCall:
		return postern.Errorf(postern.ActionNotPossible, "this is a call, and no message")
	case m.NeverSent():
		return postern.Errorf(postern.ActionNotPossible, "the message was never sent")
	case m.Error != nil && m.Direction == postern.Inbound:
		return postern.Errorf(postern.ActionNotPossible, "the message could not be read")
	}
	return nil
}

// deletable refuses to delete what is no message of the network, or was deleted.
func deletable(m postern.Message) error {
	if m.Error != nil { // others can read it
		m.Error = nil
	}
	return alive(m)
}

// own refuses actions on messages of others.
func own(m postern.Message) error {
	if m.Direction != postern.Outbound {
		return postern.Errorf(postern.ActionNotPossible, "only messages that the account sent can be changed or deleted")
	}
	return alive(m)
}

// editable refuses edits of messages that have no text or caption, or are too old for the network.
func (g Actions) editable(m postern.Message) error {
	switch {
	case own(m) != nil:
		return own(m)
	case !m.Content.CanBeEdited():
		return postern.Errorf(postern.ActionNotPossible, "the message has no text or caption that can be edited")
	case m.SentAt > 0 && g.db.Now() > m.SentAt.Add(editTime),
		m.Status == postern.Failed && g.db.Now() > m.CreatedAt.Add(editTime): // it may have been sent
		return postern.Errorf(postern.ActionNotPossible, "a message can be edited for %d minutes", int(editTime.Minutes()))
	}
	return nil
}
