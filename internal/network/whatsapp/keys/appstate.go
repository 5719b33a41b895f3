package keys

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"go.mau.fi/whatsmeow/store"
)

// appState holds how far each collection of the app state is known.
type appState struct{ ring *Ring }

var _ store.AppStateStore = appState{}

func versionRef(name string) ref { return ref{kindVersion, nameOf(name)} }

func macRef(name string, index []byte) ref {
	return ref{kindMAC, nameOf(name, hex.EncodeToString(index))}
}

// PutAppStateVersion stores the version of a collection and its hash.
func (s appState) PutAppStateVersion(ctx context.Context, name string, version uint64, hash [128]byte) error {
	return s.ring.put(ctx, versionRef(name), append(binary.BigEndian.AppendUint64(nil, version), hash[:]...))
}

// GetAppStateVersion returns the version and the hash of a collection; both are
// zero if it is unknown.
func (s appState) GetAppStateVersion(ctx context.Context, name string) (version uint64, hash [128]byte, err error) {
	rec, err := s.ring.get(ctx, versionRef(name))
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
	return s.ring.change(ctx, func(b *batch) error {
		b.remove(versionRef(name))
		return b.removeAll(ctx, kindMAC, nameOf(name)+" ")
	})
}

// PutAppStateMutationMACs stores the values of indexes of a collection.
func (s appState) PutAppStateMutationMACs(
	ctx context.Context, name string, _ uint64, mutations []store.AppStateMutationMAC,
) error {
	for chunk := range slices.Chunk(mutations, macChunk) {
		err := s.ring.change(ctx, func(b *batch) error {
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
		refs := make([]ref, len(chunk))
		for i, index := range chunk {
			refs[i] = macRef(name, index)
		}
		if err := s.ring.remove(ctx, refs...); err != nil {
			return err
		}
	}
	return nil
}

// GetAppStateMutationMAC returns the value of an index, or nil.
func (s appState) GetAppStateMutationMAC(ctx context.Context, name string, indexMAC []byte) ([]byte, error) {
	rec, err := s.ring.get(ctx, macRef(name, indexMAC))
	return rec.value, err
}
