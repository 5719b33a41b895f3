package webhook

import (
	"sync"
	"testing"
	"testing/synctest"
)

// However many attempts there are at once, each has a goroutine, and few stay.
func TestCrewGrowsAtOnceAndShrinks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // which fails when a goroutine stays behind
		c := newCrew()
		for range 2 {
			var working sync.WaitGroup
			working.Add(2 * maxIdleCrew)
			done := make(chan struct{})
			for range 2 * maxIdleCrew {
				c.do(func() { working.Done(); <-done })
			}
			working.Wait() // all are at it together
			close(done)
			synctest.Wait()
			if n := c.idle.Load(); n != maxIdleCrew {
				t.Errorf("%d stay, want %d", n, maxIdleCrew)
			}
		}
		c.close()
	})
}
