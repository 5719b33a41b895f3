package keys

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	wastore "go.mau.fi/whatsmeow/store"
)

const collection = "regular_high"

// macs are the values of n indexes.
func macs(n int) (list []wastore.AppStateMutationMAC) {
	for i := range n {
		index := binary.BigEndian.AppendUint32(nil, uint32(i))
		list = append(list, wastore.AppStateMutationMAC{IndexMAC: index, ValueMAC: slices.Concat(index, index)})
	}
	return list
}

// write changes the app state as whatsmeow does: the version comes first.
func (r ring) write(ctx context.Context, tb testing.TB, version uint64, list []wastore.AppStateMutationMAC) {
	tb.Helper()
	must(tb, r.PutAppStateVersion(ctx, collection, version, [128]byte{byte(version)}))
	must(tb, r.PutAppStateMutationMACs(ctx, collection, version, list))
}

// version returns the version of the app state.
func (r ring) version(ctx context.Context, tb testing.TB) uint64 {
	tb.Helper()
	version, hash, err := r.GetAppStateVersion(ctx, collection)
	if err != nil || hash != [128]byte{byte(version)} {
		tb.Fatalf("version %d with the hash %x, %v", version, hash[:1], err)
	}
	return version
}

func TestDraftIsStoredWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, macChunk, 2*macChunk + 1} {
		s := newShelf(t)
		a := s.link(t, accountA)
		r := s.open(t, a)
		r.write(t.Context(), t, 1, macs(1))

		lost, _ := r.Draft(t.Context())
		r.write(lost, t, 7, macs(2))
		ctx, draft := r.Draft(t.Context())
		if InDraft(t.Context()) || !InDraft(ctx) {
			t.Error("a context does not tell whether it is a draft's")
		}
		r.write(ctx, t, 2, macs(n))
		must(t, r.DeleteAppStateMutationMACs(ctx, collection, [][]byte{macs(1)[0].IndexMAC}))
		if in, out := r.version(ctx, t), r.version(t.Context(), t); in != 2 || out != 1 {
			t.Errorf("the version is %d in the draft and %d outside, want 2 and 1", in, out)
		}
		if got, err := r.GetAppStateMutationMAC(ctx, collection, macs(1)[0].IndexMAC); got != nil || err != nil {
			t.Errorf("a removed value is %x, %v", got, err)
		}
		if n := s.count(t, "kind = 'mac'"); n != 1 {
			t.Errorf("%d values are on disk before the draft is saved, want 1", n)
		}
		must(t, draft.Save(t.Context()))
		s.reopen(t) // as a process that ends
		r = s.open(t, a)
		if got := r.version(t.Context(), t); got != 2 {
			t.Errorf("version %d is on disk, want 2", got)
		}
		if got := s.count(t, "kind = 'mac'"); got != n-1 {
			t.Errorf("%d values are on disk, want %d", got, n-1)
		}
	}
}

// A large draft that is interrupted leaves a collection that is unknown, not one with a wrong hash.
func TestInterruptedDraftLeavesNoVersion(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	r := s.open(t, a)
	r.write(t.Context(), t, 1, macs(1))
	ctx, draft := r.Draft(t.Context())
	r.write(ctx, t, 2, macs(2*macChunk))
	mend := s.failWrites(t, kindMAC)
	if err := draft.Save(t.Context()); err == nil {
		t.Fatal("the draft was saved")
	}
	mend()
	r = s.open(t, a)
	if got, _, err := r.GetAppStateVersion(t.Context(), collection); got != 0 || err != nil {
		t.Errorf("version %d is known, %v", got, err)
	}
	ctx, draft = r.Draft(t.Context())
	must(t, r.DeleteAppStateVersion(ctx, collection))
	r.write(ctx, t, 3, macs(2))
	must(t, draft.Save(t.Context()))
	if n := s.count(t, "kind = 'mac'"); n != 2 {
		t.Errorf("%d values are on disk, want 2", n)
	}
}

// A message that is decrypted meanwhile is no part of a draft.
func TestDraftConcernsTheAppStateOnly(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	r := s.open(t, s.link(t, accountA))
	ctx, _ := r.Draft(t.Context())
	must(t, r.receive(ctx, 1, "one"))
	must(t, r.PutManySessions(ctx, map[string][]byte{"15550009999:0": []byte("x")}))
	if got := r.session(t, address); got != "one" {
		t.Errorf("session = %q, want one", got)
	}
	if n := s.count(t, "kind = 'session'"); n != 2 {
		t.Errorf("%d sessions are on disk, want 2", n)
	}
}
