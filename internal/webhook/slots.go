package webhook

import (
	"sync"

	"postern/internal/postern"
)

// slots bounds the number of attempts of all lanes together, in addition to the one
// that each lane may always make. A workspace may take a slot while it holds fewer
// than are free. A single workspace therefore gets half of the slots and two get a
// third each, which leaves some for the next workspace (Choudhury and Hahne, dynamic
// queue length thresholds, IEEE/ACM Transactions on Networking 6(2), 1998).
type slots struct {
	mu    sync.Mutex
	free  int
	taken map[postern.WorkspaceID]int
}

func newSlots(n int) *slots { return &slots{free: n, taken: map[postern.WorkspaceID]int{}} }

// take takes a slot. It returns false if the workspace already has its share.
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

// give releases a slot of the workspace.
func (s *slots) give(ws postern.WorkspaceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if s.taken[ws]--; s.taken[ws] == 0 {
		delete(s.taken, ws)
	}
}

// inUse returns how many slots are taken.
func (s *slots) inUse() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, taken := range s.taken {
		n += taken
	}
	return n
}
