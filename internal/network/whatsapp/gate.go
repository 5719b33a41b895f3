package whatsapp

import (
	"sync"
	"time"
)

// gate counts the calls under way in a connection, lets none in once it is shut,
// and waits for the last.
type gate struct {
	mu    sync.Mutex // guards what follows
	calls int
	idle  chan struct{} // nil while open; closed when shut and empty
}

// Enter lets a call in, which must Leave; false means that the gate is shut.
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

// shut lets no more calls in.
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

// wait waits until the shut gate is empty; false means that it took too long.
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
