package testkit_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/internal/testkit"
)

// writeCertificate makes a certificate for every address of this machine and
// returns a pool that trusts it.
func writeCertificate(t *testing.T, certFile, keyFile string, serial int64) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := x509.Certificate{
		SerialNumber: big.NewInt(
			serial), Subject: pkix.Name{CommonName: "postern"}, NotBefore: now.Add(-time.Hour),
		NotAfter:    now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), elsewhere(t).AsSlice()}, DNSNames: []string{proxyHost},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, text := range map[string][]byte{
		certFile: cert,
		keyFile: pem.EncodeToMemory(&pem.Block{
			Type:  "PRIVATE KEY",
			Bytes: keyDER,
		}),
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

// elsewhere is an address of this machine that is not loopback, or loopback
// when it has no other.
func elsewhere(t *testing.T) netip.Addr {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr()
		}
	}
	return netip.MustParseAddr("127.0.0.1")
}

// got is an answer whose body was read.
type got struct {
	StatusCode, ProtoMajor int
	Header                 http.Header
	TLS                    *tls.ConnectionState
}

// get asks for the usage of a key.
func get(t *testing.T, client *http.Client, url, key string, headers ...string) (got, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/usage", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got{res.StatusCode, res.ProtoMajor, res.Header, res.TLS}, string(body)
}

func trusting(t *testing.T, pool *x509.CertPool) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// startTLS starts a gateway with a certificate on all addresses.
func startTLS(t *testing.T) (k *testkit.Kit, c *testkit.Client, pool *x509.CertPool) {
	t.Helper()
	k = testkit.Start(t)
	c = k.Workspace("growth")
	k.Stop()
	dir := t.TempDir()
	k.Config.TLSCertFile, k.Config.TLSKeyFile, k.Config.Addr = filepath.Join(dir,
		"cert.pem"), filepath.Join(dir, "key.pem"), "0.0.0.0:0"
	pool = writeCertificate(t, k.Config.TLSCertFile, k.Config.TLSKeyFile, 1)
	k.Boot()
	return k, c, pool
}

// at is the server's URL with another host.
func at(k *testkit.Kit, scheme string, host netip.Addr) string {
	_, port, _ := strings.Cut(strings.TrimPrefix(k.URL(), "https://["), "]:")
	if port == "" {
		port = k.URL()[strings.LastIndexByte(k.URL(), ':')+1:]
	}
	return scheme + net.JoinHostPort(host.String(), port)
}

func TestServerSpeaksTLS(t *testing.T) {
	t.Parallel()
	k, c, pool := startTLS(t)
	if !strings.HasPrefix(k.URL(), "https://") {
		t.Errorf("URL = %s", k.URL())
	}
	url := at(k, "https://", elsewhere(t))
	res, body := get(t, trusting(t, pool), url, c.Key)
	if res.StatusCode != 200 || res.ProtoMajor != 2 || res.TLS.Version != tls.VersionTLS13 {
		t.Errorf("by TLS: %d HTTP/%d %x %s", res.StatusCode, res.ProtoMajor, res.TLS.Version, body)
	}
	for version, ok := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true} {
		conn, err := (&tls.Dialer{Config: &tls.Config{
			RootCAs: pool, MinVersion: tls.VersionTLS10,
			MaxVersion: version,
		}}).DialContext(
			t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
		if (err == nil) != ok {
			t.Errorf("TLS version %x: %v, want ok %v", version, err, ok)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// TestPlainRequestToATLSPort is answered with 403, never with a redirect.
func TestPlainRequestToATLSPort(t *testing.T) {
	t.Parallel()
	k, c, pool := startTLS(t)
	for range 20 { // the refusal must not get lost when the connection is closed
		res, body := get(t, trusting(t, pool), at(k, "http://", elsewhere(t)), c.Key, "X-Padding",
			strings.Repeat("x", 8000))
		var p struct{ Code, Type, RequestID string }
		if err := json.Unmarshal([]byte(body), &p); err != nil || res.StatusCode != 403 || p.Code != "FORBIDDEN" ||
			!strings.HasSuffix(p.Type, "/insecure-transport") ||
			p.RequestID == "" ||
			res.Header.Get("Content-Type") != "application/problem+json" ||
			res.Header.Get("Location") != "" {
			t.Fatalf("a plain request: %d %v %s", res.StatusCode, res.Header, body)
		}
	}
	if strings.Contains(k.Log.String(), c.Key) {
		t.Error("the log shows a key that came in plain text")
	}
}

func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	k, c, first := startTLS(t)
	url := at(k, "https://", netip.MustParseAddr("127.0.0.1"))
	old := trusting(t, first)
	serial := func(res got) int64 { return res.TLS.PeerCertificates[0].SerialNumber.Int64() }
	if res, _ := get(t, old, url, c.Key); serial(res) != 1 {
		t.Fatalf("the certificate is %d", serial(res))
	}
	// A certificate without its key is not used: the old pair stays.
	if err := os.WriteFile(k.Config.TLSCertFile, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the broken file to be noticed", func() (bool, any) { // the server checks once a second
		if res, _ := get(t, trusting(t, first), url, c.Key); serial(res) != 1 {
			t.Errorf("with half a certificate: %d, want the old one", serial(res))
		}
		return strings.Contains(k.Log.String(), "the old one stays"), "nothing about it in the log"
	})
	second := writeCertificate(t, k.Config.TLSCertFile, k.Config.TLSKeyFile, 2)
	testkit.Eventually(t, "the new certificate", func() (bool, any) {
		fresh := trusting(t, second)
		fresh.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true // which one it is, is the question
		res, _ := get(t, fresh, url, c.Key)
		return serial(res) == 2, serial(res)
	})
	if res, _ := get(t, trusting(t, second), url, c.Key); res.StatusCode != 200 {
		t.Errorf("with the new certificate: %d", res.StatusCode)
	}
	if res, _ := get(t, old, url, c.Key); res.StatusCode != 200 || serial(res) != 1 {
		t.Errorf("who was connected: %d by certificate %d, want the old connection", res.StatusCode, serial(res))
	}
	if want := "the certificate was read again"; !strings.Contains(k.Log.String(), want) {
		t.Errorf("the log lacks %q", want)
	}
}

func TestEventsAreStreamedByTLS(t *testing.T) {
	t.Parallel()
	k, c, pool := startTLS(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		at(k, "https://", netip.MustParseAddr("127.0.0.1"))+"/v1/events/stream", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	res, err := trusting(t, pool).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Errorf("the stream: %d %s", res.StatusCode, res.Proto)
	}
	k.SetPlan(c.Workspace, "free")
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != ": no events yet\n\n" {
		t.Errorf("the stream ended with %q, %v", rest, err)
	}
}

// TestPlainRequestFromElsewhere uses an address of this machine that is not
// loopback, behind a proxy that is trusted and without one.
func TestPlainRequestFromElsewhere(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	k.Stop()
	host := elsewhere(t)
	k.Config.Addr, k.Config.TrustedProxies = "0.0.0.0:0", []netip.Prefix{netip.PrefixFrom(host, host.BitLen())}
	k.Boot()
	client := trusting(t, nil)
	url := at(k, "http://", host)
	want := 403
	if host.IsLoopback() {
		want = 200
	}
	if res, body := get(t, client, url, c.Key); res.StatusCode != want || res.Header.Get("Location") != "" {
		t.Errorf("plain: %d %s", res.StatusCode, body)
	}
	if res, body := get(t, client, url, c.Key, "X-Forwarded-For", "203.0.113.9", "X-Forwarded-Proto",
		"http"); res.StatusCode != 403 {
		t.Errorf("a plain client behind the proxy: %d %s", res.StatusCode, body)
	}
	if res, body := get(t, client, url, c.Key, "X-Forwarded-For", "203.0.113.9", "X-Forwarded-Proto",
		"https"); res.StatusCode != 200 {
		t.Errorf("an HTTPS client behind the proxy: %d %s", res.StatusCode, body)
	}
	if res, _ := get(t, client, at(k, "http://", netip.MustParseAddr("127.0.0.1")), c.Key); res.StatusCode != 200 {
		t.Errorf("from this machine: %d", res.StatusCode)
	}
	if !strings.Contains(k.Log.String(), `"client":"203.0.113.9"`) {
		t.Error("the log does not name the client behind the proxy")
	}
}

func TestBadCertificateStopsTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, filepath.Join(dir, "other.pem"), 1)
	writeCertificate(t, filepath.Join(dir, "other.pem"), key, 2)
	for name, files := range map[string][3]string{
		"missing":        {cert, filepath.Join(dir, "none.pem"), "POSTERN_TLS_KEY_FILE cannot be read"},
		"of another key": {cert, key, "POSTERN_TLS_CERT_FILE"},
	} {
		k := testkit.Start(t)
		k.Stop()
		k.Config.TLSCertFile, k.Config.TLSKeyFile = files[0], files[1]
		if err := k.TryBoot(); err == nil || !strings.Contains(err.Error(), files[2]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
