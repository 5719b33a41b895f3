package gateway

import (
	"context"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
)

// Spans are consecutive spans of time that end now.
type Spans struct {
	Length time.Duration // whole hours
	Number int
}

// LastDay is a day by the hour.
func LastDay() Spans { return Spans{time.Hour, 24} }

// LastMonth is 30 days, as UTC has them.
func LastMonth() Spans { return Spans{day, 30} }

// starts are when the spans begin, oldest first; the last is under way.
func (s Spans) starts(now postern.Time) []postern.Time {
	length := postern.Time(s.Length.Milliseconds())
	list := make([]postern.Time, s.Number)
	for i := range list {
		list[i] = now - now%length - postern.Time(s.Number-1-i)*length
	}
	return list
}

// MessageSpans tells what became of the messages of the caller's workspace, span
// by span, those without any too. A key limited to devices may not know.
func (g Statistics) MessageSpans(ctx context.Context, c access.Caller, s Spans) ([]postern.MessageSpan, error) {
	if err := c.PermitWhole(postern.MessagesRead); err != nil {
		return nil, err
	}
	starts := s.starts(g.time())
	list, err := g.db.Hours.MessageSpans(ctx, c.Workspace(), starts[0], s.Length)
	return whole(starts, list, func(m postern.MessageSpan) postern.Time { return m.Start }, func(at postern.Time) postern.MessageSpan { return postern.MessageSpan{Start: at} }), err
}

// AttemptSpans is MessageSpans for the attempts of deliveries to all endpoints.
func (g Statistics) AttemptSpans(ctx context.Context, c access.Caller, s Spans) ([]postern.EndpointHour, error) {
	if err := c.PermitWhole(postern.WebhooksRead); err != nil {
		return nil, err
	}
	starts := s.starts(g.time())
	list, err := g.db.Hours.AttemptSpans(ctx, c.Workspace(), starts[0], s.Length)
	return whole(starts, list, func(h postern.EndpointHour) postern.Time { return h.Hour }, func(at postern.Time) postern.EndpointHour { return postern.EndpointHour{Hour: at} }), err
}

// whole puts in what a list has no row for.
func whole[T any](starts []postern.Time, list []T, start func(T) postern.Time, none func(postern.Time) T) (all []T) {
	have := map[postern.Time]T{}
	for _, one := range list {
		have[start(one)] = one
	}
	for _, at := range starts {
		one, ok := have[at]
		if !ok {
			one = none(at)
		}
		all = append(all, one)
	}
	return all
}

// Kept is how long the caller's workspace keeps things; server is how long the
// server does.
func (g Statistics) Kept(ctx context.Context, c access.Caller, server Retention) (Retention, error) {
	if err := c.Permit(postern.UsageRead); err != nil {
		return Retention{}, err
	}
	ws, err := g.db.Workspaces.Get(ctx, c.Workspace())
	return server.of(ws), err
}

// Endpoints says how many of the plan's webhook endpoints there are.
func (g Statistics) Endpoints(ctx context.Context, c access.Caller) (Used, error) {
	if err := c.PermitWhole(postern.WebhooksRead); err != nil {
		return Used{}, err
	}
	n, err := g.db.Usage.Endpoints(ctx, c.Workspace())
	return Used{n, c.Plan.Endpoints}, err
}
