package webhook

import "sync/atomic"

// workers is a pool of goroutines that make attempts, one after the other. Each has
// grown the stack that an attempt needs, which costs a tenth of an attempt (see
// docs/decisions/0011). There is always a goroutine for another attempt; at most
// maxIdleWorkers stay when there is nothing to do.
type workers struct {
	work chan func()
	idle atomic.Int32
}

func newWorkers() *workers { return &workers{work: make(chan func())} }

// do calls f in a goroutine of the pool, or in a new one when all are busy.
func (w *workers) do(f func()) {
	select {
	case w.work <- f:
	default:
		go w.run(f)
	}
}

func (w *workers) run(f func()) {
	for ok := true; ok; {
		f()
		if w.idle.Add(1) > maxIdleWorkers {
			ok = false
		} else {
			f, ok = <-w.work
		}
		w.idle.Add(-1)
	}
}

// close ends the goroutines, each when it has finished. Do must not be called
// afterwards.
func (w *workers) close() { close(w.work) }
