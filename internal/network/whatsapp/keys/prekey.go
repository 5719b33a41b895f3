package keys

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.mau.fi/whatsmeow/util/keys"
)

// maxPreKey is the highest id that fits the protocol's three bytes.
const maxPreKey = 1<<24 - 1

var (
	errPreKeysUsedUp = errors.New("all ids of prekeys are used up")
	errKeyLength     = errors.New("a key has a wrong length")
)

// GenOnePreKey makes a prekey that goes out with the answer to somebody.
func (r *Ring) GenOnePreKey(ctx context.Context) (key *keys.PreKey, err error) {
	err = r.change(ctx, func(b *batch) error {
		made, err := b.makePreKeys(ctx, 1, true)
		if err == nil {
			key = made[0]
		}
		return err
	})
	return key, err
}

// GetOrGenPreKeys gives prekeys to offer to the vendor: those that were made and
// not offered yet, then new ones, all written together.
func (r *Ring) GetOrGenPreKeys(ctx context.Context, count uint32) (list []*keys.PreKey, err error) {
	err = r.change(ctx, func(b *batch) error {
		list, err = b.unoffered(ctx, int(count))
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

// unoffered gives the oldest prekeys that were not offered yet.
func (b *batch) unoffered(ctx context.Context, limit int) (list []*keys.PreKey, err error) {
	all, err := b.list(ctx, kindPreKey, "")
	for _, l := range all {
		if l.at != 0 || len(list) == limit {
			continue
		}
		key, err := preKeyOf(l)
		if err != nil {
			return nil, err
		}
		list = append(list, key)
	}
	return list, err
}

// makePreKeys makes prekeys with ids that were never used: what counts them
// outlives the keys.
func (b *batch) makePreKeys(ctx context.Context, count int, offered bool) ([]*keys.PreKey, error) {
	if count <= 0 {
		return nil, nil
	}
	k := ref{kindCounter, kindPreKey}
	last, err := b.lastPreKey(ctx, k)
	if err != nil {
		return nil, err
	}
	if int(last)+count > maxPreKey {
		return nil, errPreKeysUsedUp
	}
	var rec record
	if offered {
		rec.at = now()
	}
	list := make([]*keys.PreKey, count)
	for i := range list {
		last++
		list[i] = keys.NewPreKey(last)
		rec.value = list[i].Priv[:]
		b.put(ref{kindPreKey, preKeyName(last)}, rec)
	}
	b.put(k, record{value: []byte(strconv.FormatUint(uint64(last), 10))})
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

// GetPreKey gives a prekey, or nil.
func (r *Ring) GetPreKey(ctx context.Context, id uint32) (*keys.PreKey, error) {
	name := preKeyName(id)
	rec, err := r.get(ctx, ref{kindPreKey, name})
	if err != nil || rec.value == nil {
		return nil, err
	}
	return preKeyOf(listed{name, rec})
}

// RemovePreKey removes a prekey that was used.
func (r *Ring) RemovePreKey(ctx context.Context, id uint32) error {
	return r.change(ctx, func(b *batch) error {
		b.remove(ref{kindPreKey, preKeyName(id)})
		return nil
	})
}

// MarkPreKeysAsUploaded notes that the vendor has all prekeys up to an id.
func (r *Ring) MarkPreKeysAsUploaded(ctx context.Context, upTo uint32) error {
	last, offered := preKeyName(upTo), now()
	return r.change(ctx, func(b *batch) error {
		list, err := b.list(ctx, kindPreKey, "")
		for _, l := range list {
			if l.at == 0 && l.name <= last {
				b.put(ref{kindPreKey, l.name}, record{value: l.value, at: offered})
			}
		}
		return err
	})
}

// UploadedPreKeyCount counts the prekeys that were offered and not used.
func (r *Ring) UploadedPreKeyCount(ctx context.Context) (int, error) {
	return ask(ctx, r, func() (int, error) {
		if err := r.flush(ctx); err != nil {
			return 0, err
		}
		return r.keys.db.SessionKeys.Count(ctx, r.account, kindPreKey)
	})
}

// preKeyName makes names that sort like the ids.
func preKeyName(id uint32) string { return fmt.Sprintf("%08d", id) }

func preKeyOf(l listed) (*keys.PreKey, error) {
	id, err := strconv.ParseUint(l.name, 10, 32)
	if err != nil || len(l.value) != 32 {
		return nil, errKeyLength
	}
	return &keys.PreKey{KeyPair: *keys.NewKeyPairFromPrivateKey([32]byte(l.value)), KeyID: uint32(id)}, nil
}
