package session

import (
	"context"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/store"
)

// sharing is what the engine of a server that shares its database does besides.
type sharing struct{ *Engine }

// run begins to work for the devices that this server has got, and stops working for those that it
// has lost, until ctx is done.
func (e sharing) run(ctx, sessions context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.leases.Gained.C():
			for id, claim := range e.leases.Gained.Take() {
				e.running.Go(func() { e.gain(sessions, id, claim) })
			}
		case <-e.leases.Lost.C():
			for id, orderly := range e.leases.Lost.Take() {
				e.running.Go(func() { e.lose(sessions, id, orderly) })
			}
		}
	}
}

// gain begins to work for a device. No session of it is live.
func (e sharing) gain(ctx context.Context, id postern.DeviceID, c store.Claim) {
	if !e.leases.Has(id) {
		return // it was lost again meanwhile
	}
	if err := e.takeOver(ctx, id, c); err != nil && ctx.Err() == nil {
		e.log.WarnContext(ctx, "record that a device changes its server", "device", id, "error", err)
	}
	e.deviceChanged(ctx, id)
}

// takeOver records what the end of the server that owned a device means to the device.
func (e sharing) takeOver(ctx context.Context, id postern.DeviceID, c store.Claim) error {
	if c.Status != postern.Connected && c.Status != postern.Connecting {
		return nil
	}
	state := gateway.SessionState{Status: postern.Connecting}
	if c.Lost && c.Status == postern.Connected {
		state = gateway.SessionState{Status: postern.Disconnected, Reason: "node-lost"}
	}
	return e.g.Sessions.SetState(ctx, id, state)
}

// lose stops working for a device. If that is done in an orderly way, a send in progress may finish,
// and the device is released.
func (e sharing) lose(ctx context.Context, id postern.DeviceID, orderly bool) {
	e.mu.Lock()
	s, l := e.supervisors[id], e.live[id]
	e.mu.Unlock()
	if l != nil && orderly {
		l.stop(moveGrace)
	}
	if s != nil {
		s.stop()
		<-s.ended
	}
	if orderly {
		if err := e.leases.Release(ctx, id); err != nil {
			e.log.WarnContext(ctx, "release a device", "device", id, "error", err)
		}
	} else {
		e.leases.Stopped(id)
	}
	if e.leases.Has(id) { // it was gained again meanwhile
		e.deviceChanged(ctx, id)
	}
}
