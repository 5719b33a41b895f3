package vendorsim

import (
	"crypto/rand"
	"errors"
	"slices"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// joinRequest is somebody who wants to join a group whose administrators approve new members.
type joinRequest struct {
	Who number    `json:"who"`
	At  time.Time `json:"at"`
}

var (
	errInviteInvalid = errors.New("no group has this invitation")
	errAdminsOnly    = errors.New("only administrators see the invitation")
)

// answer answers a request of a client about groups.
func (v groupChats) answer(c *conn, n *waBinary.Node, kind string) {
	children := n.GetChildren()
	if len(children) == 0 {
		c.replyError(n, 400, "bad-request")
		return
	}
	to, _ := attrJID(n, "to")
	v.mu.Lock()
	reply, err := v.serve(to, c.companion.account.number, kind, children[0])
	v.mu.Unlock()
	switch {
	case errors.Is(err, ErrUnknownGroup):
		c.replyError(n, 404, "item-not-found")
	case errors.Is(err, errInviteInvalid):
		c.replyError(n, 406, "not-acceptable")
	case errors.Is(err, errAdminsOnly):
		c.replyError(n, 401, "not-authorized")
	case errors.Is(err, ErrNotMember), errors.Is(err, ErrNotAllowed):
		c.replyError(n, 403, "forbidden")
	case err != nil:
		c.replyError(n, 400, "bad-request")
	default:
		c.reply(n, reply...)
	}
}

// serve returns what a request about groups is answered with. The caller holds v.mu.
func (v groupChats) serve(to types.JID, by number, kind string, ask waBinary.Node) ([]waBinary.Node, error) {
	switch ask.Tag {
	case "create":
		return v.create(by, ask)
	case "participating":
		return v.participating(by), nil
	case "leave":
		return nil, v.leaveBy(by, ask)
	case "invite":
		return v.invite(to, by, kind == "set", ask)
	}
	g, err := v.member(to.User, by)
	if err != nil {
		return nil, err
	}
	switch ask.Tag {
	case "query":
		return []waBinary.Node{g.node()}, nil
	case "membership_approval_requests":
		return g.requests(by)
	case "membership_requests_action":
		return v.decide(g, by, ask)
	case "sub_groups":
		return v.subgroups(g)
	case "links", "unlink":
		return v.relink(g, by, ask)
	}
	return v.apply(g, by, ask)
}

// apply makes one change.
func (v groupChats) apply(g *group, by number, ask waBinary.Node) ([]waBinary.Node, error) {
	var c GroupChange
	who := jidsOf(ask)
	switch ask.Tag {
	case "subject":
		c.Subject = new(string(content(ask)))
	case "description":
		body := ask.GetChildByTag("body")
		c.Description = new(string(content(body)))
	case "announcement", "not_announcement":
		c.AnnounceOnly = new(ask.Tag == "announcement")
	case "locked", "unlocked":
		c.AdminsEdit = new(ask.Tag == "locked")
	case "membership_approval_mode":
		join := ask.GetChildByTag("group_join")
		c.JoinApproval = new(attr(&join, "state") == "on")
	case "ephemeral":
		c.Disappearing = new(ask.AttrGetter().Int("expiration"))
	case "not_ephemeral":
		c.Disappearing = new(0)
	case "add":
		c.Add = who
	case "remove":
		c.Remove = who
	case "promote":
		c.Promote = who
	case "demote":
		c.Demote = who
	}
	failed, err := v.change(g.saved.ID, by, c)
	if err != nil || len(who) == 0 {
		return nil, err
	}
	answer := g.outcomes(ask.Tag, who, failed)
	v.put(groupKey(g.saved.ID), g.saved)
	return []waBinary.Node{answer}, nil
}

// outcomes returns the answer to a change, with the result for each participant.
func (g *group) outcomes(tag string, who []string, failed map[number]int) waBinary.Node {
	list := make([]number, len(who))
	for i, text := range who {
		list[i], _ = parseNumber(text)
	}
	node := participantsNode(tag, list)
	for i, n := range list {
		child := node.GetChildren()[i]
		if code := failed[n]; code != 0 {
			child.Attrs["error"] = code
		}
		if failed[n] == statusForbidden {
			child.Content = []waBinary.Node{{Tag: "add_request", Attrs: waBinary.Attrs{
				"code": g.addCode(n), "expiration": now().Add(72 * time.Hour).Unix(),
			}}}
			node.GetChildren()[i] = child
		}
	}
	return node
}

// addCode returns the code with which somebody who cannot be added may join.
func (g *group) addCode(n number) string {
	if g.saved.AddCodes == nil {
		g.saved.AddCodes = map[number]string{}
	}
	if g.saved.AddCodes[n] == "" {
		g.saved.AddCodes[n] = rand.Text()[:16]
	}
	return g.saved.AddCodes[n]
}

// AcceptInvite lets the phone of a number join a group by the invitation that was sent to it.
func (v *Vendor) AcceptInvite(i Invite, who string) error {
	n, err := knownNumber(who)
	if err != nil {
		return err
	}
	v.mu.Lock()
	g := v.groups[i.Group]
	valid := g != nil && i.Code != "" && g.saved.AddCodes[n] == i.Code
	if valid && !g.has(n) {
		v.groupChats.enter(g, n, []number{n}, "invite")
		v.put(groupKey(g.saved.ID), g.saved)
	}
	v.mu.Unlock()
	if !valid {
		return errInviteInvalid
	}
	return v.flush()
}

// create creates a group of the account of a companion.
func (v groupChats) create(by number, ask waBinary.Node) ([]waBinary.Node, error) {
	g := &group{savedGroup{
		ID: newGroupID(), Subject: attr(&ask, "subject"), Created: now(), Holders: map[number][]string{},
		Members: []number{by}, Admins: []number{by}, Invite: newInvite(),
	}}
	ephemeral := ask.GetChildByTag("ephemeral")
	g.saved.Disappearing = ephemeral.AttrGetter().OptionalInt("expiration")
	_, g.saved.AnnounceOnly = ask.GetOptionalChildByTag("announcement")
	_, g.saved.AdminsEdit = ask.GetOptionalChildByTag("locked")
	_, g.saved.Community = ask.GetOptionalChildByTag("parent")
	parent := ask.GetChildByTag("linked_parent")
	community, err := v.parentOf(parent, by)
	if err != nil {
		return nil, err
	}
	v.groups[g.saved.ID] = g
	failed := map[number]int{}
	var added []number
	for _, text := range jidsOf(ask) {
		n, _ := parseNumber(text)
		switch {
		case !n.exists():
			failed[n] = statusNotThere
		case n.String() == NumberPrivate:
			failed[n] = statusForbidden
		case !g.has(n) && !slices.Contains(added, n):
			added = append(added, n)
		}
	}
	g.saved.Members = append(g.saved.Members, added...)
	if community != nil {
		g.saved.CommunityID = community.saved.ID
	}
	v.tell(g, g.saved.Members, by, waBinary.Node{Tag: "create", Content: []waBinary.Node{g.node()}})
	switch {
	case g.saved.Community:
		v.announce(g, by)
	case community != nil:
		v.link(community, g, by)
	}
	node := g.node()
	list := node.GetChildren()
	for n := range failed {
		missing := g.outcomes("", []string{n.String()}, failed)
		list = append(list, missing.GetChildren()...)
	}
	node.Content = list
	v.put(groupKey(g.saved.ID), g.saved)
	return []waBinary.Node{node}, nil
}

// participating returns all groups of a number, with their members.
func (v groupChats) participating(n number) []waBinary.Node {
	var list []waBinary.Node
	for _, g := range v.groups {
		if g.has(n) {
			list = append(list, g.node())
		}
	}
	return []waBinary.Node{{Tag: "groups", Content: list}}
}

func (v groupChats) leaveBy(by number, ask waBinary.Node) error {
	child := ask.GetChildByTag("group")
	id, _ := child.Attrs["id"].(types.JID)
	g, err := v.member(id.User, by)
	if err != nil {
		return err
	}
	v.leave(g, by, []number{by})
	v.put(groupKey(id.User), g.saved)
	return nil
}

// invite returns or renews the invitation of a group, or joins the group that has it.
func (v groupChats) invite(to types.JID, by number, set bool, ask waBinary.Node) ([]waBinary.Node, error) {
	if code := attr(&ask, "code"); code != "" {
		return v.byInvite(by, code, set)
	}
	g, err := v.member(to.User, by)
	switch {
	case err != nil:
		return nil, err
	case !g.isAdmin(by):
		return nil, errAdminsOnly
	case set || g.saved.Invite == "":
		g.saved.Invite = newInvite()
		v.put(groupKey(g.saved.ID), g.saved)
	}
	return []waBinary.Node{{Tag: "invite", Attrs: waBinary.Attrs{"code": g.saved.Invite}}}, nil
}

func newInvite() string { return rand.Text()[:22] }

// byInvite describes the group that has an invitation, or joins it.
func (v groupChats) byInvite(by number, code string, join bool) ([]waBinary.Node, error) {
	g := v.invited(code)
	switch {
	case g == nil:
		return nil, errInviteInvalid
	case !join:
		return []waBinary.Node{g.node()}, nil
	case v.join(g, by):
		return []waBinary.Node{{Tag: "membership_approval_request", Attrs: waBinary.Attrs{"jid": g.jid()}}}, nil
	}
	return []waBinary.Node{{Tag: "group", Attrs: waBinary.Attrs{"jid": g.jid()}}}, nil
}

func (v groupChats) invited(code string) *group {
	for _, g := range v.groups {
		if g.saved.Invite == code && code != "" {
			return g
		}
	}
	return nil
}

// join lets a number into a group; it waits if an administrator has to approve. The caller holds v.mu.
func (v groupChats) join(g *group, n number) (waits bool) {
	asks := slices.ContainsFunc(g.saved.Requests, func(r joinRequest) bool { return r.Who == n })
	switch {
	case g.has(n):
		return false
	case g.saved.JoinApproval && !asks:
		g.saved.Requests = append(g.saved.Requests, joinRequest{n, now()})
	case !g.saved.JoinApproval:
		v.enter(g, n, []number{n}, "invite")
	}
	v.put(groupKey(g.saved.ID), g.saved)
	return g.saved.JoinApproval
}

// JoinGroup lets the phone of a number use the invitation of a group. waits is true if an administrator has to approve.
func (v *Vendor) JoinGroup(id, who string) (waits bool, err error) {
	n, err := knownNumber(who)
	if err != nil {
		return false, err
	}
	v.mu.Lock()
	g := v.groups[id]
	if g != nil {
		waits = v.groupChats.join(g, n)
	}
	v.mu.Unlock()
	if g == nil {
		return false, ErrUnknownGroup
	}
	return waits, v.flush()
}

func (g *group) requests(by number) ([]waBinary.Node, error) {
	if !g.isAdmin(by) {
		return nil, ErrNotAllowed
	}
	list := make([]waBinary.Node, len(g.saved.Requests))
	for i, r := range g.saved.Requests {
		list[i] = waBinary.Node{Tag: "membership_approval_request", Attrs: waBinary.Attrs{
			"jid": r.Who.lid(), "phone_number": r.Who.pn(), "request_time": r.At.Unix(),
		}}
	}
	return []waBinary.Node{{Tag: "membership_approval_requests", Content: list}}, nil
}

// decide lets those who asked into a group, or refuses them.
func (v groupChats) decide(g *group, by number, ask waBinary.Node) ([]waBinary.Node, error) {
	if !g.isAdmin(by) {
		return nil, ErrNotAllowed
	}
	var answers []waBinary.Node
	for _, action := range ask.GetChildren() {
		who, failed := jidsOf(action), map[number]int{}
		var asked []number
		for _, text := range who {
			n, _ := parseNumber(text)
			if slices.ContainsFunc(g.saved.Requests, func(r joinRequest) bool { return r.Who == n }) {
				asked = append(asked, n)
			} else {
				failed[n] = statusNotThere
			}
		}
		g.saved.Requests = slices.DeleteFunc(g.saved.Requests, func(r joinRequest) bool { return slices.Contains(asked, r.Who) })
		if action.Tag == "approve" {
			v.enter(g, by, asked, "linked_group_join")
		}
		answers = append(answers, g.outcomes(action.Tag, who, failed))
	}
	v.put(groupKey(g.saved.ID), g.saved)
	return []waBinary.Node{{Tag: ask.Tag, Content: answers}}, nil
}
