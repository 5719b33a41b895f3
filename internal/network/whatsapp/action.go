package whatsapp

import (
	"context"
	"time"

	"postern/internal/network"
	"postern/internal/network/whatsapp/content"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
)

// action returns the network's form of an action on a message.
func (c *conn) action(ctx context.Context, to types.JID, m network.Outbound) (*waE2E.Message, error) {
	id := m.Target.NetworkID
	switch m.Content.Kind {
	case postern.KindReaction:
		return c.cli.BuildReaction(to, c.author(to, m.Target), id, m.Content.Text), nil
	case postern.KindRevoke:
		return c.cli.BuildRevoke(to, types.EmptyJID, id), nil
	case postern.KindEdit:
		edited := postern.Text(m.Content.Text)
		if m.File != nil { // a caption is edited by sending the whole message
			edited = m.Target.Content
			edited.Text = m.Content.Text
		}
		msg, err := content.ToWire(content.Outgoing{Content: edited, File: m.File})
		return c.cli.BuildEdit(to, id, msg), err
	case postern.KindVote:
		return c.vote(ctx, to, m)
	case postern.KindPin:
		return content.PinToWire(c.cli.BuildMessageKey(to, c.author(to, m.Target), id), m.Content, time.Now()), nil
	}
	return nil, &network.Rejected{Code: postern.NetworkRejected, Detail: "this kind of action cannot be sent"}
}

// author returns the network's name of who wrote the message that an action is about.
func (c *conn) author(to types.JID, target *network.Quote) types.JID {
	if target.FromMe {
		return c.cli.Store.GetLID().ToNonAD()
	}
	return to
}

// vote seals a vote with the secret of its poll.
func (c *conn) vote(ctx context.Context, to types.JID, m network.Outbound) (*waE2E.Message, error) {
	poll := &types.MessageInfo{ID: m.Target.NetworkID, MessageSource: types.MessageSource{
		Chat: to, Sender: c.author(to, m.Target), IsFromMe: m.Target.FromMe,
	}}
	msg, err := c.cli.BuildPollVote(ctx, poll, m.Content.Poll.Options)
	if err != nil {
		const detail = "the secret of the poll is not known, so nobody could read the vote"
		return nil, &network.Rejected{Code: postern.EncryptionFailed, Detail: detail}
	}
	return msg, nil
}

// confirm tells the sender of a message that it was read or played. The network does not answer.
func (c *conn) confirm(
	ctx context.Context, to types.JID, m network.Outbound, how types.ReceiptType,
) (time.Time, error) {
	if err := m.MayLeave(); err != nil {
		return time.Time{}, err
	}
	now := time.Now()
	if err := c.cli.MarkRead(ctx, []types.MessageID{m.Target.NetworkID}, now, to, to, how); err != nil {
		return time.Time{}, unsent("send", err)
	}
	return now.UTC(), nil
}
