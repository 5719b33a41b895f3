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
	// ErrTooManyMembers is returned for a group that no stanza could describe.
	ErrTooManyMembers = errors.New("too many members")
	// ErrNotMember is returned for a number that is not in a group.
	ErrNotMember = errors.New("not a member of the group")
)

// maxMembers is how many members a group may have. A list of the protocol has at most 65,535 nodes, and the one that
// describes a group has its settings, too.
const maxMembers = 65_500

// Group is a chat of several people.
type Group struct {
	ID      string    `json:"id"` // digits; its address is ID@g.us
	Subject string    `json:"subject"`
	Members []string  `json:"members"` // numbers
	Admins  []string  `json:"admins"`  // those of the members who may change the group
	Created time.Time `json:"created"`
	// What GroupChange changes.
	Description  string `json:"description"`
	AnnounceOnly bool   `json:"announceOnly"`
	AdminsEdit   bool   `json:"adminsEdit"`
	JoinApproval bool   `json:"joinApproval"`
	Disappearing int    `json:"disappearing"`

	Community     bool   `json:"community"`     // it is a community
	CommunityID   string `json:"communityId"`   // of the community to which it belongs; "" for none
	Announcements bool   `json:"announcements"` // it is the one in which the administrators of the community write
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

	Description   string            `json:"description,omitempty"`
	DescriptionID string            `json:"descriptionId,omitempty"`
	AnnounceOnly  bool              `json:"announceOnly,omitempty"`
	AdminsEdit    bool              `json:"adminsEdit,omitempty"`
	JoinApproval  bool              `json:"joinApproval,omitempty"`
	Disappearing  int               `json:"disappearing,omitempty"`
	Invite        string            `json:"invite,omitempty"`
	Requests      []joinRequest     `json:"requests,omitempty"`
	AddCodes      map[number]string `json:"addCodes,omitempty"` // for those who cannot be added
	Picture       []byte            `json:"picture,omitempty"`  // JPEG
	PictureID     string            `json:"pictureId,omitempty"`

	Community     bool   `json:"community,omitempty"`
	CommunityID   string `json:"communityId,omitempty"`
	Announcements bool   `json:"announcements,omitempty"`
}

func groupKey(id string) string { return "group/" + id }

func (g *group) jid() types.JID { return groupAddress(g.saved.ID) }

func (g *group) has(n number) bool { return slices.Contains(g.saved.Members, n) }

// view returns the group as callers see it.
func (g *group) view() Group {
	s := g.saved
	return Group{
		s.ID, s.Subject, numbersOf(s.Members), numbersOf(s.Admins), s.Created,
		s.Description, s.AnnounceOnly, s.AdminsEdit, s.JoinApproval, s.Disappearing,
		s.Community, s.CommunityID, s.Announcements,
	}
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
	s := savedGroup{
		ID: newGroupID(), Subject: subject, Created: now(), Holders: map[number][]string{}, Invite: newInvite(),
	}
	known := map[number]bool{}
	for _, text := range members {
		n, err := knownNumber(text)
		if err != nil {
			return Group{}, err
		}
		if !known[n] {
			s.Members = append(s.Members, n)
		}
		known[n] = true
	}
	switch {
	case len(s.Members) == 0:
		return Group{}, fmt.Errorf("%w: a group needs one", ErrNotMember)
	case len(s.Members) > maxMembers:
		return Group{}, fmt.Errorf("%w: %d, at most %d", ErrTooManyMembers, len(s.Members), maxMembers)
	}
	s.Admins = s.Members[:1:1]
	v.mu.Lock()
	g := &group{s}
	v.groups[s.ID] = g
	v.put(groupKey(s.ID), s)
	v.groupChats.tell(g, g.saved.Members, s.Admins[0], waBinary.Node{Tag: "create", Content: []waBinary.Node{g.node()}})
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

// node describes the group to its members.
func (g *group) node() waBinary.Node {
	list := make([]waBinary.Node, len(g.saved.Members), len(g.saved.Members)+5)
	for i, n := range g.saved.Members {
		attrs := waBinary.Attrs{"jid": n.lid(), "phone_number": n.pn()}
		if g.isAdmin(n) {
			attrs["type"] = "admin"
		}
		if i == 0 && g.isAdmin(n) {
			attrs["type"] = "superadmin"
		}
		list[i] = waBinary.Node{Tag: "participant", Attrs: attrs}
	}
	return waBinary.Node{Tag: "group", Content: append(list, g.settings()...), Attrs: waBinary.Attrs{
		"id": g.saved.ID, "subject": g.saved.Subject, "s_t": g.saved.Created.Unix(), "creation": g.saved.Created.Unix(),
		"creator": g.saved.Members[0].lid(), "size": len(list), "addressing_mode": "lid",
	}}
}

// settings describes what can be changed in the group.
func (g *group) settings() (list []waBinary.Node) {
	if g.saved.Description != "" {
		list = append(list, waBinary.Node{
			Tag: "description", Attrs: waBinary.Attrs{"id": g.saved.DescriptionID, "t": g.saved.Created.Unix()},
			Content: []waBinary.Node{{Tag: "body", Content: []byte(g.saved.Description)}},
		})
	}
	if g.saved.AnnounceOnly {
		list = append(list, waBinary.Node{Tag: "announcement"})
	}
	if g.saved.AdminsEdit {
		list = append(list, waBinary.Node{Tag: "locked"})
	}
	if g.saved.JoinApproval {
		list = append(list, approvalNode(true))
	}
	if g.saved.Disappearing > 0 {
		list = append(list, timerNotice(g.saved.Disappearing))
	}
	return append(list, g.belongs()...)
}
