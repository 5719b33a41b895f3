package postern

import (
	"context"
	"time"
)

// Sleep waits for d, or until ctx ends; then it gives the error of ctx, also when
// d is not positive.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
