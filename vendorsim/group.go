package vendorsim

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

var (
	// ErrUnknownGroup is returned for a group that does not exist.
	ErrUnknownGroup = errors.New("no such group")
	// ErrNotMember is returned for a number that is not in a group.
	ErrNotMember = errors.New("not a member of the group")
)

// Group is a chat of several people.
type Group struct {
	ID      string    `json:"id"` // digits; its address is ID@g.us
	Subject string    `json:"subject"`
	Members []string  `json:"members"` // numbers
	Admins  []string  `json:"admins"`  // those of the members who may change the group
	Created time.Time `json:"created"`
}

// group is a group with what its members' phones know of each other. Its fields are guarded by core.mu.
type group struct {
	saved savedGroup
}

type savedGroup struct {
	ID      string    `json:"id"`
	Subject string    `json:"subject"`
	Members []number  `json:"members"`
	Admins  []number  `json:"admins"`
	Created time.Time `json:"created"`
	// Holders are the companions that have the key with which a member's phone encrypts, by the member.
	Holders map[number][]string `json:"holders,omitempty"`
}

func groupKey(id string) string { return "group/" + id }

func (g *group) jid() types.JID { return types.NewJID(g.saved.ID, types.GroupServer) }

func (g *group) has(n number) bool { return slices.Contains(g.saved.Members, n) }

// view returns the group as callers see it.
func (g *group) view() Group {
	return Group{g.saved.ID, g.saved.Subject, numbersOf(g.saved.Members), numbersOf(g.saved.Admins), g.saved.Created}
}

func numbersOf(list []number) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.String()
	}
	return out
}

// CreateGroup creates a group. The first member is its administrator. Members are numbers, of simulated phones or of
// linked accounts.
func (v *Vendor) CreateGroup(subject string, members ...string) (Group, error) {
	s := savedGroup{ID: newGroupID(), Subject: subject, Created: now(), Holders: map[number][]string{}}
	for _, text := range members {
		n, err := knownNumber(text)
		if err != nil {
			return Group{}, err
		}
		if !slices.Contains(s.Members, n) {
			s.Members = append(s.Members, n)
		}
	}
	if len(s.Members) == 0 {
		return Group{}, fmt.Errorf("%w: a group needs one", ErrNotMember)
	}
	s.Admins = s.Members[:1:1]
	v.mu.Lock()
	g := &group{s}
	v.groups[s.ID] = g
	v.put(groupKey(s.ID), s)
	v.mu.Unlock()
	return g.view(), v.flush()
}

func newGroupID() string {
	n, _ := rand.Int(rand.Reader, big.NewInt(1e14)) // never fails
	return fmt.Sprintf("1203%014d", n)
}

// Groups returns the groups in which a number is, the oldest first.
func (v *Vendor) Groups(member string) []Group {
	n, err := parseNumber(member)
	if err != nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	list := []Group{}
	for _, g := range v.groups {
		if g.has(n) {
			list = append(list, g.view())
		}
	}
	slices.SortFunc(list, func(a, b Group) int { return a.Created.Compare(b.Created) })
	return list
}

// WriteInGroup sends content from the phone of a member to a group, and returns its id on the network. All companions
// of all members get it.
func (v *Vendor) WriteInGroup(ctx context.Context, id, from string, c Content) (networkID string, err error) {
	writer, err := knownNumber(from)
	if err != nil {
		return "", err
	}
	return v.groupChats.write(ctx, writer, id, c)
}

// member returns a group that a number is in. The caller holds v.mu.
func (v groupChats) member(id string, n number) (*group, error) {
	g := v.groups[id]
	switch {
	case g == nil:
		return nil, fmt.Errorf("%w: %s", ErrUnknownGroup, id)
	case !g.has(n):
		return nil, fmt.Errorf("%w: %s in %s", ErrNotMember, n, id)
	}
	return g, nil
}

// query answers a request about a group.
func (v groupChats) query(c *conn, n *waBinary.Node) {
	to, _ := attrJID(n, "to")
	v.mu.Lock()
	g, err := v.member(to.User, c.companion.account.number)
	var node waBinary.Node
	if err == nil {
		node = g.node()
	}
	v.mu.Unlock()
	switch {
	case errors.Is(err, ErrUnknownGroup):
		c.replyError(n, 404, "item-not-found")
	case err != nil:
		c.replyError(n, 403, "forbidden")
	default:
		c.reply(n, node)
	}
}

// node describes the group to its members.
func (g *group) node() waBinary.Node {
	list := make([]waBinary.Node, len(g.saved.Members))
	for i, n := range g.saved.Members {
		attrs := waBinary.Attrs{"jid": n.lid(), "phone_number": n.pn()}
		if slices.Contains(g.saved.Admins, n) {
			attrs["type"] = "admin"
		}
		list[i] = waBinary.Node{Tag: "participant", Attrs: attrs}
	}
	return waBinary.Node{Tag: "group", Content: list, Attrs: waBinary.Attrs{
		"id": g.saved.ID, "subject": g.saved.Subject, "s_t": g.saved.Created.Unix(), "creation": g.saved.Created.Unix(),
		"creator": g.saved.Admins[0].lid(), "size": len(list), "addressing_mode": "lid",
	}}
}
