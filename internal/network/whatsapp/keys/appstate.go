package keys

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"go.mau.fi/whatsmeow/store"
)

// appState holds how far each collection of the app state is known. In the context of a [Draft] it
// changes the draft.
type appState struct{ ring *Ring }

var _ store.AppStateStore = appState{}

func versionRef(name string) ref { return ref{kindVersion, nameOf(name)} }

func macRef(name string, index []byte) ref {
	return ref{kindMAC, nameOf(name, hex.EncodeToString(index))}
}

func (s appState) change(ctx context.Context, fill func(*batch) error) error {
	if d := s.ring.draftOf(ctx); d != nil {
		return d.change(ctx, fill)
	}
	return s.ring.change(ctx, fill)
}

func (s appState) get(ctx context.Context, k ref) (record, error) {
	if d := s.ring.draftOf(ctx); d != nil {
		return d.get(ctx, k)
	}
	return s.ring.get(ctx, k)
}

// PutAppStateVersion stores the version of a collection and its hash.
func (s appState) PutAppStateVersion(ctx context.Context, name string, version uint64, hash [128]byte) error {
	return s.change(ctx, func(b *batch) error {
		b.put(versionRef(name), record{value: append(binary.BigEndian.AppendUint64(nil, version), hash[:]...)})
		return nil
	})
}

// GetAppStateVersion returns the version and the hash of a collection; both are
// zero if it is unknown.
func (s appState) GetAppStateVersion(ctx context.Context, name string) (version uint64, hash [128]byte, err error) {
	rec, err := s.get(ctx, versionRef(name))
	if err != nil || rec.value == nil {
		return 0, hash, err
	}
	if len(rec.value) != 8+len(hash) {
		return 0, hash, s.ring.check(ctx, errKeyLength)
	}
	copy(hash[:], rec.value[8:])
	return binary.BigEndian.Uint64(rec.value), hash, nil
}

// DeleteAppStateVersion removes a collection.
func (s appState) DeleteAppStateVersion(ctx context.Context, name string) error {
	return s.change(ctx, func(b *batch) error {
		b.remove(versionRef(name))
		return b.removeAll(ctx, kindMAC, nameOf(name)+" ")
	})
}

// PutAppStateMutationMACs stores the values of indexes of a collection.
func (s appState) PutAppStateMutationMACs(
	ctx context.Context, name string, _ uint64, mutations []store.AppStateMutationMAC,
) error {
	for chunk := range slices.Chunk(mutations, macChunk) {
		err := s.change(ctx, func(b *batch) error {
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
func (s appState) DeleteAppStateMutationMACs(ctx context.Context, name string, indexMACs [][]byte) error {
	for chunk := range slices.Chunk(indexMACs, macChunk) {
		err := s.change(ctx, func(b *batch) error {
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

// GetAppStateMutationMAC returns the value of an index, or nil.
func (s appState) GetAppStateMutationMAC(ctx context.Context, name string, indexMAC []byte) ([]byte, error) {
	rec, err := s.get(ctx, macRef(name, indexMAC))
	return rec.value, err
}
