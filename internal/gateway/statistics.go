package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"postern/internal/access"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/alerts"
	"postern/internal/store/apilog"
)

// Used is how much of a limit is used.
type Used struct {
	Used  int `json:"used" doc:"How many are in use. A key that is limited to certain devices sees only theirs." example:"17"`
	Limit int `json:"limit" doc:"How many the workspace may use." example:"3000"`
}

// Usage is what a workspace uses of its plan.
type Usage struct {
	Month    string       `json:"month" doc:"The UTC calendar month." example:"2026-11"`
	ResetsAt postern.Time `json:"resetsAt" doc:"When the month ends and the count of messages starts again." example:"2026-12-01T00:00:00.000Z" format:"date-time"`
	Messages Used         `json:"messages" doc:"Outbound messages accepted in the month. Messages that failed before they were sent do not count."`
	Devices  Used         `json:"devices" doc:"Devices that are linked or being linked."`
	Storage  *UsedBytes   `json:"storage,omitempty" doc:"Bytes of stored files. Files with the same content count once. Absent for a key that is limited to certain devices, because devices share files."`
}

// UsedBytes is how much is stored, and how much may be.
type UsedBytes struct {
	Used  int64 `json:"used" doc:"Bytes that are stored. More than limit after a change to a smaller plan." example:"73400320"`
	Limit int64 `json:"limit" doc:"Bytes that the workspace may store." example:"10737418240"`
}

// Usage returns what the caller's workspace uses of its plan. For a key that is limited to
// devices it counts only these, against the limits of the whole workspace, and no stored files.
func (g Statistics) Usage(ctx context.Context, c access.Caller) (Usage, error) {
	if err := c.Permit(postern.UsageRead); err != nil {
		return Usage{}, err
	}
	month := store.MonthOf(g.db.Now())
	u := Usage{
		Month:    month,
		ResetsAt: store.MonthEnd(month),
		Messages: Used{Limit: c.Plan.Messages},
		Devices:  Used{Limit: c.Plan.Devices},
	}
	var err error
	if u.Devices.Used, err = g.db.Usage.Slots(ctx, c.Workspace(), c.Key.Devices); err != nil {
		return Usage{}, err
	}
	if c.Key.Devices != nil {
		u.Messages.Used, err = g.db.Usage.MessagesBy(ctx, c.Workspace(), month, c.Key.Devices)
		return u, err
	}
	if u.Messages.Used, err = g.db.Usage.Messages(ctx, c.Workspace(), month); err != nil {
		return u, err
	}
	stored, err := g.db.Blobs.Storage(ctx, c.Workspace())
	u.Storage = &UsedBytes{stored.Used, stored.Limit}
	return u, err
}

// EverSent tells whether the caller's workspace has ever sent a message.
func (g Statistics) EverSent(ctx context.Context, c access.Caller) (bool, error) {
	if err := c.PermitWhole(postern.UsageRead); err != nil {
		return false, err
	}
	return g.db.Usage.EverSent(ctx, c.Workspace())
}

// Spans are consecutive periods of the same length that end now.
type Spans struct {
	Length time.Duration // a whole number of minutes
	Number int
	Device postern.DeviceID // the only one whose messages are counted, in the last day at most; "": all devices
}

// LastHour is the last hour, by the minute.
func LastHour() Spans { return Spans{Length: time.Minute, Number: 60} }

// LastDay is the last day, by the hour.
func LastDay() Spans { return Spans{Length: time.Hour, Number: 24} }

// LastMonth is the last 30 days in UTC, by the day.
func LastMonth() Spans { return Spans{Length: day, Number: 30} }

// starts returns when the periods begin, oldest first. The last one is still running.
func (s Spans) starts(now postern.Time) []postern.Time {
	length := postern.Time(s.Length.Milliseconds())
	list := make([]postern.Time, s.Number)
	for i := range list {
		list[i] = now - now%length - postern.Time(s.Number-1-i)*length
	}
	return list
}

// MessageSpans counts the messages of the caller's workspace by their outcome, period by
// period; periods without messages are included. A key that is limited to devices is
// refused.
func (g Statistics) MessageSpans(ctx context.Context, c access.Caller, s Spans) ([]postern.MessageSpan, error) {
	if err := c.PermitWhole(postern.MessagesRead); err != nil {
		return nil, err
	}
	starts := s.starts(g.time())
	list, err := g.messageSpans(ctx, c, s, starts[0])
	return whole(
		starts,
		list,
		func(m postern.MessageSpan) postern.Time { return m.Start },
		func(at postern.Time) postern.MessageSpan { return postern.MessageSpan{Start: at} },
	), err
}

func (g Statistics) messageSpans(
	ctx context.Context, c access.Caller, s Spans, since postern.Time,
) ([]postern.MessageSpan, error) {
	if s.Device == "" {
		return g.db.Hours.MessageSpans(ctx, c.Workspace(), since, s.Length)
	}
	if _, err := g.devices().get(ctx, c, s.Device); err != nil {
		return nil, err
	}
	return g.db.Hours.DeviceSpans(ctx, c.Workspace(), s.Device, since, s.Length)
}

// AttemptSpans is MessageSpans for the attempts of deliveries to all endpoints.
func (g Statistics) AttemptSpans(ctx context.Context, c access.Caller, s Spans) ([]postern.EndpointHour, error) {
	if err := c.PermitWhole(postern.WebhooksRead); err != nil {
		return nil, err
	}
	starts := s.starts(g.time())
	list, err := g.db.Hours.AttemptSpans(ctx, c.Workspace(), starts[0], s.Length)
	return whole(
		starts,
		list,
		func(h postern.EndpointHour) postern.Time { return h.Hour },
		func(at postern.Time) postern.EndpointHour { return postern.EndpointHour{Hour: at} },
	), err
}

// whole adds the periods for which a list has no row.
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

// Retention returns how long the data of the caller's workspace is kept; server is the server's
// retention.
func (g Statistics) Retention(ctx context.Context, c access.Caller, server Retention) (Retention, error) {
	if err := c.Permit(postern.UsageRead); err != nil {
		return Retention{}, err
	}
	ws, err := g.db.Workspaces.Get(ctx, c.Workspace())
	return server.of(ws), err
}

// Endpoints returns how many of the plan's webhook endpoints are used.
func (g Statistics) Endpoints(ctx context.Context, c access.Caller) (Used, error) {
	if err := c.PermitWhole(postern.WebhooksRead); err != nil {
		return Used{}, err
	}
	n, err := g.db.Usage.Endpoints(ctx, c.Workspace())
	return Used{n, c.Plan.Endpoints}, err
}

// System is the state of the whole server.
type System struct {
	store.SystemStatus

	Now      postern.Time
	Messages []postern.MessageSpan  // of all workspaces, for each of the last 24 hours
	Attempts []postern.EndpointHour // likewise
}

// MessagesCounted is the number at which counting of queued messages stops.
const MessagesCounted = store.MessagesCounted

// DeliveriesCounted is the number at which counting of waiting deliveries stops.
const DeliveriesCounted = store.DeliveriesCounted

// System shows operators the state of the whole server.
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
		Messages: whole(
			starts,
			messages,
			func(m postern.MessageSpan) postern.Time { return m.Start },
			func(at postern.Time) postern.MessageSpan { return postern.MessageSpan{Start: at} },
		),
		Attempts: whole(
			starts,
			attempts,
			func(h postern.EndpointHour) postern.Time { return h.Hour },
			func(at postern.Time) postern.EndpointHour { return postern.EndpointHour{Hour: at} },
		),
	}, errors.Join(err1, err2, err3)
}

// The details of disabled endpoints that have to answer a challenge.
const (
	Verifying  = alerts.Verifying
	Unverified = alerts.Unverified
)

// The kinds of problems.
const (
	DeviceDown       = alerts.DeviceDown
	DeviceLimited    = alerts.DeviceLimited
	PhoneUnseen      = alerts.PhoneUnseen
	EndpointFailing  = alerts.EndpointFailing
	EndpointDisabled = alerts.EndpointDisabled
	MessagesWaiting  = alerts.MessagesWaiting
)

// Counted is how far what waits is counted.
const Counted = alerts.Counted

// Problem is something that is wrong in a workspace.
type Problem struct {
	alerts.Alert

	Waiting   int // messages of the device, or deliveries to the endpoint, that wait
	Retriable int // deliveries to a failing endpoint of which another attempt can be made at once
}

// Attention is the state of a workspace, and what is wrong in it.
type Attention struct {
	alerts.Health

	Problems []Problem // the oldest first, at most [MostProblems]
	More     bool      // there are more problems
	Hooks    bool      // the caller may see webhooks; otherwise there are none in it
}

// MostProblems is how many problems are listed.
const MostProblems = 50

const (
	// Fresh is how long a device may take to connect before that is a problem.
	Fresh = 5 * time.Second
	// longQueued is how long a message of a connected device waits before that is one.
	longQueued = 15 * time.Minute
)

// Attention returns what is wrong in the caller's workspace. A key that is limited to devices is refused.
func (g Statistics) Attention(ctx context.Context, c access.Caller) (a Attention, err error) {
	if err := c.PermitWhole(postern.UsageRead, postern.DevicesRead); err != nil {
		return a, err
	}
	table := alerts.Of(g.db)
	a.Hooks = c.PermitWhole(postern.WebhooksRead) == nil && c.Plan.API
	queues, err := table.Queues(ctx, c.Workspace())
	if err != nil {
		return a, err
	}
	if a.Health, err = table.Health(ctx, c.Workspace(), queues); err != nil {
		return a, err
	}
	if !a.Hooks {
		a.Endpoints, a.Failing, a.Disabled = 0, 0, 0
	}
	now := g.time()
	list, err := table.WrongIn(ctx, c.Workspace(), now.Add(-longQueued))
	if err != nil {
		return a, err
	}
	list = slices.DeleteFunc(list, func(w alerts.Alert) bool {
		brief := w.Kind == alerts.DeviceDown && w.Since > now.Add(-Fresh) && connects(w)
		if brief {
			a.Down = max(0, a.Down-1) // it may have gone down since they were counted
		}
		return brief || w.OfEndpoint() && !a.Hooks
	})
	slices.SortFunc(list, func(x, y alerts.Alert) int { return cmp.Compare(x.Since, y.Since) })
	if a.More = len(list) > MostProblems; a.More {
		list = list[:MostProblems]
	}
	a.Problems, err = withQueues(ctx, table, c.Workspace(), list, queues, now)
	return a, err
}

// connects reports whether a device that is down tries to connect.
func connects(w alerts.Alert) bool {
	status, _, _ := strings.Cut(w.Detail, ", ")
	return status == string(postern.Connecting) || status == string(postern.Disconnected)
}

// withQueues adds what waits because of each problem.
func withQueues(
	ctx context.Context, table alerts.Table, ws postern.WorkspaceID, list []alerts.Alert,
	queues map[postern.DeviceID]alerts.Queue, now postern.Time,
) (problems []Problem, err error) {
	for _, w := range list {
		p := Problem{Alert: w, Waiting: queues[postern.DeviceID(w.Subject)].Waiting}
		if w.OfEndpoint() && err == nil {
			p.Waiting, err = table.Undelivered(ctx, ws, postern.EndpointID(w.Subject))
		}
		if w.Kind == EndpointFailing && err == nil {
			p.Retriable, err = table.Retriable(ctx, ws, postern.EndpointID(w.Subject), now)
		}
		problems = append(problems, p)
	}
	return problems, err
}

// DeviceState and EndpointState are rows of a [Board].
type (
	DeviceState   = alerts.DeviceState
	EndpointState = alerts.EndpointState
)

// The limits of a [Board]: devices and endpoints each, and how far the deliveries that wait are counted.
const (
	MostStates  = alerts.MostStates
	MostWaiting = alerts.MostWaiting
)

// Board is the state of each device and each webhook of a workspace.
type Board struct {
	Devices   []DeviceState
	Endpoints []EndpointState // with their attempts in the last 15 minutes
}

// lately is the time for which a board counts attempts.
const lately = 15 * time.Minute

// Board returns the first devices and webhooks of the caller's workspace, those with problems first. A key that is
// limited to devices is refused. Webhooks are left out for callers who may not see them.
func (g Statistics) Board(ctx context.Context, c access.Caller) (b Board, err error) {
	if err := c.PermitWhole(postern.UsageRead, postern.DevicesRead, postern.MessagesRead); err != nil {
		return b, err
	}
	table := alerts.Of(g.db)
	if b.Devices, err = table.Devices(ctx, c.Workspace()); err != nil {
		return b, err
	}
	if c.PermitWhole(postern.WebhooksRead) == nil && c.Plan.API {
		b.Endpoints, err = table.Endpoints(ctx, c.Workspace(), g.time().Add(-lately))
	}
	return b, err
}

// Watch returns a listener that is woken by each event of the caller's workspace.
func (g Statistics) Watch(c access.Caller) (*store.Listener, error) {
	if err := c.PermitWhole(postern.UsageRead); err != nil {
		return nil, err
	}
	return g.db.Listen(store.EventLogged, string(c.Workspace())), nil
}

// The log of API requests.
type (
	RequestFilter = apilog.Filter
	RequestPlace  = apilog.Place
	RequestPage   = apilog.Page
)

// Requests returns a part of the log of a workspace's API requests of the last day, newest first, from before a place.
func (g Statistics) Requests(
	ctx context.Context, by access.Actor, ws postern.WorkspaceID, f RequestFilter, from RequestPlace, limit int,
) (RequestPage, error) {
	if err := by.Needs(ws, postern.Developer); err != nil {
		return RequestPage{}, err
	}
	return apilog.Of(g.db).List(ctx, ws, f, from, limit)
}
