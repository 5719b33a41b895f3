package oidc_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"postern/internal/oidc"
	"postern/internal/oidc/oidctest"
)

const redirect = "https://gateway.example/signin/oidc/callback"

func client(p *oidctest.Provider) *oidc.Provider {
	return oidc.New(oidc.Options{
		Issuer: p.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.Secret,
		Name: "Example", Redirect: redirect,
	})
}

// visit is what a browser brings back that is sent to an address of the provider.
func visit(t *testing.T, to string) url.Values {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil {
		t.Fatalf("the provider answers %s: %v", res.Status, err)
	}
	if !strings.HasPrefix(back.String(), redirect+"?") {
		t.Fatalf("the browser is sent to %s", back)
	}
	return back.Query()
}

// through goes to the provider and back.
func through(t *testing.T, c *oidc.Provider, again bool) (oidc.Ask, url.Values) {
	t.Helper()
	to, ask, err := c.Begin(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	return ask, visit(t, to)
}

func TestWhoIsSignedInAtTheProviderIsNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		who  oidctest.Person
		want oidc.Identity
	}{
		"verified":            {oidctest.Person{Subject: "s", Email: "Ada@Example.com", Verified: true}, oidc.Identity{Subject: "s", Email: "Ada@Example.com", Verified: true}},
		"verified by a text":  {oidctest.Person{Subject: "s", Email: "ada@example.com", Verified: "true"}, oidc.Identity{Subject: "s", Email: "ada@example.com", Verified: true}},
		"not verified":        {oidctest.Person{Subject: "s", Email: "ada@example.com", Verified: false}, oidc.Identity{Subject: "s", Email: "ada@example.com"}},
		"not said":            {oidctest.Person{Subject: "s", Email: "ada@example.com"}, oidc.Identity{Subject: "s", Email: "ada@example.com"}},
		"said in other words": {oidctest.Person{Subject: "s", Email: "ada@example.com", Verified: 1}, oidc.Identity{Subject: "s", Email: "ada@example.com"}},
		"no address":          {oidctest.Person{Subject: "s"}, oidc.Identity{Subject: "s"}},
	} {
		for _, inForm := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := oidctest.Start(t)
				if inForm {
					p.InForm()
				}
				p.SignIn(tt.who)
				c := client(p)
				ask, back := through(t, c, true)
				want := tt.want
				want.Issuer = p.URL
				if got, err := c.Finish(t.Context(), ask, back); err != nil || got != want {
					t.Errorf("the identity is %+v, %v, want %+v", got, err, want)
				}
				if got, err := c.Finish(t.Context(), ask, back); err == nil {
					t.Errorf("the code names %+v again", got)
				}
			})
		}
	}
}

func TestWrongAnswersOfTheProviderNameNobody(t *testing.T) {
	t.Parallel()
	for fault, want := range map[oidctest.Fault]error{
		oidctest.WrongNonce: nil, oidctest.WrongAudience: nil, oidctest.WrongIssuer: nil, oidctest.OtherParty: nil,
		oidctest.Expired: nil, oidctest.AlgNone: nil,
		oidctest.OtherKey:  nil,
		oidctest.NoSubject: nil, oidctest.NoToken: nil, oidctest.Endless: nil, oidctest.OtherState: nil,
		oidctest.Denied: oidc.ErrDenied, oidctest.Broken: oidc.ErrDown, oidctest.NotAsked: oidc.ErrStale,
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			p := oidctest.Start(t)
			p.Fail(fault)
			c := client(p)
			ask, back := through(t, c, true)
			got, err := c.Finish(t.Context(), ask, back)
			if err == nil || got != (oidc.Identity{}) || want != nil && !errors.Is(err, want) {
				t.Errorf("the identity is %+v, %v, want %v", got, err, want)
			}
			if err != nil && (strings.Contains(err.Error(), back.Get("code")) && back.Get("code") != "" ||
				strings.Contains(err.Error(),
					oidctest.Secret)) {
				t.Errorf("a secret can be read in %v", err)
			}
			p.Fail("")
			ask, back = through(t, c, true)
			if _, err := c.Finish(t.Context(), ask, back); err != nil {
				t.Errorf("without the fault: %v", err)
			}
		})
	}
}

func TestAnswerToSomethingElseNamesNobody(t *testing.T) {
	t.Parallel()
	p := oidctest.Start(t)
	c := client(p)
	for name, spoil := range map[string]func(*oidc.Ask, url.Values){
		"verifier":       func(a *oidc.Ask, _ url.Values) { a.Verifier += "x" },
		"nonce":          func(a *oidc.Ask, _ url.Values) { a.Nonce += "x" },
		"state":          func(_ *oidc.Ask, q url.Values) { q.Set("state", "x") },
		"no state":       func(a *oidc.Ask, q url.Values) { a.State = ""; q.Set("state", "") },
		"other provider": func(_ *oidc.Ask, q url.Values) { q.Set("iss", "https://another.example") },
		"no code":        func(_ *oidc.Ask, q url.Values) { q.Del("code") },
	} {
		ask, back := through(t, c, false)
		spoil(&ask, back)
		if got, err := c.Finish(t.Context(), ask, back); err == nil {
			t.Errorf("%s: the answer names %+v", name, got)
		}
	}
	wrong := oidc.New(oidc.Options{
		Issuer: p.URL, ClientID: oidctest.ClientID, ClientSecret: "another",
		Redirect: redirect,
	})
	ask, back := through(t, wrong, false)
	if got, err := wrong.Finish(t.Context(), ask, back); err == nil {
		t.Errorf("with another secret the answer names %+v", got)
	}
}

func TestTheProviderIsAskedAboutItselfOnce(t *testing.T) {
	t.Parallel()
	p := oidctest.Start(t)
	c := client(p)
	for range 5 {
		through(t, c, false)
	}
	if n := p.Discoveries(); n != 1 {
		t.Errorf("the provider was asked about itself %d times", n)
	}
}

func TestAProviderThatIsAwayIsLeftAloneForAWhile(t *testing.T) {
	t.Parallel()
	p := oidctest.Start(t)
	p.Fail(oidctest.Away)
	c := client(p)
	if _, _, err := c.Begin(t.Context(), false); !errors.Is(err, oidc.ErrDown) {
		t.Errorf("a provider that is away is answered %v", err)
	}
	p.Fail("")
	if _, _, err := c.Begin(t.Context(), false); !errors.Is(err, oidc.ErrDown) || p.Discoveries() != 0 {
		t.Errorf("right after it is answered %v, after %d calls", err, p.Discoveries())
	}
}

func TestAnotherIssuerIsNone(t *testing.T) {
	t.Parallel()
	p := oidctest.Start(t)
	c := oidc.New(oidc.Options{
		Issuer: p.URL + "/", ClientID: oidctest.ClientID, ClientSecret: oidctest.Secret,
		Redirect: redirect,
	})
	if _, _, err := c.Begin(t.Context(), false); !errors.Is(err, oidc.ErrDown) ||
		!strings.Contains(err.Error(), p.URL) {
		t.Errorf("an issuer that calls itself otherwise is answered %v", err)
	}
}
