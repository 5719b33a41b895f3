package state

import (
	"context"
	"errors"
	"fmt"

	"postern/internal/network/whatsapp/content"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waServerSync"
	"go.mau.fi/whatsmeow/types"
)

// Contacts has the address book of the account's phone. It is not read by whatsmeow, which does not tell who was removed.
const Contacts = appstate.WAPatchCriticalUnblockLow

// errSnapshot means that the vendor has answered with a snapshot that does not fit.
var errSnapshot = errors.New("the vendor sent a snapshot out of turn")

// book reads the address book: what is new in it, or all of it.
func (s *State) book(ctx context.Context, version uint64, hash [128]byte, whole bool) (postern.AddressBook, error) {
	b := bookReader{AddressBook: postern.AddressBook{Whole: whole || version == 0}, at: make(map[string]int)}
	err := s.each(ctx, Contacts, appstate.HashState{Version: version, Hash: hash}, b.Whole, b.add)
	return b.AddressBook, err
}

// each calls add for each change of a collection after a version, or for each value of the whole collection, in the order
// of the patches. Other than whatsmeow it also reports what was removed.
func (s *State) each(
	ctx context.Context, name appstate.WAPatchName, from appstate.HashState, whole bool, add func(appstate.Mutation),
) error {
	if whole {
		from = appstate.HashState{}
		if err := s.cli.Store.AppState.DeleteAppStateVersion(ctx, string(name)); err != nil {
			return err
		}
	}
	proc, snapshot := appstate.NewProcessor(s.cli.Store, s.cli.Log), whole
	for more := true; more; snapshot = false {
		patches, err := s.patches(ctx, name, from, snapshot)
		if err != nil {
			return err
		}
		var mutations []appstate.Mutation
		mutations, from, err = proc.DecodePatches(ctx, patches, from, true)
		if errors.Is(err, appstate.ErrKeyNotFound) {
			//nolint:staticcheck // marked as dangerous, but whatsmeow offers no other way to ask for a key
			s.cli.DangerousInternals().RequestMissingAppStateKeys(ctx, patches)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		for _, m := range mutations {
			add(m)
		}
		more = patches.HasMorePatches
	}
	return nil
}

// patches returns what the vendor has of a collection after a version.
func (s *State) patches(
	ctx context.Context, name appstate.WAPatchName, from appstate.HashState, snapshot bool,
) (*appstate.PatchList, error) {
	//nolint:staticcheck // marked as dangerous, but what the safe one reads cannot be complete
	list, err := s.cli.DangerousInternals().FetchAppStatePatches(ctx, name, from.Version, snapshot)
	if err != nil {
		return nil, err
	}
	if list.Snapshot != nil && (!snapshot || from != appstate.HashState{}) {
		return nil, errSnapshot
	}
	list.Name = name
	return list, nil
}

// bookReader collects the entries of an address book.
type bookReader struct {
	postern.AddressBook

	at map[string]int // places of entries in Entries
}

// add notes a change of the address book. What is no entry of a person is ignored.
func (b *bookReader) add(m appstate.Mutation) {
	e, ok := entryOf(m)
	if !ok {
		return
	}
	if i, known := b.at[e.Entry]; known {
		b.Entries[i] = e
		return
	}
	if len(b.Entries) < postern.MaxBookEntries {
		b.at[e.Entry] = len(b.Entries)
		b.Entries = append(b.Entries, e)
	}
}

// entryOf returns what a change says of a person. An entry that was removed has no name.
func entryOf(m appstate.Mutation) (e postern.BookEntry, ok bool) {
	if len(m.Index) < 2 {
		return e, false
	}
	e.Entry = person(m.Index[1])
	set := m.Operation == waServerSync.SyncdMutation_SET
	switch m.Index[0] {
	case appstate.IndexContact:
		if c := m.Action.GetContactAction(); set {
			e.Name, e.Other = firstOf(c.GetFullName(), c.GetFirstName()), otherOf(e.Entry, c.GetLidJID(), c.GetPnJID())
		}
	case appstate.IndexLIDContact:
		if c := m.Action.GetLidContactAction(); set {
			e.Name = firstOf(c.GetFullName(), c.GetFirstName())
		}
	default:
		return e, false
	}
	return e, e.Entry != ""
}

// person returns the name of a person with an address: a number or a LID; "" for anything else.
func person(address string) string {
	jid, err := types.ParseJID(address)
	if err != nil || jid.Server != types.DefaultUserServer && jid.Server != types.HiddenUserServer {
		return ""
	}
	chat, err := postern.ParseChat(jid.ToNonAD().String())
	if err != nil || !postern.IsDirect(chat) {
		return ""
	}
	return chat
}

// otherOf returns by which other name an entry knows its person; "" if it does not say.
func otherOf(entry string, addresses ...string) string {
	for _, address := range addresses {
		if who := person(address); who != entry && who != "" {
			return who
		}
	}
	return ""
}

// firstOf returns the first of names that is one; "" if none is.
func firstOf(names ...string) string {
	for _, name := range names {
		if name = content.Name(name); name != "" {
			return name
		}
	}
	return ""
}
