package oidctest

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

const (
	verifier = "a verifier of a test"
	back     = "https://gateway.example/back"
)

// ask asks the provider for a code, with changes to a right request.
func (p *Provider) ask(t *testing.T, change url.Values) *httptest.ResponseRecorder {
	t.Helper()
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"client_id": {ClientID}, "response_type": {"code"}, "scope": {"openid email"}, "code_challenge_method": {"S256"}, "code_challenge": {text(sum[:])},
		"tenant": {"1"}, "redirect_uri": {back}, "state": {"s"}, "nonce": {"n"},
	}
	for name, value := range change {
		q[name] = value
	}
	w := httptest.NewRecorder()
	p.authorize(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/authorize?"+q.Encode(), nil))
	return w
}

// code returns the code that ask brings; "" for none.
func (p *Provider) code(t *testing.T, change url.Values) string {
	t.Helper()
	u, err := url.Parse(p.ask(t, change).Header().Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("code")
}

// redeem gives a code to the provider.
func (p *Provider) redeem(t *testing.T, secret string, form url.Values) (status int, token string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(ClientID, url.QueryEscape(secret))
	w := httptest.NewRecorder()
	p.token(w, r)
	var says struct {
		Token string `json:"id_token"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &says); err != nil {
		t.Fatal(err)
	}
	return w.Code, says.Token
}

func TestFormOfTheButtonEscapesTheRequest(t *testing.T) {
	t.Parallel()
	p := Start(t)
	p.WithButton()
	form := p.ask(t, url.Values{"state": {`"><b>`}, `"><i>`: {"x"}}).Body.String()
	for _, want := range []string{`name="state" value="&#34;&gt;&lt;b&gt;"`, `name="&#34;&gt;&lt;i&gt;" value="x"`} {
		if !strings.Contains(form, want) {
			t.Errorf("the form has no %s: %s", want, form)
		}
	}
}

func TestACodeIsForWhoHasAllThatBelongsToIt(t *testing.T) {
	t.Parallel()
	p := Start(t)
	for name, tt := range map[string]struct {
		secret string
		form   url.Values
		want   int
	}{
		"right":          {Secret, nil, http.StatusOK},
		"other secret":   {"another", nil, http.StatusUnauthorized},
		"other verifier": {Secret, url.Values{"code_verifier": {"another"}}, http.StatusBadRequest},
		"other address":  {Secret, url.Values{"redirect_uri": {"https://another.example"}}, http.StatusBadRequest},
		"other grant":    {Secret, url.Values{"grant_type": {"password"}}, http.StatusBadRequest},
	} {
		form := url.Values{
			"grant_type": {"authorization_code"}, "code": {p.code(t, nil)}, "redirect_uri": {back},
			"code_verifier": {verifier},
		}
		for n, v := range tt.form {
			form[n] = v
		}
		if got, _ := p.redeem(t, tt.secret, form); got != tt.want {
			t.Errorf("%s: answered %d, want %d", name, got, tt.want)
		}
		if got, _ := p.redeem(t, Secret, form); tt.want == http.StatusOK && got != http.StatusBadRequest {
			t.Errorf("%s: answered %d the second time", name, got)
		}
	}
	for _, name := range []string{"client_id", "response_type", "scope", "code_challenge_method"} {
		if code := p.code(t, url.Values{name: {"another"}}); code != "" {
			t.Errorf("with another %s there is a code", name)
		}
	}
}

// The signature is checked here by hand: the library that is tested with this
// provider must not be what vouches for it.
func TestTokensAreSignedUnlessTheyAreToBeWrong(t *testing.T) {
	t.Parallel()
	p := Start(t)
	for fault, want := range map[Fault]bool{"": true, OtherKey: false, AlgNone: false} {
		p.Fail(fault)
		form := url.Values{
			"grant_type": {"authorization_code"}, "code": {p.code(t, nil)}, "redirect_uri": {back},
			"code_verifier": {verifier},
		}
		_, token := p.redeem(t, Secret, form)
		said, signature, _ := cut(token)
		b, err := base64.RawURLEncoding.DecodeString(signature)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(said))
		r, s := new(big.Int).SetBytes(b[:len(b)/2]), new(big.Int).SetBytes(b[len(b)/2:])
		if got := ecdsa.Verify(&p.key.PublicKey, sum[:], r, s); got != want {
			t.Errorf("%q: the signature is right: %v, want %v", fault, got, want)
		}
	}
}

// cut parts a token from its signature.
func cut(token string) (said, signature string, ok bool) {
	i := strings.LastIndexByte(token, '.')
	if i < 0 {
		return token, "", false
	}
	return token[:i], token[i+1:], true
}
