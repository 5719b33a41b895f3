package api

import (
	"context"

	"postern/internal/gateway"
	"postern/internal/postern"
)

// replays are the operations on replays.
type replays struct {
	gateway *gateway.Gateway
}

type newReplay struct {
	_          struct{} `additionalProperties:"false"`
	Since      string   `json:"since,omitempty" minLength:"1" format:"date-time" doc:"Events recorded at this time or later; from the start of the log unless told." example:"2026-11-21T09:00:00.000Z"`
	Until      string   `json:"until,omitempty" minLength:"1" format:"date-time" doc:"Events recorded before this time; what is recorded after the request is never in." example:"2026-11-22T09:00:00.000Z"`
	Types      []string `json:"types,omitempty" nullable:"false" doc:"Names and prefixes such as message.*; all that the endpoint asks for unless told." example:"[\"message.*\"]"`
	OnlyFailed bool     `json:"onlyFailed,omitempty" doc:"Only those whose delivery was exhausted."`
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
