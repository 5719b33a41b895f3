package api

import (
	"context"
	"reflect"

	"postern/internal/gateway"
	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// groups are the operations on the groups that a device is in.
type groups struct{ gateway *gateway.Gateway }

type groupsInput struct {
	ID postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Paging
}

func (h groups) list(ctx context.Context, q *request, in *groupsInput) (*output[List[postern.GroupSummary]], error) {
	return answerList(h.gateway.Groups.List(ctx, q.caller, in.ID, in.page()))
}

type createGroupInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newGroup
}

type newGroup struct {
	_            struct{} `additionalProperties:"false"`
	Subject      string   `json:"subject" minLength:"1" maxLength:"100" doc:"Name of the group." example:"Support"`
	Participants []string `json:"participants" nullable:"false" maxItems:"1023" doc:"Who to add: numbers, or the lid of people whose number is hidden. The account itself is always in the group." example:"[\"+15551234567\"]"`
	Invite       bool     `json:"invite,omitempty" doc:"Whether those who do not let others add them get a message with which they can join." example:"true"`
	Community    bool     `json:"community,omitempty" doc:"Whether to create a community, which holds groups, in place of a group. Ignored with communityId." example:"false"`
	CommunityID  string   `json:"communityId,omitempty" minLength:"1" doc:"The community to which the group belongs." example:"group:120363041234567890"`
}

func (h groups) create(ctx context.Context, q *request, in *createGroupInput) (*made[gateway.CreatedGroup], error) {
	c, err := h.gateway.Groups.Create(ctx, q.caller, in.ID, gateway.NewGroup{
		Subject: in.Body.Subject, Participants: in.Body.Participants, Invite: in.Body.Invite,
		Community: in.Body.Community, CommunityID: in.Body.CommunityID,
	}, q.idem)
	return answerMade(c, err, func(g gateway.CreatedGroup) string { return groupPath(in.ID, g.ChatID) })
}

func groupPath(id postern.DeviceID, chat string) string {
	return "/v1/devices/" + string(id) + "/groups/" + chat
}

// OneGroup names a group of a device.
type OneGroup struct {
	ID     postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID string           `path:"chatId" doc:"The chat of the group." example:"group:120363041234567890"`
}

func (h groups) get(ctx context.Context, q *request, in *OneGroup) (*output[postern.Group], error) {
	return answer(h.gateway.Groups.Get(ctx, q.caller, in.ID, in.ChatID))
}

// Subgroups are the groups of a community.
type Subgroups struct {
	Data []postern.Subgroup `json:"data" nullable:"false" doc:"The groups, in the network's order."`

	NextCursor postern.Maybe `json:"nextCursor" nullable:"true" doc:"Pass this as cursor to get the next page; null on the last page."`
}

type ofGroupInput struct {
	OneGroup
	PagingOfAll
}

func (h groups) subgroups(ctx context.Context, q *request, in *ofGroupInput) (*output[Subgroups], error) {
	list, err := h.gateway.Groups.Subgroups(ctx, q.caller, in.ID, in.ChatID)
	l, err := wholePage(h.gateway, q, "subgroups "+string(in.ID)+in.ChatID, list, in.page(), err)
	return answer(Subgroups{l.Data, postern.Maybe(l.Next)}, err)
}

// OneSubgroup names a group of a community.
type OneSubgroup struct {
	ID         postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID     string           `path:"chatId" doc:"The community." example:"group:120363041234567890"`
	SubgroupID string           `path:"subgroupId" doc:"The chat of the group." example:"group:120363041234567891"`
}

type linkGroupInput struct {
	OneSubgroup

	Body *noMembers
}

func (h groups) link(ctx context.Context, q *request, in *linkGroupInput) (*nothing, error) {
	return nil, h.gateway.Groups.Link(ctx, q.caller, in.ID, in.ChatID, in.SubgroupID, true)
}

func (h groups) unlink(ctx context.Context, q *request, in *OneSubgroup) (*nothing, error) {
	return nil, h.gateway.Groups.Link(ctx, q.caller, in.ID, in.ChatID, in.SubgroupID, false)
}

type changeGroupInput struct {
	OneGroup

	Body groupChange
}

type groupChange struct {
	_            struct{} `additionalProperties:"false"`
	Subject      *string  `json:"subject,omitempty" minLength:"1" maxLength:"100" doc:"Name of the group." example:"Support"`
	Description  *string  `json:"description,omitempty" maxLength:"2048" doc:"Text about the group; \"\" removes it." example:"Questions about orders"`
	AnnounceOnly *bool    `json:"announceOnly,omitempty" doc:"Whether only administrators may write." example:"true"`
	AdminsEdit   *bool    `json:"adminsEdit,omitempty" doc:"Whether only administrators may change subject, description, picture and timer." example:"true"`
	JoinApproval *bool    `json:"joinApproval,omitempty" doc:"Whether an administrator approves those who join by the invitation." example:"true"`
	Disappearing *int     `json:"disappearing,omitempty" enum:"0,86400,604800,7776000" doc:"Seconds after which messages disappear: a day, a week or 90 days; 0 means never." example:"604800"`
}

func (h groups) update(ctx context.Context, q *request, in *changeGroupInput) (*output[postern.Group], error) {
	return answer(h.gateway.Groups.Change(ctx, q.caller, in.ID, in.ChatID, in.Body.change()))
}

func (b groupChange) change() postern.GroupChange {
	return postern.GroupChange{
		Subject: b.Subject, Description: b.Description, AnnounceOnly: b.AnnounceOnly, AdminsEdit: b.AdminsEdit,
		JoinApproval: b.JoinApproval, Disappearing: b.Disappearing,
	}
}

type participantsInput struct {
	OneGroup

	Body participantsChange
}

type participantsChange struct {
	_       struct{} `additionalProperties:"false"`
	Add     []string `json:"add,omitempty" nullable:"false" maxItems:"1023" doc:"Who to add: numbers, or the lid of people whose number is hidden." example:"[\"+15551234567\"]"`
	Remove  []string `json:"remove,omitempty" nullable:"false" maxItems:"1023" doc:"Who to remove." example:"[\"+15557654321\"]"`
	Promote []string `json:"promote,omitempty" nullable:"false" maxItems:"1023" doc:"Who becomes an administrator." example:"[\"+15551234567\"]"`
	Demote  []string `json:"demote,omitempty" nullable:"false" maxItems:"1023" doc:"Who is no longer an administrator." example:"[\"+15557654321\"]"`
	Invite  bool     `json:"invite,omitempty" doc:"Whether those to add who do not let others add them get a message with which they can join." example:"true"`
}

// ParticipantOutcomes are the results of a change, one for each participant.
type ParticipantOutcomes struct {
	Data []postern.ParticipantOutcome `json:"data" nullable:"false" doc:"One outcome for each person and action."`
}

func (h groups) participants(ctx context.Context, q *request, in *participantsInput) (*output[ParticipantOutcomes], error) {
	list, err := h.gateway.Groups.ChangeParticipants(ctx, q.caller, in.ID, in.ChatID, in.Body.change())
	return answer(ParticipantOutcomes{list}, err)
}

func (b participantsChange) change() gateway.ParticipantsChange {
	return gateway.ParticipantsChange{Add: b.Add, Remove: b.Remove, Promote: b.Promote, Demote: b.Demote, Invite: b.Invite}
}

func (h groups) picture(ctx context.Context, q *request, in *OneGroup) (*output[postern.Media], error) {
	return answer(h.gateway.Groups.Picture(ctx, q.caller, in.ID, in.ChatID))
}

type setPictureInput struct {
	OneGroup

	Body groupPicture
}

type groupPicture struct {
	_     struct{}     `additionalProperties:"false"`
	Media pictureMedia `json:"media" doc:"A picture that was uploaded or received, or the bytes themselves."`
}

// pictureMedia is the file of a picture.
type pictureMedia newMedia

// Schema returns the forms of newMedia except that of a URL.
func (pictureMedia) Schema(r huma.Registry) *huma.Schema {
	return formsOf(r, reflect.TypeFor[mediaByID](), reflect.TypeFor[mediaInline]())
}

func (h groups) setPicture(ctx context.Context, q *request, in *setPictureInput) (*nothing, error) {
	return nil, h.gateway.Groups.SetPicture(ctx, q.caller, in.ID, in.ChatID, gateway.NewMedia(in.Body.Media))
}

func (h groups) removePicture(ctx context.Context, q *request, in *OneGroup) (*nothing, error) {
	return nil, h.gateway.Groups.RemovePicture(ctx, q.caller, in.ID, in.ChatID)
}

func (h groups) invite(ctx context.Context, q *request, in *OneGroup) (*output[gateway.Invitation], error) {
	return answer(h.gateway.Groups.Invite(ctx, q.caller, in.ID, in.ChatID))
}

type groupActInput struct {
	OneGroup

	Body *noMembers
}

func (h groups) resetInvite(ctx context.Context, q *request, in *groupActInput) (*output[gateway.Invitation], error) {
	return answer(h.gateway.Groups.ResetInvite(ctx, q.caller, in.ID, in.ChatID))
}

// JoinRequests are those who want to join a group.
type JoinRequests struct {
	Data []postern.JoinRequest `json:"data" nullable:"false" doc:"The people who wait, in the network's order."`

	NextCursor postern.Maybe `json:"nextCursor" nullable:"true" doc:"Pass this as cursor to get the next page; null on the last page."`
}

func (h groups) requests(ctx context.Context, q *request, in *ofGroupInput) (*output[JoinRequests], error) {
	list, err := h.gateway.Groups.Requests(ctx, q.caller, in.ID, in.ChatID)
	l, err := wholePage(h.gateway, q, "requests "+string(in.ID)+in.ChatID, list, in.page(), err)
	return answer(JoinRequests{l.Data, postern.Maybe(l.Next)}, err)
}

type answersInput struct {
	OneGroup

	Body requestAnswers
}

type requestAnswers struct {
	_       struct{} `additionalProperties:"false"`
	Approve []string `json:"approve,omitempty" nullable:"false" maxItems:"1023" doc:"Who becomes a member." example:"[\"+15551234567\"]"`
	Reject  []string `json:"reject,omitempty" nullable:"false" maxItems:"1023" doc:"Who does not." example:"[\"+15557654321\"]"`
}

func (h groups) answer(ctx context.Context, q *request, in *answersInput) (*output[ParticipantOutcomes], error) {
	list, err := h.gateway.Groups.AnswerRequests(ctx, q.caller, in.ID, in.ChatID, in.Body.Approve, in.Body.Reject)
	return answer(ParticipantOutcomes{list}, err)
}

func (h groups) leave(ctx context.Context, q *request, in *groupActInput) (*nothing, error) {
	return nil, h.gateway.Groups.Leave(ctx, q.caller, in.ID, in.ChatID)
}

type joinInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body joinGroup
}

type joinGroup struct {
	_      struct{} `additionalProperties:"false"`
	Invite string   `json:"invite" minLength:"1" maxLength:"200" doc:"The address of the invitation, or the code at its end." example:"Jt3mHkq0s7c9oWf2Yv1xZb"`
}

func (h groups) join(ctx context.Context, q *request, in *joinInput) (*created[gateway.JoinedGroup], error) {
	return answerCreated(h.gateway.Groups.Join(ctx, q.caller, in.ID, in.Body.Invite, q.idem))
}
