package keys

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	wastore "go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// crowd returns 100 people, of whom the account knows both names of every second one, and has tokens under one or the
// other.
func crowd(t *testing.T, r ring) (people []types.JID) {
	t.Helper()
	var pairs []wastore.LIDMapping
	var tokens []wastore.PrivacyToken
	for i := range 100 {
		pair := wastore.LIDMapping{
			LID: types.NewJID(fmt.Sprintf("9%03d", i), types.HiddenUserServer),
			PN:  types.NewJID(fmt.Sprintf("1555%03d", i), types.DefaultUserServer),
		}
		if i%2 == 0 {
			pairs = append(pairs, pair)
		}
		one := []types.JID{pair.LID, pair.PN}[i/2%2]
		people = append(people, one)
		other := []types.JID{pair.PN, pair.LID}[i/2%2]
		tokens = append(tokens, wastore.PrivacyToken{
			User: []types.JID{one, other}[i/4%2], Token: []byte{byte(i)}, Timestamp: time.Unix(1e9, 0),
		})
	}
	must(t, r.PutManyLIDMappings(t.Context(), pairs))
	must(t, r.PutPrivacyTokens(t.Context(), tokens...))
	return people
}

// about says what whatsmeow reads about people whom it adds to a group or looks up. It looks for a token under the LID,
// if it knows it.
func about(ctx context.Context, t *testing.T, r ring, people []types.JID) (list []string) {
	t.Helper()
	for _, jid := range people {
		lid, err := r.GetLIDForPN(ctx, jid)
		must(t, err)
		pn, err := r.GetPNForLID(ctx, jid)
		must(t, err)
		holder := jid
		if !lid.IsEmpty() {
			holder = lid
		}
		token, err := r.GetPrivacyToken(ctx, holder)
		must(t, err)
		one := fmt.Sprint(jid, lid, pn)
		if token != nil {
			one += fmt.Sprint(token.Token)
		}
		list = append(list, one)
	}
	return list
}

func TestPeopleAreReadAhead(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	people := crowd(t, s.open(t, a))
	want := fmt.Sprint(about(t.Context(), t, s.open(t, a), people))

	r := s.open(t, a)
	before := s.reads.Load()
	ctx, done, err := r.ReadAhead(t.Context(), people)
	must(t, err)
	got := fmt.Sprint(about(ctx, t, r, people))
	if got != want {
		t.Errorf("read ahead: %s\none by one: %s", got, want)
	}
	if n := s.reads.Load() - before; n > 5 {
		t.Errorf("%d queries for %d people, want at most 5", n, len(people))
	}
	done()
	if got := fmt.Sprint(about(ctx, t, r, people)); got != want {
		t.Errorf("when it is done: %s", got)
	}
	if len(r.aheads) > 0 {
		t.Errorf("%d are still in use", len(r.aheads))
	}
}

// What is written after it was read ahead is seen, also when it is neither waiting to be written nor in the cache any
// more.
func TestWritesAfterReadingAheadAreSeen(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	people := crowd(t, s.open(t, a))
	r := s.open(t, a)
	ctx, done, err := r.ReadAhead(t.Context(), people)
	must(t, err)
	defer done()
	pn := types.NewJID("1555002", types.DefaultUserServer) // of the people
	moved := types.NewJID("777", types.HiddenUserServer)
	must(t, r.PutLIDMapping(t.Context(), moved, pn))
	for i := range 2 * cacheRecords {
		must(t, r.PutSession(t.Context(), fmt.Sprintf("1_%d:0", i), []byte("one")))
		must(t, r.PutSession(t.Context(), fmt.Sprintf("2_%d:0", i), make([]byte, 1000)))
	}
	if lid, err := r.GetLIDForPN(ctx, pn); err != nil || lid != moved {
		t.Errorf("LID = %v, %v, want %v", lid, err, moved)
	}
}

// What is written while it is read ahead is not kept as it was read, and the rest is.
func TestWritesWhileReadingAheadAreSeen(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	people := crowd(t, s.open(t, a))
	r := s.open(t, a)
	var once sync.Once
	write := func() {
		once.Do(func() { must(t, r.putLater(t.Context(), mappingRef(people[2]), record{value: []byte("777")})) })
	}
	s.reading.Store(&write)
	ctx, done, err := r.ReadAhead(t.Context(), people)
	must(t, err)
	defer done()
	kept, _ := ctx.Value(aheadKey{}).(*ahead)
	if rec, ok := kept.records[mappingRef(people[2])]; ok && string(rec.value) != "777" {
		t.Errorf("%q is kept", rec.value)
	}
	if rec := kept.records[mappingRef(people[6])]; len(rec.value) == 0 {
		t.Error("nothing is kept of somebody else")
	}
}

// The identities of all recipients of a message are read with their sessions.
func TestIdentitiesAreReadWithSessions(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a := s.link(t, accountA)
	r := s.open(t, a)
	var addresses []string
	for i := range 300 {
		addresses = append(addresses, fmt.Sprintf("9%03d_1:0", i))
		must(t, r.PutIdentity(t.Context(), addresses[i], [32]byte{byte(i)}))
	}
	r.Close(t.Context())

	r = s.open(t, a)
	ctx, done := r.Ahead(t.Context())
	defer done()
	before := s.reads.Load()
	_, err := r.GetManySessions(ctx, addresses)
	must(t, err)
	must(t, r.PutIdentity(ctx, addresses[7], [32]byte{99}))
	for i, one := range addresses {
		ok, err := r.IsTrustedIdentity(ctx, one, [32]byte{byte(i)})
		must(t, err)
		if want := i != 7; ok != want {
			t.Errorf("%s is trusted: %v, want %v", one, ok, want)
		}
	}
	if n := s.reads.Load() - before; n > 4 {
		t.Errorf("%d queries for %d recipients, want at most 4", n, len(addresses))
	}
}
