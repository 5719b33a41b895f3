package postern

import (
	"context"
	"sync"
)

// Parts are functions that run concurrently. The first error ends the context of the
// others.
type Parts struct {
	end     context.CancelFunc
	running sync.WaitGroup
	failed  sync.Once
	err     error
}

// NewParts returns Parts and the context in which they run.
func NewParts(ctx context.Context) (*Parts, context.Context) {
	ctx, end := context.WithCancel(ctx)
	return &Parts{end: end}, ctx
}

// Go runs a part.
func (p *Parts) Go(run func() error) {
	p.running.Go(func() {
		if err := run(); err != nil {
			p.failed.Do(func() { p.err = err; p.end() })
		}
	})
}

// Wait returns the first error when all parts have ended.
func (p *Parts) Wait() error {
	p.running.Wait()
	p.end()
	return p.err
}
