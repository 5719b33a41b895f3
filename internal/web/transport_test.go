package web_test

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

// TestPlainRequests is the whole decision: who may speak in plain text, and who
// is taken for the client.
func TestPlainRequests(t *testing.T) {
	t.Parallel()
	proxies := web.Transport{Proxies: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("fd00::/8"),
		netip.MustParsePrefix("127.0.0.2/32"),
	}}
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
		"an invalid hop":                  {transport: proxies, remote: "10.1.2.3:1", xff: []string{"127.0.0.1, unknown"}, xfp: []string{"http"}, client: "10.1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/devices", nil)
			req.RemoteAddr = tt.remote
			req.Header["X-Forwarded-For"], req.Header["X-Forwarded-Proto"] = tt.xff, tt.xfp
			if tt.tls {
				req.TLS = &tls.ConnectionState{}
			}
			d := newDoor(t, tt.transport)
			a := d.send(req)
			if tt.ok && (a.Code != http.StatusOK || a.Body.String() != "the API") {
				t.Errorf("answered %d %s", a.Code, a.Body)
			}
			if !tt.ok && (d.reason(a) != postern.InsecureTransport || a.Code != http.StatusForbidden ||
				a.Header().Get("Location") != "") {
				t.Errorf("a plain request is answered %d %v %s", a.Code, a.Header(), a.Body)
			}
			if line := d.logLine(a.Header().Get("Request-Id")); !strings.Contains(line, `"client":"`+tt.client+`"`) {
				t.Errorf("the client is not %s in %s", tt.client, line)
			}
		})
	}
}

// TestPlainRequestsAreRefusedOnEveryPath: also where there is nothing, and
// where no key is needed.
func TestPlainRequestsAreRefusedOnEveryPath(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	for _, target := range []string{"/", "/v1/devices", "/v1/openapi.json", "/v1/nothing", "/docs", "/link/x"} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		req.RemoteAddr = "203.0.113.5:1"
		if a := d.send(req); a.Code != http.StatusForbidden || d.reason(a) != postern.InsecureTransport {
			t.Errorf("%s is answered %d %s", target, a.Code, a.Body)
		}
	}
}
