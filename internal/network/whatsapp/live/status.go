package live

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// MaxViewers is to how many people a status post can go. Each of their devices gets a key of its own, in the time
// that a send may take.
const MaxViewers = 2000

// Audience chooses to whom whatsmeow sends a status post: it takes all people with a name in its store, which knows the
// names that people have chosen themselves, and not those of the address book.
type Audience struct {
	store.ContactStore

	mu     sync.Mutex // guards the field below
	chosen map[types.JID]types.ContactInfo
}

// GetAllContacts returns the people who were chosen last. whatsmeow calls it for nothing but status posts.
func (a *Audience) GetAllContacts(context.Context) (map[types.JID]types.ContactInfo, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.chosen, nil
}

// Choose makes those of an address book who may see the posts of the account get the next one, as its owner has
// decided on the phone. A [*network.Rejected] says why it cannot be posted.
func (a *Audience) Choose(ctx context.Context, cli *whatsmeow.Client, book []postern.BookEntry) error {
	lists, err := cli.GetStatusPrivacy(ctx)
	if err != nil {
		return err
	}
	chosen, n := map[types.JID]types.ContactInfo{}, 0
	switch who := lists[0]; who.Type {
	case types.StatusPrivacyTypeWhitelist: // whatsmeow takes those
		n = len(who.List)
	case types.StatusPrivacyTypeContacts, types.StatusPrivacyTypeBlacklist:
		if n = len(book)/2 - len(who.List); n > MaxViewers { // a book may name everybody twice
			break
		}
		chosen, err = viewers(ctx, cli, book, who.List)
		n = len(chosen)
	default:
		return &network.Rejected{Code: postern.EncryptionFailed, Detail: "on its phone, the account has chosen a kind of " +
			"audience for status posts that is not known here"}
	}
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.chosen = chosen
	return checkViewers(n)
}

// checkViewers refuses a post to nobody, and one to too many.
func checkViewers(n int) error {
	switch {
	case n == 0:
		return &network.Rejected{Code: postern.RecipientNotFound, Detail: "nobody would see the post: no contact is known " +
			"who may see it. Save contacts on the phone of the account, and check its privacy setting for status posts"}
	case n > MaxViewers:
		return &network.Rejected{Code: postern.EncryptionFailed, Detail: fmt.Sprintf("the post would go to more than "+
			"%d contacts, and no more are possible; choose fewer in the privacy settings of the phone", MaxViewers)}
	}
	return nil
}

// viewers returns the people of an address book, except some and the account itself.
func viewers(
	ctx context.Context, cli *whatsmeow.Client, book []postern.BookEntry, except []types.JID,
) (map[types.JID]types.ContactInfo, error) {
	hidden, err := hiddenFrom(ctx, cli, except)
	if err != nil {
		return nil, err
	}
	hidden.add(Own(cli))
	all := make(map[types.JID]types.ContactInfo, len(book))
	for _, e := range book {
		p, err := known(ctx, cli, addressesOf(e)...)
		if err != nil {
			return nil, err
		}
		if !hidden.has(p) {
			all[addressOf(p)] = types.ContactInfo{Found: true, FullName: e.Name}
		}
	}
	return all, nil
}

// exceptions are the people who must not see a post.
type exceptions struct {
	names map[string]bool
	vague bool // one of them is known by one name only: it may be anybody of whom only the other one is known
}

func hiddenFrom(ctx context.Context, cli *whatsmeow.Client, list []types.JID) (exceptions, error) {
	x := exceptions{names: map[string]bool{}}
	for _, jid := range list {
		p, err := known(ctx, cli, jid.ToNonAD())
		if err != nil {
			return x, err
		}
		x.vague = x.vague || p.PhoneNumber == "" || p.LID == ""
		x.add(p)
	}
	return x, nil
}

func (x *exceptions) add(p postern.Participant) {
	for _, name := range []string{string(p.PhoneNumber), string(p.LID)} {
		if name != "" {
			x.names[name] = true
		}
	}
}

func (x *exceptions) has(p postern.Participant) bool {
	return x.names[string(p.PhoneNumber)] || x.names[string(p.LID)] ||
		x.vague && (p.PhoneNumber == "" || p.LID == "")
}

// addressesOf returns the addresses of a person in the address book.
func addressesOf(e postern.BookEntry) (list []types.JID) {
	for _, name := range []string{e.Entry, e.Other} {
		if lid, ok := strings.CutPrefix(name, "lid:"); ok {
			list = append(list, types.NewJID(lid, types.HiddenUserServer))
		} else if name != "" {
			list = append(list, numberAddress(name))
		}
	}
	return list
}

// addressOf returns the address of a person: the LID, unless it is unknown.
func addressOf(p postern.Participant) types.JID {
	if lid, ok := strings.CutPrefix(string(p.LID), "lid:"); ok {
		return types.NewJID(lid, types.HiddenUserServer)
	}
	return numberAddress(string(p.PhoneNumber))
}
