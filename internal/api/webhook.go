package api

import (
	"context"
	"time"

	"postern/internal/gateway"
	"postern/internal/postern"
)

// webhooks are the operations on webhook endpoints.
type webhooks struct {
	gateway *gateway.Gateway
}

type newWebhook struct {
	_           struct{}           `additionalProperties:"false"`
	URL         string             `json:"url" minLength:"1" maxLength:"2048" doc:"Where to post events: https and a public address." example:"https://hooks.example.com/postern"`
	Description string             `json:"description,omitempty" maxLength:"500" doc:"For people." example:"orders service"`
	Events      []string           `json:"events,omitempty" nullable:"false" doc:"Names, prefixes such as message.*, or *; all unless told." example:"[\"message.*\"]"`
	DeviceIDs   []postern.DeviceID `json:"deviceIds,omitempty" nullable:"false" doc:"Only events of these devices; all that the key may see unless told." example:"[\"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA\"]"`
	Headers     map[string]string  `json:"headers,omitempty" doc:"At most 10 fixed headers to send with every delivery."`
	Secret      string             `json:"secret,omitempty" minLength:"1" doc:"Your own signing secret: whsec_ and base64 of 24 to 64 bytes; one is made unless told."`
	MaxInFlight int                `json:"maxInFlight,omitempty" minimum:"1" maximum:"64" doc:"Deliveries at once; 8 unless told." example:"8"`
	Ordered     bool               `json:"ordered,omitempty" doc:"Within one chat the next event waits for success of the one before, at most 10 minutes."`
	Signatures  []string           `json:"signatures,omitempty" nullable:"false" enum:"v1,v1a" doc:"v1 (HMAC-SHA256), or v1 and v1a (ed25519 too, with a publicKey); v1 unless told." example:"[\"v1\"]"`
}

func (h webhooks) create(ctx context.Context, q *request, in *struct{ Body newWebhook }) (*created[gateway.EndpointWithSecret], error) {
	b := in.Body
	return answerCreated(h.gateway.Webhooks.Create(ctx, q.caller, gateway.NewEndpoint{
		URL: b.URL, Description: b.Description, Events: b.Events, DeviceIDs: b.DeviceIDs, Headers: b.Headers, Secret: b.Secret, MaxInFlight: b.MaxInFlight, Ordered: b.Ordered, Signatures: b.Signatures,
	}, q.idem))
}

func (h webhooks) list(ctx context.Context, q *request, in *struct{ Paging }) (*output[List[postern.Endpoint]], error) {
	return answerList(h.gateway.Webhooks.List(ctx, q.caller, in.page()))
}

type webhookInput struct {
	ID postern.EndpointID `path:"id" doc:"Id of the endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

func (h webhooks) get(ctx context.Context, q *request, in *webhookInput) (*output[postern.Endpoint], error) {
	return answer(h.gateway.Webhooks.Get(ctx, q.caller, in.ID))
}

type webhookChange struct {
	_           struct{}                   `additionalProperties:"false"`
	URL         string                     `json:"url,omitempty" minLength:"1" maxLength:"2048" doc:"Where to post events: https and a public address. The old URL stays in use until this one has answered the handshake." example:"https://hooks.example.com/new"`
	Description *string                    `json:"description,omitempty" maxLength:"500" nullable:"false" doc:"For people." example:"orders service"`
	Events      []string                   `json:"events,omitempty" nullable:"false" doc:"Names, prefixes such as message.*, or *." example:"[\"message.*\"]"`
	DeviceIDs   member[[]postern.DeviceID] `json:"deviceIds,omitzero" doc:"Only events of these devices; null for all that the key may see."`
	Headers     map[string]string          `json:"headers,omitempty" doc:"At most 10 fixed headers to send with every delivery, in place of those before."`
	MaxInFlight int                        `json:"maxInFlight,omitempty" minimum:"1" maximum:"64" doc:"Deliveries at once." example:"8"`
	Ordered     *bool                      `json:"ordered,omitempty" nullable:"false" doc:"Within one chat the next event waits for success of the one before, at most 10 minutes."`
	Signatures  []string                   `json:"signatures,omitempty" nullable:"false" enum:"v1,v1a" doc:"v1 (HMAC-SHA256), or v1 and v1a (ed25519 too, with a publicKey)." example:"[\"v1\"]"`
}

type updateWebhookInput struct {
	ID   postern.EndpointID `path:"id" doc:"Id of the endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body webhookChange
}

func (h webhooks) update(ctx context.Context, q *request, in *updateWebhookInput) (*output[postern.Endpoint], error) {
	b := in.Body
	return answer(h.gateway.Webhooks.Change(ctx, q.caller, in.ID, gateway.EndpointChange{
		URL: b.URL, Description: b.Description, Events: b.Events, DeviceIDs: b.DeviceIDs.change(), Headers: b.Headers, MaxInFlight: b.MaxInFlight, Ordered: b.Ordered, Signatures: b.Signatures,
	}))
}

type webhookCommand struct {
	ID   postern.EndpointID `path:"id" doc:"Id of the endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *noMembers
}

func (h webhooks) verify(ctx context.Context, q *request, in *webhookCommand) (*output[postern.Endpoint], error) {
	return answer(h.gateway.Webhooks.Verify(ctx, q.caller, in.ID))
}

func (h webhooks) pause(ctx context.Context, q *request, in *webhookCommand) (*output[postern.Endpoint], error) {
	return answer(h.gateway.Webhooks.Pause(ctx, q.caller, in.ID))
}

func (h webhooks) resume(ctx context.Context, q *request, in *webhookCommand) (*output[postern.Endpoint], error) {
	return answer(h.gateway.Webhooks.Resume(ctx, q.caller, in.ID))
}

type rotateInput struct {
	ID   postern.EndpointID `path:"id" doc:"Id of the endpoint." example:"whk_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *rotation
}

type rotation struct {
	_              struct{} `additionalProperties:"false"`
	Secret         string   `json:"secret,omitempty" minLength:"1" doc:"Your own secret: whsec_ and base64 of 24 to 64 bytes; one is made unless told."`
	OverlapSeconds *int     `json:"overlapSeconds,omitempty" nullable:"false" minimum:"0" maximum:"2592000" doc:"How long the old secret signs beside the new one; a day unless told." example:"86400"`
}

func (h webhooks) rotateSecret(ctx context.Context, q *request, in *rotateInput) (*created[gateway.EndpointWithSecret], error) {
	var n gateway.NewSecret
	if b := in.Body; b != nil {
		n.Secret = b.Secret
		if b.OverlapSeconds != nil {
			overlap := time.Duration(*b.OverlapSeconds) * time.Second
			n.Overlap = &overlap
		}
	}
	return answerCreated(h.gateway.Webhooks.RotateSecret(ctx, q.caller, in.ID, n, q.idem))
}

func (h webhooks) delete(ctx context.Context, q *request, in *webhookInput) (*nothing, error) {
	return nil, h.gateway.Webhooks.Delete(ctx, q.caller, in.ID)
}

func (h webhooks) test(ctx context.Context, q *request, in *webhookCommand) (*created[postern.Delivery], error) {
	return answerCreated(h.gateway.Webhooks.Test(ctx, q.caller, in.ID, q.idem))
}
