package whatsapp

import (
	"sync"
	"time"
)

// gate counts the calls in progress on a connection. Once it is shut, it admits
// no more, and the last one can be waited for.
type gate struct {
	mu    sync.Mutex // guards the fields below
	calls int
	idle  chan struct{} // nil while open; closed when shut and empty
}

// Enter admits a call, which must Leave. It reports false if the gate is shut.
func (g *gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle != nil {
		return false
	}
	g.calls++
	return true
}

// Leave ends a call.
func (g *gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls--
	if g.calls == 0 && g.idle != nil {
		close(g.idle)
	}
}

// shut admits no more calls.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle != nil {
		return
	}
	g.idle = make(chan struct{})
	if g.calls == 0 {
		close(g.idle)
	}
}

// wait waits until the last call has left the shut gate. It reports false if that
// takes longer than limit.
func (g *gate) wait(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-g.idle:
		return true
	case <-timer.C:
		return false
	}
}
