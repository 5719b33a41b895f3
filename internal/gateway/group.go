package gateway

import (
	"context"
	"strconv"
	"unicode/utf8"

	"postern/internal/access"
	"postern/internal/paging"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/groups"
)

// GroupAction is a request about groups that the live session of a device carries out.
type GroupAction string

// The actions.
const (
	GroupGet          GroupAction = "group.get"
	GroupCreate       GroupAction = "group.create"
	GroupChange       GroupAction = "group.change"
	GroupParticipants GroupAction = "group.participants"
	GroupInvite       GroupAction = "group.invite"
	GroupRequests     GroupAction = "group.requests"
	GroupLeave        GroupAction = "group.leave"
	GroupJoin         GroupAction = "group.join"
)

// GroupInput is what an action needs.
type GroupInput struct {
	ChatID       string              `json:"chatId,omitempty"`
	Subject      string              `json:"subject,omitempty"`
	Participants []string            `json:"participants,omitempty"`
	Change       postern.GroupChange `json:"change,omitzero"`
	Steps        []ParticipantStep   `json:"steps,omitempty"`
	Renew        bool                `json:"renew,omitempty"`
	Code         string              `json:"code,omitempty"`
}

// ParticipantStep is one thing to do with some participants.
type ParticipantStep struct {
	Action postern.ParticipantAction `json:"action"`
	Who    []string                  `json:"who"`
}

// NewGroup describes a group to create.
type NewGroup struct {
	Subject      string   `json:"subject"`
	Participants []string `json:"participants"`
}

// CreatedGroup is a new group, with those who could not be added.
type CreatedGroup struct {
	postern.Group

	Outcomes []postern.ParticipantOutcome `json:"outcomes" doc:"The participants who could not be added to the group, and why. Empty if all were."`
}

// Invitation is how people join a group by themselves.
type Invitation struct {
	URL string `json:"url" format:"uri" doc:"Address that lets anybody join the group." example:"https://chat.example.com/Jt3mHkq0s7c9oWf2Yv1xZb"`
}

// JoinedGroup is the outcome of using an invitation.
type JoinedGroup struct {
	ChatID string `json:"chatId" doc:"The group of the invitation." example:"group:120363041234567890"`
	Status string `json:"status" enum:"joined,requested" doc:"joined; requested: an administrator has to approve first." example:"joined"`
}

// List lists the groups that a device is in, in the order of their ids. It needs no connection.
func (g Groups) List(
	ctx context.Context, c access.Caller, id postern.DeviceID, page paging.Page,
) (list paging.List[postern.GroupSummary], err error) {
	if err := c.Permit(postern.ContactsRead); err != nil {
		return list, err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return list, err
	}
	kind := "groups " + string(id)
	after, rows, err := g.cursors.Open(c.Workspace(), kind, page)
	if err != nil {
		return list, err
	}
	found, err := g.groups().List(ctx, c.Workspace(), id, store.Page{After: after, Limit: rows})
	return paging.Cut(g.cursors, c.Workspace(), kind, found, rows, groupPlace), err
}

func groupPlace(s postern.GroupSummary) string { return s.ChatID }

// Subject returns the name of a group; "" if it is not known.
func (g Groups) Subject(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) (string, error) {
	if err := c.Permit(postern.ContactsRead); err != nil {
		return "", err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return "", err
	}
	return g.groups().Subject(ctx, c.Workspace(), id, chat)
}

// Get asks the network for a group.
func (g Groups) Get(ctx context.Context, c access.Caller, id postern.DeviceID, chat string) (postern.Group, error) {
	if err := c.Permit(postern.ContactsRead); err != nil {
		return postern.Group{}, err
	}
	return askGroup[postern.Group](ctx, g, c, id, GroupGet, GroupInput{ChatID: chat})
}

// Create creates a group.
func (g Groups) Create(
	ctx context.Context, c access.Caller, id postern.DeviceID, in NewGroup, idem *Idempotency,
) (Created[CreatedGroup], error) {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return Created[CreatedGroup]{}, err
	}
	return askOnce[CreatedGroup](ctx, g.core, c, id, idem, string(GroupCreate), func() (GroupInput, error) {
		if err := checkSubject(in.Subject); err != nil {
			return GroupInput{}, err
		}
		who, err := checkPeople("/participants", in.Participants)
		return GroupInput{Subject: in.Subject, Participants: who}, err
	})
}

// Change changes a group itself, and returns it.
func (g Groups) Change(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, in postern.GroupChange,
) (postern.Group, error) {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return postern.Group{}, err
	}
	if in.Subject != nil {
		if err := checkSubject(*in.Subject); err != nil {
			return postern.Group{}, err
		}
	}
	if in.Description != nil && utf8.RuneCountInString(*in.Description) > postern.MaxGroupDescription {
		return postern.Group{}, postern.Invalid(
			"/description", "write at most %d characters", postern.MaxGroupDescription)
	}
	return askGroup[postern.Group](ctx, g, c, id, GroupChange, GroupInput{ChatID: chat, Change: in})
}

func checkSubject(subject string) error {
	if n := utf8.RuneCountInString(subject); n == 0 || n > postern.MaxGroupSubject {
		return postern.Invalid("/subject", "write 1 to %d characters", postern.MaxGroupSubject)
	}
	return nil
}

// checkPeople normalizes numbers and "lid:" addresses.
func checkPeople(pointer string, list []string) ([]string, error) {
	if len(list) > postern.MaxGroupParticipants {
		return nil, postern.Invalid(pointer, "give at most %d participants", postern.MaxGroupParticipants)
	}
	people, seen := make([]string, 0, len(list)), map[string]bool{}
	for i, text := range list {
		who, err := postern.ParseChat(text)
		if err != nil || !postern.IsDirect(who) {
			return nil, postern.Invalid(
				pointer+"/"+strconv.Itoa(i), "write a phone number as + and 7 to 15 digits, or lid: and digits")
		}
		if !seen[who] {
			people = append(people, who)
		}
		seen[who] = true
	}
	return people, nil
}

// ParticipantsChange is what to do with participants of a group.
type ParticipantsChange struct {
	Add     []string `json:"add"`
	Remove  []string `json:"remove"`
	Promote []string `json:"promote"`
	Demote  []string `json:"demote"`
}

// ChangeParticipants changes who is in a group, and who is an administrator. It returns one outcome for each person.
func (g Groups) ChangeParticipants(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, in ParticipantsChange,
) ([]postern.ParticipantOutcome, error) {
	return g.participants(ctx, c, id, chat, []people{
		{"/add", postern.AddParticipants, in.Add}, {"/remove", postern.RemoveParticipants, in.Remove},
		{"/promote", postern.PromoteParticipants, in.Promote}, {"/demote", postern.DemoteParticipants, in.Demote},
	})
}

// AnswerRequests lets those who asked into a group, or refuses them. It returns one outcome for each person.
func (g Groups) AnswerRequests(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, approve, reject []string,
) ([]postern.ParticipantOutcome, error) {
	return g.participants(ctx, c, id, chat, []people{
		{"/approve", postern.ApproveParticipants, approve}, {"/reject", postern.RejectParticipants, reject},
	})
}

// people are those in one member of a request.
type people struct {
	pointer string
	action  postern.ParticipantAction
	who     []string
}

func (g Groups) participants(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, list []people,
) ([]postern.ParticipantOutcome, error) {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return nil, err
	}
	in := GroupInput{ChatID: chat}
	for _, p := range list {
		who, err := checkPeople(p.pointer, p.who)
		if err != nil {
			return nil, err
		}
		if len(who) > 0 {
			in.Steps = append(in.Steps, ParticipantStep{p.action, who})
		}
	}
	if len(in.Steps) == 0 {
		_, err := g.devices().get(ctx, c, id)
		return []postern.ParticipantOutcome{}, err
	}
	return askGroup[[]postern.ParticipantOutcome](ctx, g, c, id, GroupParticipants, in)
}

// Invite returns the invitation to a group.
func (g Groups) Invite(ctx context.Context, c access.Caller, id postern.DeviceID, chat string) (Invitation, error) {
	if err := c.Permit(postern.ContactsRead); err != nil {
		return Invitation{}, err
	}
	return askGroup[Invitation](ctx, g, c, id, GroupInvite, GroupInput{ChatID: chat})
}

// ResetInvite replaces the invitation to a group. The one before it no longer works.
func (g Groups) ResetInvite(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) (Invitation, error) {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return Invitation{}, err
	}
	return askGroup[Invitation](ctx, g, c, id, GroupInvite, GroupInput{ChatID: chat, Renew: true})
}

// Requests lists who wants to join a group.
func (g Groups) Requests(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) ([]postern.JoinRequest, error) {
	if err := c.Permit(postern.ContactsRead); err != nil {
		return nil, err
	}
	return askGroup[[]postern.JoinRequest](ctx, g, c, id, GroupRequests, GroupInput{ChatID: chat})
}

// Leave leaves a group.
func (g Groups) Leave(ctx context.Context, c access.Caller, id postern.DeviceID, chat string) error {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return err
	}
	_, err := askGroup[struct{}](ctx, g, c, id, GroupLeave, GroupInput{ChatID: chat})
	return err
}

// Join uses an invitation to a group: its address, or the code at its end.
func (g Groups) Join(
	ctx context.Context, c access.Caller, id postern.DeviceID, invite string, idem *Idempotency,
) (Created[JoinedGroup], error) {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return Created[JoinedGroup]{}, err
	}
	return askOnce[JoinedGroup](ctx, g.core, c, id, idem, string(GroupJoin), func() (GroupInput, error) {
		code, err := postern.ParseInvite(invite)
		return GroupInput{Code: code}, err
	})
}

// askGroup hands a request about a group to the live session of a device, and waits for the outcome.
func askGroup[T any](
	ctx context.Context, g Groups, c access.Caller, id postern.DeviceID, action GroupAction, in GroupInput,
) (answer T, err error) {
	made, err := askOnce[T](ctx, g.core, c, id, nil, string(action), func() (GroupInput, error) {
		if in.ChatID != "" {
			chat, err := postern.ParseChat(in.ChatID)
			if err != nil || !postern.IsGroup(chat) {
				return in, postern.Errorf(postern.NotFound, "there is no such group; its id begins with group:")
			}
			in.ChatID = chat
		}
		return in, nil
	})
	return made.Value, err
}

func (g *core) groups() groups.Table { return groups.Of(g.db) }

// GroupsListed reports whether the groups of a device's account were listed since it was linked.
func (g Sessions) GroupsListed(ctx context.Context, d postern.Device) (bool, error) {
	return g.groups().Listed(ctx, d.ID, d.Account)
}

// ListGroups records all groups that the account of a device is in. Events report how those that are known have changed.
func (g Sessions) ListGroups(ctx context.Context, d postern.Device, list []postern.Group) error {
	unknown, known, err := g.groups().Unknown(ctx, d.ID, list)
	if err != nil {
		return err
	}
	for _, one := range known {
		if err := g.NoteGroup(ctx, d, postern.GroupNotice{ChatID: one.ChatID, Seen: &one}); err != nil {
			return err
		}
	}
	return g.groups().Start(ctx, d, unknown)
}

// NoteGroup records what became known about a group, with the events about what is new. Only after it has returned nil
// may a notice be acknowledged to the network.
func (g Sessions) NoteGroup(ctx context.Context, d postern.Device, n postern.GroupNotice) error {
	if !d.Receive.Groups {
		return nil
	}
	own, noticed := postern.Participant{PhoneNumber: d.PhoneNumber}, n.At
	if n.Joins { // such a notice has no time
		noticed = 0
	}
	return g.groups().Change(ctx, groups.Change{
		Device: d, ChatID: n.ChatID, At: g.time(), Noticed: noticed, Joins: n.Joins,
		Apply: func(before postern.Group, is postern.GroupStanding) (postern.Group, bool, []postern.Event, error) {
			after, stays, list := n.Apply(before, is, own)
			events := make([]postern.Event, len(list))
			for i, e := range list {
				var err error
				if events[i], err = e.Event(d); err != nil {
					return after, stays, nil, err
				}
			}
			return after, stays, events, nil
		},
	})
}
