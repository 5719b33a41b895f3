package api_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"postern/internal/postern"
	"postern/internal/web"
)

// behind returns a server of other settings over the same store.
func (s *server) behind(transport web.Transport) *server {
	s.t.Helper()
	other := *s
	other.open(transport, false)
	return &other
}

// TestPlainRequests is the whole decision: who may speak in plain text, and who
// is taken for the client.
func TestPlainRequests(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	proxies := web.Transport{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("127.0.0.2/32")}}
	for name, tt := range map[string]struct {
		transport web.Transport
		remote    string
		tls       bool
		xff, xfp  []string
		ok        bool
		client    string
	}{
		"this machine":                    {remote: "127.0.0.1:1", ok: true, client: "127.0.0.1"},
		"this machine, IPv6":              {remote: "[::1]:1", ok: true, client: "::1"},
		"this machine, mapped":            {remote: "[::ffff:127.0.0.1]:1", ok: true, client: "127.0.0.1"},
		"elsewhere":                       {remote: "203.0.113.5:1", client: "203.0.113.5"},
		"elsewhere, IPv6":                 {remote: "[2001:db8::1%eth0]:1", client: "2001:db8::1"},
		"no address":                      {remote: "@", client: ""},
		"elsewhere by TLS":                {remote: "203.0.113.5:1", tls: true, ok: true, client: "203.0.113.5"},
		"elsewhere, asked for":            {transport: web.Transport{Insecure: true}, remote: "203.0.113.5:1", ok: true, client: "203.0.113.5"},
		"it says it is local":             {remote: "203.0.113.5:1", xff: []string{"127.0.0.1"}, xfp: []string{"https"}, client: "203.0.113.5"},
		"it says so, not a proxy":         {transport: proxies, remote: "203.0.113.5:1", xff: []string{"127.0.0.1"}, xfp: []string{"https"}, client: "203.0.113.5"},
		"proxy of an HTTPS client":        {transport: proxies, remote: "10.1.2.3:1", xff: []string{"203.0.113.9"}, xfp: []string{"https"}, ok: true, client: "203.0.113.9"},
		"proxy of a plain client":         {transport: proxies, remote: "10.1.2.3:1", xff: []string{"203.0.113.9"}, xfp: []string{"http"}, client: "203.0.113.9"},
		"proxy that does not say":         {transport: proxies, remote: "10.1.2.3:1", xff: []string{"203.0.113.9"}, client: "203.0.113.9"},
		"the proxy itself":                {transport: proxies, remote: "10.1.2.3:1", client: "10.1.2.3"},
		"proxy on this machine":           {transport: proxies, remote: "127.0.0.2:1", xff: []string{"203.0.113.9"}, xfp: []string{"http"}, client: "203.0.113.9"},
		"proxy on this machine, HTTPS":    {transport: proxies, remote: "127.0.0.2:1", xff: []string{"203.0.113.9"}, xfp: []string{"HTTPS"}, ok: true, client: "203.0.113.9"},
		"client that forges a hop":        {transport: proxies, remote: "10.1.2.3:1", xff: []string{"127.0.0.1, 203.0.113.9"}, xfp: []string{"http"}, client: "203.0.113.9"},
		"client that forges a header":     {transport: proxies, remote: "10.1.2.3:1", xff: []string{"127.0.0.1", "203.0.113.9"}, xfp: []string{"https", "http"}, client: "203.0.113.9"},
		"client that forges the protocol": {transport: proxies, remote: "10.1.2.3:1", xff: []string{"203.0.113.9"}, xfp: []string{"https, http"}, client: "203.0.113.9"},
		"proxy that passes a forged hop":  {transport: proxies, remote: "10.1.2.3:1", xff: []string{"127.0.0.1"}, xfp: []string{"http"}, client: "127.0.0.1"},
		"two proxies":                     {transport: proxies, remote: "10.1.2.3:1", xff: []string{"203.0.113.9, fd00::7"}, xfp: []string{"https"}, ok: true, client: "203.0.113.9"},
		"a hop with a port":               {transport: proxies, remote: "10.1.2.3:1", xff: []string{"[2001:db8::9]:443"}, xfp: []string{"https"}, ok: true, client: "2001:db8::9"},
		"a hop that is none":              {transport: proxies, remote: "10.1.2.3:1", xff: []string{"127.0.0.1, unknown"}, xfp: []string{"http"}, client: "10.1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/devices", nil)
			req.RemoteAddr = tt.remote
			req.Header.Set("Authorization", "Bearer "+mine.key)
			req.Header["X-Forwarded-For"], req.Header["X-Forwarded-Proto"] = tt.xff, tt.xfp
			if tt.tls {
				req.TLS = &tls.ConnectionState{}
			}
			a := s.behind(tt.transport).send(req)
			if tt.ok {
				a.want(http.StatusOK, "")
			} else {
				p := a.want(http.StatusForbidden, postern.InsecureTransport)
				if p.Code != "FORBIDDEN" || a.Header().Get("Location") != "" || !strings.HasPrefix(a.Header().Get("RateLimit"), `"address";r=600;`) {
					t.Errorf("a plain request is answered %v %s", a.Header(), a.Body)
				}
			}
			if line := logLine(t, s, a.Header().Get("Request-Id")); !strings.Contains(line, `"client":"`+tt.client+`"`) {
				t.Errorf("the client is %s in %s", tt.client, line)
			}
		})
	}
}

// logLine is the one line of a request.
func logLine(t *testing.T, s *server, id string) string {
	t.Helper()
	for line := range strings.SplitSeq(s.log.String(), "\n") {
		if strings.Contains(line, id) && strings.Contains(line, `"msg":"request"`) {
			return line
		}
	}
	t.Fatalf("no line of %s", id)
	return ""
}

// TestPlainRequestsAreRefusedOnEveryPath: also where there is nothing, and
// where no key is needed.
func TestPlainRequestsAreRefusedOnEveryPath(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, target := range []string{"/", "/v1/devices", "/v1/openapi.json", "/v1/nothing"} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		req.RemoteAddr = "203.0.113.5:1"
		s.send(req).want(http.StatusForbidden, postern.InsecureTransport)
	}
}

// TestRefusedCredentialsAreCountedByAddress uses the address that a trusted
// proxy names.
func TestRefusedCredentialsAreCountedByAddress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mine := s.tenant("enterprise")
	proxied := s.behind(web.Transport{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	send := func(client, key string) *answerT {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/usage", nil)
		req.RemoteAddr = "10.1.2.3:1"
		req.Header = http.Header{"Authorization": {"Bearer " + key}, "X-Forwarded-For": {client}, "X-Forwarded-Proto": {"https"}}
		return proxied.send(req)
	}
	limited := 0
	for range 700 {
		if a := send("203.0.113.9", "pst_x"); a.Code == http.StatusTooManyRequests {
			limited++
			a.want(http.StatusTooManyRequests, postern.RateLimited)
			if a.Header().Get("Retry-After") == "" {
				t.Fatalf("headers %v", a.Header())
			}
		}
	}
	if limited == 0 {
		t.Error("700 refused credentials of one address were all looked at")
	}
	send("203.0.113.9", mine.key).want(http.StatusOK, "") // who has a key is served
	send("203.0.113.10", "pst_x").want(http.StatusUnauthorized, postern.Unauthorized)
	for range 700 {
		s.do("GET", "/v1/usage", "", "Authorization", "Bearer pst_x").want(http.StatusUnauthorized, postern.Unauthorized)
	}
}
