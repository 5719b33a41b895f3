package gateway

import (
	"context"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
)

// RecentEvents are events, newest first.
type RecentEvents struct {
	paging.List[LoggedEvent] // Next goes on with older ones

	End string // where NewEvents goes on with newer ones; "" on a page behind the first
}

// Recent reads the log of what the caller may see from its end backwards. A
// page may be empty and still have older ones behind it.
func (g Events) Recent(ctx context.Context, c access.Caller, q EventQuery) (RecentEvents, error) {
	if err := c.Permit(postern.EventsRead); err != nil {
		return RecentEvents{}, err
	}
	r, err := g.openLog(ctx, c, q)
	if err != nil {
		return RecentEvents{}, err
	}
	var found RecentEvents
	if r.at, err = g.cursors.Number(c.Workspace(), "recent", q.Page.Cursor); err != nil {
		return found, err
	}
	if q.Page.Cursor == "" {
		if r.at, err = g.db.Events.End(ctx, r.ws); err != nil {
			return found, err
		}
		found.End = r.cursor("events", r.at)
		r.at++
	}
	found.List, err = r.back(ctx)
	return found, err
}

// back reads a page before the reader's place. What retention has left below the
// floor is no part of the log.
func (r *LogReader) back(ctx context.Context) (paging.List[LoggedEvent], error) {
	floor, _, err := r.g.db.Events.Floor(ctx, r.ws)
	if err != nil {
		return paging.List[LoggedEvent]{}, err
	}
	p, err := r.g.db.Events.Before(ctx, r.ws, r.filter, r.at, floor, paging.DefaultLimit)
	list := paging.List[LoggedEvent]{Data: shown(p.Entries)}
	if p.More {
		list.Next = r.cursor("recent", p.Last)
	}
	return list, err
}

// New reads on from a place, the page's cursor, that RecentEvents or an
// earlier call gave, and gives the place behind what it has looked at. They come
// oldest first, at most a page of them; more tells that there may be more.
func (g Events) New(ctx context.Context, c access.Caller, q EventQuery) (list []LoggedEvent, place string, more bool, err error) {
	if err := c.Permit(postern.EventsRead); err != nil {
		return list, place, more, err
	}
	r, err := g.openLog(ctx, c, q)
	if err != nil {
		return nil, "", false, err
	}
	if r.at, err = g.cursors.Number(c.Workspace(), "events", q.Page.Cursor); err != nil {
		return nil, "", false, err
	}
	list, more, err = r.next(ctx, paging.DefaultLimit)
	return list, r.cursor("events", r.at), more, err
}
