package api

import (
	"context"

	"postern/internal/gateway"
	"postern/internal/postern"
)

type newWebhook struct {
	_           struct{}           `additionalProperties:"false"`
	URL         string             `json:"url" minLength:"1" maxLength:"2048" doc:"Where to post events: https and a public address." example:"https://hooks.example.com/postern"`
	Description string             `json:"description,omitempty" maxLength:"500" doc:"For people." example:"orders service"`
	Events      []string           `json:"events,omitempty" nullable:"false" doc:"Names, prefixes such as message.*, or *; all unless told." example:"[\"message.*\"]"`
	DeviceIDs   []postern.DeviceID `json:"deviceIds,omitempty" nullable:"false" doc:"Only events of these devices; all that the key may see unless told." example:"[\"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA\"]"`
	Headers     map[string]string  `json:"headers,omitempty" doc:"At most 10 fixed headers to send with every delivery."`
	Secret      string             `json:"secret,omitempty" minLength:"1" doc:"Your own signing secret: whsec_ and base64 of 24 to 64 bytes; one is made unless told."`
	MaxInFlight int                `json:"maxInFlight,omitempty" minimum:"1" maximum:"64" doc:"Deliveries at once; 8 unless told." example:"8"`
}

func (a *API) createWebhook(ctx context.Context, q *request, in *struct{ Body newWebhook }) (*created[gateway.EndpointWithSecret], error) {
	b := in.Body
	return answerCreated(a.gateway.CreateEndpoint(ctx, q.caller, gateway.NewEndpoint{
		URL: b.URL, Description: b.Description, Events: b.Events, DeviceIDs: b.DeviceIDs, Headers: b.Headers, Secret: b.Secret, MaxInFlight: b.MaxInFlight,
	}, q.idem))
}

func (a *API) listWebhooks(ctx context.Context, q *request, in *struct{ Paging }) (*output[List[postern.Endpoint]], error) {
	return answerList(a.gateway.Endpoints(ctx, q.caller, in.page()))
}

type webhookInput struct {
	ID postern.EndpointID `path:"id" doc:"Id of the endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

func (a *API) getWebhook(ctx context.Context, q *request, in *webhookInput) (*output[postern.Endpoint], error) {
	return answer(a.gateway.Endpoint(ctx, q.caller, in.ID))
}

func (a *API) deleteWebhook(ctx context.Context, q *request, in *webhookInput) (*nothing, error) {
	return nil, a.gateway.DeleteEndpoint(ctx, q.caller, in.ID)
}

type deliveriesInput struct {
	ID postern.EndpointID `path:"id" doc:"Id of the endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Paging
	Status string `query:"status" enum:"pending,succeeded,exhausted" doc:"Only deliveries in this state."`
}

func (a *API) listDeliveries(ctx context.Context, q *request, in *deliveriesInput) (*output[List[postern.Delivery]], error) {
	return answerList(a.gateway.Deliveries(ctx, q.caller, in.ID, in.Status, in.page()))
}
