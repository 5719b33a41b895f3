// Package oidctest is a small provider of OpenID Connect for tests: it checks what
// it is given as a real one does, and can be told to answer wrongly.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// What a Provider knows its client by.
const (
	ClientID = "postern"
	Secret   = "the secret: of+the%client" // with what must be escaped
)

// Person is who is signed in at the provider.
type Person struct {
	Subject  string
	Email    string
	Verified any // true, false, "true", or nil to leave it out
}

// Fault is something that a provider does wrong.
type Fault string

// What a provider can do wrong.
const (
	WrongNonce    Fault = "wrong nonce"
	WrongAudience Fault = "wrong audience"
	WrongIssuer   Fault = "wrong issuer"
	OtherParty    Fault = "other party"
	Expired       Fault = "expired"
	AlgNone       Fault = "alg none"
	OtherKey      Fault = "other key"
	NoSubject     Fault = "no subject"
	NoToken       Fault = "no token"
	Denied        Fault = "denied"
	Endless       Fault = "endless"   // the answer to a code has no end
	Broken        Fault = "broken"    // a code is answered 500
	Away          Fault = "away"      // all is answered 503
	NotAsked      Fault = "not asked" // the person signed in a day ago, and is not asked again
	NoAuthTime    Fault = "no time"   // the token does not say when the person signed in
	OtherState    Fault = "other state"
)

// Provider is a provider that runs.
type Provider struct {
	URL string // its issuer

	mu     sync.Mutex
	person Person
	fault  Fault
	button bool
	inForm bool
	calls  int // of discovery
	key    *ecdsa.PrivateKey
	codes  map[string]url.Values // what each unused code was asked with
}

// Start starts a provider at which ada is signed in.
func Start(tb testing.TB) *Provider {
	tb.Helper()
	p := &Provider{person: Person{"subject-of-ada", "ada@example.com", true}, codes: map[string]url.Values{}}
	p.key = newKey(tb)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.fault == Away {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	tb.Cleanup(srv.Close)
	p.URL = srv.URL
	return p
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// SignIn makes somebody the one who is signed in at the provider.
func (p *Provider) SignIn(who Person) { p.set(func() { p.person = who }) }

// Fail makes a mistake from now on; "" ends it.
func (p *Provider) Fail(f Fault) { p.set(func() { p.fault = f }) }

// WithButton makes people press a button before they are sent back.
func (p *Provider) WithButton() { p.set(func() { p.button = true }) }

// InForm takes the client's secret in the form alone, and says so.
func (p *Provider) InForm() { p.set(func() { p.inForm = true }) }

// Discoveries counts how often the provider was asked about itself.
func (p *Provider) Discoveries() (n int) {
	p.set(func() { n = p.calls })
	return n
}

func (p *Provider) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.calls++
	methods := []string{"client_secret_basic", "client_secret_post"}
	if p.inForm {
		methods = methods[1:]
	}
	answer(w, http.StatusOK, map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize?tenant=1", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256", "none"},
		"token_endpoint_auth_methods_supported": methods,
	})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the reader may be gone
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	point, err := p.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{
		"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "1", "x": text(point[1:33]), "y": text(point[33:]),
	}}})
}

func text(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// authorize lets in the user who is signed in, and sends the browser back.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name, want := range map[string]string{
		"client_id": ClientID, "response_type": "code", "scope": "openid email",
		"code_challenge_method": "S256", "tenant": "1",
	} {
		if got := q.Get(name); got != want {
			http.Error(w, fmt.Sprintf("%s is %q, want %q", name, got, want), http.StatusBadRequest)
			return
		}
	}
	if p.button && !q.Has("pressed") {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Provider</title><link rel="icon" href="data:,"><main><h1>Sign in at the provider</h1><form method="get"><input type="hidden" name="pressed">`)
		for name := range q {
			fmt.Fprintf(w, `<input type="hidden" name="%s" value="%s">`,
				html.EscapeString(name), html.EscapeString(q.Get(name)))
		}
		fmt.Fprint(w, `<button>It is me</button></form></main>`)
		return
	}
	http.Redirect(w, r, p.back(q), http.StatusFound) //nolint:gosec // a program that tests start
}

// back is where a browser is sent with a code, or with a refusal.
func (p *Provider) back(q url.Values) string {
	answer := url.Values{"state": {q.Get("state")}, "iss": {p.URL}}
	if p.fault == OtherState {
		answer.Set("state", "another")
	}
	if p.fault == Denied {
		answer.Set("error", "access_denied")
	} else {
		code := rand.Text()
		p.codes[code] = q
		answer.Set("code", code)
	}
	return q.Get("redirect_uri") + "?" + answer.Encode()
}

// token gives a token for a code, once, to the client who has the secret, the
// verifier and the address of before.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	if p.fault == Broken {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	asked, ok := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case !p.isClient(r):
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
	case !ok || r.PostFormValue("grant_type") != "authorization_code" || asked.Get("code_challenge") != text(sum[:]) ||
		asked.Get("redirect_uri") != r.PostFormValue("redirect_uri"):
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
	case p.fault == NoToken:
		answer(w, http.StatusOK, map[string]string{"access_token": "a"})
	case p.fault == Endless:
		flood(w)
	default:
		answer(w, http.StatusOK, map[string]any{
			"access_token": "a", "token_type": "Bearer", "expires_in": 60,
			"id_token": p.sign(p.claims(asked)),
		})
	}
}

func (p *Provider) isClient(r *http.Request) bool {
	if p.inForm {
		return r.PostFormValue("client_id") == ClientID && r.PostFormValue("client_secret") == Secret
	}
	id, secret, _ := r.BasicAuth()
	secret, err := url.QueryUnescape(secret)
	return err == nil && id == ClientID && secret == Secret
}

func flood(w http.ResponseWriter) {
	_, err := w.Write([]byte(`{"id_token":"`))
	for chunk := make([]byte, 1<<16); err == nil; {
		for i := range chunk {
			chunk[i] = 'a'
		}
		_, err = w.Write(chunk)
	}
}

func (p *Provider) claims(asked url.Values) map[string]any {
	now := time.Now()
	c := map[string]any{
		"iss": p.URL, "aud": ClientID, "sub": p.person.Subject, "nonce": asked.Get("nonce"),
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "auth_time": now.Unix(),
	}
	if p.person.Email != "" {
		c["email"] = p.person.Email
	}
	if p.person.Verified != nil {
		c["email_verified"] = p.person.Verified
	}
	if asked.Get("prompt") != "login" || asked.Get("max_age") != "0" || p.fault == NotAsked {
		c["auth_time"] = now.Add(-24 * time.Hour).Unix()
	}
	p.spoil(c)
	return c
}

func (p *Provider) spoil(c map[string]any) {
	switch p.fault {
	case WrongNonce:
		c["nonce"] = "another"
	case WrongAudience:
		c["aud"] = []string{"another", "and another"}
	case OtherParty:
		c["aud"], c["azp"] = []string{ClientID, "another"}, "another"
	case WrongIssuer:
		c["iss"] = "https://another.example"
	case Expired:
		c["exp"] = time.Now().Add(-time.Minute).Unix()
	case NoSubject:
		delete(c, "sub")
	case NoAuthTime:
		delete(c, "auth_time")
	default:
	}
}

// sign makes a token (RFC 7515, 7.1; RFC 7518, 3.4).
func (p *Provider) sign(c map[string]any) string {
	head := map[string]string{"alg": "ES256", "kid": "1"}
	if p.fault == AlgNone {
		head = map[string]string{"alg": "none"}
	}
	h, err := json.Marshal(head)
	if err != nil {
		panic(err) // texts alone
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts and numbers
	}
	token := text(h) + "." + text(b)
	if p.fault == AlgNone {
		return token + "."
	}
	return token + "." + text(p.signature(token))
}

func (p *Provider) signature(token string) []byte {
	key := p.key
	if p.fault == OtherKey {
		other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err) // there is no randomness
		}
		key = other
	}
	sum := sha256.Sum256([]byte(token))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		panic(err) // the key is good
	}
	b := make([]byte, 64)
	r.FillBytes(b[:32])
	s.FillBytes(b[32:])
	return b
}
