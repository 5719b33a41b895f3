package webhook

import (
	"sync"

	"postern/internal/postern"
)

// shares divides something of which the process has a fixed amount: attempts in flight
// beyond the one that each lane may always make, or bytes of bodies in memory. A
// workspace may take more while it holds less than is free. A single workspace
// therefore gets half of the amount and two get a third each, which leaves some for the
// next workspace (Choudhury and Hahne, dynamic queue length thresholds, IEEE/ACM
// Transactions on Networking 6(2), 1998).
type shares struct {
	mu      sync.Mutex
	free    int // below 0 after force
	taken   map[postern.WorkspaceID]int
	waiting map[chan<- struct{}]struct{}
}

func newShares(n int) *shares {
	return &shares{free: n, taken: map[postern.WorkspaceID]int{}, waiting: map[chan<- struct{}]struct{}{}}
}

// take takes n. If that is more than the workspace's share, it returns false.
func (s *shares) take(ws postern.WorkspaceID, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[ws]+n > s.free {
		return false
	}
	s.add(ws, n)
	return true
}

// takeOrWait is take. If it returns false, wake is nudged when there may be enough.
func (s *shares) takeOrWait(ws postern.WorkspaceID, n int, wake chan<- struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[ws]+n > s.free {
		s.waiting[wake] = struct{}{}
		return false
	}
	delete(s.waiting, wake)
	s.add(ws, n)
	return true
}

// force takes n even if that is more than the workspace's share.
func (s *shares) force(ws postern.WorkspaceID, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(ws, n)
}

func (s *shares) add(ws postern.WorkspaceID, n int) {
	s.free -= n
	if s.taken[ws] += n; s.taken[ws] == 0 {
		delete(s.taken, ws)
	}
}

// give returns n of the workspace, and wakes some of those that wait.
func (s *shares) give(ws postern.WorkspaceID, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(ws, -n)
	woken := 0
	for wake := range s.waiting {
		nudge(wake)
		delete(s.waiting, wake)
		if woken++; woken == wokenAtOnce {
			return
		}
	}
}

// forget removes a lane that has ended from those that wait.
func (s *shares) forget(wake chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, wake)
}

// inUse returns how much is taken.
func (s *shares) inUse() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, taken := range s.taken {
		n += taken
	}
	return n
}
