package vendorsim

import (
	"context"
	"net/http"
	"slices"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// StatusID stands for the id of a group in what phones show of status posts, and in the ledger.
const StatusID = "status"

// Status are the status posts of the network. Contacts see them for a day; here they stay.
type Status struct{ v *core }

// Status returns the status posts of the network.
func (v *core) Status() Status { return Status{v} }

// StatusPrivacy says who may see the status posts of an account. Clients have to read it: the network passes posts on
// to those for whom they are sealed.
type StatusPrivacy string

// Who may see status posts. Without a choice, it is all contacts.
const (
	StatusContacts StatusPrivacy = "contacts"
	StatusExcept   StatusPrivacy = "blacklist" // all contacts, except some numbers
	StatusOnly     StatusPrivacy = "whitelist" // some numbers
)

// SetPrivacy lets the owner of a number choose on the phone who may see its posts.
func (s Status) SetPrivacy(num string, who StatusPrivacy, list ...string) error {
	numbers, err := knownNumbers(list)
	if err != nil {
		return err
	}
	return s.v.people.setProfile(num, func(saved *profile) { saved.StatusFor, saved.StatusList = who, numbers })
}

// Post posts from the phone of a number. viewers are those who get it. The posts of a phone are deleted with
// [Vendor.Revoke].
func (s Status) Post(ctx context.Context, from string, c Content, viewers ...string) (networkID string, err error) {
	n, err := knownNumber(from)
	if err != nil {
		return "", err
	}
	return s.v.statusPosts.write(ctx, n, viewers, c)
}

func knownNumbers(list []string) (numbers []number, err error) {
	numbers = make([]number, len(list))
	for i, num := range list {
		if numbers[i], err = knownNumber(num); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// write sends content from a phone to the companions of its number and of the viewers, whose phones show it
// immediately.
func (v statusPosts) write(ctx context.Context, from number, viewers []string, c Content) (string, error) {
	list, err := knownNumbers(viewers)
	if err != nil {
		return "", err
	}
	return v.groupChats.writeTo(ctx, from, statusGroup(from, list), c)
}

// statusGroup is those who see a post of a number, as the group that they are for one post. Its key is handed out with
// each post.
func statusGroup(author number, viewers []number) *group {
	members := []number{author}
	for _, n := range viewers {
		if !slices.Contains(members, n) {
			members = append(members, n)
		}
	}
	return &group{saved: savedGroup{ID: StatusID, Members: members}}
}

// statusFor is [statusGroup] for the copies of a companion's post.
func statusFor(author number, parts []part) *group {
	viewers := make([]number, len(parts))
	for i, p := range parts {
		viewers[i] = p.number
	}
	return statusGroup(author, viewers)
}

// groupAddress is the address of a group, or of status posts.
func groupAddress(id string) types.JID {
	if id == StatusID {
		return types.StatusBroadcastJID
	}
	return types.NewJID(id, types.GroupServer)
}

// shownTo returns a message as the phone of a member shows it. The author of a status post sees who gets it.
func (g *group) shownTo(n number, s Shown) Shown {
	if g.saved.ID == StatusID && n.String() == s.From {
		s.Viewers = numbersOf(g.saved.Members[1:])
	}
	return s
}

// privacy tells a companion who may see the posts of its account. The network names people by either of their
// addresses.
func (v statusPosts) privacy(c *conn, n *waBinary.Node) {
	v.mu.Lock()
	saved := v.profiles[c.companion.account.number]
	v.mu.Unlock()
	if saved.StatusFor == "" {
		c.replyError(n, http.StatusNotFound, "item-not-found")
		return
	}
	users := make([]waBinary.Node, len(saved.StatusList))
	for i, who := range saved.StatusList {
		address := who.pn()
		if i%2 == 1 {
			address = who.lid()
		}
		users[i] = waBinary.Node{Tag: "user", Attrs: waBinary.Attrs{"jid": address}}
	}
	c.reply(n, waBinary.Node{Tag: "privacy", Content: []waBinary.Node{{
		Tag: "list", Attrs: waBinary.Attrs{"type": string(saved.StatusFor), "default": "true"}, Content: users,
	}}})
}
