package api

import (
	"context"

	"postern/internal/gateway"
	"postern/internal/postern"
)

type deviceInput struct {
	ID postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
}

type newDevice struct {
	_        struct{}          `additionalProperties:"false"`
	Name     string            `json:"name" minLength:"1" maxLength:"200" doc:"Name of the device, for people." example:"Support"`
	Metadata map[string]string `json:"metadata,omitempty" doc:"Your own labels: at most 50, of at most 500 bytes each."`
}

func (a *API) listDevices(ctx context.Context, q *request, in *struct{ Paging }) (*output[List[postern.Device]], error) {
	return answerList(a.gateway.Devices(ctx, q.caller, in.page()))
}

func (a *API) createDevice(ctx context.Context, q *request, in *struct{ Body newDevice }) (*created[postern.Device], error) {
	return answerCreated(a.gateway.CreateDevice(ctx, q.caller, gateway.NewDevice{Name: in.Body.Name, Metadata: in.Body.Metadata}, q.idem))
}

func (a *API) getDevice(ctx context.Context, q *request, in *deviceInput) (*output[postern.Device], error) {
	return answer(a.gateway.Device(ctx, q.caller, in.ID))
}

func (a *API) deleteDevice(ctx context.Context, q *request, in *deviceInput) (*nothing, error) {
	return nil, a.gateway.DeleteDevice(ctx, q.caller, in.ID)
}

type unlinkInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *noMembers
}

func (a *API) unlinkDevice(ctx context.Context, q *request, in *unlinkInput) (*output[postern.Device], error) {
	return answer(a.gateway.Unlink(ctx, q.caller, in.ID))
}
