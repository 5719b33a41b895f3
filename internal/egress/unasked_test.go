package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const (
	answer200 = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	unasked   = "HTTP/1.1 299 Unasked\r\nContent-Length: 0\r\n\r\n"
)

// speaker is a server that says what it likes on each connection, many at a time.
func speaker(t *testing.T, speak func(net.Conn)) (url string) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer conn.Close()
				speak(conn)
			})
		}
	})
	t.Cleanup(group.Wait)
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}

// eachRequest calls speak for each request on a connection.
func eachRequest(conn net.Conn, speak func(*http.Request)) {
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		speak(req)
	}
}

// crowd makes a number of posts at once for several tenants, each of which names itself,
// and calls check with each answer.
func crowd(t *testing.T, posts int, url string, check func(tenant string, a Answer, err error)) {
	t.Helper()
	c := newTestClient(t, Options{})
	var group sync.WaitGroup
	const callers = 16
	for n := range callers {
		tenant := fmt.Sprint("tenant", n%4)
		group.Go(func() {
			for range posts / callers {
				a, err := c.Post(t.Context(), tenant, url, http.Header{"X-Tenant": {tenant}}, []byte("{}"))
				check(tenant, a, err)
			}
		})
	}
	group.Wait()
}

// A host sends an unasked answer together with each answer. None may be taken for
// the answer to the next post, not even of the same tenant.
func TestUnaskedAnswerIsNotTaken(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{answer200, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"} {
		url := speaker(t, func(c net.Conn) {
			eachRequest(c, func(*http.Request) { io.WriteString(c, answer+unasked) })
		})
		crowd(t, 800, url, func(_ string, a Answer, err error) {
			if err != nil || a.Status != http.StatusOK {
				t.Errorf("status %d, %v", a.Status, err)
			}
		})
	}
}

// A host answers every request on a connection with what it was sent first there. That may be
// taken for the answer to a later request of the same tenant, but never for the answer to
// another tenant's.
func TestUnaskedAnswerReachesNoOtherTenant(t *testing.T) {
	t.Parallel()
	url := speaker(t, func(c net.Conn) {
		first := ""
		eachRequest(c, func(r *http.Request) {
			if first == "" {
				first = r.Header.Get("X-Tenant")
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(first), first)
		})
	})
	crowd(t, 1000, url, func(tenant string, a Answer, err error) {
		if err != nil || string(a.Body) != tenant {
			t.Errorf("%s is answered %d %q, %v", tenant, a.Status, a.Body, err)
		}
	})
}

// The connection on which something was said unasked is closed.
func TestConnectionOfATalkativeHostIsClosed(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	url := speaker(t, func(c net.Conn) {
		http.ReadRequest(bufio.NewReader(c))
		io.WriteString(c, answer200)
		io.WriteString(c, unasked)
		hold(c)
		close(gone)
	})
	newTestClient(t, Options{}).mustPost(t, "ws", url)
	<-gone
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

// TLS may have read an unasked answer together with the answer before it.
func TestUnaskedAnswerInsideTLSIsNotTaken(t *testing.T) {
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
		io.WriteString(conn, answer200)
		io.WriteString(conn, unasked)
		under.Conn.Write(under.text.Bytes())
		under.text = nil
		hold(conn)
	}))
	srv.Listener = corker{srv.Listener}
	srv.StartTLS()
	defer srv.Close()
	c := newTestClient(t, Options{RootCAs: trusted(srv)})
	for range 100 {
		if a := c.mustPost(t, "ws", srv.URL); a.Status != http.StatusOK {
			t.Fatalf("status %d", a.Status)
		}
	}
}

// connected gives the two ends of a TCP connection.
func connected(t *testing.T) (near *socket, far net.Conn) {
	t.Helper()
	accepted := make(chan net.Conn)
	url := speaker(t, func(c net.Conn) { accepted <- c; hold(c) })
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", url[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	near = alone(conn)
	t.Cleanup(func() { near.Close() })
	return near, <-accepted
}

// alone makes a socket that belongs to no tenant.
func alone(conn net.Conn) *socket { return newSocket(conn, newConns(1, 1, new(atomic.Int64)), "") }

// awaitReadable waits until something has arrived.
func awaitReadable(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Read(func(fd uintptr) bool { // called again when there is something to read
		n, _, _ := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return n > 0
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What has arrived and was not read yet counts, too.
func TestSocketWithSomethingToReadIsNotQuiet(t *testing.T) {
	t.Parallel()
	near, far := connected(t)
	near.setWaiting()
	if !near.quiet(t.Context()) {
		t.Error("a connection on which nothing was said is not quiet")
	}
	io.WriteString(far, "x")
	awaitReadable(t, near.Conn)
	if near.quiet(t.Context()) {
		t.Error("a connection on which something was said is quiet")
	}
}

// A socket whose reader is at work is quiet when the reader waits for more.
func TestQuietWaitsForTheReader(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*socket, context.CancelFunc){
		"closed":   func(s *socket, _ context.CancelFunc) { s.Close() },
		"canceled": func(_ *socket, cancel context.CancelFunc) { cancel() },
	} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			s := alone(near)
			defer s.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answered := make(chan bool, 1)
			go func() { answered <- s.quiet(ctx) }()
			synctest.Wait()
			if len(answered) > 0 {
				t.Errorf("%s: quiet does not wait", name)
			}
			end(s, cancel)
			if <-answered {
				t.Errorf("a %s socket is quiet", name)
			}
		})
	}
	near, _ := connected(t)
	answered := make(chan bool, 1)
	go func() { answered <- near.quiet(t.Context()) }()
	near.setWaiting()
	if !<-answered {
		t.Error("a socket whose reader waits is not quiet")
	}
}

// To close a connection does not wait for a host that reads nothing.
func TestConnectionIsClosedWithoutAnAlert(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		server := tls.Server(far, &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: srv.TLS.Certificates, SessionTicketsDisabled: true,
			Time: srv.Certificate().NotBefore.UTC,
		})
		go server.HandshakeContext(t.Context())
		sock := alone(near)
		client := tls.Client(sock, &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: trusted(srv), ServerName: "example.com",
			Time: srv.Certificate().NotBefore.UTC,
		})
		if err := client.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now() // of the bubble, where only waiting takes time
		(&h1Conn{Conn: client, sock: sock}).Close()
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}
