package bare

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// tally counts, and wakes those who wait for a number.
type tally struct {
	mu    sync.Mutex
	n     int
	waits []wait
}

type wait struct {
	n       int
	reached chan struct{}
}

// add counts one.
func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	t.waits = slices.DeleteFunc(t.waits, func(w wait) bool {
		if t.n < w.n {
			return false
		}
		close(w.reached)
		return true
	})
}

// await waits until n have been counted.
func (t *tally) await(ctx context.Context, n int) error {
	w := wait{n, make(chan struct{})}
	t.mu.Lock()
	have := t.n
	if have < n {
		t.waits = append(t.waits, w)
	}
	t.mu.Unlock()
	if have >= n {
		return nil
	}
	select {
	case <-w.reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d have arrived: %w", have, n, ctx.Err())
	}
}
