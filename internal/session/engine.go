// Package session is the engine of live connections: one supervised session for
// each device that needs one, link attempts, the sender of each device, and the
// recording of incoming updates.
//
// The engine works towards the desired state of each device in the store. A
// request never touches a session: it writes the desired state, which wakes the
// engine.
package session

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"postern/internal/blackbox"
	"postern/internal/fair"
	"postern/internal/gateway"
	"postern/internal/lease"
	"postern/internal/media/library"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/trace"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

// Options configure an Engine.
type Options struct {
	DB      *store.Store
	Gateway *gateway.Gateway
	Driver  network.Driver
	Log     *slog.Logger
	// Box records what is being processed, in case it ends the process; nil records nothing.
	Box     *blackbox.Box
	Library *library.Library // keeps the files of messages; nil: they cannot be sent or fetched
	// Fetch reads the file at a URL that a caller has given.
	Fetch func(ctx context.Context, url string) (io.ReadCloser, error)
	// Left is what the previous process left in its record.
	Left blackbox.Left
	Pace postern.Pace // of devices whose owner did not set one; a zero member means no limit
	// ConnectRate is how many connections are opened per second at most; 0 means no limit.
	ConnectRate int
	// Leases say for which devices this server works; nil: for all.
	Leases *lease.Holder
	// Tracer records the receipt and the sending of messages; nil records nothing.
	Tracer *trace.Tracer
	// Received is called when a message that arrived is on disk, with the time since it was read from
	// the socket, from many goroutines; nil: nothing is.
	Received func(took time.Duration)
	// Live is called with 1 when a session has become live, and with -1 when it has ended; nil: nothing is.
	Live func(change int)
}

// Engine runs the sessions of all devices.
type Engine struct {
	db     *store.Store
	g      *gateway.Gateway
	driver network.Driver
	log    *slog.Logger
	pace   postern.Pace
	box    *blackbox.Box
	leases *lease.Holder

	received   func(took time.Duration)
	liveChange func(int)
	tracer     *trace.Tracer

	library *library.Library
	fetch   func(ctx context.Context, url string) (io.ReadCloser, error)

	suspects  []postern.DeviceID // the previous process may have crashed because of these
	probation *probation

	uploads, downloads *fair.Shares // files of all devices that are sent and fetched
	histories          *fair.Shares // parts of phones' histories that are read
	previews           *fair.Shares // links of messages of all devices that are looked up

	connects chan struct{} // a slot for each connection that is being opened
	dials    *rate.Limiter // of connections

	mu          sync.Mutex
	pacers      map[postern.DeviceID]*pacer // of devices without a connection that sent something lately
	supervisors map[postern.DeviceID]*supervisor
	live        map[postern.DeviceID]*liveSession
	quiet       bool // the server stops: no session sends any more
	running     sync.WaitGroup
}

// New makes an Engine.
func New(opts Options) *Engine {
	guilty := suspects(opts.Left)
	if opts.Leases == nil {
		opts.Leases = lease.Alone()
	}
	if opts.Received == nil {
		opts.Received = func(time.Duration) {}
	}
	if opts.Live == nil {
		opts.Live = func(int) {}
	}
	return &Engine{
		db: opts.DB, g: opts.Gateway, driver: opts.Driver, log: opts.Log, pace: opts.Pace, box: opts.Box,
		leases: opts.Leases, received: opts.Received, liveChange: opts.Live, tracer: opts.Tracer,
		library: opts.Library, fetch: opts.Fetch,
		suspects: guilty, probation: newProbation(guilty),
		uploads: fair.New(allUploads), downloads: fair.New(allDownloads), previews: fair.New(allPreviews),
		histories:   fair.New(allHistories),
		connects:    make(chan struct{}, parallelConnects),
		dials:       newDials(opts.ConnectRate),
		pacers:      map[postern.DeviceID]*pacer{},
		supervisors: map[postern.DeviceID]*supervisor{}, live: map[postern.DeviceID]*liveSession{},
	}
}

// Prepare resets the states of sessions that an earlier process left behind, and counts
// its crash. It must be called before the first request is served.
func (e *Engine) Prepare(ctx context.Context) error {
	if err := e.db.Devices.ResetSessions(ctx); err != nil {
		return err
	}
	return e.blame(ctx)
}

// Run serves all devices until ctx is done, and returns after every session has
// ended.
func (e *Engine) Run(ctx context.Context) error {
	defer e.running.Wait()
	changed := e.db.Listen(store.DeviceChanged, "")
	defer changed.Close()
	queued := e.db.Listen(store.OutboundQueued, "")
	defer queued.Close()
	urgent := e.db.Listen(store.OutboundUrgent, "")
	defer urgent.Close()
	asked := e.g.Sessions.Requests().Watch()
	defer asked.Close()
	board := e.g.Sessions.Presence()
	board.Watch(func(id postern.DeviceID) { readChanged(e, id) })
	defer board.Watch(func(postern.DeviceID) {})
	// Sessions outlive ctx until the sends in progress have finished.
	sessions, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	held, err := e.start(sessions)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.connectSuspects(ctx, sessions, held) })
	group.Go(func() error {
		return e.watch(ctx, changed, func(id postern.DeviceID) { e.deviceChanged(sessions, id) })
	})
	group.Go(func() error { return e.watch(ctx, queued, e.outboundQueued) })
	group.Go(func() error { return e.watch(ctx, urgent, e.urge) })
	group.Go(func() error { return e.watch(ctx, asked, func(id postern.DeviceID) { requested(e, id) }) })
	group.Go(func() error { return board.Run(ctx) })
	group.Go(func() error { return sharing{e}.run(ctx, sessions) })
	group.Go(func() error { return e.maintain(ctx) })
	group.Go(func() error { return e.schedule(ctx) })
	group.Go(func() error { return sightings{e}.run(ctx) })
	group.Go(func() error { return abandoned{e}.run(ctx) })
	group.Go(func() error { return e.fetchURLs(ctx) })
	err = group.Wait()
	e.quiesce()
	return err
}

// start starts the supervisors, except those of the suspects, which it returns.
func (e *Engine) start(ctx context.Context) (held []postern.DeviceID, err error) {
	devices, err := e.db.Devices.AtWork(ctx)
	for _, d := range devices {
		switch {
		case !e.leases.Has(d.ID):
			continue
		case e.probation.holds(d.ID):
			held = append(held, d.ID)
			continue
		case d.Desired == postern.WantConnect:
			e.probation.try(d.ID)
		}
		e.supervise(ctx, d.ID)
	}
	e.probation.holdOnly(held)
	return held, err
}

func (e *Engine) watch(ctx context.Context, l *store.Listener, do func(postern.DeviceID)) error {
	for {
		select {
		case <-l.C():
			for _, id := range l.Take() {
				eachDevice(ctx, e, id, do)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// eachDevice calls do for the id of a wake-up: for one device, or for all at work.
func eachDevice(ctx context.Context, e *Engine, id string, do func(postern.DeviceID)) {
	if id != store.Anything {
		do(postern.DeviceID(id))
		return
	}
	devices, err := e.db.Devices.AtWork(ctx)
	if err != nil && ctx.Err() == nil {
		e.log.WarnContext(ctx, "look at all devices", "error", err)
	}
	for _, d := range devices {
		do(d.ID)
	}
	for _, id := range supervised(e) { // such as those that were paused meanwhile
		do(id)
	}
}

func supervised(e *Engine) []postern.DeviceID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.supervisors))
}

// deviceChanged interrupts the current action for a device if its desired state
// has changed, and starts a supervisor for a device that has none.
func (e *Engine) deviceChanged(ctx context.Context, id postern.DeviceID) {
	if !e.leases.Has(id) {
		e.leases.Want(id)
		return
	}
	d, err := e.db.Devices.ForEngine(ctx, id)
	if err != nil {
		return // deleted, or the store is unavailable: the supervisor finds out
	}
	if !e.tell(d) && d.Desired != postern.WantIdle {
		e.supervise(ctx, id)
	}
	e.settingsChanged(id)
}

// tell passes the desired state to the device's supervisor, and reports whether
// it has one. The lock is held throughout, so that the supervisor cannot end in
// between.
func (e *Engine) tell(d postern.Device) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.supervisors[d.ID]
	if s != nil {
		s.desire(&d)
	}
	return s != nil
}

// schedule queues scheduled messages when their time comes, until ctx is done.
func (e *Engine) schedule(ctx context.Context) error {
	tick := time.NewTicker(scheduleInterval)
	defer tick.Stop()
	for {
		n, err := 0, error(nil)
		if e.leases.Leads() {
			n, err = e.db.Outbox.Due(ctx, e.db.Now(), dueChunk)
		}
		if err != nil && ctx.Err() == nil {
			e.log.WarnContext(ctx, "scheduled messages are delayed", "error", err)
		}
		if n == dueChunk {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// sightings store when the network last sent something to each device.
type sightings struct{ e *Engine }

// run stores them periodically, until ctx is done. An open connection is never silent for long: the network answers to
// what keeps it open.
func (s sightings) run(ctx context.Context) error {
	tick := time.NewTicker(seenInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := s.e.db.Devices.Seen(ctx, s.take()); err != nil && ctx.Err() == nil {
				s.e.log.WarnContext(ctx, "store when devices were last seen", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// take returns when the network last sent something to the devices that have got something since the last call.
func (s sightings) take() (list []store.SeenDevice) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	for id, l := range s.e.live {
		if at := l.seen.Swap(0); at > 0 {
			list = append(list, store.SeenDevice{DeviceID: id, At: postern.Time(at)})
		}
	}
	return list
}

// maintain ends messages that can no longer be sent and removes old idempotency keys,
// periodically.
func (e *Engine) maintain(ctx context.Context) error {
	tick := time.NewTicker(maintenanceInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.forgetPacers()
			if !e.leases.Leads() {
				continue
			}
			if err := e.maintainOnce(ctx); err != nil && ctx.Err() == nil {
				e.log.WarnContext(ctx, "maintenance", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// chunksAtOnce is how many chunks of one kind are removed before others get their turn.
const chunksAtOnce = 20

// someChunks calls remove while there is more, at most [chunksAtOnce] times.
func someChunks(ctx context.Context, remove func() (more bool, err error)) error {
	for range chunksAtOnce {
		if more, err := remove(); err != nil || !more || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) maintainOnce(ctx context.Context) error {
	now := e.db.Now()
	expired := someChunks(ctx, func() (bool, error) {
		n, err := e.db.Outbox.Expire(ctx, now, expireChunk)
		return n == expireChunk, err
	})
	failed := e.db.Outbox.FailUnsendable(ctx, now)
	forgot := someChunks(ctx, func() (bool, error) {
		n, err := e.db.Idempotency.Remove(ctx, now.Add(-store.IdempotencyKept))
		return n > 0, err
	})
	removed := someChunks(ctx, func() (bool, error) { return e.g.Sessions.Requests().Remove(ctx, now) })
	return errors.Join(expired, failed, forgot, removed, e.g.Sessions.ForgetChecks(ctx), e.g.Sessions.LiftLimits(ctx),
		e.g.Sessions.ReportUnseen(ctx),
		e.g.Sessions.TidyContacts(ctx))
}
