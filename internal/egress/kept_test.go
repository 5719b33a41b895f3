package egress

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// aged makes kept connections look as if they had lain for so long.
func (c *Client) aged(by time.Duration) (n int) {
	k := &c.transport.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, list := range k.idle {
		for _, w := range list {
			w.at = w.at.Add(-by)
			n++
		}
	}
	return n
}

// hears waits until something has come on the connection that is kept.
func (c *Client) hears(t *testing.T) {
	t.Helper()
	c.transport.kept.mu.Lock()
	defer c.transport.kept.mu.Unlock()
	for _, list := range c.transport.kept.idle {
		raw, err := list[0].under().(syscall.Conn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		err = raw.Read(func(fd uintptr) bool { // called again when there is something to read
			n, _, _ := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			return n > 0 || list[0].r.Buffered() > 0
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A host that says something unasked must not have it taken for the answer to
// the next request.
func TestWhatAHostSaysUnaskedIsNoAnswer(t *testing.T) {
	t.Parallel()
	const ok, late = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n"
	for name, part := range map[string]func(chan struct{}){"with the answer": func(chan struct{}) {}, "later": func(read chan struct{}) { <-read }} {
		read := make(chan struct{}, 3)
		url := rawServer(t, func(c net.Conn) {
			say(ok)(c)
			part(read)
			say(late)(c)
			hold(c)
		})
		c := newTestClient(t, Options{})
		for range 3 {
			if a, err := c.Post(t.Context(), url, nil, []byte("{}")); err != nil {
				t.Fatalf("%s: status %d, %v", name, a.Status, err)
			}
			read <- struct{}{}
			c.hears(t)
		}
	}
}

func TestConnectionsThatLieTooLongAreClosed(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	url := rawServer(t, func(c net.Conn) {
		say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(c)
		hold(c)
		close(gone)
	})
	c := newTestClient(t, Options{})
	if _, err := c.Post(t.Context(), url, nil, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if c.transport.kept.old(); c.aged(idleTimeout) != 1 {
		t.Fatal("a fresh connection was not kept")
	}
	c.transport.kept.old()
	if n := c.aged(0); n != 0 || c.transport.kept.all.Len() != 0 {
		t.Errorf("%d are kept, counted as %d", n, c.transport.kept.all.Len())
	}
	<-gone
}

// pool keeps connections of the test, which nobody answers.
func pool(t *testing.T, perHost int) *kept {
	t.Helper()
	k := &newTransport(dialer{}, perHost).kept
	t.Cleanup(k.close)
	return k
}

func (k *kept) open(t *testing.T, host string) *wire {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	c := newWire(near, host)
	k.put(c)
	return c
}

func TestNoMoreConnectionsAreKeptForAHostThanAllowed(t *testing.T) {
	t.Parallel()
	k := pool(t, 2)
	first, second, third := k.open(t, "http x:80"), k.open(t, "http x:80"), k.open(t, "http x:80")
	if list := k.idle["http x:80"]; !slices.Equal(list, []*wire{second, third}) || k.all.Len() != 2 {
		t.Errorf("%v are kept, want the last two of %v, counted as %d", list, []*wire{first, second, third}, k.all.Len())
	}
	if _, err := first.Write([]byte("x")); err == nil {
		t.Error("one that is not kept is open")
	}
}

// A user with very many hosts leaves room for those of others.
func TestOfTooManyTheOldestAreNotKept(t *testing.T) {
	t.Parallel()
	k := pool(t, 2)
	for i := range maxIdle {
		k.open(t, fmt.Sprintf("https h%d.example:443", i))
	}
	k.open(t, "https good.example:443")
	if len(k.idle["https h0.example:443"]) != 0 || len(k.idle["https good.example:443"]) != 1 || k.all.Len() != maxIdle || len(k.idle) != maxIdle {
		t.Errorf("the oldest host has %d, the last one %d, in all %d", len(k.idle["https h0.example:443"]), len(k.idle["https good.example:443"]), k.all.Len())
	}
}

// counted is a server that counts its connections.
func counted(t *testing.T) (srv *httptest.Server, opened *atomic.Int32) {
	t.Helper()
	opened = &atomic.Int32{}
	srv = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	t.Cleanup(srv.Close)
	return srv, opened
}

// A connection is used again though the time for the exchange before is over.
func TestConnectionOutlivesTheTimeOfAnExchange(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*httptest.Server){"http": (*httptest.Server).Start, "https": (*httptest.Server).StartTLS} {
		srv, opened := counted(t)
		start(srv)
		c := newTestClient(t, Options{Timeout: short})
		if name == "https" {
			c.trust(t, srv)
		}
		for range 3 {
			if _, err := c.Post(t.Context(), srv.URL, nil, []byte("{}")); err != nil {
				t.Fatal(err)
			}
			for _, list := range c.transport.kept.idle { // its time is over
				if err := list[0].SetDeadline(time.Unix(1, 0)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := opened.Load(); n != 1 {
			t.Errorf("%s: 3 posts to a host that keeps its connections opened %d", name, n)
		}
	}
}

// corked can join what is written to it into one write.
type corked struct {
	net.Conn

	text *bytes.Buffer // nil: nothing is joined
}

func (c *corked) Write(b []byte) (int, error) {
	if c.text == nil {
		return c.Conn.Write(b)
	}
	return c.text.Write(b)
}

// corker is a listener of corked connections.
type corker struct{ net.Listener }

func (l corker) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &corked{Conn: c}, err
}

// With TLS, what came unasked may have been read with the answer before it.
func TestWhatTLSHoldsIsNoAnswer(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		under := conn.(*tls.Conn).NetConn().(*corked)
		under.text = &bytes.Buffer{}
		say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(conn)
		say("HTTP/1.1 299 Unasked\r\nContent-Length: 0\r\n\r\n")(conn)
		under.Conn.Write(under.text.Bytes())
		under.text = nil
		hold(conn)
	}))
	srv.Listener = corker{srv.Listener}
	srv.StartTLS()
	defer srv.Close()
	c := newTestClient(t, Options{})
	c.trust(t, srv)
	for range 3 {
		if a, err := c.Post(t.Context(), srv.URL, nil, []byte("{}")); err != nil || a.Status != http.StatusOK {
			t.Fatalf("status %d, %v", a.Status, err)
		}
	}
}

// A host that reads nothing is not waited for when its connection is closed.
func TestConnectionsAreDroppedWithoutAWord(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer far.Close()
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	server := tls.Server(far, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: srv.TLS.Certificates, SessionTicketsDisabled: true})
	go server.HandshakeContext(t.Context())
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	client := tls.Client(near, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "example.com"})
	if err := client.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := pool(t, 2)
	k.put(newWire(client, "https slow:443"))
	began := time.Now()
	k.close()
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %v", took)
	}
}
