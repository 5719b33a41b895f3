// Package oidc signs people in at a provider of OpenID Connect: it makes the address
// that a browser is sent to, and reads the provider's answer, by the code flow with
// PKCE (OpenID Connect Core 1.0, section 3.1; RFC 7636). It knows neither accounts
// nor login sessions: what an identity may do is decided elsewhere.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"postern/internal/seal"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	callTime   = 10 * time.Second // of each call to the provider
	maxBody    = 1 << 20          // bytes of an answer of the provider
	maxSubject = 255              // bytes (OpenID Connect Core 1.0, section 2)
	skew       = time.Minute      // between the provider's clock and ours
)

var (
	// ErrDown means that the provider cannot be reached, or does not work.
	ErrDown = errors.New("the provider cannot be reached")
	// ErrDenied means that the provider refused the sign-in, or that the person
	// canceled it.
	ErrDenied = errors.New("the provider refused")
	// ErrStale means that the provider did not ask the person to sign in again.
	ErrStale = errors.New("the person was not asked again")
)

// Options are what was agreed with a provider.
type Options struct {
	Issuer       string
	ClientID     string
	ClientSecret seal.Secret
	Name         string // what people call it
	Redirect     string // the address that it sends browsers back to
}

// Provider is where people sign in. Its configuration is read when it is needed
// for the first time, so that a server starts without it. It is safe for
// concurrent use.
type Provider struct {
	opts   Options
	client *http.Client
	known  known
}

// New makes a Provider.
func New(opts Options) *Provider {
	return &Provider{opts: opts, known: known{turn: make(chan struct{}, 1)}, client: &http.Client{
		Timeout: callTime, Transport: bounded{&http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}},
		// A redirect must not carry the secret to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Name returns what people call the provider.
func (p *Provider) Name() string { return p.opts.Name }

// bounded limits the body of each answer.
type bounded struct{ http.RoundTripper }

// RoundTrip sends a request. The body of the answer ends after maxBody bytes.
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

// Ask is what the server remembers while a browser is at the provider, and shows to
// nobody. It is good for one answer.
type Ask struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Again    bool      `json:"again"` // the person was to sign in there again
	At       time.Time `json:"at"`
}

// Begin returns the address to which a browser is sent. With again, the provider is
// asked to have the person sign in now, even when they are signed in there. The
// error is [ErrDown] when the provider's configuration cannot be read.
func (p *Provider) Begin(ctx context.Context, again bool) (to string, a Ask, err error) {
	site, err := p.site(ctx)
	if err != nil {
		return "", a, err
	}
	a = Ask{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Again: again, At: time.Now().UTC(),
	}
	params := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if again {
		params = append(params, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	return site.flow.AuthCodeURL(a.State, params...), a, nil
}

// Identity is a person at the provider, confirmed by its signature.
type Identity struct {
	Issuer   string
	Subject  string
	Email    string
	Verified bool // the provider has verified that the address is the person's
}

// Answers tells whether the query that a browser brings back belongs to the Ask.
func (a Ask) Answers(query url.Values) bool {
	return a.State != "" && subtle.ConstantTimeCompare([]byte(a.State), []byte(query.Get("state"))) == 1
}

// Finish exchanges what a browser brings back from the provider for an identity.
// The error is [ErrDown], [ErrDenied], [ErrStale], or one that means that the answer
// cannot be trusted.
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

// claims are those of a token that the library does not read.
type claims struct {
	Party    string `json:"azp"`
	Email    string `json:"email"`
	Verified truth  `json:"email_verified"`
	AuthTime int64  `json:"auth_time"`
}

// truth is a boolean that some providers write as a string.
type truth bool

// UnmarshalJSON reads true and "true" as true, and everything else as false.
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
	provider *oidc.Provider
	flow     oauth2.Config
}

func newSite(p *oidc.Provider, opts Options) (*site, error) {
	to, err := url.Parse(p.Endpoint().AuthURL)
	if err != nil {
		return nil, err
	}
	if to.Host == "" || to.Scheme != "https" && to.Scheme != "http" {
		return nil, errors.New("its authorization endpoint is not an address")
	}
	var says struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := p.Claims(&says); err != nil {
		return nil, err
	}
	s := &site{provider: p, flow: oauth2.Config{
		ClientID: opts.ClientID, ClientSecret: opts.ClientSecret.Reveal(), RedirectURL: opts.Redirect,
		Endpoint: p.Endpoint(), Scopes: []string{oidc.ScopeOpenID, "email"},
	}}
	// Where nothing is said, the library would try one way and then the other.
	s.flow.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if !slices.Contains(says.Methods, "client_secret_basic") && slices.Contains(says.Methods, "client_secret_post") {
		s.flow.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return s, nil
}
