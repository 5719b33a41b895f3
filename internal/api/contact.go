package api

import (
	"context"

	"postern/internal/gateway"
	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// contacts are the operations on people on the network.
type contacts struct {
	gateway *gateway.Gateway
	streams *streams
}

type contactsInput struct {
	DeviceID postern.DeviceID `query:"deviceId" doc:"Only contacts that this device knows."`
	ChatID   string           `query:"chatId" doc:"Only the contact with this number or lid, in every form that \"to\" accepts; write a plus sign as %2B." example:"+15551234567"`
	Paging
}

func (h contacts) list(ctx context.Context, q *request, in *contactsInput) (*output[List[postern.KnownContact]], error) {
	chat, err := chatFilter(in.ChatID)
	if err == nil && chat != "" && !postern.IsDirect(chat) {
		err = postern.Invalid("/query/chatId", "give the chat of a person: a number, or lid: and digits")
	}
	if err != nil {
		return nil, err
	}
	return answerList(h.gateway.Contacts.List(ctx, q.caller, gateway.ContactQuery{
		DeviceID: in.DeviceID, ChatID: chat, Page: in.page(),
	}))
}

type contactInput struct {
	ID postern.ContactID `path:"id" doc:"Id of the contact." example:"ct_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

func (h contacts) get(ctx context.Context, q *request, in *contactInput) (*output[postern.KnownContact], error) {
	return answer(h.gateway.Contacts.Get(ctx, q.caller, in.ID))
}

func (h contacts) erase(ctx context.Context, q *request, in *contactInput) (*nothing, error) {
	return nil, h.gateway.Contacts.Erase(ctx, q.caller, in.ID)
}

type checkInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body checkNumbers
}

type checkNumbers struct {
	_            struct{} `additionalProperties:"false"`
	PhoneNumbers []string `json:"phoneNumbers" nullable:"false" minItems:"1" maxItems:"50" doc:"The numbers to look up." example:"[\"+15551234567\"]"`
}

// CheckedNumbers are the answers of the network.
type CheckedNumbers struct {
	Data []postern.CheckedNumber `json:"data" nullable:"false" doc:"One answer for each number, in the order of the request."`
}

func (h contacts) check(ctx context.Context, q *request, in *checkInput) (*output[CheckedNumbers], error) {
	list, err := h.gateway.Contacts.Check(ctx, q.caller, in.ID, in.Body.PhoneNumbers)
	return answer(CheckedNumbers{list}, err)
}

type contactPictureInput struct {
	ID        postern.DeviceID  `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ContactID postern.ContactID `path:"contactId" doc:"Id of the contact." example:"ct_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

func (h contacts) picture(ctx context.Context, q *request, in *contactPictureInput) (*output[postern.Media], error) {
	return answer(h.gateway.Contacts.Picture(ctx, q.caller, in.ID, in.ContactID))
}

type blockedInput struct {
	PagingOfAll

	ID postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

// BlockedContacts are the people whom an account has blocked.
type BlockedContacts struct {
	Data []postern.BlockedContact `json:"data" nullable:"false" doc:"The people, in the order of the network."`

	NextCursor postern.Maybe `json:"nextCursor" nullable:"true" doc:"Pass this as cursor to get the next page; null on the last page."`
}

func (h contacts) blocked(ctx context.Context, q *request, in *blockedInput) (*output[BlockedContacts], error) {
	list, err := h.gateway.Contacts.Blocked(ctx, q.caller, in.ID)
	list = append([]postern.BlockedContact{}, list...)
	l, err := wholePage(h.gateway, q, "blocked "+string(in.ID), list, in.page(), err)
	return answer(BlockedContacts{l.Data, postern.Maybe(l.Next)}, err)
}

type blockInput struct {
	ID     postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID string           `path:"chatId" doc:"The direct chat with the person; %2B for a plus sign is accepted." example:"+15551234567"`
	Body   *noMembers
}

func (h contacts) block(ctx context.Context, q *request, in *blockInput) (*nothing, error) {
	return nil, h.gateway.Contacts.SetBlocked(ctx, q.caller, in.ID, in.ChatID, true)
}

type unblockInput struct {
	ID     postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID string           `path:"chatId" doc:"The direct chat with the person; %2B for a plus sign is accepted." example:"+15551234567"`
}

func (h contacts) unblock(ctx context.Context, q *request, in *unblockInput) (*nothing, error) {
	return nil, h.gateway.Contacts.SetBlocked(ctx, q.caller, in.ID, in.ChatID, false)
}

type typingInput struct {
	ID     postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID string           `path:"chatId" doc:"The chat, as in messages and events; %2B for a plus sign is accepted." example:"+15551234567"`
	Body   newTyping
}

type newTyping struct {
	_      struct{}       `additionalProperties:"false"`
	Typing postern.Typing `json:"typing" enum:"text,voice,paused" doc:"What the account is shown to write: text, or a voice message; paused ends it." example:"text"`
}

func (h contacts) typing(ctx context.Context, q *request, in *typingInput) (*nothing, error) {
	return nil, h.gateway.Contacts.Type(ctx, q.caller, in.ID, in.ChatID, in.Body.Typing)
}

type presenceInput struct {
	ID     postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID []string         `query:"chatId" maxItems:"50" doc:"The direct chats with the people of whom you want to know whether they are online, separated by commas; write a plus sign as %2B." example:"[\"+15551234567\"]"`
}

// presence follows what others show to a device at the moment.
func (h contacts) presence(ctx context.Context, q *request, in *presenceInput) (*huma.StreamResponse, error) {
	for _, text := range in.ChatID {
		if _, err := chatFilter(text); err != nil {
			return nil, err
		}
	}
	shown, err := h.gateway.Contacts.Follow(ctx, q.caller, in.ID, in.ChatID)
	if err != nil {
		return nil, err
	}
	return h.streams.answer(q, func(ctx context.Context, s *stream) {
		if s.Text(": connected\n\n") { // at once, so that a proxy that collects responses is noticed
			h.follow(ctx, q, shown, s)
		}
	})
}

// follow sends what has come since the last time, until the reader leaves or may no longer read.
func (h contacts) follow(ctx context.Context, q *request, shown *gateway.Shown, s *stream) {
	key, err := h.streams.watchKey(q, "streamPresence")
	if err != nil {
		return // the key may do less than a moment ago
	}
	defer key.changed.Close()
	shown.Begin()
	defer shown.Close()
	for key.good(ctx) {
		list, err := shown.Next(ctx, q.caller)
		if err != nil || !s.showOthers(list) || !key.wait(ctx, s, shown) {
			return
		}
	}
}

func (s *stream) showOthers(list []gateway.Update) bool {
	for _, u := range list {
		ok := true
		switch {
		case u.Typing != nil:
			ok = s.event("typing", u.Typing)
		case u.Presence != nil:
			ok = s.event("presence", u.Presence)
		case u.Watching != nil:
			ok = s.event("watching", u.Watching)
		}
		if !ok {
			return false
		}
	}
	return true
}

type callActInput struct {
	ID     postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	CallID string           `path:"callId" doc:"Id of the call, as in call.received." example:"3EB0A1B2C3D4E5F60718"`
	Body   *noMembers
}

func (h contacts) reject(ctx context.Context, q *request, in *callActInput) (*nothing, error) {
	return nil, h.gateway.Contacts.Reject(ctx, q.caller, in.ID, in.CallID)
}
