package config

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"

	"postern/internal/seal"
)

// SignOn contains the settings of the OpenID Connect provider for single sign-on.
type SignOn struct {
	Issuer       string      `name:"oidc-issuer" env:"POSTERN_OIDC_ISSUER" placeholder:"URL" help:"Issuer of the OpenID Connect provider for signing in to the dashboard. It redirects to the base URL followed by /signin/oidc/callback."`
	ClientID     string      `name:"oidc-client-id" env:"POSTERN_OIDC_CLIENT_ID" placeholder:"ID" help:"Client id of this server at the provider."`
	ClientSecret seal.Secret `name:"oidc-client-secret" env:"POSTERN_OIDC_CLIENT_SECRET" placeholder:"SECRET" help:"Client secret of this server at the provider. Prefer the environment variable, which other users of the machine cannot see."`
	SecretFile   string      `name:"oidc-client-secret-file" env:"POSTERN_OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" help:"File that contains the client secret."`
	Name         string      `name:"oidc-name" env:"POSTERN_OIDC_NAME" default:"single sign-on" help:"Name of the provider on the button \"Sign in with …\" (${default})."`
}

// On reports whether a provider is configured.
func (s SignOn) On() bool {
	return s.Issuer != "" && s.ClientID != "" && (s.ClientSecret != "" || s.SecretFile != "")
}

// Secret returns the client secret, which it reads from SecretFile if that is set.
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

// Validate checks settings that depend on each other.
func (s SignOn) Validate() error {
	if s.Issuer == "" && s.ClientID == "" && s.ClientSecret == "" && s.SecretFile == "" {
		return nil
	}
	if s.ClientSecret != "" && s.SecretFile != "" {
		return errors.New("POSTERN_OIDC_CLIENT_SECRET and POSTERN_OIDC_CLIENT_SECRET_FILE cannot both be set")
	}
	if !s.On() {
		return errors.New("POSTERN_OIDC_ISSUER, POSTERN_OIDC_CLIENT_ID and POSTERN_OIDC_CLIENT_SECRET (or …_FILE) " +
			"must be set together; the provider shows all three when you register this server as a web application")
	}
	u, err := url.Parse(s.Issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return errors.New(
			"POSTERN_OIDC_ISSUER must be a URL such as https://login.example.com, exactly as under \"issuer\" " +
				"in the provider's /.well-known/openid-configuration; http is allowed only on this machine",
		)
	}
	return nil
}
