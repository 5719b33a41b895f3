package gateway

import (
	"bytes"
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
	GroupPicture      GroupAction = "group.picture"
	GroupSetPicture   GroupAction = "group.picture.set"
	GroupLeave        GroupAction = "group.leave"
	GroupJoin         GroupAction = "group.join"
	GroupSubgroups    GroupAction = "group.subgroups"
	GroupLink         GroupAction = "group.link"
)

// GroupInput is what an action needs.
type GroupInput struct {
	ChatID       string              `json:"chatId,omitempty"`
	Subject      string              `json:"subject,omitempty"`
	Participants []string            `json:"participants,omitempty"`
	Change       postern.GroupChange `json:"change,omitzero"`
	Steps        []ParticipantStep   `json:"steps,omitempty"`
	Invite       bool                `json:"invite,omitempty"` // those who cannot be added
	Renew        bool                `json:"renew,omitempty"`
	Code         string              `json:"code,omitempty"`
	PictureID    string              `json:"pictureId,omitempty"` // of the picture that is known
	Picture      []byte              `json:"picture,omitempty"`   // JPEG
	Community    bool                `json:"community,omitempty"` // it is a community
	CommunityID  string              `json:"communityId,omitempty"`
	Linked       bool                `json:"linked,omitempty"` // with the community
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
	Invite       bool     `json:"invite"`                // sends those who do not let others add them an invitation
	Community    bool     `json:"community,omitempty"`   // it is a community, and has no CommunityID
	CommunityID  string   `json:"communityId,omitempty"` // of the community to which it belongs; "" for none
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
		if err == nil && in.CommunityID != "" {
			in.CommunityID, err = groupChat(in.CommunityID)
		}
		return GroupInput{
			Subject: in.Subject, Participants: who, Invite: in.Invite,
			Community: in.Community && in.CommunityID == "", CommunityID: in.CommunityID,
		}, err
	})
}

// Subgroups asks the network for the groups of a community.
func (g Groups) Subgroups(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) ([]postern.Subgroup, error) {
	if err := c.Permit(postern.ContactsRead); err != nil {
		return nil, err
	}
	return askGroup[[]postern.Subgroup](ctx, g, c, id, GroupSubgroups, GroupInput{ChatID: chat})
}

// Link makes a group one of a community, or ends that.
func (g Groups) Link(
	ctx context.Context, c access.Caller, id postern.DeviceID, community, chat string, on bool,
) error {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return err
	}
	_, err := askOnce[struct{}](ctx, g.core, c, id, nil, string(GroupLink), func() (in GroupInput, err error) {
		if in.CommunityID, err = groupChat(community); err == nil {
			in.ChatID, err = groupChat(chat)
		}
		in.Linked = on
		return in, err
	})
	return err
}

// notACommunity refuses a message to a community, which is not a chat.
func (g *core) notACommunity(ctx context.Context, d postern.Device, chat string) error {
	if !postern.IsGroup(chat) {
		return nil
	}
	found, err := g.groups().Get(ctx, d.WorkspaceID, d.ID, chat)
	if err == nil && found.Kind == postern.CommunityGroup {
		err = postern.Invalid("/to", "this is a community, which is not a chat; write to one of its groups, which "+
			"GET /v1/devices/{id}/groups/{chatId}/subgroups lists; the one of the kind announcements reaches all of its members")
	}
	return err
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
	Invite  bool     `json:"invite"` // sends those who do not let others add them an invitation
}

// ChangeParticipants changes who is in a group, and who is an administrator. It returns one outcome for each person.
func (g Groups) ChangeParticipants(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, in ParticipantsChange,
) ([]postern.ParticipantOutcome, error) {
	return g.participants(ctx, c, id, GroupInput{ChatID: chat, Invite: in.Invite}, []people{
		{"/add", postern.AddParticipants, in.Add}, {"/remove", postern.RemoveParticipants, in.Remove},
		{"/promote", postern.PromoteParticipants, in.Promote}, {"/demote", postern.DemoteParticipants, in.Demote},
	})
}

// AnswerRequests lets those who asked into a group, or refuses them. It returns one outcome for each person.
func (g Groups) AnswerRequests(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, approve, reject []string,
) ([]postern.ParticipantOutcome, error) {
	return g.participants(ctx, c, id, GroupInput{ChatID: chat}, []people{
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
	ctx context.Context, c access.Caller, id postern.DeviceID, in GroupInput, list []people,
) ([]postern.ParticipantOutcome, error) {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return nil, err
	}
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

// Picture is the picture of a group or of the account as the live session of a device has read it.
type Picture struct {
	ID    string `json:"id"`    // on the network; "" if there is none
	Bytes []byte `json:"bytes"` // nil if the picture is the one that was known
}

// Picture returns the file of a group's picture. The network is asked whether it is still the same one.
func (g Groups) Picture(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) (file postern.Media, err error) {
	if err := c.Permit(postern.ContactsRead, postern.MessagesRead); err != nil {
		return file, err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return file, err
	}
	if chat, err = groupChat(chat); err != nil {
		return file, err
	}
	known, file, err := g.knownPicture(ctx, c, id, chat)
	if err != nil {
		return file, err
	}
	got, err := askGroup[Picture](ctx, g, c, id, GroupPicture, GroupInput{ChatID: chat, PictureID: known})
	switch {
	case err != nil:
		return postern.Media{}, err
	case got.ID == "":
		return postern.Media{}, postern.Errorf(postern.NotFound, "the group has no picture")
	case len(got.Bytes) == 0:
		return file, nil
	}
	return g.keepPicture(ctx, c, id, chat, got)
}

// knownPicture returns the picture of a group as it was last read, and its file; "" if the file is no longer there.
func (g Groups) knownPicture(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string,
) (known string, file postern.Media, err error) {
	known, media, err := g.groups().Picture(ctx, c.Workspace(), id, chat)
	if err != nil || known == "" {
		return "", file, err
	}
	return g.keptPicture(ctx, c, known, media)
}

// keptPicture returns a picture and its file; "" if the file is no longer there.
func (g *core) keptPicture(
	ctx context.Context, c access.Caller, known string, media postern.MediaID,
) (string, postern.Media, error) {
	row, err := g.db.Media.Get(ctx, c.Workspace(), media)
	switch {
	case postern.ReasonOf(err) == postern.NotFound, err == nil && row.Status != postern.MediaReady:
		return "", postern.Media{}, nil
	}
	return known, row.Media, err
}

func (g Groups) keepPicture(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, p Picture,
) (postern.Media, error) {
	file, err := g.storePicture(ctx, c, id, "group.jpg", p)
	if err == nil {
		err = g.groups().SetPicture(ctx, c.Workspace(), id, chat, p.ID, file.ID)
	}
	return file, err
}

// storePicture stores a picture as a file of a device.
func (g *core) storePicture(
	ctx context.Context, c access.Caller, id postern.DeviceID, name string, p Picture,
) (postern.Media, error) {
	room, err := g.db.Blobs.Storage(ctx, c.Workspace())
	if err != nil {
		return postern.Media{}, err
	}
	row, err := g.take(ctx, c, bytes.NewReader(p.Bytes), name, room, func(row store.MediaRow) error {
		row.DeviceID = id
		return g.db.Media.Add(ctx, row, nil)
	})
	return row.Media, err
}

// SetPicture makes a file the picture of a group.
func (g Groups) SetPicture(
	ctx context.Context, c access.Caller, id postern.DeviceID, chat string, media NewMedia,
) error {
	if err := c.Permit(postern.ContactsWrite, postern.MessagesRead); err != nil {
		return err
	}
	if _, err := g.devices().get(ctx, c, id); err != nil {
		return err
	}
	jpeg, err := g.avatar(ctx, c, &media)
	if err == nil {
		_, err = askGroup[struct{}](ctx, g, c, id, GroupSetPicture, GroupInput{ChatID: chat, Picture: jpeg})
	}
	return err
}

// RemovePicture removes the picture of a group.
func (g Groups) RemovePicture(ctx context.Context, c access.Caller, id postern.DeviceID, chat string) error {
	if err := c.Permit(postern.ContactsWrite); err != nil {
		return err
	}
	_, err := askGroup[struct{}](ctx, g, c, id, GroupSetPicture, GroupInput{ChatID: chat})
	return err
}

// avatar makes the picture of a group or a person of a file.
func (g *core) avatar(ctx context.Context, c access.Caller, media *NewMedia) (jpeg []byte, err error) {
	if g.library == nil {
		return nil, postern.Errorf(postern.Unavailable, "this server takes no files")
	}
	row, err := g.file(ctx, c, NewMessage{Media: media})
	if err != nil {
		return nil, err
	}
	if media.Data != nil { // the network has it from now on
		defer func() {
			if removed := g.remove(context.WithoutCancel(ctx), row); removed != nil {
				g.log.WarnContext(ctx, "the file of a picture is removed later", "media", row.ID, "error", removed)
			}
		}()
	}
	if row.Status != postern.MediaReady {
		return nil, postern.Invalid("/media/id", "the file is %s; wait until it is ready", row.Status)
	}
	return g.library.Avatar(ctx, c.Workspace(), row.Media)
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
	made, err := askOnce[T](ctx, g.core, c, id, nil, string(action), func() (_ GroupInput, err error) {
		if in.ChatID != "" {
			in.ChatID, err = groupChat(in.ChatID)
		}
		return in, err
	})
	return made.Value, err
}

// groupChat returns the chat of a group in its usual form.
func groupChat(text string) (string, error) {
	chat, err := postern.ParseChat(text)
	if err != nil || !postern.IsGroup(chat) {
		return "", postern.Errorf(postern.NotFound, "there is no such group; its id begins with group:")
	}
	return chat, nil
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

// noteTimer records the timer of a group, which messages to it carry even if nothing else of groups is wanted.
func (g Sessions) noteTimer(ctx context.Context, d postern.Device, n postern.GroupNotice) error {
	seconds := timerIn(n)
	if seconds == nil {
		return nil
	}
	at := n.At
	if at == 0 {
		at = g.time()
	}
	return g.groups().SetTimer(ctx, d.ID, n.ChatID, *seconds, at)
}

// timerIn is what a notice says of the timer of a group, in seconds; nil for nothing.
func timerIn(n postern.GroupNotice) *int {
	if n.Seen != nil {
		return &n.Seen.Disappearing
	}
	return n.Change.Disappearing
}

// NoteGroup records what became known about a group, with the events about what is new. Only after it has returned nil
// may a notice be acknowledged to the network.
func (g Sessions) NoteGroup(ctx context.Context, d postern.Device, n postern.GroupNotice) error {
	if !d.Receive.Groups {
		return g.noteTimer(ctx, d, n)
	}
	own, noticed := postern.Participant{PhoneNumber: d.PhoneNumber}, n.At
	if n.Joins { // such a notice has no time
		noticed = 0
	}
	return g.groups().Change(ctx, groups.Change{
		Device: d, ChatID: n.ChatID, At: g.time(), Noticed: noticed, Joins: n.Joins, Timer: timerIn(n),
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
