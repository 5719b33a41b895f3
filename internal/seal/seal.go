// Package seal encrypts data at rest that must not be readable on a stolen disk or
// backup, and defines a type for secrets that prints as ***.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// The first byte of a sealed value says how it was sealed. The first key of a database seals without an id,
// as earlier releases do, so that they can open the values until the key is rotated for the first time.
const (
	withoutID = 1 // by the first key of the database
	withID    = 2 // the id of the key follows
)

// key is a secret key.
type key struct {
	id     KeyID
	aead   cipher.AEAD
	macKey []byte
}

func newKey(raw []byte) (*key, error) {
	if len(raw) != KeySize {
		return nil, fmt.Errorf("a secret key must have %d bytes, not %d", KeySize, len(raw))
	}
	sealKey, err := hkdf.Key(sha256.New, raw, nil, "postern seal", KeySize)
	if err != nil {
		return nil, fmt.Errorf("derive the sealing key: %w", err)
	}
	macKey, err := hkdf.Key(sha256.New, raw, nil, "postern mac", KeySize)
	if err != nil {
		return nil, fmt.Errorf("derive the signing key: %w", err)
	}
	block, err := aes.NewCipher(sealKey)
	if err != nil {
		return nil, fmt.Errorf("create the cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("create the cipher: %w", err)
	}
	k := &key{aead: aead, macKey: macKey}
	k.id = keyIDOf([keyIDSize]byte(mac(macKey, "key id", "postern")))
	return k, nil
}

// check is by what a database recognizes its first key.
func (k *key) check() string { return hex.EncodeToString(mac(k.macKey, "key check", "postern")) }

// Box encrypts with AES-256-GCM and a random nonce. It is safe for concurrent use, also while keys are added.
type Box struct {
	mu    sync.Mutex // for changes
	state atomic.Pointer[boxState]
}

// boxState is what a Box knows. It does not change.
type boxState struct {
	first   KeyID // the one that seals without an id; "" if it is not known
	sealing *key
	keys    map[KeyID]*key
	retired map[KeyID][]byte // the keys for MACs of keys that are gone
}

// NewBox creates a Box from a key of 32 random bytes, which is the first one of its database.
func NewBox(raw []byte) (*Box, error) {
	k, err := newKey(raw)
	if err != nil {
		return nil, err
	}
	return newBox(Keys{[]*key{k}}, k.id, k), nil
}

// NewBoxOf creates a Box that encrypts with one of some keys. first is the first key of the database, "" if
// nothing is encrypted with it any more.
func NewBoxOf(keys Keys, first, sealing KeyID) (*Box, error) {
	for _, k := range keys.list {
		if k.id == sealing {
			return newBox(keys, first, k), nil
		}
	}
	return nil, &MissingKeyError{sealing}
}

func newBox(keys Keys, first KeyID, sealing *key) *Box {
	b, s := &Box{}, &boxState{first: first, sealing: sealing, keys: map[KeyID]*key{}}
	for _, k := range keys.list {
		s.keys[k.id] = k
	}
	b.state.Store(s)
	return b
}

// MissingKeyError is the error for a key that a Box does not have.
type MissingKeyError struct{ ID KeyID }

func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("the secret key %s is needed, and is not in the key file", e.ID)
}

// Add adds keys. A Box forgets none, because values that others keep in memory may be sealed with them.
func (b *Box) Add(keys Keys) {
	b.change(func(s *boxState) {
		for _, k := range keys.list {
			s.keys[k.id] = k
		}
	})
}

// Use makes a key the one that encrypts.
func (b *Box) Use(id KeyID) error {
	if b.Sealing() == id {
		return nil
	}
	if !b.Has(id) {
		return &MissingKeyError{id}
	}
	b.change(func(s *boxState) { s.sealing = s.keys[id] })
	return nil
}

// Remember keeps what [Box.Proofs] needs of a key that may be gone; see [Box.Keepsake].
func (b *Box) Remember(id KeyID, keepsake []byte) {
	if known := b.state.Load().retired[id]; !hmac.Equal(known, keepsake) {
		b.change(func(s *boxState) { s.retired[id] = keepsake })
	}
}

// Keepsake returns what must be kept of a key, sealed, for [Box.Proofs]; nil if the key is not here.
func (b *Box) Keepsake(id KeyID) []byte {
	if k := b.state.Load().keys[id]; k != nil {
		return bytes.Clone(k.macKey)
	}
	return nil
}

func (b *Box) change(do func(*boxState)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := *b.state.Load()
	s.keys, s.retired = maps.Clone(s.keys), maps.Clone(s.retired)
	if s.retired == nil {
		s.retired = map[KeyID][]byte{}
	}
	do(&s)
	b.state.Store(&s)
}

// Has tells whether the Box has a key.
func (b *Box) Has(id KeyID) bool { return b.state.Load().keys[id] != nil }

// IDs returns the ids of all keys, the one that encrypts first.
func (b *Box) IDs() []KeyID {
	s := b.state.Load()
	ids := []KeyID{s.sealing.id}
	for _, id := range slices.Sorted(maps.Keys(s.keys)) {
		if id != s.sealing.id {
			ids = append(ids, id)
		}
	}
	return ids
}

// Sealing returns the id of the key that encrypts.
func (b *Box) Sealing() KeyID { return b.state.Load().sealing.id }

// Check returns by what a database recognizes its first key.
func (b *Box) Check() string { return b.state.Load().sealing.check() }

// Head returns the bytes with which all values begin that a key has sealed, and no others.
func (b *Box) Head(id KeyID) []byte { return b.state.Load().head(id) }

func (s *boxState) head(id KeyID) []byte {
	if id == s.first {
		return []byte{withoutID}
	}
	raw := id.bytes()
	return append([]byte{withID}, raw[:]...)
}

// Seal encrypts plain. The place says where the value is stored, such as
// "endpoint.secret whk_…"; a value moved to another place cannot be opened.
func (b *Box) Seal(plain []byte, place string) []byte {
	s := b.state.Load()
	return s.sealing.aead.Seal(s.head(s.sealing.id), nil, plain, []byte(place)) //nolint:gosec // the AEAD chooses its nonce itself
}

// Open decrypts a value that Seal encrypted for the same place. The error is a [*MissingKeyError] if the
// value is sealed with a key that the Box does not have.
func (b *Box) Open(sealed []byte, place string) ([]byte, error) {
	s := b.state.Load()
	switch {
	case len(sealed) > 0 && sealed[0] == withoutID:
		return s.openFirst(sealed[1:], place)
	case len(sealed) > keyIDSize && sealed[0] == withID:
		id := keyIDOf([keyIDSize]byte(sealed[1:]))
		if s.keys[id] == nil {
			return nil, &MissingKeyError{id}
		}
		return s.keys[id].open(sealed[1+keyIDSize:], place)
	}
	return nil, errors.New("an encrypted value has an unknown format")
}

// openFirst opens a value that the first key has sealed.
func (s *boxState) openFirst(sealed []byte, place string) (plain []byte, err error) {
	if k := s.keys[s.first]; k != nil {
		return k.open(sealed, place)
	}
	for _, k := range s.keys {
		if plain, err = k.open(sealed, place); err == nil {
			return plain, nil
		}
	}
	return nil, err
}

func (k *key) open(sealed []byte, place string) ([]byte, error) {
	plain, err := k.aead.Open(nil, nil, sealed, []byte(place))
	if err != nil {
		return nil, errors.New(
			"an encrypted value cannot be opened: the secret key is another one, or the value was changed")
	}
	return plain, nil
}

// Reseal returns a value sealed with the key that encrypts now, and the value itself if it is so already or
// empty.
func (b *Box) Reseal(sealed []byte, place string) ([]byte, error) {
	if len(sealed) == 0 || bytes.HasPrefix(sealed, b.Head(b.Sealing())) {
		return sealed, nil
	}
	plain, err := b.Open(sealed, place)
	if err != nil {
		return nil, err
	}
	return b.Seal(plain, place), nil
}

// MAC returns a message authentication code of 16 bytes for a purpose.
func (b *Box) MAC(purpose, message string) []byte {
	return mac(b.state.Load().sealing.macKey, purpose, message)
}

// Verify tells whether a code is the MAC by one of the keys.
func (b *Box) Verify(code []byte, purpose, message string) bool {
	for _, k := range b.state.Load().keys {
		if hmac.Equal(code, mac(k.macKey, purpose, message)) {
			return true
		}
	}
	return false
}

// Proofs returns the MACs of a message by all keys that the Box has or remembers, beginning with [Box.MAC]. They
// find a code of which only the MAC is stored.
func (b *Box) Proofs(purpose, message string) [][]byte {
	s := b.state.Load()
	list := [][]byte{mac(s.sealing.macKey, purpose, message)}
	for id, k := range s.keys {
		if id != s.sealing.id {
			list = append(list, mac(k.macKey, purpose, message))
		}
	}
	for id, macKey := range s.retired {
		if s.keys[id] == nil {
			list = append(list, mac(macKey, purpose, message))
		}
	}
	return list
}

func mac(key []byte, purpose, message string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(purpose + "\x00" + message))
	return h.Sum(nil)[:16]
}

// Secret is a text that must not be shown. Every way of printing it prints ***.
type Secret string

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String returns ***.
func (Secret) String() string { return "***" }

// GoString returns ***, for %#v.
func (Secret) GoString() string { return "***" }

// MarshalText returns ***, for JSON and text.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// LogValue returns ***, for slog.
func (Secret) LogValue() slog.Value { return slog.StringValue("***") }
