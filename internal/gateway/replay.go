package gateway

import (
	"context"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
)

// NewReplay describes a replay to create. A zero field does not narrow it.
type NewReplay struct {
	Since      postern.Time // inclusive
	Until      postern.Time // exclusive; events recorded after the request are never included
	Types      []string     // event types and families such as message.*
	OnlyFailed bool         // only events whose delivery was exhausted
}

// Create starts to deliver a part of the log again to an active endpoint.
func (g Replays) Create(
	ctx context.Context, c access.Caller, id postern.EndpointID, in NewReplay, idem *Idempotency,
) (Created[postern.Replay], error) {
	if err := c.PermitWebhooks(postern.WebhooksWrite, postern.MessagesRead, postern.EventsRead); err != nil {
		return Created[postern.Replay]{}, err
	}
	now := g.time()
	if err := in.check(); err != nil {
		return Created[postern.Replay]{}, err
	}
	e, err := g.webhooks().get(ctx, c, id)
	if err != nil {
		return Created[postern.Replay]{}, err
	}
	return create(ctx, g.core, c.Workspace(), idem, func() (postern.Replay, func(*store.Once) error, error) {
		end, err := g.db.Events.End(ctx, c.Workspace())
		r := postern.Replay{
			ID: postern.NewReplayID(), WorkspaceID: c.Workspace(), EndpointID: id, Status: postern.ReplayRunning,
			Since: in.Since, Until: in.Until, Types: in.Types, OnlyFailed: in.OnlyFailed, Last: end, CreatedAt: now,
		}
		return r, func(once *store.Once) error {
			return g.db.Replays.Create(ctx, r, once, didByAny(c, now, "webhook.replayed", string(id), e.URL)...)
		}, err
	})
}

func (in NewReplay) check() error {
	switch {
	case in.Until != 0 && in.Since >= in.Until:
		return postern.Invalid("/until", "until must be later than since")
	case in.Types != nil && len(in.Types) == 0:
		return postern.Invalid("/types", "name at least one event type, or leave the field out for all")
	}
	_, err := eventTypes("/types", in.Types)
	return err
}

// Get finds one replay.
func (g Replays) Get(ctx context.Context, c access.Caller, id postern.ReplayID) (postern.Replay, error) {
	if err := c.Permit(postern.WebhooksRead); err != nil {
		return postern.Replay{}, err
	}
	return g.get(ctx, c, id)
}

// get finds a replay to an endpoint that the caller may use.
func (g Replays) get(ctx context.Context, c access.Caller, id postern.ReplayID) (postern.Replay, error) {
	r, err := g.db.Replays.Get(ctx, c.Workspace(), id)
	if err != nil {
		return postern.Replay{}, err
	}
	if _, err := g.webhooks().get(ctx, c, r.EndpointID); err != nil {
		return postern.Replay{}, err
	}
	return r, nil
}

// List lists the replays to an endpoint, newest first.
func (g Replays) List(
	ctx context.Context, c access.Caller, id postern.EndpointID, p paging.Page,
) (paging.List[postern.Replay], error) {
	if err := c.Permit(postern.WebhooksRead); err != nil {
		return paging.List[postern.Replay]{}, err
	}
	if _, err := g.webhooks().get(ctx, c, id); err != nil {
		return paging.List[postern.Replay]{}, err
	}
	kind := "replays " + string(id)
	sp, err := g.open(c.Workspace(), kind, p)
	if err != nil {
		return paging.List[postern.Replay]{}, err
	}
	rows, err := g.db.Replays.List(ctx, c.Workspace(), id, sp)
	if err != nil {
		return paging.List[postern.Replay]{}, err
	}
	return paging.Cut(
		g.cursors, c.Workspace(), kind, rows, sp.Limit, func(r postern.Replay) string { return string(r.ID) },
	), nil
}

// Stop ends a replay. What it has already queued, about a hundred deliveries, is still
// delivered.
func (g Replays) Stop(ctx context.Context, c access.Caller, id postern.ReplayID) error {
	if err := c.Permit(postern.WebhooksWrite); err != nil {
		return err
	}
	if _, err := g.get(ctx, c, id); err != nil {
		return err
	}
	now := g.time()
	return g.db.Replays.Stop(ctx, c.Workspace(), id, now, did(c, now, "webhook.replay-stopped", string(id), "")...)
}
