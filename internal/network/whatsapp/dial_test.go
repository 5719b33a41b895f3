package whatsapp

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"postern/internal/network/networktest"
	"postern/internal/postern"
)

// TestTLSFailuresSayWhatFailed: the owner of a proxy or of a network can tell them apart.
func TestTLSFailuresSayWhatFailed(t *testing.T) {
	t.Parallel()
	nothing := http.NotFoundHandler()
	good := httptest.NewTLSServer(nothing)
	plain := httptest.NewServer(nothing)
	old := httptest.NewUnstartedServer(nothing)
	old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	for _, srv := range []*httptest.Server{good, plain, old} {
		t.Cleanup(srv.Close)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(good.Certificate())
	address := func(srv *httptest.Server) string {
		_, at, _ := strings.Cut(srv.URL, "://")
		return "wss://" + at + "/ws/chat"
	}
	tests := []struct {
		reason string
		url    string
		ca     *x509.CertPool
	}{
		{"tls-unknown-authority", address(good), x509.NewCertPool()},
		{"tls-wrong-name", strings.Replace(address(good), "127.0.0.1", "localhost", 1), trusted},
		{"tls-not-spoken", address(plain), trusted},
		{"tls-handshake", address(old), trusted},
		{"dial", address(good), trusted}, // it answers with 404
	}
	w := newWorld(t, nil)
	account := networktest.Link(t, w.World, ownNumber)
	for _, tt := range tests {
		target, err := newTarget(Network{URL: tt.url, CA: tt.ca})
		if err != nil {
			t.Fatal(err)
		}
		w.driver.target = target
		s, err := w.driver.Open(t.Context(), account)
		if err != nil {
			t.Fatal(err)
		}
		c := networktest.Reconnect(t, s, &networktest.Recorder{})
		c.EndedAs(t, postern.Disconnected, tt.reason)
	}
}
