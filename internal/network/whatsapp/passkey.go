package whatsapp

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"postern/internal/network"
	"postern/internal/postern"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// askPasskey tells the host that the vendor asks for the owner's passkey.
func (a *attempt) askPasskey(ctx context.Context, evt *events.PairPasskeyRequest) {
	a.asked.Do(func() {
		if !a.stores(ctx, network.PasskeyWanted{Options: passkeyOptions(evt.PublicKey)}) {
			a.fail("store-unavailable", false)
			return
		}
		close(a.passkey)
	})
}

// passkeyOptions describes the vendor's request as browsers expect it.
func passkeyOptions(k *types.WebAuthnPublicKey) postern.PasskeyOptions {
	o := postern.PasskeyOptions{
		Challenge: base64.RawURLEncoding.EncodeToString(k.Challenge), Timeout: k.Timeout, Domain: k.RelyingPartID,
		AllowCredentials: []postern.PasskeyAllowed{}, Extensions: k.Extensions,
		UserVerification: cmp.Or(k.UserVerification, "preferred"),
	}
	if o.Extensions == nil {
		o.Extensions = map[string]any{}
	}
	for _, c := range k.AllowCredentials {
		o.AllowCredentials = append(o.AllowCredentials, postern.PasskeyAllowed{
			ID: base64.RawURLEncoding.EncodeToString(c.ID), Type: c.Type, Transports: append([]string{}, c.Transports...),
		})
	}
	return o
}

// linkByPasskey passes the owner's passkey on to the vendor and, if the vendor cannot know
// that the phone has scanned the code of this very connection, lets the owner compare a code. The
// attempt has a limited time, which ends ctx.
func (a *attempt) linkByPasskey(ctx context.Context) {
	credential, err := a.owner.Credential(ctx)
	if err != nil {
		a.failUnless(ctx, "store-unavailable")
		return
	}
	if err := a.sendPasskey(ctx, credential); err != nil {
		a.passkeyFailed(ctx, "send a passkey", err)
		return
	}
	select {
	case <-ctx.Done():
		return
	case c := <-a.compare:
		if !a.compared(ctx, c) {
			return
		}
	}
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	err = a.cli.SendPasskeyConfirmation(limited)
	cancel()
	if err != nil {
		a.passkeyFailed(ctx, "confirm a link by passkey", err)
		return
	}
	select {
	case <-ctx.Done():
	case <-a.scanned:
		a.settle(ctx)
	}
}

// compared waits until the owner has compared the code, if that is needed.
func (a *attempt) compared(ctx context.Context, c *events.PairPasskeyConfirmation) bool {
	if c.SkipHandoffUX && !a.driver.compare {
		return true
	}
	if !a.stores(ctx, network.CompareCode{Text: c.Code}) || a.owner.Confirmed(ctx) != nil {
		a.failUnless(ctx, "store-unavailable")
		return false
	}
	return true
}

// failUnless ends the attempt, unless its time is over or it was canceled.
func (a *attempt) failUnless(ctx context.Context, reason string) {
	if ctx.Err() == nil {
		a.fail(reason, false)
	}
}

// sendPasskey sends the vendor the owner's credential.
func (a *attempt) sendPasskey(ctx context.Context, c postern.PasskeyCredential) error {
	response, err := webAuthnResponse(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*answerTimeout) // it asks twice
	defer cancel()
	return a.cli.SendPasskeyResponse(ctx, response)
}

// webAuthnResponse converts a credential.
func webAuthnResponse(c postern.PasskeyCredential) (*types.WebAuthnResponse, error) {
	r := &types.WebAuthnResponse{ID: c.ID, Type: c.Type}
	for _, part := range []struct {
		text string
		to   *[]byte
	}{
		{c.RawID, (*[]byte)(&r.RawID)}, {c.Response.ClientData, (*[]byte)(&r.Response.ClientDataJSON)},
		{c.Response.AuthenticatorData, (*[]byte)(&r.Response.AuthenticatorData)},
		{c.Response.Signature, (*[]byte)(&r.Response.Signature)},
	} {
		b, err := base64.RawURLEncoding.DecodeString(part.text)
		if err != nil {
			return nil, fmt.Errorf("read a passkey: %w", err)
		}
		*part.to = b
	}
	if c.Response.UserHandle == "" {
		return r, nil
	}
	user, err := base64.RawURLEncoding.DecodeString(string(c.Response.UserHandle))
	if err != nil {
		return nil, fmt.Errorf("read a passkey: %w", err)
	}
	handle := r.RawID
	handle = user
	r.Response.UserHandle = &handle
	return r, nil
}

// passkeyFailed ends the attempt because the vendor has refused the passkey, or has not answered.
func (a *attempt) passkeyFailed(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	a.log.InfoContext(ctx, what, "error", redact("passkey", err))
	reason := "not-receiving"
	if _, refused := errors.AsType[*whatsmeow.IQError](err); refused {
		reason = "passkey-refused"
	}
	a.fail(reason, false)
}
