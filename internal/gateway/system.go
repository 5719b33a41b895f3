package gateway

import (
	"context"
	"errors"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
)

// System is how the whole server is doing.
type System struct {
	store.SystemStatus

	Now      postern.Time
	Messages []postern.MessageSpan  // of all workspaces, each of the last 24 hours
	Attempts []postern.EndpointHour // likewise
}

// MessagesCounted is how far the queue of messages is counted.
const MessagesCounted = store.MessagesCounted

// DeliveriesCounted is that for the deliveries that wait.
const DeliveriesCounted = store.DeliveriesCounted

// System tells operators how the whole server is doing.
func (g Statistics) System(ctx context.Context, by access.Actor) (s System, err error) {
	if err := by.NeedsOperator(); err != nil {
		return s, err
	}
	now, starts := g.time(), LastDay().starts(g.time())
	figures, err1 := g.db.System.Get(ctx, now)
	messages, err2 := g.db.Hours.AllMessages(ctx, starts[0])
	attempts, err3 := g.db.Hours.AllAttempts(ctx, starts[0])
	return System{
		SystemStatus: figures, Now: now,
		Messages: whole(starts, messages, func(m postern.MessageSpan) postern.Time { return m.Start }, func(at postern.Time) postern.MessageSpan { return postern.MessageSpan{Start: at} }),
		Attempts: whole(starts, attempts, func(h postern.EndpointHour) postern.Time { return h.Hour }, func(at postern.Time) postern.EndpointHour { return postern.EndpointHour{Hour: at} }),
	}, errors.Join(err1, err2, err3)
}
