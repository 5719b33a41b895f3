package config

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"

	"postern/internal/seal"
)

// SignOn is the provider of OpenID Connect at which people may sign in.
type SignOn struct {
	Issuer       string      `name:"oidc-issuer" env:"POSTERN_OIDC_ISSUER" placeholder:"URL" help:"Issuer of OpenID Connect at which people may sign in to the dashboard, as it calls itself; it sends browsers back to the base URL and /signin/oidc/callback."`
	ClientID     string      `name:"oidc-client-id" env:"POSTERN_OIDC_CLIENT_ID" placeholder:"ID" help:"What it calls this server."`
	ClientSecret seal.Secret `name:"oidc-client-secret" env:"POSTERN_OIDC_CLIENT_SECRET" placeholder:"SECRET" help:"The secret that it gave this server; better as a variable, which other users of the machine cannot see."`
	SecretFile   string      `name:"oidc-client-secret-file" env:"POSTERN_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" help:"A file with that secret, instead of it."`
	Name         string      `name:"oidc-name" env:"POSTERN_OIDC_NAME" default:"single sign-on" help:"What people call it: \"Sign in with …\" (${default})."`
}

// On tells whether there is a provider.
func (s SignOn) On() bool {
	return s.Issuer != "" && s.ClientID != "" && (s.ClientSecret != "" || s.SecretFile != "")
}

// Secret is the client secret, from its file if need be.
func (s SignOn) Secret() (seal.Secret, error) {
	if s.SecretFile == "" {
		return s.ClientSecret, nil
	}
	b, err := os.ReadFile(s.SecretFile)
	if err != nil {
		return "", fmt.Errorf("POSTERN_OIDC_CLIENT_SECRET_FILE: %w", err)
	}
	if b = bytes.TrimSpace(b); len(b) == 0 {
		return "", fmt.Errorf("POSTERN_OIDC_CLIENT_SECRET_FILE: %s is empty", s.SecretFile)
	}
	return seal.Secret(b), nil
}

// Validate checks what the form of single settings does not show.
func (s SignOn) Validate() error {
	if s.Issuer == "" && s.ClientID == "" && s.ClientSecret == "" && s.SecretFile == "" {
		return nil
	}
	if s.ClientSecret != "" && s.SecretFile != "" {
		return errors.New("POSTERN_OIDC_CLIENT_SECRET and POSTERN_OIDC_CLIENT_SECRET_FILE are one secret: set one of them")
	}
	if !s.On() {
		return errors.New("POSTERN_OIDC_ISSUER, POSTERN_OIDC_CLIENT_ID and POSTERN_OIDC_CLIENT_SECRET (or …_FILE) come together: the provider shows all three where this server is registered as a web application")
	}
	u, err := url.Parse(s.Issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return errors.New("POSTERN_OIDC_ISSUER must be an address such as https://login.example.com, as the provider writes it under \"issuer\" in /.well-known/openid-configuration; http is for this machine alone")
	}
	return nil
}
