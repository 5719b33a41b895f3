package keys

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"go.mau.fi/whatsmeow/store"
)

// syncKey is a key of the app state as it is kept.
type syncKey struct {
	ID          []byte `json:"id"`
	Data        []byte `json:"data"`
	Fingerprint []byte `json:"fingerprint"`
	Timestamp   int64  `json:"timestamp"`
}

func (k syncKey) shared() *store.AppStateSyncKey {
	return &store.AppStateSyncKey{Data: k.Data, Fingerprint: k.Fingerprint, Timestamp: k.Timestamp}
}

// PutAppStateSyncKey stores a key of the app state, unless a newer one is stored.
func (r *Ring) PutAppStateSyncKey(ctx context.Context, id []byte, key store.AppStateSyncKey) error {
	k := ref{kindSyncKey, hex.EncodeToString(id)}
	return r.change(ctx, func(b *batch) error {
		var known syncKey
		found, err := b.load(ctx, k, &known)
		if err != nil || found && known.Timestamp >= key.Timestamp {
			return err
		}
		return b.save(k, 0, syncKey{ID: id, Data: key.Data, Fingerprint: key.Fingerprint, Timestamp: key.Timestamp})
	})
}

// GetAppStateSyncKey gives a key of the app state, or nil.
func (r *Ring) GetAppStateSyncKey(ctx context.Context, id []byte) (*store.AppStateSyncKey, error) {
	var key syncKey
	found, err := r.load(ctx, ref{kindSyncKey, hex.EncodeToString(id)}, &key)
	if err != nil || !found {
		return nil, err
	}
	return key.shared(), nil
}

// GetLatestAppStateSyncKeyID gives the id of the newest key of the app state, or nil.
func (r *Ring) GetLatestAppStateSyncKeyID(ctx context.Context) ([]byte, error) {
	list, err := r.syncKeys(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0].ID, nil
}

// GetAllAppStateSyncKeys gives the keys of the app state, the newest first.
func (r *Ring) GetAllAppStateSyncKeys(ctx context.Context) (all []*store.AppStateSyncKey, err error) {
	list, err := r.syncKeys(ctx)
	for _, key := range list {
		all = append(all, key.shared())
	}
	return all, err
}

func (r *Ring) syncKeys(ctx context.Context) ([]syncKey, error) {
	rows, err := r.list(ctx, kindSyncKey, "")
	if err != nil {
		return nil, err
	}
	list := make([]syncKey, len(rows))
	for i, row := range rows {
		if err := unmarshal(row.value, &list[i]); err != nil {
			return nil, r.judge(ctx, err)
		}
	}
	slices.SortStableFunc(list, func(a, b syncKey) int { return cmp.Compare(b.Timestamp, a.Timestamp) })
	return list, nil
}

// PutAppStateVersion stores how far a collection of the app state is known: the
// version and its hash.
func (r *Ring) PutAppStateVersion(ctx context.Context, name string, version uint64, hash [128]byte) error {
	return r.change(ctx, func(b *batch) error {
		b.put(ref{kindVersion, nameOf(name)}, record{value: append(binary.BigEndian.AppendUint64(nil, version), hash[:]...)})
		return nil
	})
}

// GetAppStateVersion gives version and hash of a collection, both zero when
// nothing is known of it.
func (r *Ring) GetAppStateVersion(ctx context.Context, name string) (version uint64, hash [128]byte, err error) {
	rec, err := r.get(ctx, ref{kindVersion, nameOf(name)})
	if err != nil || rec.value == nil {
		return 0, hash, err
	}
	if len(rec.value) != 8+len(hash) {
		return 0, hash, r.judge(ctx, errKeyLength)
	}
	copy(hash[:], rec.value[8:])
	return binary.BigEndian.Uint64(rec.value), hash, nil
}

// DeleteAppStateVersion forgets a collection.
func (r *Ring) DeleteAppStateVersion(ctx context.Context, name string) error {
	return r.change(ctx, func(b *batch) error {
		b.remove(ref{kindVersion, nameOf(name)})
		return b.removeAll(ctx, kindMAC, nameOf(name)+" ")
	})
}

// macChunk bounds the rows of one operation of the writer, which others wait for.
const macChunk = 500

// PutAppStateMutationMACs stores the values of a collection's indexes.
func (r *Ring) PutAppStateMutationMACs(ctx context.Context, name string, _ uint64, mutations []store.AppStateMutationMAC) error {
	for chunk := range slices.Chunk(mutations, macChunk) {
		err := r.change(ctx, func(b *batch) error {
			for _, m := range chunk {
				b.put(macRef(name, m.IndexMAC), record{value: m.ValueMAC})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// DeleteAppStateMutationMACs removes indexes of a collection.
func (r *Ring) DeleteAppStateMutationMACs(ctx context.Context, name string, indexMACs [][]byte) error {
	for chunk := range slices.Chunk(indexMACs, macChunk) {
		err := r.change(ctx, func(b *batch) error {
			for _, index := range chunk {
				b.remove(macRef(name, index))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// GetAppStateMutationMAC gives the value of an index, or nil.
func (r *Ring) GetAppStateMutationMAC(ctx context.Context, name string, indexMAC []byte) ([]byte, error) {
	rec, err := r.get(ctx, macRef(name, indexMAC))
	return rec.value, err
}

func macRef(name string, index []byte) ref {
	return ref{kindMAC, nameOf(name, hex.EncodeToString(index))}
}
