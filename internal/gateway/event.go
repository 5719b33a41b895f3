package gateway

import (
	"context"
	"strconv"
	"strings"
	"time"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"

	"github.com/oklog/ulid/v2"
)

// EventQuery narrows the log of events; zero members ask for nothing.
type EventQuery struct {
	Types    []string // names and prefixes such as message.*
	DeviceID postern.DeviceID
	After    postern.EventID // events behind this one
	Page     paging.Page     // its cursor goes on where a page ended; not beside After
}

// LoggedEvent is an event as the log shows it.
type LoggedEvent struct {
	ID   postern.EventID
	Type postern.EventType
	Body []byte // the envelope, the very bytes that webhooks carry
}

// List reads the log of what the caller may see, oldest first. Behind a
// place whose next event was removed it gives EventsExpired.
func (g Events) List(ctx context.Context, c access.Caller, q EventQuery) (paging.List[LoggedEvent], error) {
	if err := c.Permit(postern.EventsRead); err != nil {
		return paging.List[LoggedEvent]{}, err
	}
	r, err := g.openLog(ctx, c, q)
	if err != nil {
		return paging.List[LoggedEvent]{}, err
	}
	if err := g.placeOf(ctx, c, q, r); err != nil {
		return paging.List[LoggedEvent]{}, err
	}
	limit := q.Page.Limit
	if limit == 0 {
		limit = paging.DefaultLimit
	}
	list, more, err := r.next(ctx, limit)
	if err != nil || !more {
		return paging.List[LoggedEvent]{Data: list}, err
	}
	return paging.List[LoggedEvent]{Data: list, Next: r.cursor("events", r.at)}, nil
}

// cursor is for a place in the reader's log.
func (r *LogReader) cursor(kind string, place int64) string {
	return r.g.cursors.At(r.ws, kind, strconv.FormatInt(place, 10))
}

// LogReader reads a log page by page. It is not for many goroutines at once.
type LogReader struct {
	g      *core
	ws     postern.WorkspaceID
	filter store.EventFilter
	at     int64           // read up to here
	start  postern.EventID // see Start
}

// Start is the newest event that the caller could see when the reader began at
// the end of the log; "" when there was none.
func (r *LogReader) Start() postern.EventID { return r.start }

// Follow reads the log from behind an event, or, without one, what is
// recorded from now on.
func (g Events) Follow(ctx context.Context, c access.Caller, q EventQuery) (*LogReader, error) {
	if err := c.Permit(postern.EventsRead); err != nil {
		return nil, err
	}
	r, err := g.openLog(ctx, c, q)
	if err != nil {
		return nil, err
	}
	if q.After == "" {
		return r, r.toEnd(ctx)
	}
	r.at, err = g.positionOf(ctx, c, q.After)
	if err != nil {
		return nil, err
	}
	return r, r.whole(ctx)
}

// toEnd puts the reader behind all that is recorded.
func (r *LogReader) toEnd(ctx context.Context) (err error) {
	if r.at, err = r.g.db.Events.End(ctx, r.ws); err != nil {
		return err
	}
	r.start, err = r.g.db.Events.Newest(ctx, r.ws, r.filter.Devices, r.at)
	return err
}

// Next gives the next events; more tells that others follow at once.
func (r *LogReader) Next(ctx context.Context) (list []LoggedEvent, more bool, err error) {
	return r.next(ctx, paging.DefaultLimit)
}

// Watch tells of every event of the reader's workspace until the listener is closed.
func (r *LogReader) Watch() *store.Listener {
	return r.g.db.Listen(store.EventLogged, string(r.ws))
}

// openLog checks the filters. The device is looked up, so that a wrong one is
// an error and not an empty list.
func (g Events) openLog(ctx context.Context, c access.Caller, q EventQuery) (*LogReader, error) {
	types, err := eventTypes("/query/type", q.Types)
	if err != nil {
		return nil, err
	}
	r := &LogReader{g: g.core, ws: c.Workspace(), filter: store.EventFilter{Types: types, Devices: c.Key.Devices}}
	if q.DeviceID != "" {
		r.filter.Devices = []postern.DeviceID{q.DeviceID}
		_, err = g.devices().get(ctx, c, q.DeviceID)
	}
	return r, err
}

// eventTypes are the kinds that patterns name; nil is every kind.
func eventTypes(place string, patterns []string) (list []postern.EventType, err error) {
	if len(patterns) > maxEventPatterns {
		return nil, postern.Invalid(place, "name at most %d event types", maxEventPatterns)
	}
	if len(patterns) > 0 {
		list = []postern.EventType{} // a family without members names nothing, not everything
	}
	for _, p := range patterns {
		if !postern.ValidEventPattern(p) {
			return nil, postern.Invalid(
				place, "each entry must be *, a family such as message.*, or one of %v", postern.EventTypes(),
			)
		}
		if p == "*" {
			return nil, nil
		}
		for _, t := range postern.EventTypes() {
			if postern.MatchesEvent(p, t) {
				list = append(list, t)
			}
		}
	}
	return list, nil
}

// placeOf finds where a list begins.
func (g Events) placeOf(ctx context.Context, c access.Caller, q EventQuery, r *LogReader) (err error) {
	switch {
	case q.After != "" && q.Page.Cursor != "":
		return postern.Invalid("/query/after", "give after or cursor, not both")
	case q.After != "":
		r.at, err = g.positionOf(ctx, c, q.After)
	case q.Page.Cursor != "":
		r.at, err = g.cursors.Number(c.Workspace(), "events", q.Page.Cursor)
	default:
		r.at, _, err = g.db.Events.Floor(ctx, c.Workspace())
	}
	return err
}

// positionOf is the place of an event that the caller may see.
func (g Events) positionOf(ctx context.Context, c access.Caller, id postern.EventID) (int64, error) {
	position, device, err := g.db.Events.Place(ctx, c.Workspace(), id)
	if postern.ReasonOf(err) == postern.NotFound && g.mayBeRemoved(ctx, c, id) {
		return 0, expired()
	}
	if err == nil && !c.Key.Allows(device) {
		err = postern.Errorf(postern.ResourceNotAllowed, "this key may not use that event")
	}
	return position, err
}

// clockMargin is how much later than its event an id may have been made.
const clockMargin = time.Minute

// mayBeRemoved tells whether an id that is nowhere may be that of a removed
// event: ids tell when they were made. In doubt it says yes, since a gap that
// nobody is told of is worse than a wrong word.
func (g Events) mayBeRemoved(ctx context.Context, c access.Caller, id postern.EventID) bool {
	floor, newest, err := g.db.Events.Floor(ctx, c.Workspace())
	if err != nil || floor == 0 {
		return false
	}
	text, ok := strings.CutPrefix(string(id), "evt_")
	made, err := ulid.ParseStrict(text)
	return ok && err == nil && postern.TimeOf(made.Timestamp()) <= newest.Add(clockMargin)
}

func expired() error {
	return postern.Errorf(
		postern.EventsExpired,
		"events after that point were older than the retention period and were removed; read the log again from its start, without after or cursor",
	)
}

// next reads on. The floor is looked at after the page was read: what was
// removed while it was read is noticed.
func (r *LogReader) next(ctx context.Context, limit int) (list []LoggedEvent, more bool, err error) {
	p, err := r.g.db.Events.List(ctx, r.ws, r.filter, r.at, limit)
	if err != nil {
		return nil, false, err
	}
	if err := r.whole(ctx); err != nil {
		return nil, false, err
	}
	r.at = p.Last
	return shown(p.Entries), p.More, nil
}

func shown(entries []store.LogEntry) (list []LoggedEvent) {
	for _, e := range entries {
		if len(e.Body) == 0 { // its device was deleted
			e.Body = e.Envelope(e.Sequence, e.At)
		}
		list = append(list, LoggedEvent{e.ID, e.Type, e.Body})
	}
	return list
}

// whole refuses when something behind the reader's place was removed.
func (r *LogReader) whole(ctx context.Context) error {
	floor, _, err := r.g.db.Events.Floor(ctx, r.ws)
	if err == nil && r.at < floor {
		return expired()
	}
	return err
}

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
func (g Events) New(
	ctx context.Context, c access.Caller, q EventQuery,
) (list []LoggedEvent, place string, more bool, err error) {
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
