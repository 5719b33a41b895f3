package session

import (
	"context"
	"slices"
	"sync"

	"postern/internal/blackbox"
	"postern/internal/gateway"
	"postern/internal/network"
	"postern/internal/postern"
	"postern/internal/store"
)

// isQuarantined reports whether a device must not be connected.
func isQuarantined(d *postern.Device) bool { return d.Crashes >= store.MaxCrashes }

// suspects returns the devices that a crash of the previous process may be due to: those
// for which it was processing something, if it crashed in the code that does so. A process
// that was killed leaves no suspects: devices that are busy at that moment are innocent.
func suspects(left blackbox.Left) (ids []postern.DeviceID) {
	if !left.Report.Through("go.mau.fi/", "internal/network/whatsapp") {
		return nil
	}
	decoding := left.Report.Through("handleFrame", "consumeFrames", "readPump")
	for _, e := range left.Entries {
		id := postern.DeviceID(e.Subject)
		if (!decoding || e.What == network.ProcessingFrame) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// blame counts the crash for each suspect, and reports those that are quarantined now.
func (e *Engine) blame(ctx context.Context) error {
	if len(e.suspects) == 0 {
		return nil
	}
	list, err := e.db.Devices.CountCrash(ctx, e.suspects, e.db.Now())
	if err != nil {
		return err
	}
	for _, d := range list {
		e.log.ErrorContext(ctx, "the previous process crashed while it processed what the network sent to a device",
			"device", d.ID, "workspace", d.WorkspaceID, "crashes", d.Crashes, "quarantined", isQuarantined(&d))
		if !isQuarantined(&d) || d.Desired != postern.WantConnect {
			continue
		}
		state := gateway.SessionState{Status: postern.Disconnected, Reason: gateway.Quarantined}
		if err := e.g.Sessions.SetState(ctx, d.ID, state); err != nil {
			return err
		}
	}
	return nil
}

// probation lets suspects wait until all other devices have tried to connect, and then
// connect one at a time: if one of them ends the process again, the others were connected
// meanwhile, and it is known which one it was.
type probation struct {
	mu      sync.Mutex // guards the fields below
	held    map[postern.DeviceID]bool
	trying  map[postern.DeviceID]bool // those whose first connection is neither live nor over
	settled chan struct{}             // closed when trying changes
}

func newProbation(held []postern.DeviceID) *probation {
	p := &probation{
		held: map[postern.DeviceID]bool{}, trying: map[postern.DeviceID]bool{}, settled: make(chan struct{}),
	}
	p.holdOnly(held)
	return p
}

// holds reports whether a device has to wait.
func (p *probation) holds(id postern.DeviceID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[id]
}

// holdOnly lets all but these devices connect.
func (p *probation) holdOnly(ids []postern.DeviceID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.held)
	for _, id := range ids {
		p.held[id] = true
	}
}

// try notes that a device is about to connect for the first time.
func (p *probation) try(id postern.DeviceID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, id)
	p.trying[id] = true
}

// settle notes that the first connection of a device is live, or that it ended.
func (p *probation) settle(id postern.DeviceID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trying[id] {
		delete(p.trying, id)
		close(p.settled)
		p.settled = make(chan struct{})
	}
}

// wait returns when all first connections are live or have ended.
func (p *probation) wait(ctx context.Context) error {
	for {
		p.mu.Lock()
		left, settled := len(p.trying), p.settled
		p.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// connectSuspects connects the suspects after all others, one at a time, until ctx is done.
func (e *Engine) connectSuspects(ctx, sessions context.Context, list []postern.DeviceID) error {
	for _, id := range list {
		if e.probation.wait(ctx) != nil {
			return nil //nolint:nilerr // the server stops
		}
		e.log.InfoContext(ctx, "connecting a device that may have ended the previous process", "device", id)
		e.probation.try(id)
		e.supervise(sessions, id)
		if e.probation.wait(ctx) != nil || postern.Sleep(ctx, trialTime) != nil {
			return nil //nolint:nilerr // the server stops
		}
	}
	return nil
}
