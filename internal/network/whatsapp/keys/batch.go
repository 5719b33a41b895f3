package keys

import (
	"context"
	"slices"
	"strings"
)

// batch collects the records of one change. Reads through the batch see them.
type batch struct {
	ring    *Ring
	records map[ref]record
	known   map[ref]record // records that were read ahead
}

// batchKey is the context key of the batch of a decryption.
type batchKey struct{}

// batchOf returns the batch of the decryption that ctx belongs to, or nil.
func (r *Ring) batchOf(ctx context.Context) *batch {
	if b, ok := ctx.Value(batchKey{}).(*batch); ok && b.ring == r {
		return b
	}
	return nil
}

func newBatch(r *Ring) *batch { return &batch{ring: r, records: make(map[ref]record, 4)} }

func (b *batch) put(k ref, rec record) { b.records[k] = rec }
func (b *batch) remove(k ref)          { b.records[k] = record{} }

func (b *batch) get(ctx context.Context, k ref) (record, error) {
	if rec, ok := b.records[k]; ok {
		return rec, nil
	}
	if rec, ok := b.known[k]; ok {
		return rec, nil
	}
	return b.ring.read(ctx, k)
}

// readAhead reads records of a kind with one query. Nobody else can change them before the batch ends.
func (b *batch) readAhead(ctx context.Context, kind string, names []string) error {
	found, err := b.ring.readMany(ctx, kind, names)
	if err != nil {
		return err
	}
	if b.known == nil {
		b.known = make(map[ref]record, len(names))
	}
	for _, name := range names {
		b.known[ref{kind, name}] = found[name]
	}
	return nil
}

func (b *batch) list(ctx context.Context, kind, prefix string) ([]namedRecord, error) {
	return b.ring.scan(ctx, kind, prefix, b)
}

// removeAll removes the records of a kind whose names begin with prefix.
func (b *batch) removeAll(ctx context.Context, kind, prefix string) error {
	list, err := b.list(ctx, kind, prefix)
	for _, l := range list {
		b.remove(ref{kind, l.name})
	}
	return err
}

// renameAll replaces the prefix from in names of records of a kind by to.
func (b *batch) renameAll(ctx context.Context, kind, from, to string) error {
	list, err := b.list(ctx, kind, from)
	for _, l := range list {
		b.remove(ref{kind, l.name})
		b.put(ref{kind, to + strings.TrimPrefix(l.name, from)}, l.record)
	}
	return err
}

// merged adds newer records to a list from which the older ones were left out.
func merged(list []namedRecord, newer map[string]record) []namedRecord {
	for name, rec := range newer {
		if rec.value != nil {
			list = append(list, namedRecord{name, rec})
		}
	}
	if len(newer) > 0 {
		slices.SortFunc(list, func(a, b namedRecord) int { return strings.Compare(a.name, b.name) })
	}
	return list
}
