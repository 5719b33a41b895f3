package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/internal/seal"
)

func TestSpans(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"30d": 720 * time.Hour, "30 d": 720 * time.Hour, "1d": 24 * time.Hour, "36h": 36 * time.Hour, "1h0m0s": time.Hour,
		"": 0, "0d": 0, "-1d": 0, "59m": 0, "d": 0, "1.5d": 0, "30": 0, "99999d": 0, "9999999h": 0, "x": 0,
	} {
		var s Span
		if err := s.UnmarshalText([]byte(in)); time.Duration(s) != want || (err == nil) != (want != 0) {
			t.Errorf("%q is %s, %v, want %s", in, time.Duration(s), err, want)
		}
	}
}

func TestSettingsThatWouldBeUnsafeOrSenselessAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		s  Server
		ok bool
	}{
		"loopback":             {Server{Addr: "127.0.0.1:8080"}, true},
		"loopback v6":          {Server{Addr: "[::1]:8080"}, true},
		"localhost":            {Server{Addr: "localhost:8080"}, true},
		"no port":              {Server{Addr: "127.0.0.1"}, false},
		"everywhere":           {Server{Addr: ":8080"}, false},
		"everywhere, asked":    {Server{Addr: ":8080", InsecureHTTP: true}, true},
		"everywhere, with TLS": {Server{Addr: ":8443", TLSCertFile: "a", TLSKeyFile: "b"}, true},
		"everywhere, proxies":  {Server{Addr: "0.0.0.0:8080", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, true},
		"one address":          {Server{Addr: "192.0.2.1:8080"}, false},
		"a name":               {Server{Addr: "example.com:8080"}, false},
		"certificate alone":    {Server{Addr: "127.0.0.1:8443", TLSCertFile: "a"}, false},
		"key alone":            {Server{Addr: "127.0.0.1:8443", TLSKeyFile: "a"}, false},
		"other vendor, no key": {Server{Addr: "127.0.0.1:1", NetworkURL: "wss://127.0.0.1:2"}, false},
		"short root key":       {Server{Addr: "127.0.0.1:1", NetworkRootKey: "00ff"}, false},
		"database, no key":     {Server{Addr: "127.0.0.1:1", Data: Data{DatabaseURL: "postgres://canary"}}, false},
		"database and key":     {Server{Addr: "127.0.0.1:1", Data: Data{DatabaseURL: "postgres://canary", SecretKeyFile: "k"}}, true},
		"single sign-on":       {Server{Addr: "127.0.0.1:1", SignOn: SignOn{Issuer: "https://login.example.com/realm", ClientID: "a", ClientSecret: "canary"}}, true},
		"its name alone":       {Server{Addr: "127.0.0.1:1", SignOn: SignOn{Name: "Example"}}, true},
		"one on this machine":  {Server{Addr: "127.0.0.1:1", SignOn: SignOn{Issuer: "http://127.0.0.1:5556/dex", ClientID: "a", ClientSecret: "canary"}}, true},
		"issuer alone":         {Server{Addr: "127.0.0.1:1", SignOn: SignOn{Issuer: "https://login.example.com"}}, false},
		"no client secret":     {Server{Addr: "127.0.0.1:1", SignOn: SignOn{Issuer: "https://login.example.com", ClientID: "a"}}, false},
		"client secret alone":  {Server{Addr: "127.0.0.1:1", SignOn: SignOn{ClientSecret: "canary"}}, false},
		"issuer over http":     {Server{Addr: "127.0.0.1:1", SignOn: SignOn{Issuer: "http://login.example.com", ClientID: "a", ClientSecret: "canary"}}, false},
		"issuer with a query":  {Server{Addr: "127.0.0.1:1", SignOn: SignOn{Issuer: "https://login.example.com?a=b", ClientID: "a", ClientSecret: "canary"}}, false},
		"issuer is no address": {Server{Addr: "127.0.0.1:1", SignOn: SignOn{Issuer: "login.example.com", ClientID: "a", ClientSecret: "canary"}}, false},
		"secret in a file":     {Server{Addr: "127.0.0.1:1", SignOn: SignOn{Issuer: "https://login.example.com", ClientID: "a", SecretFile: "s"}}, true},
		"secret twice":         {Server{Addr: "127.0.0.1:1", SignOn: SignOn{Issuer: "https://login.example.com", ClientID: "a", ClientSecret: "canary", SecretFile: "s"}}, false},
		"mail server":          {Server{Addr: "127.0.0.1:1", SMTPURL: "smtp://canary@mail.example.com?from=a@example.com"}, true},
		"two vendors":          {Server{Addr: "127.0.0.1:1", Sandbox: true, NetworkURL: "wss://x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.s.OpsAddr = cmp.Or(tt.s.OpsAddr, "127.0.0.1:9090")
			err := tt.s.Validate()
			if (err == nil) != tt.ok {
				t.Errorf("Validate(%+v) = %v, want ok %v", tt.s, err, tt.ok)
			}
			if text := fmt.Sprintf("%v %+v %#v", err, tt.s, tt.s); strings.Contains(text, "canary") {
				t.Errorf("the database URL can be read in %s", text)
			}
		})
	}
}

// Metrics and profiles are not shown to everybody because a setting is empty or left out.
func TestOperationsAreNotPublicUnasked(t *testing.T) {
	t.Parallel()
	for addr, ok := range map[string]bool{
		"": false, ":9090": false, "0.0.0.0:0": false, "203.0.113.5:9090": false, "10.0.0.1:9090": true,
	} {
		s := Server{Addr: "127.0.0.1:1", OpsAddr: addr}
		if err := s.Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

// A server for others should know its address.
func TestMissingBaseURLIsNoticed(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for want, list := range map[bool][]Server{
		true: {{Addr: ":8080"}, {Addr: "0.0.0.0:8080"}, {Addr: "127.0.0.1:8080", TrustedProxies: proxies}},
		false: {
			{Addr: "127.0.0.1:8080"}, {Addr: "203.0.113.5:8080"}, {Addr: "localhost:8080"},
			{Addr: ":8080", BaseURL: "https://example.com"},
			{Addr: "127.0.0.1:8080", TrustedProxies: proxies, BaseURL: "https://example.com"},
		},
	} {
		for _, s := range list {
			if got := s.MissesBaseURL(); got != want {
				t.Errorf("%+v: %v", s, got)
			}
		}
	}
}

func TestClientSecretFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	for text, want := range map[string]seal.Secret{"canary\n": "canary", " \n": ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := (SignOn{SecretFile: file}).Secret(); got != want || (err != nil) != (want == "") {
			t.Errorf("a file with %q gives %q, %v", text, got.Reveal(), err)
		}
	}
	if _, err := (SignOn{SecretFile: file + "x"}).Secret(); err == nil ||
		!strings.Contains(err.Error(), "POSTERN_OIDC_CLIENT_SECRET_FILE") {
		t.Errorf("a file that is not there gives %v", err)
	}
}
