package session

import (
	"context"
	"sync"

	"postern/internal/postern"
	"postern/internal/store"
)

// settings is what the owner wants of a device while it is connected. A change
// is seen by whoever asks after it was answered.
type settings struct {
	e       *Engine
	id      postern.DeviceID
	changed *store.Listener

	mu     sync.Mutex // guards what follows
	device postern.Device
	stale  bool
}

func (e *Engine) settingsOf(d postern.Device) *settings {
	// Stale at first: d was read before the listener was there.
	return &settings{e: e, id: d.ID, changed: e.db.Listen(store.DeviceChanged, string(d.ID)), device: d, stale: true}
}

func (s *settings) close() { s.changed.Close() }

// now is the device as it is set now.
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
