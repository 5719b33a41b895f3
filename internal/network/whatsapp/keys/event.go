package keys

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// A plaintext is kept, written together with the ratchet, until the host has
// stored the message. It is then removed with the next message or after
// flushDelay: one that outlives a crash is found again only if the message comes
// again, and then the host knows it.
//
// whatsmeow's own store keeps the hash of every handled message for 14 days. That
// is not needed: a message that comes again after its plaintext was removed has
// an old counter, which whatsmeow acknowledges and leaves alone.

func eventRef(hash [32]byte) ref {
	return ref{kindEvent, base64.RawURLEncoding.EncodeToString(hash[:])}
}

// GetBufferedEvent gives the plaintext of a message that was decrypted and not
// handled, or nil. Nothing is read for a message that is new.
func (r *Ring) GetBufferedEvent(ctx context.Context, hash [32]byte) (*store.BufferedEvent, error) {
	k := eventRef(hash)
	if !r.isWaiting(k.name) {
		return nil, nil //nolint:nilnil // whatsmeow's way to say that there is none
	}
	rec, err := r.get(ctx, k)
	if err != nil || rec.value == nil {
		return nil, err
	}
	if len(rec.value) < 8 {
		return nil, r.judge(ctx, errKeyLength)
	}
	return &store.BufferedEvent{
		Plaintext:  rec.value[8:],
		InsertTime: rec.at.Std(), ServerTime: time.Unix(int64(binary.BigEndian.Uint64(rec.value)), 0), //nolint:gosec // as it was written
	}, nil
}

// PutBufferedEvent keeps the plaintext of a message.
func (r *Ring) PutBufferedEvent(ctx context.Context, hash [32]byte, plaintext []byte, sent time.Time) error {
	k := eventRef(hash)
	r.setWaiting(k.name, true)
	value := make([]byte, 8, 8+len(plaintext))
	binary.BigEndian.PutUint64(value, uint64(sent.Unix())) //nolint:gosec // read back as it is
	return r.noteOne(ctx, k, record{value: append(value, plaintext...), at: now()})
}

// ClearBufferedEventPlaintext notes that a message was handled. After a refusal
// of the host it is not believed: whatsmeow passes some over.
func (r *Ring) ClearBufferedEventPlaintext(ctx context.Context, hash [32]byte) error {
	r.mu.Lock()
	refused := r.refused
	r.mu.Unlock()
	if refused {
		return nil
	}
	k := eventRef(hash)
	if !r.isWaiting(k.name) {
		return nil
	}
	if r.batchOf(ctx) == nil { // a transaction may be taken back
		r.setWaiting(k.name, false)
	}
	return r.noteOne(ctx, k, record{})
}

func (r *Ring) isWaiting(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting[name]
}

// setWaiting notes that a plaintext is kept. Too many are no mistake.
func (r *Ring) setWaiting(name string, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waits {
		r.waiting[name] = true
	} else {
		delete(r.waiting, name)
	}
}

// Refuse notes that the host did not store an update.
func (r *Ring) Refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = true
}

// eventKept is how long the vendor hands a message over again.
const eventKept = 14 * 24 * time.Hour

// DeleteOldBufferedHashes removes the plaintexts of messages that did not come again.
func (r *Ring) DeleteOldBufferedHashes(ctx context.Context) error {
	names, err := r.before(ctx, kindEvent, time.Now().Add(-eventKept))
	if err != nil || len(names) == 0 {
		return err
	}
	return r.change(ctx, func(b *batch) error {
		for _, name := range names {
			b.remove(ref{kindEvent, name})
		}
		return nil
	})
}

// errNotKept answers what asks for messages that were sent: the host has them.
var errNotKept = errors.New("sent messages are not kept with the keys")

// GetOutgoingEvent is not used: see messageForRetry.
func (r *Ring) GetOutgoingEvent(context.Context, types.JID, types.JID, types.MessageID) (string, []byte, error) {
	return "", nil, errNotKept
}

// AddOutgoingEvent is not used: see messageForRetry.
func (r *Ring) AddOutgoingEvent(context.Context, types.JID, types.MessageID, string, []byte) error {
	return errNotKept
}

// DeleteOldOutgoingEvents is not used: see messageForRetry.
func (r *Ring) DeleteOldOutgoingEvents(context.Context) error { return nil }
