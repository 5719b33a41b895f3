package api

import (
	"context"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
)

// messages are the operations on messages.
type messages struct {
	gateway *gateway.Gateway
}

type newMessage struct {
	_                struct{}          `additionalProperties:"false"`
	DeviceID         postern.DeviceID  `json:"deviceId" minLength:"1" doc:"The device that sends." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	To               string            `json:"to" minLength:"1" doc:"A phone number, + and 7 to 15 digits, or a chatId seen in an event." example:"+15551234567"`
	Type             postern.Kind      `json:"type,omitempty" enum:"text" default:"text" doc:"Kind of the message." example:"text"`
	Body             string            `json:"body" minLength:"1" doc:"The text, at most 65,536 bytes in UTF-8." example:"Hello"`
	Metadata         map[string]string `json:"metadata,omitempty" doc:"Your own labels: at most 50, of at most 500 bytes each. They come back in every event."`
	ExpiresIn        int               `json:"expiresIn,omitempty" minimum:"1" maximum:"604800" doc:"Seconds until the message is given up if it cannot be sent; one day unless told." example:"300"`
	WhenDisconnected string            `json:"whenDisconnected,omitempty" enum:"fail,queue" default:"fail" doc:"What to do when the device is not connected at this moment." example:"fail"`
}

func (h messages) send(ctx context.Context, q *request, in *struct{ Body newMessage }) (*created[postern.Message], error) {
	b := in.Body
	return answerCreated(h.gateway.Messages.Send(ctx, q.caller, gateway.NewMessage{
		DeviceID: b.DeviceID, To: b.To, Content: postern.Content{Kind: b.Type, Text: b.Body}, Metadata: b.Metadata,
		ExpiresIn: time.Duration(b.ExpiresIn) * time.Second, WhenDisconnected: b.WhenDisconnected,
	}, q.idem))
}

type messageInput struct {
	ID postern.MessageID `path:"id" doc:"Id of the message." example:"msg_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

func (h messages) get(ctx context.Context, q *request, in *messageInput) (*output[postern.Message], error) {
	return answer(h.gateway.Messages.Get(ctx, q.caller, in.ID))
}

type messagesInput struct {
	Paging
	DeviceID  postern.DeviceID `query:"deviceId" doc:"Only messages of this device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID    string           `query:"chatId" doc:"Only messages of this chat." example:"+15551234567"`
	Direction string           `query:"direction" enum:"inbound,outbound" doc:"Only messages of this direction."`
	Status    string           `query:"status" enum:"queued,sending,sent,delivered,read,failed,expired,received" doc:"Only messages in this state."`
	Since     string           `query:"since" format:"date-time" doc:"Only messages made at this time or later." example:"2026-11-21T09:00:00.000Z"`
	Archived  bool             `query:"archived" doc:"Only messages of numbers that a device had before; they are in no other list." example:"false"`
	Until     string           `query:"until" format:"date-time" doc:"Only messages made before this time." example:"2026-11-22T09:00:00.000Z"`
}

func (h messages) list(ctx context.Context, q *request, in *messagesInput) (*output[List[postern.Message]], error) {
	since, until, err := span("/query", in.Since, in.Until)
	if err != nil {
		return nil, err
	}
	return answerList(h.gateway.Messages.List(ctx, q.caller, gateway.MessageQuery{
		DeviceID: in.DeviceID, ChatID: in.ChatID, Direction: in.Direction, Status: in.Status, Since: since, Until: until, Archived: in.Archived, Page: in.page(),
	}))
}

// span reads the ends of a time, whose members are in a place; 0 is none.
func span(place, from, to string) (since, until postern.Time, err error) {
	if since, err = instant(place+"/since", from); err != nil {
		return 0, 0, err
	}
	until, err = instant(place+"/until", to)
	return since, until, err
}

// instant reads a time of the query; "" is none.
func instant(place, s string) (t postern.Time, err error) {
	if s == "" {
		return 0, nil
	}
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return 0, postern.Invalid(place, "expected a time in RFC 3339 form, such as 2026-12-01T09:00:00.000Z")
	}
	return max(t, 1), nil // 0 is none, and nothing is as old
}
