package postern

import (
	"context"
	"errors"
	"testing"
)

func TestFirstPartThatFailsEndsTheOthers(t *testing.T) {
	t.Parallel()
	p, ctx := NewParts(t.Context())
	boom := errors.New("boom")
	p.Go(func() error { return nil })
	p.Go(func() error {
		<-ctx.Done()
		return ctx.Err()
	})
	p.Go(func() error { return boom })
	if err := p.Wait(); !errors.Is(err, boom) {
		t.Errorf("Wait = %v", err)
	}
}

func TestPartsThatSucceedEndNothing(t *testing.T) {
	t.Parallel()
	p, ctx := NewParts(t.Context())
	done := make(chan struct{})
	p.Go(func() error { close(done); return nil })
	p.Go(func() error {
		<-done
		return context.Cause(ctx)
	})
	if err := p.Wait(); err != nil || ctx.Err() == nil {
		t.Errorf("Wait = %v, and then the context is %v", err, ctx.Err())
	}
}
