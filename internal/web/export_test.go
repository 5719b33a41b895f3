package web

import (
	"maps"
	"net"
	"slices"

	"postern/internal/reference"
)

// What tests count against.
const (
	WriteChunk   = writeChunk
	MaxConns     = maxConns
	CompressFrom = compressFrom
)

// OpenConns returns how many connections of a bound listener are counted.
func OpenConns(l net.Listener) int {
	b := l.(*boundListener)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open + len(b.from)
}

// InFlight returns how many bytes of a workspace's responses are counted.
func InFlight(d *Door, workspace string) int {
	d.flights.mu.Lock()
	defer d.flights.mu.Unlock()
	return d.flights.bytes[workspace]
}

// Archived returns how many compressed files are in memory.
func Archived(d *Door) int {
	d.archive.mu.Lock()
	defer d.archive.mu.Unlock()
	return len(d.archive.files)
}

// Pages returns the paths of the documentation and of the pages about problems. document is the one of the API.
func Pages(document func() ([]byte, error)) ([]string, error) {
	api, err := reference.API(document)
	return slices.AppendSeq(slices.Collect(maps.Keys(readPages())), maps.Keys(api)), err
}

// Coding returns what a client prefers.
func Coding(accept ...string) string { return coding(accept) }

// NewCompressor returns a function that compresses texts as responses are.
func NewCompressor() func(coding string, text []byte) []byte { return newCompressors().compress }
