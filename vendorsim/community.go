package vendorsim

import (
	"cmp"
	"slices"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// A community is a group of groups. Nobody writes in it: its administrators write in a group that is made with it, in which
// all of its members are.

// Communities are what simulated phones do with communities.
type Communities struct{ v *core }

// Communities returns what simulated phones do with communities.
func (v *core) Communities() Communities { return Communities{v} }

// Create creates a community of a number, with the group in which its administrators write.
func (c Communities) Create(subject, owner string) (Group, error) {
	n, err := knownNumber(owner)
	if err != nil {
		return Group{}, err
	}
	g := &group{savedGroup{
		ID: newGroupID(), Subject: subject, Created: now(), Holders: map[number][]string{}, Members: []number{n},
		Admins: []number{n}, Invite: newInvite(), Community: true,
	}}
	c.v.mu.Lock()
	c.v.groups[g.saved.ID] = g
	c.v.put(groupKey(g.saved.ID), g.saved)
	c.v.groupChats.announce(g, n)
	c.v.mu.Unlock()
	return g.view(), c.v.flush()
}

// Link lets the phone of an administrator put a group into a community, or take it out.
func (c Communities) Link(community, id, by string, on bool) error {
	n, err := knownNumber(by)
	if err != nil {
		return err
	}
	ask := waBinary.Node{Tag: "unlink"}
	child := []waBinary.Node{{Tag: "group", Attrs: waBinary.Attrs{"jid": groupAddress(id)}}}
	if ask.Content = child; on {
		ask = waBinary.Node{Tag: "links", Content: []waBinary.Node{{Tag: "link", Content: child}}}
	}
	c.v.mu.Lock()
	g, err := c.v.groupChats.member(community, n)
	if err == nil {
		_, err = c.v.groupChats.relink(g, n, ask)
	}
	c.v.mu.Unlock()
	if err != nil {
		return err
	}
	return c.v.flush()
}

// belongs describes what a group has to do with communities.
func (g *group) belongs() (list []waBinary.Node) {
	if g.saved.Community {
		list = append(list, waBinary.Node{
			Tag: "parent", Attrs: waBinary.Attrs{"default_membership_approval_mode": "request_required"},
		})
	}
	if g.saved.CommunityID != "" {
		list = append(list, waBinary.Node{
			Tag: "linked_parent", Attrs: waBinary.Attrs{"jid": groupAddress(g.saved.CommunityID)},
		})
	}
	if g.saved.Announcements {
		list = append(list, waBinary.Node{Tag: "default_sub_group"})
	}
	return list
}

// announce makes the group in which the administrators of a new community write. The caller holds v.mu.
func (v groupChats) announce(community *group, by number) {
	s := community.saved
	g := &group{savedGroup{
		ID: newGroupID(), Subject: s.Subject, Created: s.Created, Holders: map[number][]string{},
		Members: slices.Clone(s.Members), Admins: slices.Clone(s.Admins), Invite: newInvite(),
		AnnounceOnly: true, CommunityID: s.ID, Announcements: true,
	}}
	v.groups[g.saved.ID] = g
	v.put(groupKey(g.saved.ID), g.saved)
	v.tell(g, g.saved.Members, by, waBinary.Node{Tag: "create", Content: []waBinary.Node{g.node()}})
}

// parentOf returns the community in which somebody makes a group; nil for none.
func (v groupChats) parentOf(parent waBinary.Node, by number) (*group, error) {
	jid, inside := parent.Attrs["jid"].(types.JID)
	if !inside {
		return nil, nil //nolint:nilnil // most groups are in no community
	}
	community, err := v.member(jid.User, by)
	switch {
	case err != nil:
		return nil, err
	case !community.saved.Community:
		return nil, ErrUnknownGroup
	case !community.isAdmin(by):
		return nil, ErrNotAllowed
	}
	return community, nil
}

// within returns the groups of a community, the one of its administrators first.
func (v groupChats) within(community string) (list []*group) {
	for _, g := range v.groups {
		if g.saved.CommunityID == community {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *group) int {
		if a.saved.Announcements != b.saved.Announcements {
			return tagOrder(a.saved.Announcements)
		}
		return cmp.Compare(a.saved.ID, b.saved.ID)
	})
	return list
}

func tagOrder(first bool) int {
	if first {
		return -1
	}
	return 1
}

// subgroups answers which groups a community has.
func (v groupChats) subgroups(community *group) ([]waBinary.Node, error) {
	if !community.saved.Community {
		return nil, ErrUnknownGroup
	}
	var list []waBinary.Node
	for _, g := range v.within(community.saved.ID) {
		list = append(list, g.target())
	}
	return []waBinary.Node{{Tag: "sub_groups", Content: list}}, nil
}

// target names the group in an answer or a notice about its community.
func (g *group) target() waBinary.Node {
	n := waBinary.Node{Tag: "group", Attrs: waBinary.Attrs{
		"id": g.saved.ID, "subject": g.saved.Subject, "s_t": g.saved.Created.Unix(),
	}}
	if g.saved.Announcements {
		n.Content = []waBinary.Node{{Tag: "default_sub_group"}}
	}
	return n
}

// relink links a group with a community, or ends that, as a client asks for.
func (v groupChats) relink(community *group, by number, ask waBinary.Node) ([]waBinary.Node, error) {
	link := ask
	if ask.Tag == "links" {
		link = ask.GetChildByTag("link")
	}
	child := link.GetChildByTag("group")
	jid, _ := child.Attrs["jid"].(types.JID)
	g, err := v.member(jid.User, by)
	switch on := ask.Tag == "links"; {
	case err != nil:
		return nil, err
	case !community.saved.Community || g.saved.Community || g.saved.Announcements:
		return nil, ErrUnknownGroup
	case !community.isAdmin(by) || !g.isAdmin(by):
		return nil, ErrNotAllowed
	case on && g.saved.CommunityID != "" && g.saved.CommunityID != community.saved.ID,
		!on && g.saved.CommunityID != community.saved.ID:
		return nil, ErrUnknownGroup
	case on:
		v.link(community, g, by)
	default:
		g.saved.CommunityID = ""
		v.put(groupKey(g.saved.ID), g.saved)
		v.tell(g, g.saved.Members, by, community.linkNotice("unlink", "parent_group"))
	}
	return []waBinary.Node{{Tag: ask.Tag}}, nil
}

func (g *group) linkNotice(tag, kind string) waBinary.Node {
	attrs := waBinary.Attrs{tag + "_type": kind}
	if tag == "unlink" {
		attrs["unlink_reason"] = "unlink_group"
	}
	return waBinary.Node{Tag: tag, Attrs: attrs, Content: []waBinary.Node{g.target()}}
}

// link makes a group one of a community, whose members are in the community from then on. The caller holds v.mu.
func (v groupChats) link(community, g *group, by number) {
	g.saved.CommunityID = community.saved.ID
	v.put(groupKey(g.saved.ID), g.saved)
	v.tell(g, g.saved.Members, by, community.linkNotice("link", "parent_group"))
	into := []*group{community}
	for _, other := range v.within(community.saved.ID) {
		if other.saved.Announcements {
			into = append(into, other)
		}
	}
	for _, to := range into {
		added := slices.DeleteFunc(slices.Clone(g.saved.Members), to.has)
		v.enter(to, by, added, "")
		v.put(groupKey(to.saved.ID), to.saved)
	}
}
