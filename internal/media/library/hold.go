package library

import (
	"context"
	"sync"

	"postern/internal/media/blob"
)

// holds keep a blob from being removed while files with it are being added, and files from being
// added while their blob is being removed. They are in memory: among servers that share a storage, only
// the sweep removes blobs; see [Library.Share].
type holds struct {
	mu       sync.Mutex
	users    map[blob.Name]int
	removals map[blob.Name]chan struct{} // closed when the removal ends
}

func newHolds() *holds {
	return &holds{users: map[blob.Name]int{}, removals: map[blob.Name]chan struct{}{}}
}

// hold keeps a blob until release is called. It waits for the end of a removal.
func (h *holds) hold(ctx context.Context, name blob.Name) (release func(), err error) {
	for {
		h.mu.Lock()
		removal := h.removals[name]
		if removal == nil {
			h.users[name]++
			h.mu.Unlock()
			return func() { h.release(name) }, nil
		}
		h.mu.Unlock()
		select {
		case <-removal:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (h *holds) release(name blob.Name) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users[name]--; h.users[name] == 0 {
		delete(h.users, name)
	}
}

// remove begins the removal of a blob, which lasts until end is called; ok is false if the blob is
// held, or is being removed already.
func (h *holds) remove(name blob.Name) (end func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users[name] > 0 || h.removals[name] != nil {
		return nil, false
	}
	removal := make(chan struct{})
	h.removals[name] = removal
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.removals, name)
		close(removal)
	}, true
}
