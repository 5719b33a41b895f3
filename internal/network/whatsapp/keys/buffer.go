package keys

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// eventBuffer holds the plaintexts of messages that were decrypted and are not
// handled yet. A plaintext is written together with the ratchet that it moved,
// and removed with a later change once the host has stored the message. One
// that outlives a crash is used again only if the message is delivered again,
// and then the host knows it.
//
// whatsmeow's own store keeps the hash of every handled message for 14 days.
// That is not needed: a message that is delivered again after its plaintext was
// removed has an old counter, which whatsmeow acknowledges and ignores.
type eventBuffer struct {
	ring *Ring

	mu      sync.Mutex      // guards the fields below; no call of ring is made under it
	waiting map[string]bool // names of the plaintexts that may be stored
	refused bool            // the host did not store an update
}

var _ store.EventBuffer = (*eventBuffer)(nil)

func eventRef(hash [32]byte) ref {
	return ref{kindEvent, base64.RawURLEncoding.EncodeToString(hash[:])}
}

// expect names the plaintexts that earlier connections left behind.
func (s *eventBuffer) expect(names []string) {
	for _, name := range names {
		s.setWaiting(name, true)
	}
}

// DoDecryptionTxn calls fn, which decrypts a message; see [Ring].
func (s *eventBuffer) DoDecryptionTxn(ctx context.Context, fn func(context.Context) error) error {
	return s.ring.decrypt(ctx, fn)
}

// GetBufferedEvent returns the plaintext of a message that was decrypted and
// not handled, or nil. For a new message it reads nothing.
func (s *eventBuffer) GetBufferedEvent(ctx context.Context, hash [32]byte) (*store.BufferedEvent, error) {
	k := eventRef(hash)
	if !s.isWaiting(k.name) {
		return nil, nil //nolint:nilnil // the interface wants it so
	}
	rec, err := s.ring.get(ctx, k)
	if err != nil || rec.value == nil {
		return nil, err
	}
	if len(rec.value) < 8 {
		return nil, s.ring.check(ctx, errKeyLength)
	}
	sent := int64(binary.BigEndian.Uint64(rec.value)) //nolint:gosec // as it was written
	return &store.BufferedEvent{
		Plaintext: rec.value[8:], InsertTime: rec.at.Std(), ServerTime: time.Unix(sent, 0),
	}, nil
}

// PutBufferedEvent stores the plaintext of a message.
func (s *eventBuffer) PutBufferedEvent(ctx context.Context, hash [32]byte, plaintext []byte, sent time.Time) error {
	k := eventRef(hash)
	s.setWaiting(k.name, true)
	value := make([]byte, 8, 8+len(plaintext))
	binary.BigEndian.PutUint64(value, uint64(sent.Unix())) //nolint:gosec // read back as it is
	return s.ring.putLater(ctx, k, record{value: append(value, plaintext...), at: now()})
}

// ClearBufferedEventPlaintext removes the plaintext of a handled message. After
// a refusal of the host it does nothing, because whatsmeow also clears messages
// that the host has not seen.
func (s *eventBuffer) ClearBufferedEventPlaintext(ctx context.Context, hash [32]byte) error {
	k := eventRef(hash)
	if s.isRefused() || !s.isWaiting(k.name) {
		return nil
	}
	if s.ring.batchOf(ctx) == nil { // a decryption may be rolled back
		s.setWaiting(k.name, false)
	}
	return s.ring.putLater(ctx, k, record{})
}

func (s *eventBuffer) isWaiting(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[name]
}

// setWaiting notes whether a plaintext may be stored. A name too many only costs
// a read.
func (s *eventBuffer) setWaiting(name string, waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiting {
		s.waiting[name] = true
	} else {
		delete(s.waiting, name)
	}
}

func (s *eventBuffer) isRefused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Refuse notes that the host did not store an update: plaintexts stay from now
// on.
func (r *Ring) Refuse() {
	r.buffer.mu.Lock()
	defer r.buffer.mu.Unlock()
	r.buffer.refused = true
}

// DeleteOldBufferedHashes removes the plaintexts of messages that were not
// delivered again.
func (s *eventBuffer) DeleteOldBufferedHashes(ctx context.Context) error {
	_, err := s.ring.removeBefore(ctx, kindEvent, time.Now().Add(-eventRetention))
	return err
}

// errNoOutgoing is returned for sent messages. The host has them; see
// GetMessageForRetry in package whatsapp.
var errNoOutgoing = errors.New("sent messages are not stored with the keys")

// GetOutgoingEvent is not used.
func (*eventBuffer) GetOutgoingEvent(context.Context, types.JID, types.JID, types.MessageID) (string, []byte, error) {
	return "", nil, errNoOutgoing
}

// AddOutgoingEvent is not used.
func (*eventBuffer) AddOutgoingEvent(context.Context, types.JID, types.MessageID, string, []byte) error {
	return errNoOutgoing
}

// DeleteOldOutgoingEvents is not used.
func (*eventBuffer) DeleteOldOutgoingEvents(context.Context) error { return nil }
