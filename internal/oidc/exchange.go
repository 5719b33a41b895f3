package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// exchange exchanges the code for an ID token at the provider.
func (p *Provider) exchange(ctx context.Context, s *site, code, verifier string) (token string, err error) {
	answer, err := s.flow.Exchange(oidc.ClientContext(ctx, p.client), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return "", exchangeError(err)
	}
	if token, _ = answer.Extra("id_token").(string); token == "" {
		return "", errors.New("the provider answers the code without an ID token")
	}
	return token, nil
}

// exchangeError returns an error that wraps ErrDown if the provider does not work, and
// another one if it refuses the code. It contains only the status and the error code,
// because the library's error quotes the whole answer, which may contain a secret and
// must not be logged.
func exchangeError(err error) error {
	if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := refusal.Response.StatusCode
		if status >= http.StatusInternalServerError {
			return fmt.Errorf("%w: it answers the code with status %d", ErrDown, status)
		}
		return fmt.Errorf("the provider answers the code with status %d, error %.100q", status, refusal.ErrorCode)
	}
	if unreached, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%w: %w", ErrDown, unreached)
	}
	return errors.New("the provider answers the code with something that cannot be read")
}
