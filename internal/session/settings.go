package session

import (
	"context"
	"sync"

	"postern/internal/postern"
	"postern/internal/store"
)

// settings is the owner's settings of a device while it is connected. A call of
// now sees every change that was answered before it.
type settings struct {
	e       *Engine
	id      postern.DeviceID
	changed *store.Listener

	mu     sync.Mutex // guards the fields below
	device postern.Device
	stale  bool
}

func (e *Engine) settingsOf(d *postern.Device) *settings {
	// Stale at first, because d was read before the listener existed.
	return &settings{e: e, id: d.ID, changed: e.db.Listen(store.DeviceChanged, string(d.ID)), device: *d, stale: true}
}

func (s *settings) close() { s.changed.Close() }

// settingsChanged makes the sender of a device look again, because its pace or the timer of a chat may have changed.
func (e *Engine) settingsChanged(id postern.DeviceID) {
	e.mu.Lock()
	l := e.live[id]
	e.mu.Unlock()
	if l != nil {
		l.settings.expire()
		l.forgetTimers()
		l.kick()
		if !l.listed.Load() {
			e.running.Go(l.listGroups) // groups may be wanted now
		}
	}
}

// expire makes the next call of now read the settings again. It is for callers that learn of a change
// from another listener, which may be told of it first.
func (s *settings) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

// now returns the device with its current settings.
func (s *settings) now(ctx context.Context) (postern.Device, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.changed.C():
		s.changed.Take()
		s.stale = true
	default:
	}
	if !s.stale {
		return s.device, nil
	}
	d, err := s.e.db.Devices.ForEngine(ctx, s.id)
	if err == nil {
		s.device, s.stale = d, false
	}
	return s.device, err
}
