package web

import "sync"

// flights counts the bytes of responses that are being written, for each workspace: a
// client that does not read keeps them in memory.
type flights struct {
	most int // of a workspace, unless a single response is larger

	mu    sync.Mutex
	bytes map[string]int
}

func newFlights() *flights { return &flights{most: maxInFlight, bytes: map[string]int{}} }

// take counts n bytes more until give is called, or returns false when there are too many
// and the response may be refused. Bytes of no workspace are not counted.
func (f *flights) take(workspace string, n int, refusable bool) bool {
	if workspace == "" {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.bytes[workspace]; refusable && now > 0 && now+n > f.most {
		return false
	}
	f.bytes[workspace] += n
	return true
}

func (f *flights) give(workspace string, n int) {
	if workspace == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes[workspace] -= n; f.bytes[workspace] == 0 {
		delete(f.bytes, workspace)
	}
}
