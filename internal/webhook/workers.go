package webhook

import "sync/atomic"

// workers is a pool of goroutines that make attempts. Reusing a goroutine saves the
// growth of its stack, which costs a tenth of an attempt (see docs/decisions/0011).
// The number of goroutines is not bounded here; at most maxIdleWorkers stay when
// there is nothing to do.
type workers struct {
	work chan func()
	idle atomic.Int32
}

func newWorkers() *workers { return &workers{work: make(chan func())} }

// do calls f in an idle goroutine of the pool, or in a new one if all are busy. It
// does not wait for f.
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

// close ends each goroutine when its current attempt is done. do must not be called
// afterwards.
func (w *workers) close() { close(w.work) }
