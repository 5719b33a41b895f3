package keys

const (
	// cacheBytes bounds what a generation of a cache holds. A session has half a
	// kilobyte to a few, so that this is the people of the moment; the records of
	// others are one read away, about 20 µs.
	cacheBytes   = 8 << 10
	cacheRecords = 64
	recordBytes  = 150 // what a record costs beside its value, roughly
)

// cache holds the records used last, in two generations: when the young one is
// full it becomes the old one, and what is used again moves back. The zero value
// is empty and costs nothing.
type cache struct {
	young, old map[ref]record
	size       int // bytes of young
}

func (c *cache) get(k ref) (record, bool) {
	if rec, ok := c.young[k]; ok {
		return rec, true
	}
	rec, ok := c.old[k]
	if ok {
		c.put(k, rec)
	}
	return rec, ok
}

func (c *cache) put(k ref, rec record) {
	if !isCached(k.kind) {
		return
	}
	c.drop(k)
	cost := recordBytes + len(rec.value)
	if cost > cacheBytes/2 {
		return // with many skipped messages a session has 100 kilobytes and more
	}
	if c.young == nil {
		c.young = make(map[ref]record)
	}
	c.young[k] = rec
	c.size += cost
	if c.size > cacheBytes || len(c.young) > cacheRecords {
		c.young, c.old, c.size = nil, c.young, 0
	}
}

func (c *cache) drop(k ref) {
	if rec, ok := c.young[k]; ok {
		c.size -= recordBytes + len(rec.value)
		delete(c.young, k)
	}
	delete(c.old, k)
}
