package keys

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"

	"go.mau.fi/whatsmeow/store"
)

// syncKeys holds the keys of the app state: settings that the account's devices
// share.
type syncKeys struct{ ring *Ring }

var _ store.AppStateSyncKeyStore = syncKeys{}

// syncKey is a key of the app state as it is stored.
type syncKey struct {
	ID          []byte `json:"id"`
	Data        []byte `json:"data"`
	Fingerprint []byte `json:"fingerprint"`
	Timestamp   int64  `json:"timestamp"`
}

func syncKeyRef(id []byte) ref { return ref{kindSyncKey, hex.EncodeToString(id)} }

func (k syncKey) decoded() *store.AppStateSyncKey {
	return &store.AppStateSyncKey{Data: k.Data, Fingerprint: k.Fingerprint, Timestamp: k.Timestamp}
}

// PutAppStateSyncKey stores a key, unless a newer one is stored under its id.
func (s syncKeys) PutAppStateSyncKey(ctx context.Context, id []byte, key store.AppStateSyncKey) error {
	k := syncKeyRef(id)
	return s.ring.change(ctx, func(b *batch) error {
		var known syncKey
		found, err := b.load(ctx, k, &known)
		if err != nil || found && known.Timestamp >= key.Timestamp {
			return err
		}
		return b.save(k, 0, syncKey{ID: id, Data: key.Data, Fingerprint: key.Fingerprint, Timestamp: key.Timestamp})
	})
}

// GetAppStateSyncKey returns a key, or nil.
func (s syncKeys) GetAppStateSyncKey(ctx context.Context, id []byte) (*store.AppStateSyncKey, error) {
	var key syncKey
	found, err := s.ring.load(ctx, syncKeyRef(id), &key)
	if err != nil || !found {
		return nil, err
	}
	return key.decoded(), nil
}

// GetLatestAppStateSyncKeyID returns the id of the newest key, or nil.
func (s syncKeys) GetLatestAppStateSyncKeyID(ctx context.Context) ([]byte, error) {
	list, err := s.all(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0].ID, nil
}

// GetAllAppStateSyncKeys returns the keys, newest first.
func (s syncKeys) GetAllAppStateSyncKeys(ctx context.Context) (all []*store.AppStateSyncKey, err error) {
	list, err := s.all(ctx)
	for _, key := range list {
		all = append(all, key.decoded())
	}
	return all, err
}

func (s syncKeys) all(ctx context.Context) ([]syncKey, error) {
	rows, err := s.ring.list(ctx, kindSyncKey, "")
	if err != nil {
		return nil, err
	}
	list := make([]syncKey, len(rows))
	for i, row := range rows {
		if err := unmarshal(row.value, &list[i]); err != nil {
			return nil, s.ring.check(ctx, err)
		}
	}
	slices.SortStableFunc(list, func(a, b syncKey) int { return cmp.Compare(b.Timestamp, a.Timestamp) })
	return list, nil
}
