package webhook

import (
	"sync"
	"testing"
	"testing/synctest"
)

// However many attempts are made at once, each has a goroutine, and few stay.
func TestWorkersGrowAtOnceAndShrink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // which fails when a goroutine stays behind
		c := newWorkers()
		for range 2 {
			var working sync.WaitGroup
			working.Add(2 * maxIdleWorkers)
			done := make(chan struct{})
			for range 2 * maxIdleWorkers {
				c.do(func() { working.Done(); <-done })
			}
			working.Wait() // all are at it together
			close(done)
			synctest.Wait()
			if n := c.idle.Load(); n != maxIdleWorkers {
				t.Errorf("%d stay, want %d", n, maxIdleWorkers)
			}
		}
		c.close()
	})
}
