package vendorsim

import (
	"errors"
	"fmt"
	"slices"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// ErrNotAllowed is returned when a member does what only administrators of the group may do.
var ErrNotAllowed = errors.New("only administrators of the group may do this")

// GroupChange is what a member changes in a group. Nil and empty fields change nothing.
type GroupChange struct {
	Subject      *string `json:"subject"`
	Description  *string `json:"description"`
	AnnounceOnly *bool   `json:"announceOnly"` // only administrators write
	AdminsEdit   *bool   `json:"adminsEdit"`   // only administrators change the subject and the description
	JoinApproval *bool   `json:"joinApproval"` // an administrator approves who joins by the invitation
	Disappearing *int    `json:"disappearing"` // after how many seconds messages disappear; 0: never

	Add     []string `json:"add"`
	Remove  []string `json:"remove"`
	Promote []string `json:"promote"`
	Demote  []string `json:"demote"`
}

// The statuses of the network for a participant of a change.
const (
	statusForbidden = 403 // its privacy settings forbid to add it
	statusNotThere  = 404
	statusConflict  = 409 // nothing to change
)

// ChangeGroup lets the phone of a member change a group. The companions of all members are told.
func (v *Vendor) ChangeGroup(id, by string, c GroupChange) error {
	n, err := knownNumber(by)
	if err != nil {
		return err
	}
	v.mu.Lock()
	_, err = v.groupChats.change(id, n, c)
	v.mu.Unlock()
	if err != nil {
		return err
	}
	return v.flush()
}

// change changes a group, and returns the status of each participant that could not be changed. The caller holds v.mu.
func (v groupChats) change(id string, by number, c GroupChange) (map[number]int, error) {
	g, err := v.member(id, by)
	if err != nil {
		return nil, err
	}
	if !g.permits(by, c) {
		return nil, fmt.Errorf("%w: %s in %s", ErrNotAllowed, by, id)
	}
	failed := map[number]int{}
	for _, step := range []func(*group, number, GroupChange, map[number]int) error{
		v.setTexts, v.setRules, v.addMembers, v.removeMembers, v.setAdmins,
	} {
		if err := step(g, by, c, failed); err != nil {
			return nil, err
		}
	}
	v.put(groupKey(id), g.saved)
	return failed, nil
}

// permits reports whether a member may change a group like this.
func (g *group) permits(by number, c GroupChange) bool {
	rules := c.AnnounceOnly != nil || c.AdminsEdit != nil || c.JoinApproval != nil
	leaves := len(c.Remove) == 1 && c.Remove[0] == by.String()
	others := len(c.Promote)+len(c.Demote) > 0 || len(c.Remove) > 0 && !leaves
	texts := c.Subject != nil || c.Description != nil || c.Disappearing != nil
	return g.isAdmin(by) || !rules && !others && !(texts && g.saved.AdminsEdit)
}

func (g *group) isAdmin(n number) bool { return slices.Contains(g.saved.Admins, n) }

func (v groupChats) setTexts(g *group, by number, c GroupChange, _ map[number]int) error {
	at := now()
	if c.Subject != nil && *c.Subject != g.saved.Subject {
		g.saved.Subject = *c.Subject
		v.tell(g, g.saved.Members, by, waBinary.Node{Tag: "subject", Attrs: waBinary.Attrs{
			"subject": g.saved.Subject, "s_t": at.Unix(), "s_o": by.lid(), "s_o_pn": by.pn(),
		}})
	}
	if c.Description != nil && *c.Description != g.saved.Description {
		g.saved.Description, g.saved.DescriptionID = *c.Description, newMessageID()
		v.tell(g, g.saved.Members, by, g.descriptionNotice())
	}
	if c.Disappearing != nil && *c.Disappearing != g.saved.Disappearing {
		g.saved.Disappearing = *c.Disappearing
		v.tell(g, g.saved.Members, by, timerNotice(*c.Disappearing))
	}
	return nil
}

func (g *group) descriptionNotice() waBinary.Node {
	child := waBinary.Node{Tag: "delete"}
	if g.saved.Description != "" {
		child = waBinary.Node{Tag: "body", Content: []byte(g.saved.Description)}
	}
	return waBinary.Node{
		Tag: "description", Attrs: waBinary.Attrs{"id": g.saved.DescriptionID}, Content: []waBinary.Node{child},
	}
}

func timerNotice(seconds int) waBinary.Node {
	if seconds == 0 {
		return waBinary.Node{Tag: "not_ephemeral"}
	}
	return waBinary.Node{Tag: "ephemeral", Attrs: waBinary.Attrs{"expiration": seconds}}
}

func (v groupChats) setRules(g *group, by number, c GroupChange, _ map[number]int) error {
	set := func(have *bool, want *bool, notice func(on bool) waBinary.Node) {
		if want != nil && *want != *have {
			*have = *want
			v.tell(g, g.saved.Members, by, notice(*want))
		}
	}
	set(&g.saved.AnnounceOnly, c.AnnounceOnly, func(on bool) waBinary.Node {
		return waBinary.Node{Tag: tagFor(on, "announcement", "not_announcement"), Attrs: waBinary.Attrs{"v_id": newRef()}}
	})
	set(&g.saved.AdminsEdit, c.AdminsEdit, func(on bool) waBinary.Node {
		return waBinary.Node{Tag: tagFor(on, "locked", "unlocked")}
	})
	set(&g.saved.JoinApproval, c.JoinApproval, approvalNode)
	return nil
}

func tagFor(on bool, yes, no string) string {
	if on {
		return yes
	}
	return no
}

func approvalNode(on bool) waBinary.Node {
	return waBinary.Node{Tag: "membership_approval_mode", Content: []waBinary.Node{
		{Tag: "group_join", Attrs: waBinary.Attrs{"state": tagFor(on, "on", "off")}},
	}}
}

func (v groupChats) addMembers(g *group, by number, c GroupChange, failed map[number]int) error {
	var added []number
	for _, text := range c.Add {
		n, err := parseNumber(text)
		switch {
		case err != nil:
			return err
		case !n.exists():
			failed[n] = statusNotThere
		case g.has(n):
			failed[n] = statusConflict
		case n.String() == NumberPrivate:
			failed[n] = statusForbidden
		default:
			added = append(added, n)
		}
	}
	if len(g.saved.Members)+len(added) > maxMembers {
		return ErrTooManyMembers
	}
	v.enter(g, by, added, "")
	return nil
}

// enter makes numbers members of a group. reason is how, for those who are members already. The caller holds v.mu.
func (v groupChats) enter(g *group, by number, added []number, reason string) {
	if len(added) == 0 {
		return
	}
	before := slices.Clone(g.saved.Members)
	g.saved.Members = append(g.saved.Members, added...)
	g.saved.Requests = slices.DeleteFunc(g.saved.Requests, func(r joinRequest) bool { return slices.Contains(added, r.Who) })
	node := participantsNode("add", added)
	if reason != "" {
		node.Attrs = waBinary.Attrs{"reason": reason}
	}
	v.tell(g, before, by, node)
	v.tell(g, added, by, waBinary.Node{
		Tag: "create", Attrs: waBinary.Attrs{"reason": "invite"}, Content: []waBinary.Node{g.node()},
	})
}

func participantsNode(tag string, list []number) waBinary.Node {
	nodes := make([]waBinary.Node, len(list))
	for i, n := range list {
		nodes[i] = waBinary.Node{Tag: "participant", Attrs: waBinary.Attrs{"jid": n.lid(), "phone_number": n.pn()}}
	}
	return waBinary.Node{Tag: tag, Content: nodes}
}

// members returns those of the numbers that are in the group; the others failed.
func (g *group) members(texts []string, failed map[number]int) ([]number, error) {
	var list []number
	for _, text := range texts {
		n, err := parseNumber(text)
		if err != nil {
			return nil, err
		}
		if g.has(n) {
			list = append(list, n)
		} else {
			failed[n] = statusNotThere
		}
	}
	return list, nil
}

func (v groupChats) removeMembers(g *group, by number, c GroupChange, failed map[number]int) error {
	gone, err := g.members(c.Remove, failed)
	if err == nil && len(gone) > 0 {
		v.leave(g, by, gone)
	}
	return err
}

// leave takes members out of a group. If no administrator is left, the oldest member becomes one. The caller holds
// v.mu.
func (v groupChats) leave(g *group, by number, gone []number) {
	before := slices.Clone(g.saved.Members)
	isGone := func(n number) bool { return slices.Contains(gone, n) }
	g.saved.Members = slices.DeleteFunc(slices.Clone(g.saved.Members), isGone)
	g.saved.Admins = slices.DeleteFunc(g.saved.Admins, isGone)
	v.tell(g, before, by, participantsNode("remove", gone))
	if len(g.saved.Admins) == 0 && len(g.saved.Members) > 0 {
		g.saved.Admins = []number{g.saved.Members[0]}
		v.tell(g, g.saved.Members, by, participantsNode("promote", g.saved.Admins))
	}
}

func (v groupChats) setAdmins(g *group, by number, c GroupChange, failed map[number]int) error {
	up, err := g.members(c.Promote, failed)
	if err != nil {
		return err
	}
	down, err := g.members(c.Demote, failed)
	if err != nil {
		return err
	}
	up = slices.DeleteFunc(up, g.isAdmin)
	down = slices.DeleteFunc(down, func(n number) bool { return !g.isAdmin(n) })
	g.saved.Admins = append(g.saved.Admins, up...)
	g.saved.Admins = slices.DeleteFunc(g.saved.Admins, func(n number) bool { return slices.Contains(down, n) })
	for tag, list := range map[string][]number{"promote": up, "demote": down} {
		if len(list) > 0 {
			v.tell(g, g.saved.Members, by, participantsNode(tag, list))
		}
	}
	return nil
}

// tell sends a notice about a group to the companions of some numbers. The caller holds v.mu.
func (v groupChats) tell(g *group, to []number, by number, child waBinary.Node) {
	for _, n := range to {
		for _, cp := range v.devices.companionsOf(n) {
			if cp.account.groupsUntold {
				continue
			}
			id := newRef()
			v.queues.deliver(cp, &delivery{Class: classNotification, ID: id, Kind: "w:gp2", Node: encodeNode(waBinary.Node{
				Tag: classNotification, Attrs: waBinary.Attrs{
					"from": g.jid(), "type": "w:gp2", "id": id, "t": now().Unix(), "participant": by.lid(),
					"participant_pn": by.pn(), "notify": v.nameOf(by),
				}, Content: []waBinary.Node{child},
			})})
		}
	}
}

// ForgeGroupNotice sends the companions of a linked account a notice about a group, which may not exist, by anybody.
func (v *Vendor) ForgeGroupNotice(account, id, by string, child waBinary.Node) error {
	to, err := v.devices.linkedNumber(account)
	if err != nil {
		return err
	}
	n, err := parseNumber(by)
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.groupChats.tell(&group{saved: savedGroup{ID: id}}, []number{to}, n, child)
	v.mu.Unlock()
	return v.flush()
}

// nameOf returns the name that the phone of a number shows to others. The caller holds v.mu.
func (v groupChats) nameOf(n number) string {
	return v.people.nameOf(n)
}

// jidsOf returns the numbers of the participants of a request.
func jidsOf(n waBinary.Node) (list []string) {
	for _, child := range n.GetChildrenByTag("participant") {
		jid, _ := child.Attrs["jid"].(types.JID)
		if pn, ok := child.Attrs["phone_number"].(types.JID); ok {
			jid = pn
		}
		if who, ok := numberOf(jid); ok {
			list = append(list, who.String())
		}
	}
	return list
}
