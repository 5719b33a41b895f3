package api

import (
	"context"

	"postern/internal/gateway"
	"postern/internal/postern"
)

// chats are the operations on conversations.
type chats struct{ gateway *gateway.Gateway }

// labels are the operations on labels of conversations.
type labels struct{ gateway *gateway.Gateway }

type chatsInput struct {
	Paging
	DeviceID postern.DeviceID `query:"deviceId" doc:"Only chats of this device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Archived string           `query:"archived" enum:"true,false" doc:"Only chats that are archived, or only chats that are not. Both by default."`
	Unread   bool             `query:"unread" doc:"Only chats with unread messages." example:"true"`
	Label    string           `query:"label" maxLength:"40" doc:"Only chats that have the label with this id. It is the id of a label of one account, so give deviceId, too." example:"5"`
}

func (h chats) list(ctx context.Context, q *request, in *chatsInput) (*output[List[postern.Chat]], error) {
	query := gateway.ChatQuery{DeviceID: in.DeviceID, Unread: in.Unread, Label: in.Label, Page: in.page()}
	if in.Archived != "" {
		query.Archived = new(in.Archived == "true")
	}
	return answerList(h.gateway.Chats.List(ctx, q.caller, query))
}

// OneChat names a chat of a device.
type OneChat struct {
	ID     postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID string           `path:"chatId" doc:"The chat, as in messages and events; %2B for a plus sign is accepted." example:"+15551234567"`
}

func (h chats) get(ctx context.Context, q *request, in *OneChat) (*output[postern.Chat], error) {
	return answer(h.gateway.Chats.Get(ctx, q.caller, in.ID, in.ChatID))
}

type readChatInput struct {
	OneChat

	Body *noMembers
}

func (h chats) read(ctx context.Context, q *request, in *readChatInput) (*output[postern.Chat], error) {
	return answer(h.gateway.Chats.MarkRead(ctx, q.caller, in.ID, in.ChatID))
}

type archiveInput struct {
	OneChat

	Body newArchive
}

type newArchive struct {
	_        struct{} `additionalProperties:"false"`
	Archived bool     `json:"archived" doc:"True archives the chat; false brings it back." example:"true"`
}

func (h chats) archive(ctx context.Context, q *request, in *archiveInput) (*output[postern.Chat], error) {
	return answer(h.gateway.Chats.Archive(ctx, q.caller, in.ID, in.ChatID, in.Body.Archived))
}

type muteInput struct {
	OneChat

	Body newMute
}

type newMute struct {
	_     struct{} `additionalProperties:"false"`
	Muted bool     `json:"muted" doc:"True mutes the chat; false ends that." example:"true"`
	Until string   `json:"until,omitempty" format:"date-time" doc:"Until when to mute the chat; for ever by default. Ignored unless muted is true." example:"2030-01-01T09:00:00.000Z"`
}

func (h chats) mute(ctx context.Context, q *request, in *muteInput) (*output[postern.Chat], error) {
	until, err := instant("/until", in.Body.Until)
	switch {
	case err != nil:
		return nil, err
	case !in.Body.Muted:
		until = 0
	case until == 0:
		until = postern.MutedForEver
	}
	return answer(h.gateway.Chats.Mute(ctx, q.caller, in.ID, in.ChatID, until))
}

type labelsInput struct {
	PagingOfAll

	ID postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

// Labels are the labels of an account.
type Labels struct {
	Data []postern.Label `json:"data" nullable:"false" doc:"The labels, by name."`

	NextCursor postern.Maybe `json:"nextCursor" nullable:"true" doc:"Pass this as cursor to get the next page; null on the last page."`
}

func (h labels) list(ctx context.Context, q *request, in *labelsInput) (*output[Labels], error) {
	list, err := h.gateway.Labels.List(ctx, q.caller, in.ID)
	l, err := wholePage(h.gateway, q, "labels "+string(in.ID), list, in.page(), err)
	return answer(Labels{l.Data, postern.Maybe(l.Next)}, err)
}

type createLabelInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newLabel
}

type newLabel struct {
	_     struct{} `additionalProperties:"false"`
	Name  string   `json:"name" minLength:"1" maxLength:"100" doc:"Name of the label." example:"New customer"`
	Color int      `json:"color,omitempty" minimum:"0" maximum:"19" doc:"Number of its color in the palette of the network's apps; 0 by default." example:"3"`
}

func (h labels) create(ctx context.Context, q *request, in *createLabelInput) (*created[postern.Label], error) {
	return answerCreated(h.gateway.Labels.Create(ctx, q.caller, in.ID, in.Body.Name, in.Body.Color, q.idem))
}

// OneLabel names a label of a device.
type OneLabel struct {
	ID      postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	LabelID string           `path:"labelId" doc:"Id of the label." example:"5"`
}

type updateLabelInput struct {
	OneLabel

	Body labelChange
}

type labelChange struct {
	_     struct{} `additionalProperties:"false"`
	Name  *string  `json:"name,omitempty" minLength:"1" maxLength:"100" doc:"Name of the label; left out, it stays." example:"Old customer"`
	Color *int     `json:"color,omitempty" minimum:"0" maximum:"19" doc:"Number of its color in the palette of the network's apps; left out, it stays." example:"4"`
}

func (h labels) update(ctx context.Context, q *request, in *updateLabelInput) (*output[postern.Label], error) {
	change := gateway.LabelChange{Name: in.Body.Name, Color: in.Body.Color}
	return answer(h.gateway.Labels.Change(ctx, q.caller, in.ID, in.LabelID, change))
}

func (h labels) delete(ctx context.Context, q *request, in *OneLabel) (*nothing, error) {
	return nil, h.gateway.Labels.Delete(ctx, q.caller, in.ID, in.LabelID)
}

// LabelOfChat names a label on a chat.
type LabelOfChat struct {
	OneChat

	LabelID string `path:"labelId" doc:"Id of the label." example:"5"`
}

type labelChatInput struct {
	LabelOfChat

	Body *noMembers
}

func (h labels) put(ctx context.Context, q *request, in *labelChatInput) (*output[postern.Chat], error) {
	return answer(h.gateway.Labels.Put(ctx, q.caller, in.ID, in.ChatID, in.LabelID, true))
}

func (h labels) take(ctx context.Context, q *request, in *LabelOfChat) (*output[postern.Chat], error) {
	return answer(h.gateway.Labels.Put(ctx, q.caller, in.ID, in.ChatID, in.LabelID, false))
}

type channelsInput struct {
	PagingOfAll

	ID postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

// Channels are the channels that an account follows.
type Channels struct {
	Data []postern.Channel `json:"data" nullable:"false" doc:"The channels, in the network's order."`

	NextCursor postern.Maybe `json:"nextCursor" nullable:"true" doc:"Pass this as cursor to get the next page; null on the last page."`
}

func (h chats) channels(ctx context.Context, q *request, in *channelsInput) (*output[Channels], error) {
	list, err := h.gateway.Channels.List(ctx, q.caller, in.ID)
	l, err := wholePage(h.gateway, q, "channels "+string(in.ID), list, in.page(), err)
	return answer(Channels{l.Data, postern.Maybe(l.Next)}, err)
}

// OneChannel names a channel.
type OneChannel struct {
	ID     postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID string           `path:"chatId" doc:"The chat of the channel." example:"channel:120363041234567890"`
}

type followInput struct {
	OneChannel

	Body *noMembers
}

func (h chats) follow(ctx context.Context, q *request, in *followInput) (*output[postern.Channel], error) {
	return answer(h.gateway.Channels.Follow(ctx, q.caller, in.ID, in.ChatID))
}

func (h chats) unfollow(ctx context.Context, q *request, in *OneChannel) (*nothing, error) {
	return nil, h.gateway.Channels.Unfollow(ctx, q.caller, in.ID, in.ChatID)
}

type followByInviteInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body channelInvite
}

type channelInvite struct {
	_      struct{} `additionalProperties:"false"`
	Invite string   `json:"invite" minLength:"1" maxLength:"200" doc:"The address of the channel on the web, or the code at its end." example:"0029VaJt3mHkq0s7c9oWf2"`
}

func (h chats) followByInvite(
	ctx context.Context, q *request, in *followByInviteInput,
) (*created[postern.Channel], error) {
	return answerCreated(h.gateway.Channels.FollowInvite(ctx, q.caller, in.ID, in.Body.Invite, q.idem))
}
