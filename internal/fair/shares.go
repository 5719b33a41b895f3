// Package fair shares out scarce places among workspaces.
package fair

import (
	"context"
	"sync"

	"postern/internal/postern"
)

// Shares bound how much is done at a time: in all, and half of that for one workspace. They are
// safe for concurrent use.
type Shares struct {
	all chan struct{}

	mu   sync.Mutex
	each map[postern.WorkspaceID]*share
}

// share is what one workspace does or waits for.
type share struct {
	places chan struct{}
	users  int
}

// New returns n places, of which one workspace may hold half, and at least one.
func New(n int) *Shares {
	return &Shares{all: make(chan struct{}, n), each: map[postern.WorkspaceID]*share{}}
}

// Enter waits for a place. The caller must leave it afterwards. The error is that of ctx.
func (s *Shares) Enter(ctx context.Context, ws postern.WorkspaceID) (leave func(), err error) {
	own := s.of(ws)
	for i, places := range []chan struct{}{own.places, s.all} {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-own.places
			}
			s.done(ws, own)
			return nil, ctx.Err()
		}
	}
	return func() {
		<-s.all
		<-own.places
		s.done(ws, own)
	}, nil
}

func (s *Shares) of(ws postern.WorkspaceID) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.each[ws]
	if own == nil {
		own = &share{places: make(chan struct{}, max(1, cap(s.all)/2))}
		s.each[ws] = own
	}
	own.users++
	return own
}

func (s *Shares) done(ws postern.WorkspaceID, own *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.each, ws)
	}
}
