package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"postern/internal/postern"
	"postern/internal/store"

	"github.com/cenkalti/backoff/v5"
)

// supervisor is the one goroutine that acts for a device. It does one thing at a
// time, and is interrupted when the desired state changes.
type supervisor struct {
	id      postern.DeviceID
	backoff *backoff.ExponentialBackOff

	mu        sync.Mutex
	version   int // grows with every change of the desired state
	doing     postern.Desired
	turn      int                // the device's turn when the action began
	interrupt context.CancelFunc // ends the current action; nil between two actions

	stop  context.CancelFunc // ends the supervisor
	ended chan struct{}      // closed when it has ended
}

func newSupervisor(id postern.DeviceID) *supervisor {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = retryFirst, retryMax, 2, 0.5
	b.Reset()
	return &supervisor{id: id, backoff: b, ended: make(chan struct{})}
}

// desire tells the supervisor the desired state. A link attempt that has just
// succeeded ends by itself, because the driver must finish the exchange with the
// network.
//
// A new turn of the device ends the current action even if the desired state is
// the same.
func (s *supervisor) desire(d *postern.Device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	linked := s.doing == postern.WantLink && d.Desired == postern.WantConnect
	moved := s.doing == d.Desired && s.turn != d.Turn
	if s.interrupt != nil && (s.doing != d.Desired && !linked || moved) {
		s.interrupt()
	}
}

func (s *supervisor) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// begin records the action that is about to start. It reports false if the desired
// state has changed since version was read.
func (s *supervisor) begin(ctx context.Context, version int, d *postern.Device) (doing context.Context, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != version {
		return nil, false
	}
	doing, s.interrupt = context.WithCancel(ctx)
	s.doing, s.turn = d.Desired, d.Turn
	return doing, true
}

func (s *supervisor) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupt != nil {
		s.interrupt()
		s.interrupt = nil
	}
}

// supervise starts the supervisor of a device, unless it has one, has to wait, or is another server's
// by now.
func (e *Engine) supervise(ctx context.Context, id postern.DeviceID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.leases.Has(id) {
		e.probation.settle(id) // nobody waits for it
		return
	}
	if e.supervisors[id] != nil || e.probation.holds(id) {
		return
	}
	s := newSupervisor(id)
	ctx, s.stop = context.WithCancel(ctx)
	e.supervisors[id] = s
	e.running.Go(func() {
		defer close(s.ended)
		defer s.stop()
		defer e.probation.settle(id)
		for ctx.Err() == nil && e.superviseOnce(ctx, s) {
		}
		e.dismiss(s)
	})
}

func (e *Engine) dismiss(s *supervisor) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.supervisors[s.id] == s {
		delete(e.supervisors, s.id)
	}
}

// superviseOnce reads the desired state and acts on it once. It reports whether
// there may be more to do.
func (e *Engine) superviseOnce(ctx context.Context, s *supervisor) (more bool) {
	version := s.seen()
	d, err := readDevice(ctx, e.db, s.id)
	if postern.ReasonOf(err) == postern.NotFound {
		return e.retire(s, version) // the device was deleted
	}
	if err != nil {
		e.log.WarnContext(ctx, "read a device", "device", s.id, "error", err)
		return postern.Sleep(ctx, storeRetryWait) == nil
	}
	if d.Desired == postern.WantIdle {
		return e.retire(s, version)
	}
	doing, ok := s.begin(ctx, version, d)
	if !ok {
		return true
	}
	defer s.end()
	wait, done := e.act(doing, s, d)
	if done {
		return false
	}
	return postern.Sleep(doing, wait) == nil || ctx.Err() == nil
}

// readDevice reads a device. The functions that wait while a session lasts share it: with a copy in each of them, the stack
// of every connected device would be twice as large. The same would happen if this function became part of its caller.
//
//go:noinline
func readDevice(ctx context.Context, db *store.Store, id postern.DeviceID) (*postern.Device, error) {
	d, err := db.Devices.ForEngine(ctx, id)
	return &d, err
}

// retire ends the supervisor if nothing has changed since version was read.
func (e *Engine) retire(s *supervisor, version int) (more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.seen() != version {
		return true
	}
	delete(e.supervisors, s.id)
	return false
}

// act works towards the desired state and returns how long to wait before the next
// look. A panic costs this device one attempt, and other devices nothing.
func (e *Engine) act(ctx context.Context, s *supervisor, d *postern.Device) (wait time.Duration, done bool) {
	defer func() {
		if p := recover(); p != nil {
			e.log.ErrorContext(ctx, "a session panicked", "device", d.ID, "panic", fmt.Sprintf("%T", p))
			wait = s.backoff.NextBackOff()
		}
	}()
	switch d.Desired {
	case postern.WantLink:
		return e.link(ctx, d), false
	case postern.WantConnect:
		return e.connect(ctx, s, d), false
	case postern.WantUnlink:
		return e.unlink(ctx, s, d), false
	case postern.WantDelete:
		return e.remove(ctx, s, d)
	case postern.WantIdle:
	}
	return 0, false
}
