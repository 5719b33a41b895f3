package metrics

import "sync"

const (
	// maxReasons bounds the values of a label that others choose, such as reasons of the network.
	maxReasons = 100
	// maxWorkspaces bounds the workspaces that are counted one by one. Each has up to 20 series.
	maxWorkspaces = 1000
)

// bounded replaces values of a label beyond the first ones.
type bounded struct {
	limit int
	mu    *sync.Mutex
	known map[string]bool
}

func newBounded(limit int) bounded { return bounded{limit, &sync.Mutex{}, map[string]bool{}} }

func (b bounded) of(value string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.known[value] {
		if len(b.known) >= b.limit {
			return "other"
		}
		b.known[value] = true
	}
	return value
}
