package keys

import (
	"context"
	"errors"
	"slices"

	"go.mau.fi/whatsmeow/types"
)

// ahead holds records that were read for calls of whatsmeow that would read them one by one.
type ahead struct {
	ring    *Ring
	records map[ref]record // guarded by the ring's mu; those that are written since are removed
}

// aheadKey is the context key of an ahead.
type aheadKey struct{}

// Ahead returns a context that keeps what is read ahead with it, and a function to call when it is no longer used. A message
// that is sent with it reads the identities of its recipients with their sessions, and not one by one.
func (r *Ring) Ahead(ctx context.Context) (_ context.Context, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &ahead{ring: r, records: map[ref]record{}}
	r.aheads = append(r.aheads, a)
	return context.WithValue(ctx, aheadKey{}, a), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.aheads = slices.DeleteFunc(r.aheads, func(other *ahead) bool { return other == a })
		a.records = nil
	}
}

// ReadAhead is like Ahead, and reads what whatsmeow reads about each person whom it adds to a group or looks up: the other
// name of the person, and the tokens under both names. That takes three queries instead of five for each person.
func (r *Ring) ReadAhead(ctx context.Context, people []types.JID) (_ context.Context, done func(), err error) {
	ctx, done = r.Ahead(ctx)
	err = run(ctx, r, func() error {
		if err := r.readMappings(ctx, people); err != nil {
			return err
		}
		names := slices.Clone(people)
		for _, jid := range people {
			if other, err := r.otherName(ctx, jid); err != nil {
				return err
			} else if !other.IsEmpty() {
				names = append(names, other)
			}
		}
		return r.readAhead(ctx, kindToken, namesOf(names, tokenRef))
	})
	return ctx, done, err
}

// readMappings reads ahead the LIDs of numbers and the numbers of LIDs.
func (r *Ring) readMappings(ctx context.Context, people []types.JID) error {
	from := map[string][]types.JID{}
	for _, jid := range people {
		from[jid.Server] = append(from[jid.Server], jid)
	}
	return errors.Join(
		r.readAhead(ctx, kindNumber, namesOf(from[types.DefaultUserServer], mappingRef)),
		r.readAhead(ctx, kindLID, namesOf(from[types.HiddenUserServer], mappingRef)))
}

// otherName returns the LID of a number, or the number of a LID; the zero JID if it is unknown.
func (r *Ring) otherName(ctx context.Context, jid types.JID) (types.JID, error) {
	if jid.Server == types.HiddenUserServer {
		return lids{r}.GetPNForLID(ctx, jid)
	}
	return lids{r}.GetLIDForPN(ctx, jid)
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
	_, _, generation := r.recall(ctx, ref{})
	found, err := r.readMany(ctx, kind, names)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.generation != generation || a.records == nil {
		return nil // something was written while they were read
	}
	for _, name := range names {
		a.records[ref{kind, name}] = found[name]
	}
	return nil
}

// ahead returns a record that was read ahead with the same context. The caller holds mu.
func (r *Ring) ahead(ctx context.Context, k ref) (rec record, ok bool) {
	if a, _ := ctx.Value(aheadKey{}).(*ahead); a != nil && a.ring == r {
		rec, ok = a.records[k]
	}
	return rec, ok
}
