package web

import "net"

// What tests count against.
const (
	WriteChunk = writeChunk
	MaxConns   = maxConns
)

// OpenConns returns how many connections of a bound listener are counted.
func OpenConns(l net.Listener) int {
	b := l.(*boundListener) //nolint:errcheck,forcetypeassert // only for those
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open + len(b.from)
}
