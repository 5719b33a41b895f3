package vendorsim

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"strings"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/appstate/lthash"
	"go.mau.fi/whatsmeow/proto/waServerSync"
	"go.mau.fi/whatsmeow/proto/waSyncAction"
	"google.golang.org/protobuf/proto"
)

// BookEntry is a person in the address book of a phone.
type BookEntry struct {
	Number string // of the person
	Name   string
	// Address and LID, unless they are empty, replace what the phone writes for the number. They may be anything: a client
	// must bear it.
	Address, LID string
}

// AddressBook is the address book of each account's phone. It is part of the account's app state.
type AddressBook struct{ v *core }

// AddressBook returns the address books of the accounts' phones.
func (v *core) AddressBook() AddressBook { return AddressBook{v} }

// bookPatch is how many entries a phone changes with one patch.
const bookPatch = 500

// Save adds people to the address book of an account's phone, or changes their names.
func (b AddressBook) Save(ctx context.Context, account string, list ...BookEntry) error {
	n, err := b.v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	mutations := make([]appstate.MutationInfo, len(list))
	for i, e := range list {
		if mutations[i], err = e.mutation(); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(mutations, bookPatch) {
		info := appstate.PatchInfo{Type: appstate.WAPatchCriticalUnblockLow, Mutations: part}
		if err := b.v.states.change(ctx, n, info); err != nil {
			return err
		}
	}
	return b.v.flush()
}

// mutation is what the phone writes to the app state about an entry.
func (e BookEntry) mutation() (m appstate.MutationInfo, err error) {
	address, lid := e.Address, e.LID
	if e.Number != "" {
		n, err := parseNumber(e.Number)
		if err != nil {
			return m, err
		}
		address, lid = cmp.Or(address, n.pn().String()), cmp.Or(lid, n.lid().String())
	}
	first, _, _ := strings.Cut(e.Name, " ")
	return appstate.MutationInfo{
		Index: []string{appstate.IndexContact, address}, Version: 2,
		Value: &waSyncAction.SyncActionValue{ContactAction: &waSyncAction.ContactAction{
			FullName: &e.Name, FirstName: &first, LidJID: &lid, SaveOnPrimaryAddressbook: new(true),
		}},
	}, nil
}

// Remove removes a person from the address book of an account's phone, or does nothing if the person is not in it.
func (b AddressBook) Remove(ctx context.Context, account, number string) error {
	n, err := b.v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	m, err := BookEntry{Number: number}.mutation()
	if err != nil {
		return err
	}
	if err := b.v.states.remove(ctx, n, appstate.WAPatchCriticalUnblockLow, m); err != nil {
		return err
	}
	return b.v.flush()
}

// remove lets the phone of a number remove a value from the app state, if it is there.
func (v states) remove(ctx context.Context, n number, name appstate.WAPatchName, m appstate.MutationInfo) error {
	s := v.stateOf(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[name]
	raw, err := s.proc.EncodePatch(ctx, []byte(stateKeyID), c.state, appstate.PatchInfo{
		Type: name, Mutations: []appstate.MutationInfo{m},
	})
	if err != nil {
		return fmt.Errorf("change the app state: %w", err)
	}
	patch := new(waServerSync.SyncdPatch)
	if err := proto.Unmarshal(raw, patch); err != nil {
		return err
	}
	before := c.records[string(patch.GetMutations()[0].GetRecord().GetIndex().GetBlob())]
	if before == nil {
		return nil
	}
	key, err := v.stateKey(n)
	if err != nil {
		return err
	}
	if raw, err = removing(patch, c, macOf(before), key); err != nil {
		return err
	}
	return v.take(ctx, n, s, c, raw, nil)
}

// removing turns a patch that sets one value into one that removes it. whatsmeow can only make patches that set
// something.
func removing(patch *waServerSync.SyncdPatch, c *collection, before, key []byte) ([]byte, error) {
	expanded, err := hkdf.Key(sha256.New, key, nil, "WhatsApp Mutation Keys", 5*sha256.Size)
	if err != nil {
		return nil, err
	}
	valueKey, snapshotKey, patchKey := expanded[64:96], expanded[96:128], expanded[128:160]
	m := patch.GetMutations()[0]
	m.Operation = waServerSync.SyncdMutation_REMOVE.Enum()
	value := m.GetRecord().GetValue()
	body, keyID := value.GetBlob()[:len(value.GetBlob())-macBytes], m.GetRecord().GetKeyID().GetID()
	mac := sum(sha512.New, valueKey, []byte{byte(m.GetOperation()) + 1}, keyID, body, bigEndian(uint64(len(keyID)+1)))
	value.Blob = slices.Concat(body, mac[:macBytes])

	next, name := c.state, []byte(c.name)
	next.Version++
	lthash.WAPatchIntegrity.SubtractThenAddInPlace(next.Hash[:], [][]byte{before}, nil)
	patch.SnapshotMAC = sum(sha256.New, snapshotKey, next.Hash[:], bigEndian(next.Version), name)
	patch.PatchMAC = sum(sha256.New, patchKey, patch.SnapshotMAC, mac[:macBytes], bigEndian(next.Version), name)
	return proto.Marshal(patch)
}

func bigEndian(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// sum returns the HMAC of parts.
func sum(of func() hash.Hash, key []byte, parts ...[]byte) []byte {
	h := hmac.New(of, key)
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}
