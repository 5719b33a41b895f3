package keys

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	pstore "postern/internal/store"
)

// ErrStale means that a session moved on while a message was being encrypted
// with it. Nothing left; encrypting again uses the session as it is now.
var ErrStale = errors.New("a session changed while it was used")

// batch collects a change, and shows it to reads that belong to it.
type batch struct {
	ring    *Ring
	records map[ref]record
}

// batchKey is where a context carries the batch of a transaction.
type batchKey struct{}

// batchOf is the transaction that a call belongs to, or nil.
func (r *Ring) batchOf(ctx context.Context) *batch {
	if b, ok := ctx.Value(batchKey{}).(*batch); ok && b.ring == r {
		return b
	}
	return nil
}

func (b *batch) put(k ref, rec record) { b.records[k] = rec }
func (b *batch) remove(k ref)          { b.records[k] = record{} }

func (b *batch) get(ctx context.Context, k ref) (record, error) {
	if rec, ok := b.records[k]; ok {
		return rec, nil
	}
	return b.ring.read(ctx, k)
}

func (b *batch) list(ctx context.Context, kind, prefix string) ([]listed, error) {
	return b.ring.scan(ctx, kind, prefix, b)
}

// removeAll removes the records of a kind whose names begin with a prefix.
func (b *batch) removeAll(ctx context.Context, kind, prefix string) error {
	list, err := b.list(ctx, kind, prefix)
	for _, l := range list {
		b.remove(ref{kind, l.name})
	}
	return err
}

// merged puts what is newer in its place among what was read.
func merged(list []listed, newer map[string]record) []listed {
	for name, rec := range newer {
		if rec.value != nil {
			list = append(list, listed{name, rec})
		}
	}
	if len(newer) > 0 {
		slices.SortFunc(list, func(a, b listed) int { return strings.Compare(a.name, b.name) })
	}
	return list
}

// change makes a change and waits until it is on disk. In a transaction it
// becomes part of that, and does not wait. When it returns an error nothing of it
// will be seen again.
func (r *Ring) change(ctx context.Context, fill func(*batch) error) error {
	if b := r.batchOf(ctx); b != nil {
		return r.judge(ctx, fill(b))
	}
	return tell(ctx, r, func() error {
		wait, err := r.begin(ctx, fill)
		if err != nil {
			return err
		}
		return wait()
	})
}

// begin collects a change and hands it to the writer.
func (r *Ring) begin(ctx context.Context, fill func(*batch) error) (wait func() error, err error) {
	r.changing.Lock()
	defer r.changing.Unlock()
	b := newBatch(r)
	if err := fill(b); err != nil {
		return nil, err
	}
	if len(b.records) == 0 {
		return func() error { return nil }, nil
	}
	return r.handOver(ctx, b.records)
}

func newBatch(r *Ring) *batch { return &batch{ring: r, records: make(map[ref]record, 4)} }

// handOver hands records to the writer, together with all that is not known to
// be on disk. The caller holds changing.
func (r *Ring) handOver(ctx context.Context, records map[ref]record) (wait func() error, err error) {
	if r.isBroken() {
		return nil, ErrStore
	}
	r.mu.Lock()
	all := make(map[ref]record, len(records)+len(r.unsure))
	for k, u := range r.unsure {
		all[k] = u.record
	}
	r.mu.Unlock()
	maps.Copy(all, records)
	written, err := r.keys.db.SessionKeys.StartWrite(ctx, r.sealed(all))
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handed++
	number := r.handed
	r.merge(all, number)
	r.wait = sync.OnceValue(func() error {
		err := written()
		r.settle(number, err)
		return err
	})
	return r.wait, nil
}

func (r *Ring) sealed(records map[ref]record) pstore.WriteSessionKeys {
	o := pstore.WriteSessionKeys{Account: r.account, Keys: make([]pstore.SessionKey, 0, len(records))}
	for k, rec := range records {
		row := pstore.SessionKey{Kind: k.kind, Name: k.name, At: rec.at}
		if rec.value != nil {
			row.Value = r.keys.box.Seal(rec.value, r.place(k))
		}
		o.Keys = append(o.Keys, row)
	}
	return o
}

// merge lets reads see records. The caller holds mu.
func (r *Ring) merge(records map[ref]record, handed uint64) {
	for k, rec := range records {
		r.unsure[k] = unsure{rec, handed}
	}
	r.merges++
}

// settle notes the outcome of a change. What failed stays unsure, and is written
// again with the next change.
func (r *Ring) settle(number uint64, err error) {
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	many := len(r.unsure) > cacheRecords
	for k, u := range r.unsure {
		if u.handed == number {
			delete(r.unsure, k)
			r.cache.put(k, u.record)
		}
	}
	if many && len(r.unsure) == 0 {
		r.unsure = make(map[ref]unsure) // a map never gives memory back
	}
}

// DoDecryptionTxn lets fn decrypt a message: what it writes is seen when it
// returns nil, and is on disk when Durable has returned. whatsmeow's own store
// holds its one connection meanwhile; here changing is held, so that a send does
// not write a session that fn has read.
func (r *Ring) DoDecryptionTxn(ctx context.Context, fn func(context.Context) error) error {
	if r.batchOf(ctx) != nil {
		return fn(ctx)
	}
	if !r.enter() {
		return unavailable{ErrStore}
	}
	defer r.leave()
	r.changing.Lock()
	defer r.changing.Unlock()
	b := newBatch(r)
	if err := fn(context.WithValue(ctx, batchKey{}, b)); err != nil {
		return err
	}
	if r.isBroken() {
		return unavailable{ErrStore}
	}
	r.note(b.records)
	return nil
}

// note lets reads see records, which are written with the next change or after
// flushDelay. The caller holds changing.
func (r *Ring) note(records map[ref]record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.merge(records, 0)
	if !r.flushing {
		r.flushing = true
		time.AfterFunc(flushDelay, r.flushWhileOpen)
	}
}

// noteOne is note for one record, outside of a transaction.
func (r *Ring) noteOne(ctx context.Context, k ref, rec record) error {
	if b := r.batchOf(ctx); b != nil {
		b.put(k, rec)
		return nil
	}
	return tell(ctx, r, func() error {
		r.changing.Lock()
		defer r.changing.Unlock()
		r.note(map[ref]record{k: rec})
		return nil
	})
}

// Ahead hands what was noted to the writer, so that it is written with the host's
// update, in the same transaction as a rule.
func (r *Ring) Ahead(ctx context.Context) error {
	return tell(ctx, r, func() error {
		_, err := r.startFlush(ctx)
		return err
	})
}

// Durable returns when all that was written so far is on disk. It costs nothing
// when the host has waited for an update that was handed over after Ahead.
func (r *Ring) Durable(ctx context.Context) error {
	return tell(ctx, r, func() error { return r.flush(ctx) })
}

func (r *Ring) flush(ctx context.Context) error {
	wait, err := r.startFlush(ctx)
	if err != nil {
		return err
	}
	return wait()
}

// startFlush hands over what no change has carried yet, and gives what waits for
// all that is under way.
func (r *Ring) startFlush(ctx context.Context) (wait func() error, err error) {
	r.changing.Lock()
	defer r.changing.Unlock()
	left, wait := r.left()
	if left {
		return r.handOver(ctx, nil)
	}
	return wait, nil
}

// left tells whether something was noted that no change carries. If not, wait
// waits for the last change, which carries all that is not known to be on disk.
func (r *Ring) left() (left bool, wait func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.unsure {
		if u.handed == 0 {
			return true, nil
		}
	}
	if len(r.unsure) == 0 || r.wait == nil {
		return false, func() error { return nil }
	}
	return false, r.wait
}

// flushWhileOpen writes what no change has carried for a while.
func (r *Ring) flushWhileOpen() {
	r.mu.Lock()
	r.flushing = false
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	_ = r.Durable(ctx) // a failure ends the connection
}

// Close writes what is left when the connection has ended, and lets nothing be
// written afterwards: a call that outlives its connection must not write over
// what the next one writes. A failure loses nothing that was acknowledged.
func (r *Ring) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	if !r.isBroken() {
		if err := r.flush(ctx); err != nil {
			_ = r.judge(ctx, err)
		}
	}
	r.Abandon()
}

// Abandon lets nothing be written any more.
func (r *Ring) Abandon() {
	r.changing.Lock() // what is being handed over comes first
	defer r.changing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = true
}
