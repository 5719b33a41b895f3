package api

import (
	"context"

	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"

	"github.com/danielgtaylor/huma/v2"
)

// deliveries are the operations on deliveries and on the statistics of endpoints.
type deliveries struct {
	gateway *gateway.Gateway
}

type deliveriesInput struct {
	ID postern.EndpointID `path:"id" doc:"Id of the endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Paging
	Status string   `query:"status" enum:"pending,succeeded,exhausted" doc:"Only deliveries in this state."`
	Types  []string `query:"type" doc:"Only deliveries of these types of events: names and prefixes such as message.*, separated by commas." example:"[\"message.*\"]"`
	Since  string   `query:"since" format:"date-time" doc:"Only deliveries created at this time or later." example:"2026-11-21T09:00:00.000Z"`
	Until  string   `query:"until" format:"date-time" doc:"Only deliveries created before this time." example:"2026-11-22T09:00:00.000Z"`
}

func (h deliveries) list(
	ctx context.Context, q *request, in *deliveriesInput,
) (*output[List[postern.Delivery]], error) {
	since, until, err := span("/query", in.Since, in.Until)
	if err != nil {
		return nil, err
	}
	return answerList(h.gateway.Deliveries.List(ctx, q.caller, in.ID, gateway.DeliveryQuery{
		Status: in.Status, Types: in.Types, Since: since, Until: until, Page: in.page(),
	}))
}

// DeliveryLog is a delivery with its attempts and its event.
type DeliveryLog struct {
	postern.Delivery
	AttemptLog []postern.Attempt `json:"attemptLog" nullable:"false" doc:"Every attempt, newest first; the oldest are left out when the response would become larger than 1 MiB."`
	Event      postedBody        `json:"event" doc:"The body that is posted; null without the scopes messages:read and events:read, and after the retention has removed it."`
}

// postedBody is the body of a delivery: an event's stored bytes.
type postedBody []byte

// MarshalJSON writes the bytes as they are.
func (b postedBody) MarshalJSON() ([]byte, error) {
	if len(b) == 0 {
		return []byte("null"), nil
	}
	return b, nil
}

// Schema is that of any object, or null.
func (postedBody) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Nullable: true, AdditionalProperties: &huma.Schema{}}
}

type deliveryInput struct {
	ID postern.DeliveryID `path:"id" doc:"Id of the delivery." example:"dlv_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

func (h deliveries) get(ctx context.Context, q *request, in *deliveryInput) (*output[DeliveryLog], error) {
	l, err := h.gateway.Deliveries.Get(ctx, q.caller, in.ID)
	if l.Attempts == nil {
		l.Attempts = []postern.Attempt{}
	}
	l.Attempts = l.Attempts[:paging.Fit(l.Attempts, paging.MaxBytes-len(l.Body))]
	return answer(DeliveryLog{l.Delivery, l.Attempts, l.Body}, err)
}

type retryInput struct {
	ID   postern.DeliveryID `path:"id" doc:"Id of the delivery." example:"dlv_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *noMembers
}

func (h deliveries) retry(ctx context.Context, q *request, in *retryInput) (*created[postern.Delivery], error) {
	return answerCreated(h.gateway.Deliveries.Retry(ctx, q.caller, in.ID, q.idem))
}

type statsInput struct {
	ID    postern.EndpointID `path:"id" doc:"Id of the endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Since string             `query:"since" format:"date-time" doc:"Only hours that begin at this time or later; by default 24 hours before until." example:"2026-11-21T09:00:00.000Z"`
	Until string             `query:"until" format:"date-time" doc:"Only hours that begin before this time; by default now." example:"2026-11-22T09:00:00.000Z"`
}

func (h deliveries) stats(
	ctx context.Context, q *request, in *statsInput,
) (*output[List[postern.EndpointHour]], error) {
	since, until, err := span("/query", in.Since, in.Until)
	if err != nil {
		return nil, err
	}
	return answerList(h.gateway.Webhooks.Hours(ctx, q.caller, in.ID, since, until))
}

// replays are the operations on replays.
type replays struct {
	gateway *gateway.Gateway
}

type newReplay struct {
	_          struct{} `additionalProperties:"false"`
	Since      string   `json:"since,omitempty" minLength:"1" format:"date-time" doc:"Only events recorded at this time or later; by default from the start of the log." example:"2026-11-21T09:00:00.000Z"`
	Until      string   `json:"until,omitempty" minLength:"1" format:"date-time" doc:"Only events recorded before this time. Events recorded after the request are never included." example:"2026-11-22T09:00:00.000Z"`
	Types      []string `json:"types,omitempty" nullable:"false" doc:"Only events of these types: names and prefixes such as message.*; by default all that the endpoint receives." example:"[\"message.*\"]"`
	OnlyFailed bool     `json:"onlyFailed,omitempty" doc:"Only events whose delivery was exhausted."`
}

type replayInput struct {
	ID   postern.EndpointID `path:"id" doc:"Id of the endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *newReplay
}

func (h replays) create(ctx context.Context, q *request, in *replayInput) (*created[postern.Replay], error) {
	var n gateway.NewReplay
	if b := in.Body; b != nil {
		n.Types, n.OnlyFailed = b.Types, b.OnlyFailed
		var err error
		if n.Since, n.Until, err = span("", b.Since, b.Until); err != nil {
			return nil, err
		}
	}
	return answerCreated(h.gateway.Replays.Create(ctx, q.caller, in.ID, n, q.idem))
}

type oneReplay struct {
	ID postern.ReplayID `path:"id" doc:"Id of the replay." example:"rpl_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

func (h replays) get(ctx context.Context, q *request, in *oneReplay) (*output[postern.Replay], error) {
	return answer(h.gateway.Replays.Get(ctx, q.caller, in.ID))
}

func (h replays) stop(ctx context.Context, q *request, in *oneReplay) (*nothing, error) {
	return nil, h.gateway.Replays.Stop(ctx, q.caller, in.ID)
}
