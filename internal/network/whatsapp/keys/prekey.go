package keys

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/util/keys"
)

// maxPreKey is the highest id that fits the protocol's three bytes.
const maxPreKey = 1<<24 - 1

var errPreKeysUsedUp = errors.New("all ids of prekeys are used up")

// preKeys holds the one-time keys with which contacts start sessions.
type preKeys struct{ ring *Ring }

var _ store.PreKeyStore = preKeys{}

// GenOnePreKey makes a prekey that is sent in a retry receipt.
func (s preKeys) GenOnePreKey(ctx context.Context) (key *keys.PreKey, err error) {
	err = s.ring.change(ctx, func(b *batch) error {
		made, err := b.makePreKeys(ctx, 1, true)
		if err == nil {
			key = made[0]
		}
		return err
	})
	return key, err
}

// GetOrGenPreKeys returns prekeys to upload to the vendor: those that exist and
// were not uploaded yet, then new ones.
func (s preKeys) GetOrGenPreKeys(ctx context.Context, count uint32) (list []*keys.PreKey, err error) {
	err = s.ring.change(ctx, func(b *batch) error {
		list, err = b.newPreKeys(ctx, int(count))
		if err != nil {
			return err
		}
		made, err := b.makePreKeys(ctx, int(count)-len(list), false)
		list = append(list, made...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// newPreKeys returns the oldest prekeys that were not uploaded yet.
func (b *batch) newPreKeys(ctx context.Context, limit int) (list []*keys.PreKey, err error) {
	all, err := b.list(ctx, kindPreKey, "")
	for _, l := range all {
		if l.at != 0 || len(list) == limit {
			continue
		}
		key, err := decodePreKey(l)
		if err != nil {
			return nil, err
		}
		list = append(list, key)
	}
	return list, err
}

// makePreKeys makes prekeys with ids that were never used. The counter is
// stored apart from the keys, because it must outlive them.
func (b *batch) makePreKeys(ctx context.Context, count int, uploaded bool) ([]*keys.PreKey, error) {
	if count <= 0 {
		return nil, nil
	}
	counter := ref{kindCounter, kindPreKey}
	last, err := b.lastPreKey(ctx, counter)
	if err != nil {
		return nil, err
	}
	if int(last)+count > maxPreKey {
		return nil, errPreKeysUsedUp
	}
	var rec record
	if uploaded {
		rec.at = now()
	}
	list := make([]*keys.PreKey, count)
	for i := range list {
		last++
		list[i] = keys.NewPreKey(last)
		rec.value = list[i].Priv[:]
		b.put(ref{kindPreKey, preKeyName(last)}, rec)
	}
	b.put(counter, record{value: []byte(strconv.FormatUint(uint64(last), 10))})
	return list, nil
}

func (b *batch) lastPreKey(ctx context.Context, counter ref) (uint32, error) {
	rec, err := b.get(ctx, counter)
	if err != nil || rec.value == nil {
		return 0, err
	}
	last, err := strconv.ParseUint(string(rec.value), 10, 24)
	if err != nil {
		return 0, fmt.Errorf("read the last prekey's id: %w", err)
	}
	return uint32(last), nil
}

// GetPreKey returns a prekey, or nil.
func (s preKeys) GetPreKey(ctx context.Context, id uint32) (*keys.PreKey, error) {
	name := preKeyName(id)
	rec, err := s.ring.get(ctx, ref{kindPreKey, name})
	if err != nil || rec.value == nil {
		return nil, err
	}
	return decodePreKey(namedRecord{name, rec})
}

// RemovePreKey removes a prekey that was used.
func (s preKeys) RemovePreKey(ctx context.Context, id uint32) error {
	return s.ring.remove(ctx, ref{kindPreKey, preKeyName(id)})
}

// MarkPreKeysAsUploaded records that the vendor has all prekeys up to an id.
func (s preKeys) MarkPreKeysAsUploaded(ctx context.Context, upTo uint32) error {
	last, uploaded := preKeyName(upTo), now()
	return s.ring.change(ctx, func(b *batch) error {
		list, err := b.list(ctx, kindPreKey, "")
		for _, l := range list {
			if l.at == 0 && l.name <= last {
				b.put(ref{kindPreKey, l.name}, record{value: l.value, at: uploaded})
			}
		}
		return err
	})
}

// UploadedPreKeyCount counts the prekeys that were uploaded and not used.
func (s preKeys) UploadedPreKeyCount(ctx context.Context) (int, error) {
	return query(ctx, s.ring, func() (int, error) {
		if err := s.ring.flushPending(ctx); err != nil {
			return 0, err
		}
		return s.ring.store.db.SessionKeys.Count(ctx, s.ring.account, kindPreKey)
	})
}

// preKeyName makes names that sort like the ids.
func preKeyName(id uint32) string { return fmt.Sprintf("%08d", id) }

func decodePreKey(l namedRecord) (*keys.PreKey, error) {
	id, err := strconv.ParseUint(l.name, 10, 32)
	if err != nil || len(l.value) != 32 {
		return nil, errKeyLength
	}
	return &keys.PreKey{KeyPair: *keys.NewKeyPairFromPrivateKey([32]byte(l.value)), KeyID: uint32(id)}, nil
}
