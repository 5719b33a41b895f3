package whatsapp

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"postern/internal/egress"
	"postern/internal/network"
	"postern/internal/network/networktest"
)

// proxied is a host whose network lies behind a proxy.
type proxied struct {
	*networktest.Recorder
	url string
}

func (p proxied) Proxy() string { return p.url }

// splice joins two connections until one ends.
func splice(here, there net.Conn) {
	go func() { _, _ = io.Copy(there, here); there.Close(); here.Close() }()
	_, _ = io.Copy(here, there)
	here.Close()
	there.Close()
}

// connectProxy is an HTTP proxy that wants a password.
func connectProxy(t *testing.T, used *atomic.Int32) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != "Basic dXNlcjpzZWNyZXQ=" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		used.Add(1)
		// The answer comes after: what follows it at once would be read by the server.
		if here, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
			splice(here, there)
		}
	}))
	t.Cleanup(srv.Close)
	return strings.Replace(srv.URL, "http://", "http://user:secret@", 1)
}

// socksProxy speaks just enough of RFC 1928: no authentication, CONNECT.
func socksProxy(t *testing.T, used *atomic.Int32) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				if there, err := socksDial(t.Context(), c); err == nil {
					used.Add(1)
					splice(c, there)
				}
				c.Close()
			}()
		}
	}()
	return "socks5://" + l.Addr().String()
}

func socksDial(ctx context.Context, c net.Conn) (net.Conn, error) {
	r := bufio.NewReaderSize(c, 16)
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, r, int64(head[1])); err != nil {
		return nil, err
	}
	if _, err := c.Write([]byte{5, 0}); err != nil {
		return nil, err
	}
	ask := make([]byte, 4)
	if _, err := io.ReadFull(r, ask); err != nil || ask[3] != 1 {
		return nil, errors.New("IPv4 only")
	}
	to := make([]byte, 6)
	if _, err := io.ReadFull(r, to); err != nil {
		return nil, err
	}
	addr := net.TCPAddr{IP: to[:4], Port: int(binary.BigEndian.Uint16(to[4:]))}
	there, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, err
	}
	_, err = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	return there, err
}

func behindTLS(t *testing.T) world {
	t.Helper()
	vendor := newWorld(t, nil).vendor
	srv := httptest.NewTLSServer(vendor.Handler())
	t.Cleanup(srv.Close)
	ca := x509.NewCertPool()
	ca.AddCert(srv.Certificate())
	w := worldOf(t, vendor, Network{URL: "wss" + strings.TrimPrefix(srv.URL, "https"), CA: ca}, nil)
	w.driver.proxies = egress.NewClient(egress.Options{AllowPrivate: true})
	return w
}

func TestLinkAndSessionGoThroughTheProxy(t *testing.T) {
	t.Parallel()
	proxies := map[string]func(*testing.T, *atomic.Int32) string{"http": connectProxy, "socks5": socksProxy}
	for name, start := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var used atomic.Int32
			w := behindTLS(t)
			host := proxied{&networktest.Recorder{}, start(t, &used)}
			linked := make(chan error, 1)
			go func() { linked <- w.driver.Link(t.Context(), host, "") }()
			code := networktest.Wait(t, host.Recorder, 1, networktest.Any[network.Code])
			if err := w.vendor.Scan(t.Context(), code.Text, ownNumber); err != nil {
				t.Fatal(err)
			}
			if err := <-linked; err != nil {
				t.Fatal(err)
			}
			session, err := w.driver.Open(
				t.Context(),
				networktest.Wait(t, host.Recorder, 1, networktest.Any[network.Paired]).Account,
			)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- session.Run(ctx, host) }()
			networktest.Wait(t, host.Recorder, 1, networktest.Any[network.Live])
			if n := used.Load(); n != 2 {
				t.Errorf("%d connections went through the proxy, want 2", n)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAProxyThatMayNotBeUsed shows that nothing is dialled past it.
func TestAProxyThatMayNotBeUsed(t *testing.T) {
	t.Parallel()
	var used atomic.Int32
	w := behindTLS(t)
	w.driver.proxies = egress.NewClient(egress.Options{})
	var failed *network.LinkError
	err := w.driver.Link(t.Context(), proxied{&networktest.Recorder{}, connectProxy(t, &used)}, "")
	if !errors.As(err, &failed) || failed.Reason != "dial" || used.Load() != 0 {
		t.Errorf("link = %v after %d connections, want dial", err, used.Load())
	}
}
