package gateway

import (
	"context"
	"errors"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/accounts"
	"postern/internal/store/apilog"
)

// Retention is how long data is kept. A workspace's own limits may shorten the times for
// events and messages.
type Retention struct {
	Events   time.Duration
	Messages time.Duration
	Media    time.Duration // received files, and files to send after the last message with them has expired
	Audit    time.Duration
}

const day = 24 * time.Hour

// of returns the retention of one workspace.
func (r Retention) of(ws postern.Workspace) Retention {
	if d := ws.Limits.EventDays; d != nil {
		r.Events = min(r.Events, time.Duration(*d)*day)
	}
	if d := ws.Limits.MessageDays; d != nil {
		r.Messages = min(r.Messages, time.Duration(*d)*day)
	}
	return r
}

// Run removes old data at intervals until ctx is done.
func (g Maintenance) Run(ctx context.Context, keep Retention) error {
	tick := time.NewTicker(retentionEvery)
	defer tick.Stop()
	for {
		if err := g.RemoveOld(ctx, keep); err != nil && ctx.Err() == nil {
			g.log.WarnContext(ctx, "retention", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// IndexWords writes the words of new messages for searches, until ctx is done. Messages are
// found about a second after they were stored, and accepting them costs nothing more.
func (g Maintenance) IndexWords(ctx context.Context) error {
	for {
		began := time.Now()
		more, err := g.db.Messages.IndexWords(ctx)
		if err != nil && ctx.Err() == nil {
			g.log.WarnContext(ctx, "the words of messages are written later", "error", err)
		}
		wait := indexEvery
		if more {
			wait = indexRest * time.Since(began)
		}
		if postern.Sleep(ctx, wait) != nil {
			return nil //nolint:nilerr // the server stops
		}
	}
}

// RemoveOld removes the old data of every workspace once.
func (g Maintenance) RemoveOld(ctx context.Context, keep Retention) error {
	list, err := g.db.Workspaces.List(ctx)
	if err != nil {
		return err
	}
	now := g.time()
	for _, ws := range list {
		k := keep.of(ws)
		err = errors.Join(
			err,
			inChunks(
				ctx,
				func(from int64) (int64, bool, error) {
					return g.db.Events.Remove(ctx, ws.ID, now.Add(-k.Events), from)
				},
			),
			inChunks(ctx, func(int64) (int64, bool, error) {
				more, err := g.db.Deliveries.RemoveNotices(ctx, ws.ID, now.Add(-k.Events))
				return 0, more, err
			}),
			inChunks(ctx, func(from int64) (int64, bool, error) {
				return g.db.Messages.Remove(ctx, ws.ID, now.Add(-k.Messages), from)
			}),
			inChunks(ctx, func(int64) (int64, bool, error) {
				more, err := g.db.Messages.RemovePast(ctx, ws.ID, now.Add(-k.Messages))
				return 0, more, err
			}),
			inChunks(ctx, func(int64) (int64, bool, error) {
				more, err := g.db.Media.RemoveOld(ctx, ws.ID, now.Add(-k.Media), now.Add(-min(k.Media, k.Messages)))
				return 0, more, err
			}),
		)
	}
	if g.library != nil {
		err = errors.Join(err, g.library.Sweep(ctx, now.Add(-sweepAge).Std()))
	}
	return errors.Join(err,
		inChunks(ctx, func(int64) (int64, bool, error) {
			more, err := g.db.Hours.RemoveMessageHours(ctx, now.Add(-keepHours))
			return 0, more, err
		}),
		inChunks(ctx, func(int64) (int64, bool, error) {
			more, err := g.db.Hours.RemoveEndpointHours(ctx, now.Add(-keep.Events))
			return 0, more, err
		}),
		inChunks(ctx, func(int64) (int64, bool, error) {
			more, err := g.db.Hours.RemoveMessageMinutes(ctx, now.Add(-store.KeptMinutes))
			return 0, more, err
		}),
		inChunks(ctx, func(int64) (int64, bool, error) {
			more, err := g.db.Hours.RemoveEndpointMinutes(ctx, now.Add(-store.KeptMinutes))
			return 0, more, err
		}),
		inChunks(ctx, func(int64) (int64, bool, error) {
			more, err := apilog.Of(g.db).Remove(ctx, now.Add(-apilog.Kept))
			return 0, more, err
		}),
		inChunks(ctx, func(int64) (int64, bool, error) {
			more, err := g.db.Audit.Remove(ctx, now.Add(-keep.Audit))
			return 0, more, err
		}),
		inChunks(ctx, func(int64) (int64, bool, error) {
			more, err := accounts.Of(g.db).SignIns.Remove(ctx, now)
			return 0, more, err
		}))
}

// inChunks removes chunk after chunk. After each one it pauses for as long as the chunk
// took, so that at least half of the writer's time is left to others.
func inChunks(ctx context.Context, remove func(from int64) (next int64, more bool, err error)) error {
	for from := int64(0); ; {
		start := time.Now()
		next, more, err := remove(from)
		if err != nil || !more {
			return err
		}
		from = next
		if err := postern.Sleep(ctx, time.Since(start)); err != nil {
			return err
		}
	}
}
