package keys

import (
	"context"
	"errors"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// The map between numbers and LIDs is each account's own: what the vendor shows
// to one customer's account is no business of another's.

var errNoMapping = errors.New("a mapping needs a LID and a number")

func lidRef(user string) ref    { return ref{kindLID, nameOf(user)} }
func numberRef(user string) ref { return ref{kindNumber, nameOf(user)} }

// PutLIDMapping stores that a LID and a number are the same person.
func (r *Ring) PutLIDMapping(ctx context.Context, lid, pn types.JID) error {
	if !isMapping(lid, pn) {
		return errNoMapping
	}
	if known, err := r.get(ctx, lidRef(lid.User)); err != nil || string(known.value) == pn.User {
		return err
	}
	return r.change(ctx, func(b *batch) error { return b.putMapping(ctx, lid.User, pn.User) })
}

// lidChunk bounds the rows of one operation of the writer, which others wait for.
const lidChunk = 250

// PutManyLIDMappings stores mappings, and passes over what is none.
func (r *Ring) PutManyLIDMappings(ctx context.Context, mappings []store.LIDMapping) error {
	for len(mappings) > 0 {
		chunk := mappings[:min(lidChunk, len(mappings))]
		mappings = mappings[len(chunk):]
		if err := r.change(ctx, func(b *batch) error { return b.putMappings(ctx, chunk) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) putMappings(ctx context.Context, mappings []store.LIDMapping) error {
	for _, m := range mappings {
		if !isMapping(m.LID, m.PN) {
			continue
		}
		if err := b.putMapping(ctx, m.LID.User, m.PN.User); err != nil {
			return err
		}
	}
	return nil
}

func isMapping(lid, pn types.JID) bool {
	return lid.Server == types.HiddenUserServer && pn.Server == types.DefaultUserServer
}

// putMapping stores both directions, and removes what they replace: a LID has
// one number, and a number one LID.
func (b *batch) putMapping(ctx context.Context, lid, pn string) error {
	oldPN, err := b.get(ctx, lidRef(lid))
	if err != nil {
		return err
	}
	oldLID, err := b.get(ctx, numberRef(pn))
	if err != nil {
		return err
	}
	if string(oldPN.value) == pn && string(oldLID.value) == lid {
		return nil
	}
	if oldPN.value != nil {
		b.remove(numberRef(string(oldPN.value)))
	}
	if oldLID.value != nil {
		b.remove(lidRef(string(oldLID.value)))
	}
	b.put(lidRef(lid), record{value: []byte(pn)})
	b.put(numberRef(pn), record{value: []byte(lid)})
	return nil
}

// GetPNForLID gives the number of a LID, or none.
func (r *Ring) GetPNForLID(ctx context.Context, lid types.JID) (types.JID, error) {
	if lid.Server != types.HiddenUserServer {
		return types.EmptyJID, nil
	}
	return r.otherName(ctx, lidRef(lid.User), lid.Device, types.DefaultUserServer)
}

// GetLIDForPN gives the LID of a number, or none.
func (r *Ring) GetLIDForPN(ctx context.Context, pn types.JID) (types.JID, error) {
	if pn.Server != types.DefaultUserServer {
		return types.EmptyJID, nil
	}
	return r.otherName(ctx, numberRef(pn.User), pn.Device, types.HiddenUserServer)
}

func (r *Ring) otherName(ctx context.Context, k ref, device uint16, server string) (types.JID, error) {
	rec, err := r.get(ctx, k)
	if err != nil || len(rec.value) == 0 {
		return types.EmptyJID, err
	}
	return types.JID{User: string(rec.value), Device: device, Server: server}, nil
}

// GetManyLIDsForPNs gives the LIDs of numbers, where they are known.
func (r *Ring) GetManyLIDsForPNs(ctx context.Context, pns []types.JID) (map[types.JID]types.JID, error) {
	lids := make(map[types.JID]types.JID, len(pns))
	for _, pn := range pns {
		lid, err := r.GetLIDForPN(ctx, pn)
		if err != nil {
			return nil, err
		}
		if !lid.IsEmpty() {
			lids[pn] = lid
		}
	}
	return lids, nil
}

// bothNames gives a person's name and, when it is known, the other one.
func (r *Ring) bothNames(ctx context.Context, jid types.JID) ([]types.JID, error) {
	other, err := r.GetLIDForPN(ctx, jid)
	if err == nil && other.IsEmpty() {
		other, err = r.GetPNForLID(ctx, jid)
	}
	if err != nil || other.IsEmpty() {
		return []types.JID{jid}, err
	}
	return []types.JID{jid, other}, nil
}
