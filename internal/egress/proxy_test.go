package egress

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCheckProxy(t *testing.T) {
	t.Parallel()
	public := NewClient(Options{})
	defer public.Close()
	for _, good := range []string{
		"http://proxy.example.com", "https://proxy.example.com:8443/", "socks5://proxy.example.com:1080",
		"socks5://user:s%40cret@proxy.example.com:1080",
		"http://93.184.216.34:3128", "http://[2606:4700::1111]:3128",
	} {
		if err := public.CheckProxy(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "proxy.example.org:1080", "socks4://proxy.example.com", "socks5h://proxy.example.com",
		"ftp://proxy.example.com", "http:proxy", "http://", "://",
		"http://user@",
		"http://proxy.example.com:0", "http://proxy.example.com:", "http://proxy.example.com:70000",
		"http://proxy.example.com/path", "http://proxy.example.com?q",
		"http://proxy.example.com/#f",
		"http://127.0.0.1:3128", "socks5://localhost:1080", "http://10.0.0.1", "http://169.254.169.254", "http://[::1]",
		"http://[::ffff:7f00:1]", "http://2130706433", "http://0x7f.1",
		"http://①②⑦.0.0.1",
		"http://" + strings.Repeat("a", 3000) + ".test",
	} {
		err := public.CheckProxy(bad)
		if err == nil || len(bad) > 30 && strings.Contains(err.Error(), bad) {
			t.Errorf("%.60s: %v, want a text that does not repeat it", bad, err)
		}
	}
	private := newTestClient(t, Options{})
	if err := private.CheckProxy("http://127.0.0.1:3128"); err != nil {
		t.Errorf("a private proxy in development: %v", err)
	}
}

// tunnel is an HTTP proxy that connects, and counts.
type tunnel struct{ asked []string }

func (p *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.asked = append(p.asked, r.Host+" "+r.Header.Get("Proxy-Authorization"))
	there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	// The answer comes after: what follows it at once would be read by the server.
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(there, here); there.Close() }()
	_, _ = io.Copy(here, there)
	here.Close()
}

func TestThroughAProxy(t *testing.T) {
	t.Parallel()
	target := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, "hello")
	}))
	defer target.Close()
	proxy := &tunnel{}
	srv := httptest.NewServer(proxy)
	defer srv.Close()
	base := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted(target)}}
	transport, err := newTestClient(t, Options{}).Through(base,
		strings.Replace(srv.URL, "http://", "http://user:secret@",
			1))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != "hello" {
		t.Errorf("body %q, %v", body, err)
	}
	res.Body.Close()
	if want := strings.TrimPrefix(target.URL, "https://") + " Basic dXNlcjpzZWNyZXQ="; len(proxy.asked) != 1 ||
		proxy.asked[0] != want {
		t.Errorf("the proxy was asked for %q, want %q", proxy.asked, want)
	}
}

// TestAProxyThatTurnedPrivate shows that the guard looks at the address that is
// dialled, whatever name the proxy had when it was kept.
func TestAProxyThatTurnedPrivate(t *testing.T) {
	t.Parallel()
	proxy := &tunnel{}
	srv := httptest.NewServer(proxy)
	defer srv.Close()
	public := NewClient(Options{})
	defer public.Close()
	transport, err := public.Through(&http.Transport{},
		"http://rebound.example.com:"+srv.URL[strings.LastIndex(srv.URL,
			":")+1:])
	if err != nil {
		t.Fatal(err)
	}
	// What a name server that was turned would lead to.
	conn, err := transport.DialContext(t.Context(), "tcp", strings.TrimPrefix(srv.URL, "http://"))
	if f, ok := errors.AsType[*Error](err); !ok || f.Reason != Blocked {
		t.Errorf("dial = %v %v, want blocked", conn, err)
	}
	if len(proxy.asked) != 0 {
		t.Error("the proxy was reached")
	}
	if _, err := public.Through(&http.Transport{}, srv.URL); err == nil {
		t.Error("a private proxy was taken")
	}
}
