package vendorsim

import (
	"context"
	"encoding/json"
	"net/http"
)

type passkeyBody struct {
	Number    string
	PublicKey json.RawMessage
	Mistake   PasskeyMistake
	Kind      PasskeyFault
}

// passkey makes a number ask for its passkey, and answers with what an authenticator has to know.
func (a controlAPI) passkey(_ context.Context, in passkeyBody) (any, error) {
	if err := a.vendor.Passkeys().Require(in.Number); err != nil {
		return nil, err
	}
	p, err := a.vendor.Passkeys().Of(in.Number)
	if err != nil {
		return nil, err
	}
	key, err := p.PrivateKey()
	return map[string]any{"id": p.ID, "userHandle": p.UserHandle, "privateKey": key, "rpId": PasskeyDomain}, err
}

func (a controlAPI) answerPasskey(_ context.Context, in passkeyBody) (any, error) {
	p, err := a.vendor.Passkeys().Of(in.Number)
	if err != nil {
		return nil, err
	}
	credential, err := p.Answer(in.PublicKey, in.Mistake)
	return map[string]json.RawMessage{"credential": credential}, err
}

func (a controlAPI) failPasskey(_ context.Context, in passkeyBody) (any, error) {
	return struct{}{}, a.vendor.Passkeys().Fail(in.Number, in.Kind)
}

func (a controlAPI) showPasskeyCode(w http.ResponseWriter, r *http.Request) {
	controlAnswer(w, map[string]string{"code": a.vendor.Passkeys().Code(r.FormValue("number"))}, nil)
}
