package keys

import (
	"context"
	"slices"

	"go.mau.fi/whatsmeow/types"
)

// ahead holds records that were read for calls of whatsmeow that would read them one by one.
type ahead struct {
	ring    *Ring
	records map[ref]record // guarded by the ring's mu; a record that is written is removed
}

// aheadKey is the context key of an ahead.
type aheadKey struct{}

// Ahead returns a context that keeps what is read ahead with it, and a function to call when it is no longer used. A
// message that is sent with it reads the identities of its recipients with their sessions, and not one by one.
func (r *Ring) Ahead(ctx context.Context) (_ context.Context, done func()) {
	a := &ahead{ring: r, records: map[ref]record{}}
	r.register(a)
	return context.WithValue(ctx, aheadKey{}, a), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unregister(a)
		a.records = nil
	}
}

// ReadAhead is like Ahead, and reads what whatsmeow reads about each person whom it adds to a group or looks up: the
// other name of the person, and the tokens under both names. That takes a few queries instead of five for each person.
func (r *Ring) ReadAhead(ctx context.Context, people []types.JID) (_ context.Context, done func(), err error) {
	ctx, done = r.Ahead(ctx)
	return ctx, done, run(ctx, r, func() error { return r.readPeople(ctx, people) })
}

func (r *Ring) readPeople(ctx context.Context, people []types.JID) error {
	if err := r.readMappings(ctx, people); err != nil {
		return err
	}
	var others []types.JID
	for _, jid := range people {
		other, err := r.otherName(ctx, jid)
		if err != nil {
			return err
		}
		if !other.IsEmpty() {
			others = append(others, other)
		}
	}
	if err := r.readMappings(ctx, others); err != nil {
		return err
	}
	return r.readAhead(ctx, kindToken, namesOf(append(others, people...), tokenRef))
}

// readMappings reads ahead the LIDs of numbers and the numbers of LIDs.
func (r *Ring) readMappings(ctx context.Context, people []types.JID) error {
	from := map[string][]types.JID{}
	for _, jid := range people {
		from[jid.Server] = append(from[jid.Server], jid)
	}
	if err := r.readAhead(ctx, kindNumber, namesOf(from[types.DefaultUserServer], mappingRef)); err != nil {
		return err
	}
	return r.readAhead(ctx, kindLID, namesOf(from[types.HiddenUserServer], mappingRef))
}

// otherName returns the LID of a number, or the number of a LID; the zero JID if it is unknown.
func (r *Ring) otherName(ctx context.Context, jid types.JID) (types.JID, error) {
	server := types.HiddenUserServer
	if jid.Server == server {
		server = types.DefaultUserServer
	}
	rec, err := r.read(ctx, mappingRef(jid))
	if err != nil || len(rec.value) == 0 {
		return types.EmptyJID, err
	}
	return types.NewJID(string(rec.value), server), nil
}

func mappingRef(jid types.JID) ref {
	if jid.Server == types.HiddenUserServer {
		return lidRef(jid.User)
	}
	return numberRef(jid.User)
}

func namesOf(people []types.JID, named func(types.JID) ref) []string {
	names := make([]string, len(people))
	for i, jid := range people {
		names[i] = named(jid).name
	}
	return names
}

// readAhead reads records of a kind for later reads with the same context, if it keeps them.
func (r *Ring) readAhead(ctx context.Context, kind string, names []string) error {
	a, _ := ctx.Value(aheadKey{}).(*ahead)
	if a == nil || a.ring != r || len(names) == 0 {
		return nil
	}
	unwritten := &ahead{ring: r, records: make(map[ref]record, len(names))} // while they are read
	for _, name := range names {
		unwritten.records[ref{kind, name}] = record{}
	}
	r.register(unwritten)
	found, err := r.readMany(ctx, kind, names)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unregister(unwritten)
	if err != nil || a.records == nil {
		return err
	}
	for k := range unwritten.records {
		a.records[k] = found[k.name]
	}
	return nil
}

func (r *Ring) register(a *ahead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aheads = append(r.aheads, a)
}

// unregister ends the use of an ahead. The caller holds mu.
func (r *Ring) unregister(a *ahead) {
	r.aheads = slices.DeleteFunc(r.aheads, func(other *ahead) bool { return other == a })
}

// ahead returns a record that was read ahead with the same context. The caller holds mu.
func (r *Ring) ahead(ctx context.Context, k ref) (rec record, ok bool) {
	if a, _ := ctx.Value(aheadKey{}).(*ahead); a != nil && a.ring == r {
		rec, ok = a.records[k]
	}
	return rec, ok
}
