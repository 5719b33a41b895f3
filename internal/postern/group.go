package postern

import (
	"slices"
	"strings"
)

// Role in a group.
const (
	GroupMember = "member"
	GroupAdmin  = "admin"
	GroupOwner  = "owner"
)

// Limits of groups, as the vendor's apps have them.
const (
	MaxGroupSubject      = 100  // characters
	MaxGroupDescription  = 2048 // characters
	MaxGroupParticipants = 1023 // others than the account
)

// Group is a group that an account is in.
type Group struct {
	GroupSummary

	Participants []Participant `json:"participants" doc:"All members, the account included."`
}

// GroupSummary is a group without its members.
type GroupSummary struct {
	ChatID       string `json:"chatId" doc:"The chat of the group; usable as \"to\"." example:"group:120363041234567890"`
	Subject      string `json:"subject" doc:"Name of the group." example:"Support"`
	Description  string `json:"description" doc:"Text about the group." example:"Questions about orders"`
	AnnounceOnly bool   `json:"announceOnly" doc:"Only administrators may write." example:"false"`
	AdminsEdit   bool   `json:"adminsEdit" doc:"Only administrators may change subject, description, picture and timer." example:"false"`
	JoinApproval bool   `json:"joinApproval" doc:"An administrator approves those who join by the invitation." example:"false"`
	Disappearing int    `json:"disappearing" doc:"Seconds after which messages disappear; 0 means never." example:"0"`
	Size         int    `json:"size" doc:"Number of members, the account included." example:"3"`
	Role         string `json:"role" enum:"member,admin,owner" doc:"What the account is in the group." example:"admin"`
	CreatedAt    Time   `json:"createdAt" format:"date-time" nullable:"true" doc:"When the group was created, by the network's clock." example:"2026-11-21T09:00:00.000Z"`
	Kind         string `json:"kind" enum:"group,community,announcements" doc:"community: holds groups and is not a chat itself. announcements: the group in which the administrators of a community write to all of its members." example:"group"`
	CommunityID  Maybe  `json:"communityId" nullable:"true" doc:"The community to which the group belongs; null if it belongs to none." example:"group:120363041234567899"`
}

// The kinds of groups.
const (
	PlainGroup         = "group"
	CommunityGroup     = "community"
	AnnouncementsGroup = "announcements"
)

// Subgroup is a group of a community.
type Subgroup struct {
	ChatID  string `json:"chatId" doc:"The chat of the group. The account may not be in it." example:"group:120363041234567890"`
	Subject string `json:"subject" doc:"Name of the group." example:"Support"`
	Kind    string `json:"kind" enum:"group,announcements" doc:"announcements: the group in which the administrators of the community write to all of its members." example:"group"`
}

// Participant is a member of a group, or somebody who wants to become one.
type Participant struct {
	PhoneNumber Maybe  `json:"phoneNumber" nullable:"true" doc:"Number of the person; null while the network hides it." example:"+15551234567"`
	LID         Maybe  `json:"lid" nullable:"true" doc:"Identifies the person even while the network hides the number." example:"lid:123456789012345"`
	Role        string `json:"role" enum:"member,admin,owner" doc:"What the person is in the group." example:"member"`
}

// Is reports whether two participants are the same person.
func (p Participant) Is(o Participant) bool {
	return p.LID != "" && p.LID == o.LID || p.PhoneNumber != "" && p.PhoneNumber == o.PhoneNumber
}

// IsAdministrator reports whether somebody is an administrator of the group. lid is the digits of the person's LID.
func (g Group) IsAdministrator(number Maybe, lid string) bool {
	who := Participant{PhoneNumber: number}
	if lid != "" {
		who.LID = Maybe(ChatOfLID(lid))
	}
	return slices.ContainsFunc(g.Participants, func(p Participant) bool { return p.Role != GroupMember && p.Is(who) })
}

// GroupChange is what changes in a group. Nil is left as it is.
type GroupChange struct {
	Subject      *string `json:"subject,omitempty"`
	Description  *string `json:"description,omitempty"`
	AnnounceOnly *bool   `json:"announceOnly,omitempty"`
	AdminsEdit   *bool   `json:"adminsEdit,omitempty"`
	JoinApproval *bool   `json:"joinApproval,omitempty"`
	Disappearing *int    `json:"disappearing,omitempty"`
}

// ParticipantAction is what happens to participants of a group.
type ParticipantAction string

// The actions.
const (
	AddParticipants     ParticipantAction = "add"
	RemoveParticipants  ParticipantAction = "remove"
	PromoteParticipants ParticipantAction = "promote"
	DemoteParticipants  ParticipantAction = "demote"
	ApproveParticipants ParticipantAction = "approve" // those who asked to join
	RejectParticipants  ParticipantAction = "reject"
)

// LooksUp reports whether numbers that the account does not know are looked up for the action: members it knows.
func (a ParticipantAction) LooksUp() bool {
	return a == AddParticipants || a == ApproveParticipants || a == RejectParticipants
}

// ParticipantOutcome is the result of a change for one participant.
type ParticipantOutcome struct {
	PhoneNumber Maybe             `json:"phoneNumber" nullable:"true" doc:"Number of the person, if it is known." example:"+15551234567"`
	LID         Maybe             `json:"lid" nullable:"true" doc:"Identifies the person, if the network has said how." example:"lid:123456789012345"`
	Action      ParticipantAction `json:"action" enum:"add,remove,promote,demote,approve,reject" doc:"What was asked for." example:"add"`
	Status      string            `json:"status" enum:"done,unchanged,not-allowed,not-found,failed" doc:"done; unchanged: nothing had to be done, or the person left the group recently; not-allowed: the person does not let others add them, so send them the invitation; not-found: the person is not on the network, not in the group, or did not ask to join; failed: the network refused it for another reason." example:"done"`

	Invited bool `json:"invited,omitzero" doc:"True if the person did not let others add them and was sent a message with which they can join; otherwise absent." example:"true"`
}

// The outcomes of a participant.
const (
	ParticipantDone       = "done"
	ParticipantUnchanged  = "unchanged"
	ParticipantNotAllowed = "not-allowed"
	ParticipantNotFound   = "not-found"
	ParticipantFailed     = "failed"
)

// JoinRequest is somebody who wants to join a group.
type JoinRequest struct {
	PhoneNumber Maybe `json:"phoneNumber" nullable:"true" doc:"Number of the person; null while the network hides it." example:"+15551234567"`
	LID         Maybe `json:"lid" nullable:"true" doc:"Identifies the person." example:"lid:123456789012345"`
	RequestedAt Time  `json:"requestedAt" format:"date-time" nullable:"true" doc:"When the person asked to join, by the network's clock." example:"2026-11-21T09:00:00.000Z"`
}

// ParseInvite returns the code of an invitation to a group, which is the end of its address.
func ParseInvite(text string) (code string, err error) {
	code = strings.TrimSpace(text)
	code = code[strings.LastIndex(code, "/")+1:]
	code, _, _ = strings.Cut(code, "?")
	if code == "" || len(code) > maxInvite || strings.ContainsFunc(code, isNoInvite) {
		return "", Invalid("/invite", "write the address of the invitation, or the code at its end")
	}
	return code, nil
}

// maxInvite is longer than any code; the vendor's have 22 characters.
const maxInvite = 64

func isNoInvite(r rune) bool {
	return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
}

// GroupNotice is what became known about a group that an account is in.
type GroupNotice struct {
	ChatID string
	By     Participant // who did it, without a role; zero if unknown
	At     Time

	Seen         *Group            // the whole group as it is now; nil if only a part is known
	Joins        bool              // the account has just joined
	Entered      bool              // the account is among those who were added; the group is to be read
	Unclear      bool              // something changed that the notice does not say; the group is to be read
	Left         bool              // the account has left, or was removed, or the group is no more
	Change       GroupChange       // of the group itself
	Action       ParticipantAction // what happened to the participants; "" for nothing
	Participants []Participant
}

// ChangedGroup is what events report of a group.
type ChangedGroup struct {
	GroupSummary

	By           *GroupActor       `json:"by,omitempty" doc:"Who did it; absent if the network did not say."`
	Changed      []string          `json:"changed,omitempty" doc:"In group.updated: the members of this object that changed." example:"[\"subject\"]"`
	Action       ParticipantAction `json:"action,omitempty" enum:"add,remove,promote,demote" doc:"In group.participants: what happened to the participants. Those who leave by themselves are removed by themselves." example:"add"`
	Participants []Participant     `json:"participants,omitempty" nullable:"false" doc:"In group.participants: to whom it happened."`
}

// GroupActor is somebody who did something in a group.
type GroupActor struct {
	PhoneNumber Maybe `json:"phoneNumber" nullable:"true" doc:"Number of the person; null while the network hides it." example:"+15551234567"`
	LID         Maybe `json:"lid" nullable:"true" doc:"Identifies the person even while the network hides the number." example:"lid:123456789012345"`
}

// GroupStanding is what an account is known to be in a group.
type GroupStanding string

// The standings.
const (
	GroupUnknown GroupStanding = ""
	InGroup      GroupStanding = "in"
	OutOfGroup   GroupStanding = "out"
)

// Apply returns a group after a notice, whether the account is in it then, and what events report of the notice. A
// notice that changes nothing is reported by no event, and neither is one about a part of a group that the account is
// not known to be in. own is the account.
func (n GroupNotice) Apply(
	before Group, is GroupStanding, own Participant,
) (after Group, stays bool, events []GroupEvent) {
	switch {
	case n.Seen != nil && is == InGroup:
		return *n.Seen, true, n.events(*n.Seen, before.differences(*n.Seen)...)
	case n.Seen != nil && n.Joins:
		return *n.Seen, true, n.events(*n.Seen, GroupEvent{Type: GroupJoined})
	case n.Seen != nil && is == GroupUnknown: // it was not listed yet
		return *n.Seen, true, nil
	case is != InGroup:
		return before, false, nil
	case n.Left:
		after = before
		after.act(RemoveParticipants, append(n.Participants, own), own)
		return after, false, n.events(after, GroupEvent{Type: GroupLeft})
	}
	after = before
	after.change(n.Change)
	changes := before.differences(after)
	if n.Action != "" {
		if e, ok := after.act(n.Action, n.Participants, own); ok {
			changes = append(changes, e)
		}
	}
	return after, true, n.events(after, changes...)
}

// events completes events about a group.
func (n GroupNotice) events(g Group, list ...GroupEvent) []GroupEvent {
	for i := range list {
		list[i].Object.GroupSummary = g.GroupSummary
		if n.By.PhoneNumber != "" || n.By.LID != "" {
			list[i].Object.By = &GroupActor{n.By.PhoneNumber, n.By.LID}
		}
	}
	return list
}

// GroupEvent is an event about a group.
type GroupEvent struct {
	Type   EventType
	Object ChangedGroup
}

// Event returns the event of a device.
func (e GroupEvent) Event(d Device) (Event, error) {
	b, err := EncodeJSON(e.Object)
	return Event{
		ID: NewEventID(), WorkspaceID: d.WorkspaceID, DeviceID: d.ID, Type: e.Type, Subject: "group", Object: b,
		ChatID: e.Object.ChatID,
	}, err
}

// change applies what changes in the group itself.
func (g *Group) change(c GroupChange) {
	assign(&g.Subject, c.Subject)
	assign(&g.Description, c.Description)
	assign(&g.AnnounceOnly, c.AnnounceOnly)
	assign(&g.AdminsEdit, c.AdminsEdit)
	assign(&g.JoinApproval, c.JoinApproval)
	assign(&g.Disappearing, c.Disappearing)
}

func assign[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// differences returns the events that lead from a group to a later state of it.
func (g Group) differences(after Group) (list []GroupEvent) {
	var changed []string
	for name, same := range map[string]bool{
		"subject": g.Subject == after.Subject, "description": g.Description == after.Description,
		"announceOnly": g.AnnounceOnly == after.AnnounceOnly, "adminsEdit": g.AdminsEdit == after.AdminsEdit,
		"joinApproval": g.JoinApproval == after.JoinApproval, "disappearing": g.Disappearing == after.Disappearing,
		"communityId": g.CommunityID == after.CommunityID,
	} {
		if !same {
			changed = append(changed, name)
		}
	}
	if slices.Sort(changed); len(changed) > 0 {
		list = append(list, GroupEvent{GroupUpdated, ChangedGroup{Changed: changed}})
	}
	came, went := missing(after.Participants, g.Participants), missing(g.Participants, after.Participants)
	up, down := moved(g.Participants, after.Participants)
	for _, p := range []struct {
		action ParticipantAction
		who    []Participant
	}{{AddParticipants, came}, {RemoveParticipants, went}, {PromoteParticipants, up}, {DemoteParticipants, down}} {
		if len(p.who) > 0 {
			list = append(list, GroupEvent{GroupParticipants, ChangedGroup{Action: p.action, Participants: p.who}})
		}
	}
	return list
}

// index finds people by either of their names.
func index(list []Participant) map[Maybe]Participant {
	m := make(map[Maybe]Participant, 2*len(list))
	for _, p := range list {
		if p.LID != "" {
			m[p.LID] = p
		}
		if p.PhoneNumber != "" {
			m[p.PhoneNumber] = p
		}
	}
	return m
}

func found(in map[Maybe]Participant, p Participant) (Participant, bool) {
	if o, ok := in[p.LID]; ok && p.LID != "" {
		return o, true
	}
	o, ok := in[p.PhoneNumber]
	return o, ok && p.PhoneNumber != ""
}

// missing returns those of list who are not in other.
func missing(list, other []Participant) (out []Participant) {
	there := index(other)
	for _, p := range list {
		if _, ok := found(there, p); !ok {
			out = append(out, p)
		}
	}
	return out
}

// moved returns who became an administrator, and who is one no longer.
func moved(before, after []Participant) (up, down []Participant) {
	was := index(before)
	for _, p := range after {
		o, ok := found(was, p)
		switch {
		case !ok:
		case o.Role == GroupMember && p.Role != GroupMember:
			up = append(up, p)
		case o.Role != GroupMember && p.Role == GroupMember:
			down = append(down, p)
		}
	}
	return up, down
}

// act applies what happens to participants, and returns the event about those to whom it is new.
func (g *Group) act(action ParticipantAction, who []Participant, own Participant) (e GroupEvent, ok bool) {
	var new []Participant
	switch action {
	case AddParticipants:
		new = missing(who, g.Participants)
		g.Participants = append(slices.Clone(g.Participants), new...)
	case RemoveParticipants:
		there := index(g.Participants)
		new = slices.DeleteFunc(slices.Clone(who), func(p Participant) bool { _, in := found(there, p); return !in })
		g.Participants = missing(g.Participants, who)
	case PromoteParticipants:
		new = g.setRole(who, GroupAdmin, own)
	case DemoteParticipants:
		new = g.setRole(who, GroupMember, own)
	case ApproveParticipants, RejectParticipants:
	}
	g.Size = len(g.Participants)
	return GroupEvent{GroupParticipants, ChangedGroup{Action: action, Participants: new}}, len(new) > 0
}

// setRole gives people a role, and returns those who had another one.
func (g *Group) setRole(who []Participant, role string, own Participant) (changed []Participant) {
	named := index(who)
	g.Participants = slices.Clone(g.Participants)
	for i, p := range g.Participants {
		if _, ok := found(named, p); !ok || (p.Role != GroupMember) == (role != GroupMember) {
			continue
		}
		p.Role = role
		g.Participants[i] = p
		changed = append(changed, p)
		if p.Is(own) {
			g.Role = role
		}
	}
	return changed
}
