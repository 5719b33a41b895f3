package api

import (
	"context"
	"errors"
	"strconv"
	"time"

	"postern/internal/api/spec"
	"postern/internal/gateway"
	"postern/internal/postern"
	"postern/internal/problem"
	"postern/internal/qrcode"

	"github.com/danielgtaylor/huma/v2"
)

// links are the operations on link attempts.
type links struct {
	gateway *gateway.Gateway
	streams *streams
	baseURL string
	code    time.Duration // how long the response to a new attempt waits for the first code
}

type linkInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *newLink
}

type newLink struct {
	_                   struct{} `additionalProperties:"false"`
	Method              string   `json:"method,omitempty" enum:"qr,code" doc:"qr, the default: the phone scans a code. code: its owner enters one." example:"qr"`
	PhoneNumber         string   `json:"phoneNumber,omitempty" minLength:"1" doc:"Number of the phone on which the code will be entered; only with method code." example:"+15550001111"`
	ExpectedPhoneNumber string   `json:"expectedPhoneNumber,omitempty" minLength:"1" doc:"Link only an account with this number." example:"+15550001111"`
	AllowNewNumber      bool     `json:"allowNewNumber,omitempty" doc:"Allow a device that was linked before to be linked to another number."`
	AllowSecond         bool     `json:"allowSecond,omitempty" doc:"Allow a number that another device of the workspace is linked to. Both devices then get its messages."`
}

// openedLink is a new attempt, where it is, and when to look again.
type openedLink struct {
	Location   string `header:"Location" doc:"Where the new resource is." example:"/v1/devices/dev_01JD8Z3NDEKTSV4RRFFQ69G5FA/link"`
	Replayed   string `header:"Idempotent-Replayed" enum:"true" doc:"Present when this is the stored response to an earlier request with the same Idempotency-Key."`
	RetryAfter string `header:"Retry-After" doc:"Present while the code to show is on its way: how many seconds to wait." example:"1"`
	Body       postern.Link
}

func (h links) open(ctx context.Context, q *request, in *linkInput) (*openedLink, error) {
	var b newLink
	if in.Body != nil {
		b = *in.Body
	}
	c, err := h.gateway.Links.Open(ctx, q.caller, in.ID, gateway.NewLink{
		Method: b.Method, PhoneNumber: b.PhoneNumber, ExpectedNumber: b.ExpectedPhoneNumber,
		AllowNewNumber: b.AllowNewNumber, AllowSecond: b.AllowSecond,
	}, q.idem)
	out, err := answerMade(c, err, func(l postern.Link) string { return "/v1/devices/" + string(l.DeviceID) + "/link" })
	if err != nil {
		return nil, err
	}
	if !c.Replayed {
		out.Body = h.awaitCode(ctx, q, out.Body)
	}
	return &openedLink{out.Location, out.Replayed, untilCode(out.Body), out.Body}, nil
}

// awaitCode returns a new attempt with its first code, or as it is after some seconds without one.
func (h links) awaitCode(ctx context.Context, q *request, l postern.Link) postern.Link {
	ctx, cancel := context.WithTimeout(ctx, h.code)
	defer cancel()
	changes, err := h.gateway.Links.Watch(ctx, q.caller, l.DeviceID)
	if err != nil {
		return l
	}
	defer changes.Close()
	for {
		now, err := h.gateway.Links.Get(ctx, q.caller, l.DeviceID)
		if err != nil || now.ID != l.ID {
			return l
		}
		if l = now; untilCode(l) == "" {
			return l
		}
		select {
		case <-changes.C():
		case <-ctx.Done():
			return l
		}
	}
}

// untilCode returns how many seconds to wait before an attempt shows its first code; "" when
// it shows one, or never will.
func untilCode(l postern.Link) string {
	if l.Status != postern.LinkPending || l.QR != "" || l.PairingCode != "" {
		return ""
	}
	return strconv.Itoa(problem.Seconds(codeWait))
}

// shownLink is an attempt, and when to look again.
type shownLink struct {
	RetryAfter string `header:"Retry-After" doc:"Present while the code to show is on its way: how many seconds to wait." example:"1"`
	Body       postern.Link
}

func (h links) get(ctx context.Context, q *request, in *deviceInput) (*shownLink, error) {
	l, err := h.gateway.Links.Get(ctx, q.caller, in.ID)
	if err != nil {
		return nil, err
	}
	if q.caller.Permit(postern.DevicesWrite) != nil {
		return &shownLink{Body: l}, nil //nolint:nilerr // such a caller never sees a code
	}
	return &shownLink{untilCode(l), l}, nil
}

type emptyInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body *noMembers
}

type passkeyInput struct {
	ID   postern.DeviceID `path:"id" doc:"Id of the device." example:"dev_01JD8Z3NDEKTSV4RRFFQ69G5FA"`
	Body passkeyAnswer
}

type passkeyAnswer struct {
	_          struct{}          `additionalProperties:"false"`
	Credential passkeyCredential `json:"credential" doc:"What navigator.credentials.get() returned, after toJSON(). Fields beyond these are ignored."`
}

// passkeyCredential is the AuthenticationResponseJSON of WebAuthn.
type passkeyCredential struct {
	_        struct{}        `additionalProperties:"true"`
	ID       string          `json:"id" minLength:"1" maxLength:"8192" doc:"Id of the passkey, in base64url." example:"AY1kZ0mWq3c8T5uHn2xRbA"`
	RawID    string          `json:"rawId" minLength:"1" maxLength:"8192" doc:"The same as id." example:"AY1kZ0mWq3c8T5uHn2xRbA"`
	Type     string          `json:"type" enum:"public-key" doc:"Always public-key." example:"public-key"`
	Response passkeyResponse `json:"response" doc:"What the authenticator has signed."`
}

type passkeyResponse struct {
	_                 struct{} `additionalProperties:"true"`
	ClientDataJSON    string   `json:"clientDataJSON" minLength:"1" maxLength:"8192" doc:"Which request the browser answers, and on which page, in base64url." example:"eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoi…"`
	AuthenticatorData string   `json:"authenticatorData" minLength:"1" maxLength:"8192" doc:"What the authenticator says, in base64url." example:"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEFAAAAAA"`
	Signature         string   `json:"signature" minLength:"1" maxLength:"8192" doc:"Signature of both, in base64url." example:"MEUCIQDx1…"`
	UserHandle        *string  `json:"userHandle,omitempty" nullable:"true" maxLength:"8192" doc:"Whose passkey it is, in base64url; null or left out if the authenticator does not say." example:"dXNlcg"`
}

// answerPasskey hands the network the passkey that it asks for.
func (h links) answerPasskey(ctx context.Context, q *request, in *passkeyInput) (*output[postern.Link], error) {
	c := in.Body.Credential
	credential := postern.PasskeyCredential{ID: c.ID, RawID: c.RawID, Type: c.Type, Response: postern.PasskeyResponse{
		ClientData: c.Response.ClientDataJSON, AuthenticatorData: c.Response.AuthenticatorData,
		Signature: c.Response.Signature,
	}}
	if user := c.Response.UserHandle; user != nil {
		credential.Response.UserHandle = postern.Maybe(*user)
	}
	return answer(h.gateway.Links.AnswerPasskey(ctx, q.caller, in.ID, credential))
}

// confirm says that the phone shows the same code.
func (h links) confirm(ctx context.Context, q *request, in *emptyInput) (*output[postern.Link], error) {
	return answer(h.gateway.Links.Confirm(ctx, q.caller, in.ID))
}

func (h links) cancel(ctx context.Context, q *request, in *deviceInput) (*nothing, error) {
	return nil, h.gateway.Links.Cancel(ctx, q.caller, in.ID)
}

type image struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	Policy      string `header:"Content-Security-Policy" hidden:"true"`
	Body        []byte
}

func (h links) svg(ctx context.Context, q *request, in *deviceInput) (*image, error) {
	picture, err := h.picture(ctx, q, in.ID, qrcode.SVG)
	return &image{ContentType: spec.SVG, Policy: "default-src 'none'; sandbox", Body: picture}, err
}

func (h links) png(ctx context.Context, q *request, in *deviceInput) (*image, error) {
	picture, err := h.picture(ctx, q, in.ID, qrcode.PNG)
	return &image{ContentType: spec.PNG, Body: picture}, err
}

// picture draws the code to show now. The error is NotFound if there is no code.
func (h links) picture(
	ctx context.Context, q *request, id postern.DeviceID, draw func(string) ([]byte, error),
) ([]byte, error) {
	l, err := h.gateway.Links.Code(ctx, q.caller, id)
	switch {
	case err != nil:
		return nil, err
	case l.Status != postern.LinkPending:
		return nil, postern.Errorf(postern.NotFound,
			"there is no code to show, because the link attempt is %s; open a new one", l.Status)
	case l.Method == postern.ByCode:
		return nil, postern.Errorf(postern.NotFound,
			"this attempt has no code to scan; enter its pairingCode on the phone")
	case l.QR == "":
		return nil, &postern.Error{
			Reason: postern.NotFound, RetryAfter: codeWait,
			Detail: "there is no code yet; the first one follows within seconds: try again, or follow the stream",
		}
	}
	return draw(string(l.QR))
}

// LinkPage is the page that shows an attempt to the person with the phone.
type LinkPage struct {
	URL       string       `json:"url" format:"uri" doc:"Address of the page. Only this response contains it. The page belongs to the first browser in which its button is pressed." example:"https://postern.example.com/link/Jt3mHkq0s7c9oWf2Yv1xZb8uRa5eNd6gLpTiQwCyXzA"`
	ExpiresAt postern.Time `json:"expiresAt" format:"date-time" doc:"When the page and its attempt end." example:"2026-11-21T09:15:00.000Z"`
}

func (h links) openPage(ctx context.Context, q *request, in *emptyInput) (*made[LinkPage], error) {
	p, err := h.gateway.LinkPages.Open(ctx, q.caller, in.ID, q.idem)
	page := LinkPage{h.baseURL + "/link/" + p.Value.Token, p.Value.ExpiresAt}
	return answerMade(gateway.Created[LinkPage]{Value: page, Replayed: p.Replayed}, err,
		func(p LinkPage) string { return p.URL })
}

// stream follows a link attempt until it ends or the caller leaves: a few minutes
// at most.
func (h links) stream(ctx context.Context, q *request, in *deviceInput) (*huma.StreamResponse, error) {
	first, err := h.gateway.Links.Get(ctx, q.caller, in.ID)
	if err != nil {
		return nil, err
	}
	return h.streams.answer(q, func(ctx context.Context, s *stream) {
		if s.Text(": connected\n\n") { // at once, so that a proxy that collects responses is noticed
			h.follow(ctx, q, first, s)
		}
	})
}

// follow sends the attempt whenever it has changed, until it ends.
func (h links) follow(ctx context.Context, q *request, last postern.Link, s *stream) {
	changes, err := h.gateway.Links.Watch(ctx, q.caller, last.DeviceID)
	if isNotFound(err) { // deleted a moment ago
		s.event("ended", failed(last, "deleted"))
	}
	if err != nil {
		return // the key may do less than a moment ago
	}
	defer changes.Close()
	key, err := h.streams.watchKey(q, "streamLink")
	if err != nil {
		return
	}
	defer key.changed.Close()
	last.QR, last.PairingCode, last.ConfirmationCode, last.Status = "", "", "", postern.LinkPending // not sent yet
	for key.good(ctx) {
		l, err := h.now(ctx, q, last)
		if err != nil || !s.showLink(l, last) || !l.Status.Open() {
			return
		}
		last = l
		if !key.wait(ctx, s, changes) {
			return
		}
	}
}

// now reads the attempt again. When the device was deleted, or another attempt was opened, this one has ended.
func (h links) now(ctx context.Context, q *request, last postern.Link) (postern.Link, error) {
	l, err := h.gateway.Links.Get(ctx, q.caller, last.DeviceID)
	if isNotFound(err) {
		return failed(last, "deleted"), nil
	}
	if err == nil && l.ID != last.ID {
		return failed(last, "canceled"), nil
	}
	return l, err
}

func isNotFound(err error) bool { return errors.Is(err, &postern.Error{Reason: postern.NotFound}) }

// failed returns an attempt that has ended for a reason.
func failed(l postern.Link, reason postern.Maybe) postern.Link {
	l.Status, l.Reason, l.QR, l.PairingCode, l.QRExpiresAt = postern.LinkFailed, reason, "", "", 0
	l.Passkey, l.ConfirmationCode = nil, ""
	return l
}

// showLink sends a code that is new, or the end of the attempt.
func (s *stream) showLink(l, last postern.Link) bool {
	switch {
	case !l.Status.Open():
		return s.event("ended", l)
	case l.QR != "" && l.QR != last.QR, l.PairingCode != "" && l.PairingCode != last.PairingCode:
		return s.event("code", l)
	case l.Status == postern.LinkConfirm && l.ConfirmationCode != last.ConfirmationCode:
		return s.event("confirm", l)
	case l.Status != last.Status:
		return s.event("passkey", l)
	}
	return true
}
