package keys

import (
	"context"
	"errors"
	"slices"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// lids maps phone numbers to LIDs and back. Each account has its own map: what
// the vendor reveals to one customer's account must not reach another's.
type lids struct{ ring *Ring }

var (
	_ store.LIDStore = lids{}

	errNoMapping = errors.New("a mapping needs a LID and a number")
)

func lidRef(user string) ref    { return ref{kindLID, nameOf(user)} }
func numberRef(user string) ref { return ref{kindNumber, nameOf(user)} }

// PutLIDMapping stores that a LID and a number are the same person.
func (s lids) PutLIDMapping(ctx context.Context, lid, pn types.JID) error {
	if !isMapping(lid, pn) {
		return errNoMapping
	}
	if known, err := s.ring.get(ctx, lidRef(lid.User)); err != nil || string(known.value) == pn.User {
		return err
	}
	return s.put(ctx, []store.LIDMapping{{LID: lid, PN: pn}})
}

// PutManyLIDMappings stores mappings, and skips pairs that are not a LID and a
// number.
func (s lids) PutManyLIDMappings(ctx context.Context, mappings []store.LIDMapping) error {
	for chunk := range slices.Chunk(mappings, lidChunk) {
		if err := s.put(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// put stores mappings, and tells of those that are new.
func (s lids) put(ctx context.Context, mappings []store.LIDMapping) error {
	var fresh []store.LIDMapping
	err := s.ring.change(ctx, func(b *batch) (err error) {
		fresh, err = b.putMappings(ctx, mappings)
		return err
	})
	if err == nil && len(fresh) > 0 && s.ring.identified != nil {
		s.ring.identified(fresh)
	}
	return err
}

// putMappings returns those that are new.
func (b *batch) putMappings(ctx context.Context, mappings []store.LIDMapping) (fresh []store.LIDMapping, err error) {
	lids, numbers := make([]string, len(mappings)), make([]string, len(mappings))
	for i, m := range mappings {
		lids[i], numbers[i] = lidRef(m.LID.User).name, numberRef(m.PN.User).name
	}
	if err := errors.Join(b.readAhead(ctx, kindLID, lids), b.readAhead(ctx, kindNumber, numbers)); err != nil {
		return nil, err
	}
	for _, m := range mappings {
		if !isMapping(m.LID, m.PN) {
			continue
		}
		changed, err := b.putMapping(ctx, m.LID.User, m.PN.User)
		if err != nil {
			return nil, err
		}
		if changed {
			fresh = append(fresh, m)
		}
	}
	return fresh, nil
}

func isMapping(lid, pn types.JID) bool {
	return lid.Server == types.HiddenUserServer && pn.Server == types.DefaultUserServer
}

// putMapping stores both directions, and removes the mappings they replace: a
// LID has one number, and a number has one LID. It reports whether the mapping is new.
func (b *batch) putMapping(ctx context.Context, lid, pn string) (changed bool, err error) {
	oldPN, err := b.get(ctx, lidRef(lid))
	if err != nil {
		return false, err
	}
	oldLID, err := b.get(ctx, numberRef(pn))
	if err != nil {
		return false, err
	}
	if string(oldPN.value) == pn && string(oldLID.value) == lid {
		return false, nil
	}
	if oldPN.value != nil {
		b.remove(numberRef(string(oldPN.value)))
	}
	if oldLID.value != nil {
		b.remove(lidRef(string(oldLID.value)))
	}
	b.put(lidRef(lid), record{value: []byte(pn)})
	b.put(numberRef(pn), record{value: []byte(lid)})
	return true, nil
}

// GetPNForLID returns the number of a LID, or an empty JID.
func (s lids) GetPNForLID(ctx context.Context, lid types.JID) (types.JID, error) {
	if lid.Server != types.HiddenUserServer {
		return types.EmptyJID, nil
	}
	return s.find(ctx, lidRef(lid.User), lid.Device, types.DefaultUserServer)
}

// GetLIDForPN returns the LID of a number, or an empty JID.
func (s lids) GetLIDForPN(ctx context.Context, pn types.JID) (types.JID, error) {
	if pn.Server != types.DefaultUserServer {
		return types.EmptyJID, nil
	}
	return s.find(ctx, numberRef(pn.User), pn.Device, types.HiddenUserServer)
}

func (s lids) find(ctx context.Context, k ref, device uint16, server string) (types.JID, error) {
	rec, err := s.ring.get(ctx, k)
	if err != nil || len(rec.value) == 0 {
		return types.EmptyJID, err
	}
	return types.JID{User: string(rec.value), Device: device, Server: server}, nil
}

// GetManyLIDsForPNs returns the LIDs of numbers, without those that are unknown.
func (s lids) GetManyLIDsForPNs(ctx context.Context, pns []types.JID) (map[types.JID]types.JID, error) {
	if len(pns) == 0 {
		return map[types.JID]types.JID{}, nil
	}
	ctx, done := s.ring.Ahead(ctx)
	defer done()
	if err := run(ctx, s.ring, func() error { return s.ring.readMappings(ctx, pns) }); err != nil {
		return nil, err
	}
	found := make(map[types.JID]types.JID, len(pns))
	for _, pn := range pns {
		lid, err := s.GetLIDForPN(ctx, pn)
		if err != nil {
			return nil, err
		}
		if !lid.IsEmpty() {
			found[pn] = lid
		}
	}
	return found, nil
}

// bothNames returns jid and, if it is known, the other name of the same person.
func (s lids) bothNames(ctx context.Context, jid types.JID) ([]types.JID, error) {
	other, err := s.GetLIDForPN(ctx, jid)
	if err == nil && other.IsEmpty() {
		other, err = s.GetPNForLID(ctx, jid)
	}
	if err != nil || other.IsEmpty() {
		return []types.JID{jid}, err
	}
	return []types.JID{jid, other}, nil
}
