package keys

const (
	// cacheBytes bounds the size of one generation of a cache. A session has
	// between half a kilobyte and a few, so this holds the contacts of the
	// current conversations; any other record costs one read, about 20 µs.
	cacheBytes   = 8 << 10
	cacheRecords = 64
	recordBytes  = 150 // approximate cost of a record beside its value
)

// cache holds the records used last, in two generations. When the young one is
// full it replaces the old one; a record that is used again moves back. The
// zero value is empty and allocates nothing.
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
		return // a session with many skipped messages has 100 kB and more
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
