package keys

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Draft collects changes of the app state. whatsmeow stores a patch before it reports what the patch
// changes, so that a crash between the two would lose the report. Within a draft, nothing is stored
// until [Draft.Save]; a draft that is not saved changes nothing.
type Draft struct {
	mu    sync.Mutex // guards the records of the field below
	batch *batch
}

// draftKey is the context key of a draft.
type draftKey struct{}

// Draft returns a context in which the app state is changed in a new draft.
func (r *Ring) Draft(ctx context.Context) (context.Context, *Draft) {
	d := &Draft{batch: newBatch(r)}
	return context.WithValue(ctx, draftKey{}, d), d
}

// InDraft reports whether the app state is changed in a draft.
func InDraft(ctx context.Context) bool {
	_, ok := ctx.Value(draftKey{}).(*Draft)
	return ok
}

// draftOf returns the draft in which ctx changes the app state of r, or nil.
func (r *Ring) draftOf(ctx context.Context) *Draft {
	if d, ok := ctx.Value(draftKey{}).(*Draft); ok && d.batch.ring == r {
		return d
	}
	return nil
}

func (d *Draft) change(ctx context.Context, fill func(*batch) error) error {
	return run(ctx, d.batch.ring, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return fill(d.batch)
	})
}

func (d *Draft) get(ctx context.Context, k ref) (record, error) {
	return query(ctx, d.batch.ring, func() (record, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.batch.get(ctx, k)
	})
}

// Save stores the changes, and returns when they are on disk. If there are so many that they are
// stored in parts, the versions come last; until then, the collections are unknown.
func (d *Draft) Save(ctx context.Context) error {
	d.mu.Lock()
	values, versions := map[ref]record{}, map[ref]record{}
	for k, rec := range d.batch.records {
		if k.kind == kindVersion {
			versions[k] = rec
		} else {
			values[k] = rec
		}
	}
	d.mu.Unlock()
	if len(values) > macChunk {
		if err := d.saveParts(ctx, values, versions); err != nil {
			return err
		}
		clear(values)
	}
	maps.Copy(values, versions)
	return d.store(ctx, values)
}

// saveParts forgets the versions, and stores all else in parts.
func (d *Draft) saveParts(ctx context.Context, values, versions map[ref]record) error {
	if err := d.batch.ring.remove(ctx, slices.Collect(maps.Keys(versions))...); err != nil {
		return err
	}
	for part := range slices.Chunk(slices.Collect(maps.Keys(values)), macChunk) {
		records := make(map[ref]record, len(part))
		for _, k := range part {
			records[k] = values[k]
		}
		if err := d.store(ctx, records); err != nil {
			return err
		}
	}
	return nil
}

func (d *Draft) store(ctx context.Context, records map[ref]record) error {
	return d.batch.ring.change(ctx, func(b *batch) error {
		maps.Copy(b.records, records)
		return nil
	})
}
