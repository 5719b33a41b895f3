package testkit_test

import (
	"net/http"
	"net/url"
	"testing"

	"postern/internal/testkit"
)

// A base URL may end with a slash: links that are made of it lead to pages all the same.
func TestBaseURLMayEndWithASlash(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	u, err := url.Parse(k.URL())
	if err != nil {
		t.Fatal(err)
	}
	k.Stop()
	k.Config.Addr, k.Config.BaseURL = u.Host, k.URL()+"/"
	k.Boot()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, k.SetUpURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := testkit.Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusOK {
		t.Errorf("GET %s is answered %d", r.URL.Path, answer.StatusCode)
	}
}
