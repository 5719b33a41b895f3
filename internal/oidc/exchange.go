package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// exchange gives a code to the provider and gets the token (RFC 6749, 4.1.3).
func (p *Provider) exchange(ctx context.Context, s *site, code, verifier string) (token string, err error) {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {p.opts.Redirect}, "code_verifier": {verifier}}
	if s.inForm {
		form.Set("client_id", p.opts.ClientID)
		form.Set("client_secret", p.opts.ClientSecret.Reveal())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.token, strings.NewReader(form.Encode()))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDown, err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if !s.inForm { // each part is escaped first (RFC 6749, 2.3.1)
		req.SetBasicAuth(url.QueryEscape(p.opts.ClientID), url.QueryEscape(p.opts.ClientSecret.Reveal()))
	}
	res, err := p.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDown, err)
	}
	defer res.Body.Close()
	return readToken(res)
}

// readToken reads the answer to a code. What it says beside the kind of a refusal
// stays out of the log: it could be a secret.
func readToken(res *http.Response) (string, error) {
	var says struct {
		Token string `json:"id_token"`
		Error string `json:"error"`
	}
	err := json.NewDecoder(res.Body).Decode(&says)
	switch {
	case res.StatusCode >= http.StatusInternalServerError:
		return "", fmt.Errorf("%w: the code is answered %d", ErrDown, res.StatusCode)
	case res.StatusCode != http.StatusOK:
		return "", fmt.Errorf("the code is answered %d %.100q", res.StatusCode, says.Error)
	case err != nil || says.Token == "":
		return "", errors.New("the code is answered without a token")
	}
	return says.Token, nil
}
