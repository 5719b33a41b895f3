package egress

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http quotes there what hosts send unasked
	goleak.VerifyTestMain(m)
}

const short = 3 * time.Second // a time-out that tests wait for; only those whose host does not answer in time have it

func newTestClient(t *testing.T, opts Options) *Client {
	t.Helper()
	opts.AllowPrivate = true
	c := NewClient(opts)
	t.Cleanup(c.Close)
	return c
}

// trusted is the certificate of a test server, as the only authority.
func trusted(srv *httptest.Server) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return roots
}

func readFull(r io.Reader, b []byte) (int, error) { return io.ReadFull(r, b) }

// rawServer answers each connection with what speak does; it gets the
// connection after the request's head was read.
func rawServer(t *testing.T, speak func(net.Conn)) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				speak(conn)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String()
}

func say(text string) func(net.Conn) {
	return func(c net.Conn) { io.WriteString(c, text) }
}

// hold keeps a connection open until the client gives up.
func hold(c net.Conn) { io.Copy(io.Discard, c) }

// drip sends a byte now and then for as long as the client listens.
func drip(c net.Conn) {
	io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
	for {
		if _, err := c.Write([]byte("x")); err != nil {
			return
		}
		gone := make([]byte, 1)
		c.SetReadDeadline(time.Now().Add(short / 10))
		if _, err := c.Read(gone); errors.Is(err, io.EOF) {
			return
		}
	}
}

func flood(head, chunk string) func(net.Conn) {
	return func(c net.Conn) {
		io.WriteString(c, head)
		for {
			if _, err := io.WriteString(c, chunk); err != nil {
				return
			}
		}
	}
}

func TestMisbehavingReceiverHasAReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		speak  func(net.Conn)
		status int
		want   Reason
	}{
		{"no answer", hold, 0, Timeout},
		{"slow body", drip, 200, Timeout},
		{"body that never ends", func(c net.Conn) { say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")(c); hold(c) }, 200, Timeout},
		{"half a head", func(c net.Conn) { say("HTTP/1.1 200 OK\r\nContent-")(c); hold(c) }, 0, Timeout},
		{"close without an answer", func(net.Conn) {}, 0, Reset},
		{"close in the head", say("HTTP/1.1 200 OK\r\nX-A: b\r\n"), 0, Reset},
		{"reset", func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) }, 0, Reset},
		{"close in the body", say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), 200, Body},
		{"broken chunks", say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), 200, Body},
		{"a status of two digits", say("HTTP/1.1 099 Odd\r\nContent-Length: 38\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 99, Status},
		{"not HTTP", say("SSH-2.0-OpenSSH_9.9\r\n\r\n"), 0, Body},
		{"flood of headers", flood("HTTP/1.1 200 OK\r\n", "X-A: "+strings.Repeat("a", 1000)+"\r\n"), 0, Body},
		{"flood of early answers", flood("", "HTTP/1.1 102 Processing\r\nX-A: "+strings.Repeat("a", 1000)+"\r\n\r\n"), 0, Body},
		{"switch of protocols", func(c net.Conn) {
			say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")(c)
			hold(c)
		}, 101, Status},
		{"status", say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), 503, Status},
		{"gone", say("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"), 410, Status},
		{"redirect", say("HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), 307, Redirect},
		{"not modified", say("HTTP/1.1 304 Same\r\n\r\n"), 304, Redirect},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newTestClient(t, Options{})
			if tt.want == Timeout {
				c.opts.Timeout = short
			}
			a, err := c.Post(t.Context(), "ws", rawServer(t, tt.speak), nil, []byte("{}"))
			if reasonOf(err) != tt.want || a.Status != tt.status {
				t.Errorf("status %d, error %v; want %d, %s", a.Status, err, tt.status, tt.want)
			}
		})
	}
}

func TestEndlessBodyIsReadToABound(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	url := rawServer(t, func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
		for {
			n, err := c.Write(bytes.Repeat([]byte("y"), 4096))
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	c := newTestClient(t, Options{})
	a, err := c.Post(t.Context(), "ws", url, nil, nil)
	if err != nil || len(a.Body) != maxKept || !a.Truncated {
		t.Errorf("%d bytes kept, truncated %v, error %v; want %d, true, none", len(a.Body), a.Truncated, err, maxKept)
	}
}

func TestBodyIsKeptToItsFirstKiB(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ length, kept int }{
		{0, 0},
		{10, 10},
		{maxKept, maxKept},
		{maxKept + 1, maxKept},
		{maxRead, maxKept},
		{maxRead + 1, maxKept},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request,
		) {
			w.Write(bytes.Repeat([]byte("z"),
				tt.length))
		}))
		a, err := newTestClient(t, Options{}).Post(t.Context(), "ws", srv.URL, nil, nil)
		srv.Close()
		if err != nil || len(a.Body) != tt.kept || a.Truncated != (tt.length > maxKept) {
			t.Errorf("of %d bytes %d were kept, truncated %v, error %v", tt.length, len(a.Body), a.Truncated, err)
		}
	}
}

func TestPostSendsTheBytesAndItsHeadersAlone(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	var got *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer srv.Close()
	h := http.Header{"User-Agent": {"Postern/test"}, "X-One": {"1"}}
	if _, err := newTestClient(t, Options{}).Post(t.Context(), "ws", srv.URL+"/a?b=c", h,
		[]byte("\x00\xff{}")); err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodPost || got.RequestURI != "/a?b=c" || string(body) != "\x00\xff{}" {
		t.Errorf("%s %s with %q", got.Method, got.RequestURI, body)
	}
	want := http.Header{
		"User-Agent": {"Postern/test"}, "X-One": {"1"}, "Accept-Encoding": {"identity"},
		"Content-Length": {"4"},
	}
	if fmt.Sprint(got.Header) != fmt.Sprint(want) {
		t.Errorf("headers = %v, want %v", got.Header, want)
	}
}

func TestUnreachableAndUnknownHostsHaveAReason(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	c := newTestClient(t, Options{})
	if _, err := c.Post(t.Context(), "ws", srv.URL, nil, nil); reasonOf(err) != Connect {
		t.Errorf("closed port: %v, want connect", err)
	}
	unknown := newTestClient(t, Options{})
	unknown.resolve(t) // no addresses at all
	if _, err := unknown.Post(t.Context(), "ws", "https://unknown.example.com", nil, nil); reasonOf(err) != DNS {
		t.Errorf("unknown name: %v, want dns", err)
	}
	if _, err := NewClient(Options{}).Post(t.Context(), "ws", "http://example.com", nil,
		nil); reasonOf(err) != Blocked {
		t.Errorf("http: %v, want blocked", err)
	}
}

func TestTLSIsVerified(t *testing.T) {
	t.Parallel()
	quiet := func(newest uint16) *httptest.Server {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		srv.TLS = &tls.Config{MaxVersion: newest, MinVersion: tls.VersionTLS10}
		srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		srv.StartTLS()
		return srv
	}
	srv, old := quiet(tls.VersionTLS13), quiet(tls.VersionTLS11)
	defer srv.Close()
	defer old.Close()
	c := newTestClient(t, Options{})
	if _, err := c.Post(t.Context(), "ws", srv.URL, nil, nil); reasonOf(err) != TLS {
		t.Errorf("unknown certificate: %v, want tls", err)
	}
	c = newTestClient(t, Options{RootCAs: trusted(srv)})
	if _, err := c.Post(t.Context(), "ws", srv.URL, nil, nil); err != nil {
		t.Errorf("trusted certificate: %v", err)
	}
	if _, err := c.Post(t.Context(), "ws", strings.Replace(srv.URL, "127.0.0.1", "localhost", 1), nil,
		nil); reasonOf(err) != TLS {
		t.Errorf("certificate of another host: %v, want tls", err)
	}
	if _, err := c.Post(t.Context(), "ws", old.URL, nil, nil); reasonOf(err) != TLS {
		t.Errorf("TLS 1.1: %v, want tls", err)
	}
	if _, err := c.Post(t.Context(), "ws", "https://"+strings.TrimPrefix(rawServer(t, hold), "http://"), nil,
		nil); reasonOf(err) != TLS && reasonOf(err) != Timeout {
		t.Errorf("no TLS at all: %v", err)
	}
}

// certified starts a server with a certificate for a name and a time, and gives
// a client that trusts it.
func certified(t *testing.T, name string, until time.Time) (url string, c *Client) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotBefore: until.Add(-time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{
			Certificate: [][]byte{der},
			PrivateKey:  private,
		}},
	}
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	c = newTestClient(t, Options{RootCAs: pool})
	return strings.Replace(srv.URL, "127.0.0.1", "localhost", 1), c
}

func TestCertificateMustBeValidNowAndForTheName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		until time.Time
		want  Reason
	}{
		{"localhost", time.Now().Add(time.Minute), ""},
		{"localhost", time.Now().Add(-time.Minute), TLS},
		{"localhost", time.Now().Add(2 * time.Hour), TLS}, // from an hour on
		{"hooks.example.com", time.Now().Add(time.Minute), TLS},
	} {
		url, c := certified(t, tt.name, tt.until)
		if _, err := c.Post(t.Context(), "ws", url, nil, nil); reasonOf(err) != tt.want {
			t.Errorf("a certificate for %s until %s: %v, want %q", tt.name, tt.until, err, tt.want)
		}
	}
}

// The connection ends at each byte of an answer in turn.
func TestAnswerThatEndsAtAnyByteHasAReason(t *testing.T) {
	t.Parallel()
	const head, body = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello"
	for n := range len(head) + len(body) + 1 {
		for name, end := range map[string]func(net.Conn){
			"close": func(net.Conn) {},
			"reset": func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) },
		} {
			url := rawServer(t, func(c net.Conn) { say((head + body)[:n])(c); end(c) })
			a, err := newTestClient(t, Options{}).Post(t.Context(), "ws", url, nil, []byte("{}"))
			got := reasonOf(err)
			switch {
			case name == "reset": // what was sent before a reset may arrive or not
				if got != Reset && got != Body && (n < len(head)+len(body) || err != nil) {
					t.Errorf("reset after %d bytes: %v", n, err)
				}
			case n < len(head) && got != Reset, n >= len(head) && n < len(head)+len(body) &&
				(got != Body || a.Status != 200), n == len(head)+len(body) &&
				err != nil:
				t.Errorf("closed after %d bytes: status %d, %v", n, a.Status, err)
			}
		}
	}
}

// A compressed answer is kept as it came: nothing is ever unpacked.
func TestCompressedAnswerIsNotUnpacked(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 1000 {
		z.Write(make([]byte, 10_000))
	}
	z.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb.Bytes())
	}))
	defer srv.Close()
	a, err := newTestClient(t, Options{}).Post(t.Context(), "ws", srv.URL, nil, nil)
	if err != nil || !bytes.Equal(a.Body, bomb.Bytes()[:maxKept]) || !a.Truncated {
		t.Errorf("%d bytes kept, truncated %v, %v; want the first KiB as it came", len(a.Body), a.Truncated, err)
	}
}

func TestHandshakeThatHangsTimesOutAndEnds(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := newTestClient(t, Options{Timeout: short})
	if _, err := c.Post(t.Context(), "ws", "https://"+l.Addr().String(), nil, nil); reasonOf(err) != Timeout {
		t.Errorf("error = %v, want timeout", err)
	}
}

func TestCanceledPostIsNoFailureOfTheReceiver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url := rawServer(t, func(c net.Conn) { cancel(); hold(c) })
	_, err := newTestClient(t, Options{}).Post(ctx, "ws", url, nil, nil)
	if !errors.Is(err, context.Canceled) || reasonOf(err) != "" {
		t.Errorf("error = %v, want that of the context", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), short)
	defer cancel()
	if _, err := newTestClient(t, Options{}).Post(ctx, "ws", rawServer(t, hold), nil, nil); reasonOf(err) != Timeout {
		t.Errorf("error = %v, want timeout", err)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"", "short", strings.Repeat("a", 10_000)} {
		var opened atomic.Int32
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request,
		) {
			io.WriteString(w,
				answer)
		}))
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
		}
		srv.Start()
		c := newTestClient(t, Options{})
		for range 500 {
			if _, err := c.Post(t.Context(), "ws", srv.URL, nil, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
		srv.Close()
		if n := opened.Load(); n > 2 {
			t.Errorf("500 posts answered with %d bytes opened %d connections", len(answer), n)
		}
	}
}

// A host that closes kept connections without a word must not cost a failed
// attempt.
func TestKeptConnectionThatTheHostClosedIsReplaced(t *testing.T) {
	t.Parallel()
	url := rawServer(t, say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) // says keep-alive, then closes
	c := newTestClient(t, Options{})
	for i := range 50 {
		if _, err := c.Post(t.Context(), "ws", url, nil, []byte("{}")); err != nil {
			t.Fatalf("post %d: %v", i, err)
		}
	}
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "86400": 24 * time.Hour, "315360000": 87600 * time.Hour, "-5": 0, "1.5": 0, "soon": 0, "99999999999999999999": 0,
		"Sat, 21 Nov 2026 09:00:30 GMT": 30 * time.Second, "Sat, 21 Nov 2026 08:00:00 GMT": 0, "Saturday, 21-Nov-26 09:01:00 GMT": time.Minute,
	} {
		if got := RetryAfter(text, now); got != want {
			t.Errorf("RetryAfter(%q) = %s, want %s", text, got, want)
		}
	}
}
