// Package oidc signs people in at a provider of OpenID Connect: it makes the address
// that a browser is sent to, and reads what the provider answers, by the code flow
// with PKCE (OpenID Connect Core 1.0, 3.1; RFC 7636). It knows neither accounts nor
// sessions: what an identity may do is decided elsewhere.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"postern/internal/seal"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	callTime   = 10 * time.Second // for each call to the provider
	maxBody    = 1 << 20          // bytes of an answer of the provider
	maxSubject = 255              // bytes (Core, 2)
	skew       = time.Minute      // between the provider's clock and ours
)

var (
	// ErrDown means that the provider cannot be reached, or does not work.
	ErrDown = errors.New("the provider cannot be reached")
	// ErrDenied means that the provider did not let the person in, or the person did
	// not want to.
	ErrDenied = errors.New("the provider refused")
	// ErrStale means that the provider did not ask the person again.
	ErrStale = errors.New("the person was not asked again")
)

// Options are what a provider and we have agreed on.
type Options struct {
	Issuer       string
	ClientID     string
	ClientSecret seal.Secret
	Name         string // what people call it
	Redirect     string // where it sends browsers back to
}

// Provider is where people sign in. It is asked about itself when it is needed
// first, so that a server starts without it. Its methods may be called from many
// goroutines.
type Provider struct {
	opts   Options
	client *http.Client
	known  known
}

// New makes a Provider.
func New(opts Options) *Provider {
	return &Provider{opts: opts, known: known{turn: make(chan struct{}, 1)}, client: &http.Client{
		Timeout: callTime, Transport: bounded{&http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}},
		// An answer that leads elsewhere must not take the secret along.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Name is what people call the provider.
func (p *Provider) Name() string { return p.opts.Name }

// bounded reads no answer without an end.
type bounded struct{ http.RoundTripper }

// RoundTrip sends a request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = body{io.LimitReader(res.Body, maxBody), res.Body}
	}
	return res, err
}

type body struct {
	io.Reader
	io.Closer
}

// Ask is what is to be remembered between the way to the provider and the way back,
// where nobody but the server sees it. It is good for one answer.
type Ask struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Again    bool      `json:"again"` // the person had to sign in there anew
	At       time.Time `json:"at"`
}

// Begin gives the address to which a browser is sent. Again asks the provider for a
// sign-in now, even of somebody who is signed in there.
func (p *Provider) Begin(ctx context.Context, again bool) (to string, a Ask, err error) {
	site, err := p.site(ctx)
	if err != nil {
		return "", a, err
	}
	a = Ask{State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text(), Again: again, At: time.Now().UTC()} // a verifier has 43 characters or more
	challenge := sha256.Sum256([]byte(a.Verifier))
	u, q := *site.authorize, site.authorize.Query()
	for name, value := range map[string]string{
		"response_type": "code", "scope": "openid email", "client_id": p.opts.ClientID, "redirect_uri": p.opts.Redirect, "state": a.State, "nonce": a.Nonce,
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	if again {
		q.Set("prompt", "login")
		q.Set("max_age", "0")
	}
	u.RawQuery = q.Encode()
	return u.String(), a, nil
}

// Identity is somebody at the provider, as its signature says.
type Identity struct {
	Issuer   string
	Subject  string
	Email    string
	Verified bool // the provider knows that the address is the person's
}

// Answers tells whether what a browser brings back is for what was asked.
func (a Ask) Answers(query url.Values) bool {
	return a.State != "" && subtle.ConstantTimeCompare([]byte(a.State), []byte(query.Get("state"))) == 1
}

// Finish reads what a browser brings back from the provider.
func (p *Provider) Finish(ctx context.Context, a Ask, query url.Values) (i Identity, err error) {
	if !a.Answers(query) {
		return i, errors.New("the state is another one")
	}
	if from := query.Get("iss"); from != "" && from != p.opts.Issuer { // RFC 9207
		return i, errors.New("the answer is another provider's")
	}
	if query.Has("error") {
		return i, fmt.Errorf("%w: %.100q", ErrDenied, query.Get("error"))
	}
	site, err := p.site(ctx)
	if err != nil {
		return i, err
	}
	raw, err := p.exchange(ctx, site, query.Get("code"), a.Verifier)
	if err != nil {
		return i, err
	}
	token, err := site.provider.Verifier(&oidc.Config{ClientID: p.opts.ClientID}).Verify(ctx, raw)
	if err != nil {
		return i, fmt.Errorf("the token cannot be trusted: %w", err)
	}
	return p.identity(a, token)
}

// claims are what a token says beside what the library reads.
type claims struct {
	Party    string `json:"azp"`
	Email    string `json:"email"`
	Verified truth  `json:"email_verified"`
	AuthTime int64  `json:"auth_time"`
}

// truth is true or "true": some providers write a text.
type truth bool

// UnmarshalJSON reads it.
func (t *truth) UnmarshalJSON(b []byte) error {
	*t = string(b) == "true" || string(b) == `"true"`
	return nil
}

func (p *Provider) identity(a Ask, token *oidc.IDToken) (i Identity, err error) {
	var c claims
	if err := token.Claims(&c); err != nil {
		return i, fmt.Errorf("read the token: %w", err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(a.Nonce)) != 1:
		return i, errors.New("the token answers another question")
	case c.Party != "" && c.Party != p.opts.ClientID:
		return i, errors.New("the token is for another program")
	case token.Subject == "" || len(token.Subject) > maxSubject:
		return i, errors.New("the token names nobody")
	case a.Again && c.AuthTime != 0 && time.Unix(c.AuthTime, 0).Before(a.At.Add(-skew)):
		return i, ErrStale
	}
	return Identity{Issuer: p.opts.Issuer, Subject: token.Subject, Email: c.Email, Verified: bool(c.Verified)}, nil
}

// site is what a provider says about itself.
type site struct {
	provider  *oidc.Provider
	authorize *url.URL
	token     string
	inForm    bool // it wants the secret in the form
}

func newSite(p *oidc.Provider) (*site, error) {
	var says struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := p.Claims(&says); err != nil {
		return nil, err
	}
	s := &site{provider: p, token: p.Endpoint().TokenURL}
	s.inForm = slices.Contains(says.Methods, "client_secret_post") && !slices.Contains(says.Methods, "client_secret_basic")
	var err error
	if s.authorize, err = url.Parse(p.Endpoint().AuthURL); err != nil {
		return nil, err
	}
	if s.authorize.Host == "" || s.authorize.Scheme != "https" && s.authorize.Scheme != "http" {
		return nil, errors.New("its authorization endpoint is no address")
	}
	return s, nil
}
