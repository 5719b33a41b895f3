package store

import (
	"slices"
	"sync"
	"sync/atomic"

	"postern/internal/db"
	"postern/internal/postern"
)

// deviceCache holds the results of reads of devices until a commit changes a device:
// devices are read with every request and change rarely. It is used only with SQLite, where
// no process but this one can change a row.
//
// Single writer: cache.
type deviceCache struct {
	generation atomic.Uint64 // incremented after each commit that changed a device, before its callers are answered

	mu    sync.Mutex
	of    uint64 // the generation in which found was read
	bytes int    // estimated memory of found
	found map[deviceQuery][]postern.Device
}

// deviceQuery is everything that the result of a read of devices depends on.
type deviceQuery struct {
	workspace postern.WorkspaceID
	id        postern.DeviceID // of one device; "" for a list
	only      string
	page      Page
}

// newDeviceCache returns the cache of a database, or nil with PostgreSQL.
func newDeviceCache(engine *db.DB) *deviceCache {
	if engine.Postgres() {
		return nil
	}
	c := &deviceCache{}
	engine.Invalidate(deviceRow, func() { c.generation.Add(1) })
	return c
}

// changeDevices runs a statement that changes columns that reads of devices show, and
// returns the number of rows it changed.
func changeDevices(t *db.Tx, query string, args ...any) (int64, error) {
	t.Wake(deviceRow, "")
	return t.Changed(query, args...)
}

// changeDevice is [changeDevices] for callers who do not need the number.
func changeDevice(t *db.Tx, query string, args ...any) error {
	_, err := changeDevices(t, query, args...)
	return err
}

// cached returns the result of a read of devices, from the cache if possible.
func (s Devices) cached(q deviceQuery, read func() ([]postern.Device, error)) ([]postern.Device, error) {
	if s.cache == nil {
		return read()
	}
	return s.cache.get(q, read)
}

// get returns a result from the cache, or reads it. The caller may modify the slice and its
// devices, but not what they point to: the cache shares their Metadata and Pace.
func (c *deviceCache) get(q deviceQuery, read func() ([]postern.Device, error)) ([]postern.Device, error) {
	now := c.generation.Load() // before reading, so that a commit during the read makes the result stale
	if list, ok := c.look(q, now); ok {
		return list, nil
	}
	list, err := read()
	if err == nil {
		c.put(q, now, slices.Clone(list))
	}
	return list, err
}

func (c *deviceCache) look(q deviceQuery, now uint64) ([]postern.Device, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, ok := c.found[q]
	return slices.Clone(list), ok && c.of == now
}

func (c *deviceCache) put(q deviceQuery, now uint64, list []postern.Device) {
	size := sizeOf(list)
	c.mu.Lock()
	defer c.mu.Unlock()
	if now < c.of || size > cacheBytes/16 {
		return
	}
	if c.found == nil || now > c.of || c.bytes+size > cacheBytes {
		c.of, c.bytes, c.found = now, 0, map[deviceQuery][]postern.Device{}
	}
	c.found[q] = list
	c.bytes += size
}

// sizeOf estimates the memory of a list.
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
