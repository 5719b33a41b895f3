package web_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postern/internal/postern"
	"postern/internal/web"
)

// serve runs the server of a door on loopback, and returns how to connect to it.
func (d *door) serve(secure bool) (dial func() net.Conn) {
	d.t.Helper()
	inner, err := (&net.ListenConfig{}).Listen(d.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		d.t.Fatal(err)
	}
	l := web.Bound(inner, web.Transport{})
	var roots *x509.CertPool
	if secure {
		cert, key := d.certificate()
		roots = x509.NewCertPool()
		pemBytes, err := os.ReadFile(cert)
		if err != nil || !roots.AppendCertsFromPEM(pemBytes) {
			d.t.Fatal(err)
		}
		if l, err = web.SecureListener(l, cert, key, slog.New(slog.DiscardHandler), d.PlainRefusal); err != nil {
			d.t.Fatal(err)
		}
	}
	srv := web.NewServer(d.t.Context(), d, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(d.Listen(l)) }()
	d.t.Cleanup(func() {
		srv.Close()
		<-ended
	})
	return func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(d.t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(func() { conn.Close() })
		if !secure {
			return conn
		}
		return tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: []string{"http/1.1"}})
	}
}

// certificate writes the certificate of a test server to two files.
func (d *door) certificate() (cert, key string) {
	d.t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS()
	defer srv.Close()
	pair := srv.TLS.Certificates[0]
	raw, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		d.t.Fatal(err)
	}
	dir := d.t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: raw},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	return filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}

// say sends text and returns all that comes back until the server ends the connection.
func say(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	go io.WriteString(conn, text) // the server may end early
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%q: %v", answer, err)
	}
	return string(answer)
}

// TestEveryRefusalIsAProblemDocument sends what net/http refuses before a handler sees
// it, with and without TLS, first and after a good request.
func TestEveryRefusalIsAProblemDocument(t *testing.T) {
	t.Parallel()
	const good = "GET /v1/devices HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, tt := range map[string]struct {
		text   string
		reason postern.Reason
	}{
		"bad escape":        {"GET /v1/devices/%zz HTTP/1.1\r\nHost: x\r\n\r\n", postern.MalformedRequest},
		"no Host":           {"GET /v1/devices HTTP/1.1\r\n\r\n", postern.MalformedRequest},
		"two Hosts":         {"GET /v1/devices HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", postern.MalformedRequest},
		"bad Host":          {"GET /v1/devices HTTP/1.1\r\nHost: x y\r\n\r\n", postern.MalformedRequest},
		"bad header":        {"GET /v1/devices HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n", postern.MalformedRequest},
		"not HTTP":          {"hello\r\n\r\n", postern.MalformedRequest},
		"another version":   {"GET /v1/devices HTTP/3.0\r\nHost: x\r\n\r\n", postern.MalformedRequest},
		"two lengths":       {"POST /v1/devices HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", postern.MalformedRequest},
		"unknown coding":    {"POST /v1/devices HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", postern.MalformedRequest},
		"oversized headers": {"GET /v1/devices HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 2*web.MaxHeaderBytes) + "\r\n\r\n", postern.HeadersTooLarge},
	} {
		for _, secure := range []bool{false, true} {
			for _, before := range []string{"", good} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					d := newDoor(t, web.Transport{})
					conn := bufio.NewReader(strings.NewReader(say(t, d.serve(secure)(), before+tt.text)))
					if before != "" {
						if a := d.read(conn); a.Body.String() != "the API" {
							t.Fatalf("a good request is answered %d %s", a.Code, a.Body)
						}
					}
					a := d.read(conn)
					if d.reason(a) != tt.reason || a.Header().Get("Content-Type") != "application/problem+json" ||
						a.Header().Get("X-Content-Type-Options") != "nosniff" || a.Header().Get("Cache-Control") != "no-store" {
						t.Errorf("answered %d %v %s", a.Code, a.Header(), a.Body)
					}
					d.logLine(a.Header().Get("Request-Id"))
				})
			}
		}
	}
}

// read reads one response.
func (d *door) read(from *bufio.Reader) *httptest.ResponseRecorder {
	d.t.Helper()
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	a := httptest.NewRecorder()
	for name, values := range resp.Header {
		a.Header()[name] = values
	}
	a.Code = resp.StatusCode
	if _, err := a.Body.ReadFrom(resp.Body); err != nil {
		d.t.Fatal(err)
	}
	return a
}

// TestWhatHandlersWriteIsNotReplaced: also when it looks like a refusal.
func TestWhatHandlersWriteIsNotReplaced(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n", 1000)
	d := doorOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(text))
	})
	answers := bufio.NewReader(strings.NewReader(say(t, d.serve(false)(),
		"GET /v1 HTTP/1.1\r\nHost: x\r\n\r\nGET /v1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")))
	for range 2 {
		if a := d.read(answers); a.Body.String() != text {
			t.Errorf("%d bytes arrive of %d", a.Body.Len(), len(text))
		}
	}
}

// idle is a listener that hands out the connections that it accepts.
type idle struct {
	net.Listener
	conns chan net.Conn
}

func (l *idle) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.conns <- c
	}
	return c, err
}

// TestDeadlineOfAnEarlierResponseIsReplaced: the deadline for one response has passed when
// the next request arrives on the same connection, as after a pause of 30 seconds.
func TestDeadlineOfAnEarlierResponseIsReplaced(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		next     string
		statuses []int
	}{
		"100 Continue": {"POST /v1 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx", []int{100, 200}},
		"refusal":      {"GET /v1 HTTP/1.1\r\n\r\n", []int{400}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := doorOf(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
			inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l, srv := &idle{inner, make(chan net.Conn, 1)}, web.NewServer(t.Context(), d, slog.New(slog.DiscardHandler))
			go srv.Serve(d.Listen(l))
			defer srv.Close()
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			answers := bufio.NewReader(conn)
			exchange := func(text string, status int) {
				t.Helper()
				if _, err := io.WriteString(conn, text); err != nil {
					t.Fatal(err)
				}
				if a := d.read(answers); a.Code != status {
					t.Fatalf("answered %d %s, want %d", a.Code, a.Body, status)
				}
			}
			exchange("GET /v1 HTTP/1.1\r\nHost: x\r\n\r\n", http.StatusOK)
			if err := (<-l.conns).SetWriteDeadline(time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			exchange(tt.next, tt.statuses[0])
			for _, status := range tt.statuses[1:] {
				exchange("", status)
			}
		})
	}
}

// TestTwoLengthsEndTheConnection: what follows a body with a Content-Length and a
// Transfer-Encoding is not taken for a request, because a proxy may take it for
// a part of the body.
func TestTwoLengthsEndTheConnection(t *testing.T) {
	t.Parallel()
	const next = "GET /v1/smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for name, tt := range map[string]struct {
		headers, body string
		answers       int
	}{
		"both":                    {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n", 1},
		"both, the other order":   {"Transfer-Encoding: chunked\r\nContent-Length: 14\r\n", "1\r\nx\r\n0\r\n\r\n", 1},
		"a coding in other words": {"Transfer-Encoding: Chunked\r\nContent-Length: 3\r\n", "1\r\nx\r\n0\r\n\r\n", 1},
		"one length":              {"Content-Length: 1\r\n", "x", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := doorOf(t, func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(w, r.Body); err != nil {
					t.Error(err)
				}
			})
			got := say(t, d.serve(false)(), "POST /v1 HTTP/1.1\r\nHost: x\r\n"+tt.headers+"\r\n"+tt.body+next)
			if n := strings.Count(got, "HTTP/1.1 "); n != tt.answers || bytes.Count(d.log.Bytes(), []byte(`"msg":"request"`)) != n {
				t.Errorf("%d responses, want %d: %s", n, tt.answers, got)
			}
		})
	}
}

// TestAProgramNeverGetsAPageOfTheDashboard: its paths are those of the API without /v1.
func TestAProgramNeverGetsAPageOfTheDashboard(t *testing.T) {
	t.Parallel()
	d := newDoor(t, web.Transport{})
	for _, path := range []string{"/", "/devices", "/nothing"} {
		for _, headers := range [][]string{
			{"Authorization", "Bearer pst_x"},
			{"Authorization", ""},
			{"Accept", "application/json"},
			{"Accept", "application/json, text/plain, */*"},
			{"Accept", "application/problem+json, application/json;q=0.9"},
			{"Content-Type", "application/json"},
		} {
			if a := d.get(path, headers...); d.reason(a) != postern.NotFound {
				t.Errorf("%s with %v is answered %d %s", path, headers, a.Code, a.Body)
			}
		}
		for _, accept := range []string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "*/*", "text/html", "application/json, text/html", ""} {
			if a := d.get(path, "Accept", accept); a.Body.String() != "the dashboard" {
				t.Errorf("%s for a browser is answered %d %s", path, a.Code, a.Body)
			}
		}
	}
}
