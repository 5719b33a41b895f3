package keys

import (
	"context"
	"slices"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// names are what is known of a person, as it is kept.
type names struct {
	JID      string `json:"jid"`
	First    string `json:"first,omitempty"`
	Full     string `json:"full,omitempty"`
	Push     string `json:"push,omitempty"`
	Business string `json:"business,omitempty"`
	Redacted string `json:"redacted,omitempty"` // the phone number with most of its digits hidden
}

func (c names) info() types.ContactInfo {
	return types.ContactInfo{
		Found: true, FirstName: c.First, FullName: c.Full, PushName: c.Push, BusinessName: c.Business, RedactedPhone: c.Redacted,
	}
}

func contactRef(user types.JID) ref { return ref{kindContact, nameOf(user.String())} }

// PutPushName stores the name a person gave itself, and says whether it is new
// and what it was.
func (r *Ring) PutPushName(ctx context.Context, user types.JID, name string) (changed bool, before string, err error) {
	return r.rename(ctx, user, name, func(c *names) *string { return &c.Push })
}

// PutBusinessName stores the name the vendor verified.
func (r *Ring) PutBusinessName(ctx context.Context, user types.JID, name string) (changed bool, before string, err error) {
	return r.rename(ctx, user, name, func(c *names) *string { return &c.Business })
}

// rename changes one name of a contact.
func (r *Ring) rename(ctx context.Context, user types.JID, name string, field func(*names) *string) (changed bool, before string, err error) {
	err = r.editContact(ctx, user, func(c *names) bool {
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

// editContact changes what is known of a person; edit tells whether it did.
func (r *Ring) editContact(ctx context.Context, user types.JID, edit func(*names) bool) error {
	return r.change(ctx, func(b *batch) error { return b.editContact(ctx, user, edit) })
}

func (b *batch) editContact(ctx context.Context, user types.JID, edit func(*names) bool) error {
	k := contactRef(user)
	c := names{JID: user.String()}
	if _, err := b.load(ctx, k, &c); err != nil {
		return err
	}
	if !edit(&c) {
		return nil
	}
	return b.save(k, 0, c)
}

// PutContactName stores the name in the account's address book. whatsmeow's
// interface names the parameters the other way round; its callers and its own
// store have them in this order.
func (r *Ring) PutContactName(ctx context.Context, user types.JID, first, full string) error {
	return r.editContact(ctx, user, func(c *names) bool {
		changed := c.First != first || c.Full != full
		c.First, c.Full = first, full
		return changed
	})
}

// contactChunk bounds the rows of one operation of the writer, which others wait for.
const contactChunk = 300

// PutAllContactNames stores the names of an address book.
func (r *Ring) PutAllContactNames(ctx context.Context, contacts []store.ContactEntry) error {
	for chunk := range slices.Chunk(contacts, contactChunk) {
		err := r.change(ctx, func(b *batch) error {
			for _, entry := range chunk {
				err := b.editContact(ctx, entry.JID, func(c *names) bool {
					c.First, c.Full = entry.FirstName, entry.FullName
					return true
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// PutManyRedactedPhones stores what the vendor shows of hidden numbers.
func (r *Ring) PutManyRedactedPhones(ctx context.Context, entries []store.RedactedPhoneEntry) error {
	for chunk := range slices.Chunk(entries, contactChunk) {
		err := r.change(ctx, func(b *batch) error {
			for _, entry := range chunk {
				err := b.editContact(ctx, entry.JID, func(c *names) bool {
					c.Redacted = entry.RedactedPhone
					return true
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// GetContact gives what is known of a person.
func (r *Ring) GetContact(ctx context.Context, user types.JID) (types.ContactInfo, error) {
	var c names
	found, err := r.load(ctx, contactRef(user), &c)
	if err != nil || !found {
		return types.ContactInfo{}, err
	}
	return c.info(), nil
}

// GetAllContacts gives everybody of whom something is known.
func (r *Ring) GetAllContacts(ctx context.Context) (map[types.JID]types.ContactInfo, error) {
	list, err := r.list(ctx, kindContact, "")
	if err != nil {
		return nil, err
	}
	contacts := make(map[types.JID]types.ContactInfo, len(list))
	for _, l := range list {
		var c names
		if err := unmarshal(l.value, &c); err != nil {
			return nil, r.judge(ctx, err)
		}
		jid, err := types.ParseJID(c.JID)
		if err != nil {
			continue // whatsmeow could not ask for it either
		}
		contacts[jid] = c.info()
	}
	return contacts, nil
}
