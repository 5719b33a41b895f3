package api

import (
	"context"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
)

type historyInput struct {
	ID     postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	ChatID string           `path:"chatId" doc:"The chat, as in messages and events; %2B for a plus sign is accepted." example:"+15551234567"`
	Body   *wantedHistory
}

type wantedHistory struct {
	_     struct{} `additionalProperties:"false"`
	Count int      `json:"count,omitempty" minimum:"1" maximum:"50" doc:"How many messages to ask for; 50 by default." example:"50"`
}

// mostHistory is how many messages phones send at a time.
const mostHistory = 50

func (h messages) askHistory(ctx context.Context, q *request, in *historyInput) (*output[gateway.AskedHistory], error) {
	count := mostHistory
	if in.Body != nil && in.Body.Count > 0 {
		count = in.Body.Count
	}
	return answer(h.gateway.Messages.AskHistory(ctx, q.caller, in.ID, in.ChatID, count))
}

type pastInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body newPast
}

type newPast struct {
	_         struct{}        `additionalProperties:"false"`
	From      string          `json:"from" minLength:"1" doc:"Number of the contact with whom the messages were exchanged." example:"+15551234567"`
	Messages  []newPastOfChat `json:"messages" nullable:"false" minItems:"1" maxItems:"1000" doc:"The messages."`
	OnRequest bool            `json:"onRequest,omitempty" doc:"Whether the phone sends them only when it is asked; false by default." example:"false"`
}

type newPastOfChat struct {
	_      struct{}  `additionalProperties:"false"`
	Body   string    `json:"body" minLength:"1" maxLength:"65536" doc:"The text." example:"Hello"`
	FromMe bool      `json:"fromMe,omitempty" doc:"Whether the owner of the phone wrote it; false by default." example:"false"`
	SentAt time.Time `json:"sentAt" doc:"When it was written." example:"2026-10-01T09:00:00Z"`
}

func (h sandbox) remember(ctx context.Context, q *request, in *pastInput) (*nothing, error) {
	list := make([]gateway.SandboxPast, len(in.Body.Messages))
	for i, m := range in.Body.Messages {
		list[i] = gateway.SandboxPast{Body: m.Body, FromMe: m.FromMe, SentAt: m.SentAt}
	}
	return nil, h.gateway.SandboxPhones.Remember(ctx, q.caller, in.ID, in.Body.From, list, in.Body.OnRequest)
}
