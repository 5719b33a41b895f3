package webhook

import (
	"sync"

	"postern/internal/postern"
)

// slots bounds the attempts of all lanes together, beyond the one that each may
// always make. A workspace may take one while it has fewer than are free: half of
// them when it is alone, a third each when there are two, so that some are left
// for whoever comes next (Choudhury and Hahne, dynamic queue length thresholds,
// IEEE/ACM Transactions on Networking 6(2), 1998).
type slots struct {
	mu    sync.Mutex
	free  int
	taken map[postern.WorkspaceID]int
}

func newSlots(n int) *slots { return &slots{free: n, taken: map[postern.WorkspaceID]int{}} }

// take is false when the workspace has its share.
func (s *slots) take(ws postern.WorkspaceID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[ws] >= s.free {
		return false
	}
	s.free--
	s.taken[ws]++
	return true
}

// give gives a slot back.
func (s *slots) give(ws postern.WorkspaceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if s.taken[ws]--; s.taken[ws] == 0 {
		delete(s.taken, ws)
	}
}

// inUse is how many are taken.
func (s *slots) inUse() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, taken := range s.taken {
		n += taken
	}
	return n
}
