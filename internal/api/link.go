package api

import (
	"context"

	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/qrcode"
)

type linkInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *newLink
}

type newLink struct {
	_                   struct{} `additionalProperties:"false"`
	Method              string   `json:"method,omitempty" enum:"qr,code" default:"qr" doc:"Whether a phone scans a code, or its owner enters one." example:"qr"`
	PhoneNumber         string   `json:"phoneNumber,omitempty" minLength:"1" doc:"Number of the phone that a code will be entered on; with method code only." example:"+15550001111"`
	ExpectedPhoneNumber string   `json:"expectedPhoneNumber,omitempty" minLength:"1" doc:"Only this number may be linked." example:"+15550001111"`
	AllowNewNumber      bool     `json:"allowNewNumber,omitempty" doc:"A device that had a number may get another one."`
}

func (a *API) openLink(ctx context.Context, q *request, in *linkInput) (*created[postern.Link], error) {
	var b newLink
	if in.Body != nil {
		b = *in.Body
	}
	return answerCreated(a.gateway.Links.Open(ctx, q.caller, in.ID, gateway.NewLink{Method: b.Method, PhoneNumber: b.PhoneNumber, ExpectedNumber: b.ExpectedPhoneNumber, AllowNewNumber: b.AllowNewNumber}, q.idem))
}

func (a *API) getLink(ctx context.Context, q *request, in *deviceInput) (*output[postern.Link], error) {
	return answer(a.gateway.Links.Get(ctx, q.caller, in.ID))
}

type emptyInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *noMembers
}

func (a *API) answerPasskey(ctx context.Context, q *request, in *emptyInput) (*nothing, error) {
	return nil, a.gateway.Links.AnswerPasskey(ctx, q.caller, in.ID)
}

func (a *API) cancelLink(ctx context.Context, q *request, in *deviceInput) (*nothing, error) {
	return nil, a.gateway.Links.Cancel(ctx, q.caller, in.ID)
}

type image struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	Policy      string `header:"Content-Security-Policy" hidden:"true"`
	Body        []byte
}

func (a *API) getLinkSVG(ctx context.Context, q *request, in *deviceInput) (*image, error) {
	picture, err := a.picture(ctx, q, in.ID, qrcode.SVG)
	return &image{ContentType: svgType, Policy: "default-src 'none'; sandbox", Body: picture}, err
}

func (a *API) getLinkPNG(ctx context.Context, q *request, in *deviceInput) (*image, error) {
	picture, err := a.picture(ctx, q, in.ID, qrcode.PNG)
	return &image{ContentType: pngType, Body: picture}, err
}

// picture draws the code to show now.
func (a *API) picture(ctx context.Context, q *request, id postern.DeviceID, draw func(string) ([]byte, error)) ([]byte, error) {
	l, err := a.gateway.Links.Get(ctx, q.caller, id)
	switch {
	case err != nil:
		return nil, err
	case l.Status != postern.LinkPending:
		return nil, postern.Errorf(postern.NotFound, "there is no code to show: the link attempt is %s; open a new one", l.Status)
	case l.Method == postern.ByCode:
		return nil, postern.Errorf(postern.NotFound, "there is no picture: the attempt shows a code to enter on the phone; see pairingCode")
	case l.QR == "":
		return nil, postern.Errorf(postern.NotFound, "there is no code to show yet: the first one follows within seconds; try again, or follow the stream")
	}
	return draw(string(l.QR))
}

// LinkPage is where an attempt is shown to whoever holds the phone.
type LinkPage struct {
	URL       string       `json:"url" format:"uri" doc:"Address of the page. It is shown here once; the first browser whose user presses the button on it has it for itself." example:"https://postern.example.com/link/Jt3mHkq0s7c9oWf2Yv1xZb8uRa5eNd6gLpTiQwCyXzA"`
	ExpiresAt postern.Time `json:"expiresAt" format:"date-time" example:"2026-11-21T09:15:00.000Z"`
}

func (a *API) openLinkPage(ctx context.Context, q *request, in *emptyInput) (*created[LinkPage], error) {
	p, err := a.gateway.LinkPages.Open(ctx, q.caller, in.ID, q.idem)
	return answerCreated(gateway.Created[LinkPage]{Value: LinkPage{a.baseURL + "/link/" + p.Value.Token, p.Value.ExpiresAt}, Replayed: p.Replayed}, err)
}
