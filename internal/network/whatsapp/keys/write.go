package keys

import (
	"context"
	"maps"
	"sync"
	"time"

	pstore "postern/internal/store"
)

// change writes the records that fill puts into the batch, and returns when
// they are on disk. Within a decryption they become part of it, and change does
// not wait. If fill returns an error, none of the records is written.
func (r *Ring) change(ctx context.Context, fill func(*batch) error) error {
	if b := r.batchOf(ctx); b != nil {
		return r.check(ctx, fill(b))
	}
	return run(ctx, r, func() error {
		wait, err := r.startChange(ctx, fill)
		if err != nil {
			return err
		}
		return wait()
	})
}

// put writes one record and returns when it is on disk.
func (r *Ring) put(ctx context.Context, k ref, value []byte) error {
	return r.change(ctx, func(b *batch) error {
		b.put(k, record{value: value})
		return nil
	})
}

// remove removes records and returns when that is on disk.
func (r *Ring) remove(ctx context.Context, list ...ref) error {
	return r.change(ctx, func(b *batch) error {
		for _, k := range list {
			b.remove(k)
		}
		return nil
	})
}

// removeBefore removes the records on disk of a kind whose time is earlier than
// t, and returns how many there were.
func (r *Ring) removeBefore(ctx context.Context, kind string, t time.Time) (int, error) {
	names, err := r.before(ctx, kind, t)
	if err != nil || len(names) == 0 {
		return 0, err
	}
	refs := make([]ref, len(names))
	for i, name := range names {
		refs[i] = ref{kind, name}
	}
	return len(names), r.remove(ctx, refs...)
}

// startChange collects a change and hands it to the database.
func (r *Ring) startChange(ctx context.Context, fill func(*batch) error) (wait func() error, err error) {
	r.changing.Lock()
	defer r.changing.Unlock()
	b := newBatch(r)
	if err := fill(b); err != nil {
		return nil, err
	}
	if len(b.records) == 0 {
		return func() error { return nil }, nil
	}
	return r.handOver(ctx, b.records, false)
}

// handOver hands records to the database's writer, together with all that are
// pending. A patient write may wait for the next one. The caller holds changing.
func (r *Ring) handOver(ctx context.Context, records map[ref]record, patient bool) (wait func() error, err error) {
	if r.isBroken() {
		return nil, ErrUnavailable
	}
	all := r.withPending(records)
	keys := r.sealed(all)
	keys.Patient = patient
	written, err := r.store.db.SessionKeys.StartWrite(ctx, keys)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastChange++
	number := r.lastChange
	r.addPending(all, number)
	r.wait = sync.OnceValue(func() error {
		err := written()
		r.settle(number, err)
		return err
	})
	return r.wait, nil
}

// withPending returns records and all that are pending.
func (r *Ring) withPending(records map[ref]record) map[ref]record {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[ref]record, len(records)+len(r.pending))
	for k, p := range r.pending {
		all[k] = p.record
	}
	maps.Copy(all, records)
	return all
}

func (r *Ring) sealed(records map[ref]record) pstore.WriteSessionKeys {
	o := pstore.WriteSessionKeys{Account: r.account, Keys: make([]pstore.SessionKey, 0, len(records))}
	for k, rec := range records {
		row := pstore.SessionKey{Kind: k.kind, Name: k.name, At: rec.at}
		if rec.value != nil {
			row.Value = r.store.box.Seal(rec.value, r.place(k))
		}
		o.Keys = append(o.Keys, row)
	}
	return o
}

// addPending makes records visible to reads. The caller holds mu.
func (r *Ring) addPending(records map[ref]record, change uint64) {
	for k, rec := range records {
		r.pending[k] = pendingRecord{rec, change}
		for _, a := range r.aheads {
			delete(a.records, k)
		}
	}
	r.generation++
}

// settle moves the records of a change that is on disk from pending to the
// cache. Those of a failed change stay pending.
func (r *Ring) settle(change uint64, err error) {
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	large := len(r.pending) > cacheRecords
	for k, p := range r.pending {
		if p.change == change {
			delete(r.pending, k)
			r.cache.put(k, p.record)
		}
	}
	if large && len(r.pending) == 0 {
		r.pending = make(map[ref]pendingRecord) // a map never shrinks
	}
}

// decrypt calls fn, which decrypts a message. The records it writes become
// visible when it returns nil, and are on disk when Flush has returned. No send
// can write a session while fn uses it.
func (r *Ring) decrypt(ctx context.Context, fn func(context.Context) error) error {
	if r.batchOf(ctx) != nil {
		return fn(ctx)
	}
	if !r.enter() {
		return unavailable{ErrUnavailable}
	}
	defer r.leave()
	r.changing.Lock()
	defer r.changing.Unlock()
	b := newBatch(r)
	if err := fn(context.WithValue(ctx, batchKey{}, b)); err != nil {
		return err
	}
	if r.isBroken() {
		return unavailable{ErrUnavailable}
	}
	r.writeLater(b.records)
	return nil
}

// writeLater makes records visible to reads. They are written with the next
// change, or after flushDelay. The caller holds changing.
func (r *Ring) writeLater(records map[ref]record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addPending(records, 0)
	if !r.flushing {
		r.flushing = true
		time.AfterFunc(flushDelay, r.flushAfterDelay)
	}
}

// putLater is writeLater for one record, within a decryption or outside.
func (r *Ring) putLater(ctx context.Context, k ref, rec record) error {
	if b := r.batchOf(ctx); b != nil {
		b.put(k, rec)
		return nil
	}
	return run(ctx, r, func() error {
		r.changing.Lock()
		defer r.changing.Unlock()
		r.writeLater(map[ref]record{k: rec})
		return nil
	})
}

// StartFlush hands all pending records to the database without waiting. A
// write that follows it is committed after them, usually in the same
// transaction, for which they wait a few milliseconds.
func (r *Ring) StartFlush(ctx context.Context) error {
	return run(ctx, r, func() error {
		_, err := r.startFlush(ctx, true)
		return err
	})
}

// Flush returns when everything written so far is on disk. It costs nothing if
// the caller has waited for a write that followed StartFlush.
func (r *Ring) Flush(ctx context.Context) error {
	return run(ctx, r, func() error { return r.flushPending(ctx) })
}

func (r *Ring) flushPending(ctx context.Context) error {
	wait, err := r.startFlush(ctx, false)
	if err != nil {
		return err
	}
	return wait()
}

// startFlush hands over the records that no change carries yet, and returns a
// function that waits for all that is in progress.
func (r *Ring) startFlush(ctx context.Context, patient bool) (wait func() error, err error) {
	r.changing.Lock()
	defer r.changing.Unlock()
	left, wait := r.unwritten()
	if left {
		return r.handOver(ctx, nil, patient)
	}
	return wait, nil
}

// unwritten reports whether there are records that no change carries. If not,
// wait waits for the last change, which carries all that are pending.
func (r *Ring) unwritten() (left bool, wait func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pending {
		if p.change == 0 {
			return true, nil
		}
	}
	if len(r.pending) == 0 || r.wait == nil {
		return false, func() error { return nil }
	}
	return false, r.wait
}

func (r *Ring) flushAfterDelay() {
	r.mu.Lock()
	r.flushing = false
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = r.Flush(ctx) // a failure ends the connection
}

// Close writes what is pending at the end of a connection, and then refuses
// further calls: a call that outlives its connection must not overwrite what
// the next one writes. If the write fails, no acknowledged record is lost.
func (r *Ring) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if !r.isBroken() {
		if err := r.flushPending(ctx); err != nil {
			_ = r.check(ctx, err)
		}
	}
	r.Abandon()
}

// Abandon refuses further calls and discards what is pending.
func (r *Ring) Abandon() {
	r.changing.Lock() // a change that is being handed over comes first
	defer r.changing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = true
}
