package gateway

import (
	"cmp"
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

// EventQuery narrows the event log. A zero field does not narrow it.
type EventQuery struct {
	Types    []string // event types and families such as message.*
	DeviceID postern.DeviceID
	After    postern.EventID // only events after this one
	Page     paging.Page     // its cursor continues an earlier list; not together with After
}

// LoggedEvent is an event in the log.
type LoggedEvent struct {
	ID   postern.EventID
	Type postern.EventType
	Body []byte // the envelope: the same bytes that webhooks post
}

// List reads the log of the events that the caller may see, oldest first. If events after
// the given point were removed, it returns EventsExpired.
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
	for q.After == "" && q.Page.Cursor == "" && postern.ReasonOf(err) == postern.EventsExpired {
		// Retention has moved the beginning of the log since it was read.
		if err = g.placeOf(ctx, c, q, r); err == nil {
			list, more, err = r.next(ctx, limit)
		}
	}
	if err != nil || !more {
		return paging.List[LoggedEvent]{Data: list}, err
	}
	return paging.List[LoggedEvent]{Data: list, Next: r.cursor("events", r.at)}, nil
}

// EventRecord is an event with its deliveries.
type EventRecord struct {
	LoggedEvent
	Deliveries []postern.Delivery // at most MostOfEvent; none if the caller may not see webhooks
}

// MostOfEvent is how many deliveries of an event are shown.
const MostOfEvent = store.MostOfEvent

// Get finds one event. Its deliveries need webhooks:read in addition.
func (g Events) Get(ctx context.Context, c access.Caller, id postern.EventID) (r EventRecord, err error) {
	if err := c.Permit(postern.EventsRead); err != nil {
		return r, err
	}
	e, err := g.db.Events.Get(ctx, c.Workspace(), id)
	if err == nil && !c.Key.Allows(e.DeviceID) {
		err = postern.Errorf(postern.ResourceNotAllowed, "this key may not use that event")
	}
	if err != nil {
		return r, err
	}
	r.LoggedEvent = shown([]store.LogEntry{e})[0]
	if c.PermitWhole(postern.WebhooksRead) == nil {
		r.Deliveries, err = g.db.Deliveries.OfEvent(ctx, c.Workspace(), e.Position)
	}
	return r, err
}

// cursor returns a signed cursor for a position in the reader's log.
func (r *LogReader) cursor(kind string, place int64) string {
	return r.g.cursors.At(r.ws, kind, strconv.FormatInt(place, 10))
}

// LogReader reads the log page by page. It must not be used from several goroutines at
// once.
type LogReader struct {
	g      *core
	ws     postern.WorkspaceID
	filter store.EventFilter
	at     int64           // the position of the last event that was read
	start  postern.EventID // see Start
}

// Start is the newest event that the caller could see when the reader began at the end of
// the log; "" if there was none.
func (r *LogReader) Start() postern.EventID { return r.start }

// followedBytes is how many bytes of events a follower has in memory while its reader takes
// none: less than a page of a list, because a workspace may have many followers.
const followedBytes = 64 << 10

// Follow reads the log from after an event. Without an event it reads what is recorded
// from now on.
func (g Events) Follow(ctx context.Context, c access.Caller, q EventQuery) (*LogReader, error) {
	if err := c.Permit(postern.EventsRead); err != nil {
		return nil, err
	}
	r, err := g.openLog(ctx, c, q)
	if err != nil {
		return nil, err
	}
	r.filter.Bytes = followedBytes
	if q.After == "" {
		return r, r.toEnd(ctx)
	}
	r.at, err = g.positionOf(ctx, c, q.After)
	if err != nil {
		return nil, err
	}
	return r, r.whole(ctx)
}

// toEnd moves the reader to the end of the log.
func (r *LogReader) toEnd(ctx context.Context) (err error) {
	if r.at, err = r.g.db.Events.End(ctx, r.ws); err != nil {
		return err
	}
	r.start, err = r.g.db.Events.Newest(ctx, r.ws, r.filter.Devices, r.at)
	return err
}

// Next returns the next events, at most a page; more tells that further ones can be read
// at once.
func (r *LogReader) Next(ctx context.Context) (list []LoggedEvent, more bool, err error) {
	return r.next(ctx, paging.DefaultLimit)
}

// Watch reports every event of the reader's workspace until the listener is closed.
func (r *LogReader) Watch() *store.Listener {
	return r.g.db.Listen(store.EventLogged, string(r.ws))
}

// openLog checks the filters. It looks the device up, so that an unknown one is an error
// and not an empty list.
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

// eventTypes returns the event types that patterns name; nil means every type.
func eventTypes(place string, patterns []string) (list []postern.EventType, err error) {
	if err := checkPatterns(place, patterns); err != nil {
		return nil, err
	}
	if len(patterns) > 0 {
		list = []postern.EventType{} // a family without members names no type, not every type
	}
	for _, p := range patterns {
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

// checkPatterns refuses a list that is too long, and the first entry that is no pattern.
func checkPatterns(place string, patterns []string) error {
	if len(patterns) > maxEventPatterns {
		return postern.Invalid(place, "name at most %d event types", maxEventPatterns)
	}
	for i, p := range patterns {
		if postern.ValidEventPattern(p) {
			continue
		}
		if !strings.HasPrefix(place, "/query/") { // a parameter has no entries
			place += "/" + strconv.Itoa(i)
		}
		return postern.Invalid(
			place, "each entry must be *, a family such as message.*, or one of %s", listed(postern.EventTypes()),
		)
	}
	return nil
}

// placeOf sets the position at which a list begins.
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

// positionOf returns the position of an event that the caller may see.
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

// clockMargin is how much later than its event an id may have been created.
const clockMargin = time.Minute

// mayBeRemoved tells whether an unknown id may belong to an event that was removed: ids
// contain the time of their creation. If in doubt it returns true, because an unreported
// gap is worse than a wrong reason.
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
		"events after that point were older than the retention period and were removed; read the log "+
			"again from its start, without after or cursor",
	)
}

// next reads the next page. It checks for removed events after it has read the page, so
// that a removal during the read is noticed.
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
		if len(e.Body) == 0 { // it was removed with its device
			e.Body = e.Envelope(e.Sequence, e.At)
		}
		list = append(list, LoggedEvent{e.ID, e.Type, e.Body})
	}
	return list
}

// whole refuses to continue if events after the reader's position were removed.
func (r *LogReader) whole(ctx context.Context) error {
	floor, _, err := r.g.db.Events.Floor(ctx, r.ws)
	if err == nil && r.at < floor {
		return expired()
	}
	return err
}

// RecentEvents is a page of events, newest first.
type RecentEvents struct {
	paging.List[LoggedEvent] // Next continues with older events

	End string // the place from which New continues with newer events; "" except on the first page
}

// Recent reads the log of the events that the caller may see backwards from its end. A
// page may be empty although older pages have events.
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
	found.List, err = r.back(ctx, cmp.Or(q.Page.Limit, paging.DefaultLimit))
	return found, err
}

// back reads the page before the reader's position. Events below the log's floor, which
// retention is removing, are not part of the log.
func (r *LogReader) back(ctx context.Context, limit int) (paging.List[LoggedEvent], error) {
	floor, _, err := r.g.db.Events.Floor(ctx, r.ws)
	if err != nil {
		return paging.List[LoggedEvent]{}, err
	}
	p, err := r.g.db.Events.Before(ctx, r.ws, r.filter, r.at, floor, limit)
	list := paging.List[LoggedEvent]{Data: shown(p.Entries)}
	if p.More {
		list.Next = r.cursor("recent", p.Last)
	}
	return list, err
}

// New continues from a place that Recent or an earlier call returned, and returns the
// place after the last event that it looked at. It returns at most a page, oldest first;
// more tells that there may be further events.
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
