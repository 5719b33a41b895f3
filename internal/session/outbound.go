package session

import (
	"context"

	"postern/internal/network"
	"postern/internal/postern"
)

// outbound returns a message in the form in which the driver sends it, at each attempt.
func (e *Engine) outbound(ctx context.Context, m postern.Message) (network.Outbound, error) {
	out := network.Outbound{NetworkID: m.NetworkID, ChatID: m.ChatID, Content: m.Content}
	if m.ReplyTo == "" {
		return out, nil
	}
	quoted, err := e.db.Messages.Get(ctx, m.WorkspaceID, postern.MessageID(m.ReplyTo))
	switch {
	case postern.ReasonOf(err) == postern.NotFound: // it was removed since
		return out, nil
	case err != nil:
		return out, err
	}
	out.Quote = &network.Quote{
		NetworkID: quoted.NetworkID, FromMe: quoted.Direction == postern.Outbound, Content: quoted.Content,
	}
	return out, nil
}
