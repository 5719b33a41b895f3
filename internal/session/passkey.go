package session

import (
	"context"

	"postern/internal/postern"
)

// The reasons of attempts whose time is over.
const (
	noPasskey   = "passkey-required"
	unconfirmed = "passkey-unconfirmed"
)

// wantPasskey shows what the network asks for.
func (h *linkHost) wantPasskey(ctx context.Context, o postern.PasskeyOptions) error {
	err := h.e.g.Sessions.WantPasskey(ctx, h.d, h.link, o)
	if err == nil {
		h.passkey = noPasskey
	}
	return err
}

// Credential waits for the owner's answer, which any server may take.
func (h *linkHost) Credential(ctx context.Context) (postern.PasskeyCredential, error) {
	c, err := h.e.g.Sessions.Credential(ctx, h.link)
	if err == nil {
		h.passkey = unconfirmed
	}
	return c, err
}

// Confirmed waits until the owner has compared the code.
func (h *linkHost) Confirmed(ctx context.Context) error {
	return h.e.g.Sessions.CodeCompared(ctx, h.link)
}
