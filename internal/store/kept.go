package store

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"postern/internal/postern"
)

// keptDevices is what reads of devices found, until a commit changes a device:
// they are read with every request and change seldom. It serves SQLite alone,
// where nobody but our writer can change a row.
type keptDevices struct {
	generation atomic.Uint64 // grows after each commit that changed a device, before its callers hear of it

	mu    sync.Mutex
	of    uint64 // the generation that found was read in
	bytes int    // about so much memory
	found map[deviceQuery][]postern.Device
}

// deviceQuery is what a read of devices depends on.
type deviceQuery struct {
	workspace postern.WorkspaceID
	id        postern.DeviceID // of one device; "" for a list
	only      string
	page      Page
}

// cached reads devices, or gives what the same read found before.
func (s Devices) cached(q deviceQuery, read func() ([]postern.Device, error)) ([]postern.Device, error) {
	if s.db.dialect.remote {
		return read()
	}
	return s.db.kept.get(q, read)
}

// get gives what is kept, or reads it. The slice is the caller's own.
func (k *keptDevices) get(q deviceQuery, read func() ([]postern.Device, error)) ([]postern.Device, error) {
	now := k.generation.Load() // before reading: what is committed meanwhile makes it old
	if list, ok := k.look(q, now); ok {
		return list, nil
	}
	list, err := read()
	if err == nil {
		k.keep(q, now, slices.Clone(list))
	}
	return list, err
}

func (k *keptDevices) look(q deviceQuery, now uint64) ([]postern.Device, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	list, ok := k.found[q]
	return slices.Clone(list), ok && k.of == now
}

func (k *keptDevices) keep(q deviceQuery, now uint64, list []postern.Device) {
	size := sizeOf(list)
	k.mu.Lock()
	defer k.mu.Unlock()
	if now < k.of || size > keptBytes/16 {
		return
	}
	if k.found == nil || now > k.of || k.bytes+size > keptBytes {
		k.of, k.bytes, k.found = now, 0, map[deviceQuery][]postern.Device{}
	}
	k.found[q] = list
	k.bytes += size
}

// sizeOf is about the memory that a list takes.
func sizeOf(list []postern.Device) int {
	const row, entry = 512, 64
	n := row
	for _, d := range list {
		n += row
		for name, value := range d.Metadata {
			n += entry + len(name) + len(value)
		}
	}
	return n
}

// published notes what a group has changed, then wakes who waits for it.
func (db *DB) published(wakes []Wake) {
	if slices.Contains(wakes, deviceRow) {
		db.kept.generation.Add(1)
	}
	db.hub.publish(wakes)
}

// deviceRow is the wake of the devices that are kept; nobody listens to it.
var deviceRow = Wake{Topic: "device-row"} //nolint:gochecknoglobals // constant

// changesDevices tells whether a statement changes what callers see of a
// device: not so the one that numbers its events.
func changesDevices(query string) bool {
	return (strings.HasPrefix(query, "UPDATE device ") || strings.HasPrefix(query, "INSERT INTO device ") || strings.HasPrefix(query, "DELETE FROM device ")) &&
		!strings.HasPrefix(query, "UPDATE device SET sequence ")
}
