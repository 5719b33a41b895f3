// Package lease decides which devices and webhook endpoints this server works for.
//
// Servers that share a database divide them among themselves. Each server has a row whose lease it
// renews, and each device and endpoint names the server that owns it. A server whose lease ends has
// stopped working before the others take over what it owned: it stops after giveUp without a
// renewal by its monotonic clock, and the others wait for the whole lease by the database's clock.
// What it may still write is refused in the transaction (see [store.Nodes]). A server that is alone
// on its database works for everything.
package lease

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"postern/internal/postern"
	"postern/internal/store"
)

// The times of a lease.
const (
	length  = 8 * time.Second // how long the others wait for a renewal
	renewal = time.Second
	giveUp  = 5500 * time.Millisecond // without a renewal, a server stops its work
	check   = 250 * time.Millisecond

	movesAtOnce  = 5  // devices that a server hands over between two renewals, to even out the load
	compareEvery = 10 // renewals after which a server compares its devices with the database
)

// Holder holds the lease of this server.
type Holder struct {
	db     *store.Store
	rouse  func(...store.Topic) // see [store.Store.Rouse]
	log    *slog.Logger
	shared bool // other servers may use the database

	// Gained has the devices that this server owns from now on, and Lost those that it has to
	// stop working for, mapped to whether it does so in an orderly way and releases them then.
	Gained *Box[postern.DeviceID, store.Claim]
	Lost   *Box[postern.DeviceID, bool]
	// Ended has a value when the lease has ended, so that all deliveries have to stop.
	Ended *Box[struct{}, struct{}]
	// Changed has a value when there may be endpoints that nobody works for.
	Changed *Box[struct{}, struct{}]

	wanted *Box[postern.DeviceID, struct{}]

	mu         sync.Mutex
	node       store.Node
	devices    map[postern.DeviceID]struct{}
	leaving    map[postern.DeviceID]struct{} // devices that are handed over, until they are released
	ending     map[postern.DeviceID]struct{} // devices that were lost, until their sessions have ended
	delivering bool                          // deliveries of the lease that has ended may still be made
	stopped    chan struct{}                 // closed and replaced when leaving, ending or delivering changes
	endpoints  map[postern.EndpointID]bool   // whether it is ours; those of others until something changes
	forgotten  int                           // how many times those of other servers were forgotten
	leads      bool
	held       bool
	quitting   bool      // the server is stopping: it takes nothing new
	doubt      bool      // the database may say otherwise than devices
	renewals   int       // so far
	renewed    time.Time // when the last renewal began
}

// Alone returns the holder of a server that is alone on its database.
func Alone() *Holder { return newHolder(nil, nil, store.Node{}) }

// New returns the holder of a server that shares its database. The id must stay the same when the
// server starts again, and no other server may have it.
func New(db *store.Store, log *slog.Logger, id, name string) *Holder {
	return newHolder(db, log, store.Node{ID: id, Name: name})
}

func newHolder(db *store.Store, log *slog.Logger, n store.Node) *Holder {
	return &Holder{
		db: db, rouse: db.Rouse, log: log, shared: n.ID != "", node: n, leads: n.ID == "", held: n.ID == "",
		Gained: newBox[postern.DeviceID, store.Claim](), Lost: newBox[postern.DeviceID, bool](),
		Ended: newBox[struct{}, struct{}](), Changed: newBox[struct{}, struct{}](),
		wanted:  newBox[postern.DeviceID, struct{}](),
		devices: map[postern.DeviceID]struct{}{}, leaving: map[postern.DeviceID]struct{}{},
		ending: map[postern.DeviceID]struct{}{}, stopped: make(chan struct{}),
		endpoints: map[postern.EndpointID]bool{},
	}
}

// Shared tells whether other servers may use the database.
func (h *Holder) Shared() bool { return h.shared }

// self returns this server with its present term.
func (h *Holder) self() store.Node {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.node
}

// Leads tells whether this server does what only one may do. It is the one that has been there
// longest. When it begins to lead, those who listen to the files, endpoints and replays that may wait for
// that are woken.
func (h *Holder) Leads() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leads && h.held && !h.quitting
}

// Has tells whether this server owns a device.
func (h *Holder) Has(id postern.DeviceID) bool {
	if !h.Shared() {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, has := h.devices[id]
	return has && h.held
}

// Want makes this server the owner of a device soon, if nobody owns it.
func (h *Holder) Want(id postern.DeviceID) { h.wanted.Put(id, struct{}{}) }

// Join takes the lease. It must be called before the server does anything else.
func (h *Holder) Join(ctx context.Context) error {
	if !h.Shared() {
		return nil
	}
	began := time.Now()
	n, err := h.db.Nodes.Join(ctx, h.self(), length)
	if err != nil {
		return err
	}
	owned, err := h.db.Nodes.Devices(ctx, n)
	if err != nil {
		return err
	}
	if h.joined(n, owned, began) { // it lost its lease while it was stopping
		return h.db.Nodes.Leave(ctx, n)
	}
	return nil
}

// joined notes a new lease with the devices that this server owns, and reports whether it is stopping. For the
// first lease of a process, the start of the sessions records that they were interrupted. For a later lease, the devices
// are marked as lost, because their connections ended with the lease before it.
func (h *Holder) joined(n store.Node, owned []store.Claim, began time.Time) (quitting bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	again := h.node.Term > 0
	h.node, h.held, h.renewed, h.doubt = n, true, began, false
	for _, c := range owned {
		if !again {
			c.Status = ""
		}
		c.Lost = again
		h.own(c)
	}
	h.Changed.Put(struct{}{}, struct{}{})
	return h.quitting
}

// Run renews the lease until ctx is done, and then gives it up. By then the server must have
// stopped working.
func (h *Holder) Run(ctx context.Context) error {
	if !h.Shared() {
		<-ctx.Done()
		return nil
	}
	var watching sync.WaitGroup
	watching.Go(func() { h.watch(ctx) })
	defer watching.Wait()
	changed := h.db.Listen(store.NodesChanged, "")
	defer changed.Close()
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for failing := false; ; {
		err := h.renew(ctx)
		if err != nil && ctx.Err() == nil && !failing { // said once, until it succeeds
			h.log.WarnContext(ctx, "renew the lease of this server", "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return h.quit(context.WithoutCancel(ctx))
		case <-tick.C:
		case <-changed.C():
			changed.Take()
			h.forgetOthers()
		case <-h.wanted.C():
			h.claimWanted(ctx)
		}
	}
}

func (h *Holder) quit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	return h.db.Nodes.Quit(ctx, h.self())
}

// watch ends the work of this server when it could not renew its lease in time.
func (h *Holder) watch(ctx context.Context) {
	for postern.Sleep(ctx, check) == nil {
		h.mu.Lock()
		over := h.held && time.Since(h.renewed) > giveUp
		h.mu.Unlock()
		if over {
			h.log.ErrorContext(ctx, "the lease of this server could not be renewed; it stops its work until that succeeds")
			h.end()
		}
	}
}

// end stops the work of this server.
func (h *Holder) end() {
	if goesOn() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held {
		h.delivering = true
	}
	h.held, h.leads = false, false
	for id := range h.devices {
		h.ending[id] = struct{}{}
		h.Lost.Put(id, false)
	}
	clear(h.devices)
	clear(h.endpoints)
	h.Ended.Put(struct{}{}, struct{}{})
}

// rejoin takes a new lease after the old one has ended. It waits for the end of what was done under
// the old one: with the new term, what that still writes would no longer be refused.
func (h *Holder) rejoin(ctx context.Context) error {
	h.end()
	if err := h.awaitIdle(ctx); err != nil {
		return err
	}
	h.log.WarnContext(ctx, "this server had lost its lease, and takes a new one")
	return h.Join(ctx)
}

// awaitIdle waits until nothing is done any more for what was lost or is handed over.
func (h *Holder) awaitIdle(ctx context.Context) error {
	for {
		changed, idle := h.isIdle()
		if idle {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (h *Holder) isIdle() (changed <-chan struct{}, idle bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stopped, len(h.ending)+len(h.leaving) == 0 && !h.delivering
}

// Stopped notes that nothing is done any more for a device that was lost.
func (h *Holder) Stopped(id postern.DeviceID) {
	h.note(func() { delete(h.ending, id) })
}

// DeliveriesStopped notes that no delivery is made any more, after the lease has ended.
func (h *Holder) DeliveriesStopped() {
	h.note(func() { h.delivering = false })
}

// note changes what awaitIdle waits for.
func (h *Holder) note(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
	close(h.stopped)
	h.stopped = make(chan struct{})
}

// renew renews the lease, and takes or hands over devices to even out the load.
func (h *Holder) renew(ctx context.Context) error {
	began := time.Now()
	st, err := h.db.Nodes.Renew(ctx, h.self(), length)
	if errors.Is(err, store.ErrLeaseLost) || err == nil && !h.isHeld() {
		return h.rejoin(ctx)
	}
	if err != nil {
		return err
	}
	h.mu.Lock()
	begins := st.Leads && !h.leads
	h.renewed, h.leads = began, st.Leads
	h.renewals++
	compare := h.doubt || h.renewals%compareEvery == 0
	mine, quitting := st.Mine-len(h.leaving), h.quitting
	h.mu.Unlock()
	if begins { // what changed before that was left to another server
		h.rouse(store.MediaWanted, store.EndpointChanged, store.ReplayChanged)
	}
	if compare {
		if err := h.compare(ctx); err != nil {
			return err
		}
	}
	share := (st.All + max(st.Nodes, 1) - 1) / max(st.Nodes, 1)
	switch {
	case quitting:
	case st.Free > 0 && mine < share:
		return h.take(h.db.Nodes.ClaimDevices(ctx, h.self(), min(st.Free, share-mine)))
	case st.Free == 0 && mine > share:
		return h.handOver(ctx, min(mine-share, movesAtOnce))
	}
	return nil
}

func (h *Holder) isHeld() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// take notes devices that were claimed. If that failed, they may have been claimed nevertheless.
func (h *Holder) take(list []store.Claim, err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.doubt = true
		return err
	}
	for _, c := range list {
		h.own(c)
	}
	return nil
}

// own notes a device that this server owns. If it is stopping, the device is released again. The
// caller holds h.mu.
func (h *Holder) own(c store.Claim) {
	if h.quitting {
		h.letGo(c.Device)
		return
	}
	h.devices[c.Device] = struct{}{}
	h.Gained.Put(c.Device, c)
}

// compare compares the devices of this server with what the database says: it differs after a commit
// whose outcome is unknown.
func (h *Holder) compare(ctx context.Context) error {
	h.mu.Lock()
	skip := maps.Clone(h.leaving) // they may be released while the list is read
	h.mu.Unlock()
	claims, err := h.db.Nodes.Devices(ctx, h.self())
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.held {
		return nil
	}
	h.doubt = false
	maps.Copy(skip, h.leaving)
	owned := make(map[postern.DeviceID]struct{}, len(claims))
	for _, c := range claims {
		owned[c.Device] = struct{}{}
		_, has := h.devices[c.Device]
		if _, skipped := skip[c.Device]; !has && !skipped {
			h.own(c)
		}
	}
	for id := range h.devices {
		if _, owns := owned[id]; !owns {
			delete(h.devices, id)
			h.ending[id] = struct{}{}
			h.Lost.Put(id, false)
		}
	}
	return nil
}

// handOver has some devices released.
func (h *Holder) handOver(ctx context.Context, n int) error {
	ids, err := h.db.Nodes.Movable(ctx, h.self())
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		if _, has := h.devices[id]; has && n > 0 {
			n--
			h.letGo(id)
		}
	}
	return nil
}

// letGo has a device released. The caller holds h.mu.
func (h *Holder) letGo(id postern.DeviceID) {
	delete(h.devices, id)
	h.leaving[id] = struct{}{}
	h.Lost.Put(id, true)
}

// Release gives up a device for which this server no longer works, so that another one takes it,
// unless this server has got it again meanwhile.
func (h *Holder) Release(ctx context.Context, id postern.DeviceID) (err error) {
	if !h.Has(id) {
		err = h.db.Nodes.Release(ctx, h.self(), id)
	}
	h.note(func() {
		delete(h.leaving, id)
		h.doubt = h.doubt || err != nil
	})
	return err
}

// Leave hands over all devices, each as soon as nothing is done for it any more, because this server
// stops. From now on the server takes nothing new, and does nothing that only one server may do. Leave
// returns when all devices are released, or when ctx or the time of a lease is over.
func (h *Holder) Leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	h.mu.Lock()
	h.quitting = true
	h.mu.Unlock()
	if err := h.db.Nodes.Leave(ctx, h.self()); err != nil {
		return err
	}
	h.mu.Lock()
	for id := range h.devices {
		h.letGo(id)
	}
	h.mu.Unlock()
	return h.awaitIdle(ctx)
}

// claimWanted takes the devices that are wanted here and that nobody owns. Those that are to be
// connected are shared out by renew.
func (h *Holder) claimWanted(ctx context.Context) {
	ids := slices.Collect(maps.Keys(h.wanted.Take()))
	h.mu.Lock()
	quitting := h.quitting
	h.mu.Unlock()
	if quitting {
		return
	}
	free, err := h.db.Nodes.Unowned(ctx, ids)
	if err == nil && len(free) > 0 {
		err = errors.Join(h.take(h.db.Nodes.ClaimWanted(ctx, h.self(), free)), h.renew(ctx))
	}
	if err != nil && ctx.Err() == nil {
		h.log.WarnContext(ctx, "take devices", "error", err)
	}
}

// Endpoints returns those of some endpoints that this server owns, after it has taken those that
// nobody owns.
func (h *Holder) Endpoints(ctx context.Context, ids ...postern.EndpointID) ([]postern.EndpointID, error) {
	if !h.Shared() {
		return ids, nil
	}
	mine, unknown, before := h.known(ids)
	if len(unknown) == 0 {
		return mine, nil
	}
	n := h.self()
	taken, err := h.db.Nodes.ClaimEndpoints(ctx, n, unknown)
	if err != nil {
		return mine, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.held || h.node.Term != n.Term {
		return nil, store.ErrLeaseLost
	}
	for _, id := range unknown {
		if ours := slices.Contains(taken, id); ours || h.forgotten == before {
			h.endpoints[id] = ours
		}
	}
	return append(mine, taken...), nil
}

func (h *Holder) known(ids []postern.EndpointID) (mine, unknown []postern.EndpointID, forgotten int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		switch ours, known := h.endpoints[id]; {
		case !known && h.held:
			unknown = append(unknown, id)
		case ours:
			mine = append(mine, id)
		}
	}
	return mine, unknown, h.forgotten
}

// forgetOthers makes Endpoints ask again for those of other servers.
func (h *Holder) forgetOthers() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgotten++
	maps.DeleteFunc(h.endpoints, func(_ postern.EndpointID, ours bool) bool { return !ours })
	h.Changed.Put(struct{}{}, struct{}{})
}
