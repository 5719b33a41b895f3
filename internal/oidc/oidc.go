// Package oidc signs users in at an OpenID Connect provider. It makes the URL to which a
// browser is sent and verifies the provider's answer, by the authorization code flow with
// PKCE (OpenID Connect Core 1.0, section 3.1; RFC 7636). It knows neither accounts nor
// login sessions; the caller decides what an identity may do.
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
	callTime   = 10 * time.Second // limit of each call to the provider
	maxBody    = 1 << 20          // bytes of an answer that are read
	maxSubject = 255              // bytes of a subject (OpenID Connect Core 1.0, section 2)
	skew       = time.Minute      // tolerated difference between the provider's clock and ours
)

var (
	// ErrDown means that the provider cannot be reached or does not work.
	ErrDown = errors.New("the provider cannot be reached")
	// ErrDenied means that the provider refused the sign-in or that the user
	// canceled it.
	ErrDenied = errors.New("the provider refused")
	// ErrStale means that the provider did not ask the user to sign in again,
	// although [Provider.Begin] required it.
	ErrStale = errors.New("the person was not asked again")
)

// Options describe a provider and the client that is registered there.
type Options struct {
	Issuer       string      // URL of the provider
	ClientID     string      // name of this client at the provider
	ClientSecret seal.Secret // secret of this client at the provider
	Name         string      // name of the provider for users
	Redirect     string      // URL to which the provider sends browsers back
}

// Provider is an OpenID Connect provider. Its configuration is read at the first use, so
// that a server can start while the provider is down. It is safe for concurrent use.
type Provider struct {
	opts   Options
	client *http.Client
	known  known
}

// New returns a Provider. It does not contact the provider.
func New(opts Options) *Provider {
	return &Provider{opts: opts, known: known{turn: make(chan struct{}, 1)}, client: &http.Client{
		Timeout: callTime, Transport: bounded{&http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			DisableKeepAlives: true,
		}},
		// A redirect must not carry the secret to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Name returns the name of the provider for users.
func (p *Provider) Name() string { return p.opts.Name }

// bounded is a transport that limits the body of each answer.
type bounded struct{ http.RoundTripper }

// RoundTrip sends a request. It cuts the body of the answer after maxBody bytes.
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

// Ask is the state of a sign-in while the browser is at the provider. The caller stores
// it, keeps it secret and uses it for a single call of [Provider.Finish].
type Ask struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Again    bool      `json:"again"` // the user must sign in at the provider again
	At       time.Time `json:"at"`    // when the sign-in began
}

// Begin returns the URL to which the caller sends the browser, and the state for
// [Provider.Finish]. If again is true, the provider is asked to let the user sign in
// again, even if the user is signed in there. The error wraps [ErrDown] if the provider's
// configuration cannot be read.
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

// Identity is a user at the provider, as confirmed by the provider's signature. Issuer and
// Subject together identify the user.
type Identity struct {
	Issuer   string
	Subject  string // at most 255 bytes, never empty
	Email    string // may be empty
	Verified bool   // the provider has verified that the email address belongs to the user
}

// Answers reports whether the query that a browser brings back belongs to this Ask.
func (a Ask) Answers(query url.Values) bool {
	return a.State != "" && subtle.ConstantTimeCompare([]byte(a.State), []byte(query.Get("state"))) == 1
}

// Finish verifies the query that a browser brings back from the provider, and returns the
// user's identity. The error wraps [ErrDown], [ErrDenied] or [ErrStale]; any other error
// means that the answer cannot be trusted.
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

// claims are the claims of a token that the library does not read.
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

// identity checks the claims of a verified token and returns its identity.
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

// site is the configuration of a provider.
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
	// Without a style, the library would try both ones.
	s.flow.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if !slices.Contains(says.Methods, "client_secret_basic") && slices.Contains(says.Methods, "client_secret_post") {
		s.flow.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return s, nil
}
