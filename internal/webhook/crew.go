package webhook

import "sync/atomic"

// crew are goroutines that make attempts, one after the other: each has grown the
// stack that an attempt needs, which costs a twelfth of it. Few stay when there is
// nothing to do.
type crew struct {
	work chan func()
	idle atomic.Int32
}

func newCrew() *crew { return &crew{work: make(chan func())} }

// do calls f in a goroutine.
func (c *crew) do(f func()) {
	select {
	case c.work <- f:
	default:
		go c.member(f)
	}
}

func (c *crew) member(f func()) {
	for ok := true; ok; {
		f()
		if c.idle.Add(1) > maxIdleCrew {
			ok = false
		} else {
			f, ok = <-c.work
		}
		c.idle.Add(-1)
	}
}

// close ends them, each when it has done. Nothing is done after it.
func (c *crew) close() { close(c.work) }
