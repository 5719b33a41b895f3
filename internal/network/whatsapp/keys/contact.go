package keys

import (
	"context"
	"slices"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// contacts holds the names of people.
type contacts struct{ ring *Ring }

var _ store.ContactStore = contacts{}

// names are the names of a person as they are stored.
type names struct {
	JID      string `json:"jid"`
	First    string `json:"first,omitempty"`
	Full     string `json:"full,omitempty"`
	Push     string `json:"push,omitempty"`
	Business string `json:"business,omitempty"`
	Redacted string `json:"redacted,omitempty"` // the phone number with most of its digits hidden
}

func (c names) decoded() types.ContactInfo {
	return types.ContactInfo{
		Found: true, FirstName: c.First, FullName: c.Full, PushName: c.Push,
		BusinessName: c.Business, RedactedPhone: c.Redacted,
	}
}

func contactRef(user types.JID) ref { return ref{kindContact, nameOf(user.String())} }

// PutPushName stores the name that people give themselves. It reports whether
// the name changed, and the previous one.
func (s contacts) PutPushName(
	ctx context.Context,
	user types.JID,
	name string,
) (changed bool, before string, err error) {
	return s.rename(ctx, user, name, func(c *names) *string { return &c.Push })
}

// PutBusinessName stores the name that the vendor verified, and reports like
// PutPushName.
func (s contacts) PutBusinessName(
	ctx context.Context,
	user types.JID,
	name string,
) (changed bool, before string, err error) {
	return s.rename(ctx, user, name, func(c *names) *string { return &c.Business })
}

// rename changes one name of a contact.
func (s contacts) rename(
	ctx context.Context, user types.JID, name string, field func(*names) *string,
) (changed bool, before string, err error) {
	err = s.edit(ctx, user, func(c *names) bool {
		before = *field(c)
		changed = before != name
		*field(c) = name
		return changed
	})
	if err != nil || !changed {
		return false, "", err
	}
	return true, before, nil
}

// PutContactName stores the name in the account's address book. whatsmeow's
// interface declares the two names in the other order; its callers and its own
// store use this one.
func (s contacts) PutContactName(ctx context.Context, user types.JID, first, full string) error {
	return s.edit(ctx, user, func(c *names) bool {
		changed := c.First != first || c.Full != full
		c.First, c.Full = first, full
		return changed
	})
}

// edit changes the names of a person; change reports whether they differ.
func (s contacts) edit(ctx context.Context, user types.JID, change func(*names) bool) error {
	return s.ring.change(ctx, func(b *batch) error { return b.editContact(ctx, user, change) })
}

func (b *batch) editContact(ctx context.Context, user types.JID, change func(*names) bool) error {
	k := contactRef(user)
	c := names{JID: user.String()}
	if _, err := b.load(ctx, k, &c); err != nil {
		return err
	}
	if !change(&c) {
		return nil
	}
	return b.save(k, 0, c)
}

// contactEdit changes the names of a person.
type contactEdit struct {
	user   types.JID
	change func(*names)
}

// PutAllContactNames stores the names of an address book.
func (s contacts) PutAllContactNames(ctx context.Context, list []store.ContactEntry) error {
	edits := make([]contactEdit, len(list))
	for i, e := range list {
		edits[i] = contactEdit{e.JID, func(c *names) { c.First, c.Full = e.FirstName, e.FullName }}
	}
	return s.editMany(ctx, edits)
}

// PutManyRedactedPhones stores the visible digits of hidden numbers.
func (s contacts) PutManyRedactedPhones(ctx context.Context, list []store.RedactedPhoneEntry) error {
	edits := make([]contactEdit, len(list))
	for i, e := range list {
		edits[i] = contactEdit{e.JID, func(c *names) { c.Redacted = e.RedactedPhone }}
	}
	return s.editMany(ctx, edits)
}

func (s contacts) editMany(ctx context.Context, edits []contactEdit) error {
	for chunk := range slices.Chunk(edits, contactChunk) {
		if err := s.ring.change(ctx, func(b *batch) error { return b.editContacts(ctx, chunk) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) editContacts(ctx context.Context, edits []contactEdit) error {
	for _, e := range edits {
		err := b.editContact(ctx, e.user, func(c *names) bool {
			e.change(c)
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// GetContact returns the names of a person.
func (s contacts) GetContact(ctx context.Context, user types.JID) (types.ContactInfo, error) {
	var c names
	found, err := s.ring.load(ctx, contactRef(user), &c)
	if err != nil || !found {
		return types.ContactInfo{}, err
	}
	return c.decoded(), nil
}

// GetAllContacts returns everyone who has a name.
func (s contacts) GetAllContacts(ctx context.Context) (map[types.JID]types.ContactInfo, error) {
	list, err := s.ring.list(ctx, kindContact, "")
	if err != nil {
		return nil, err
	}
	all := make(map[types.JID]types.ContactInfo, len(list))
	for _, l := range list {
		var c names
		if err := unmarshal(l.value, &c); err != nil {
			return nil, s.ring.check(ctx, err)
		}
		jid, err := types.ParseJID(c.JID)
		if err != nil {
			continue // whatsmeow could not ask for it either
		}
		all[jid] = c.decoded()
	}
	return all, nil
}
