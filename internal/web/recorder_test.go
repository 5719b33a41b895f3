package web_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/obs"
	"postern/internal/postern"
	"postern/internal/web"
)

// doorOf is a front door before one handler, for everything under /v1.
func doorOf(t *testing.T, serve http.HandlerFunc) *door {
	t.Helper()
	d := &door{t: t, log: &bytes.Buffer{}}
	d.Door = web.New(web.Options{Log: slog.New(slog.NewJSONHandler(d.log, nil)), BaseURL: baseURL, API: serve})
	return d
}

// timed is a client that notes how much it may take under each deadline.
type timed struct {
	*httptest.ResponseRecorder
	left      time.Time // the deadline; zero means that none is set
	deadlines int
	largest   int // bytes written under one deadline
	now       int
}

func (c *timed) SetWriteDeadline(at time.Time) error {
	c.left, c.now = at, 0
	c.deadlines++
	return nil
}

func (c *timed) Write(b []byte) (int, error) {
	if c.left.IsZero() {
		return 0, errors.New("a write without a deadline")
	}
	c.now += len(b)
	c.largest = max(c.largest, c.now)
	return c.ResponseRecorder.Write(b)
}

// TestEveryWriteHasADeadline: a client that reads nothing does not keep a response, and
// one that reads slowly gets the whole of a large one.
func TestEveryWriteHasADeadline(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	c := &timed{ResponseRecorder: httptest.NewRecorder()}
	d := doorOf(t, func(w http.ResponseWriter, _ *http.Request) {
		if n, err := w.Write(make([]byte, size)); n != size || err != nil || !c.left.IsZero() {
			t.Errorf("%d bytes written, %v: a deadline is left: %v", n, err, c.left)
		}
	})
	d.ServeHTTP(c, local(t, http.MethodGet, "/v1/messages"))
	if c.Body.Len() != size || c.largest > web.WriteChunk || c.left.IsZero() {
		t.Errorf("%d bytes, up to %d of them under one deadline, the last is %v", c.Body.Len(), c.largest, c.left)
	}
}

// TestStreamsSetTheirOwnDeadlines: the front door leaves them alone, and gives what the
// server still has to send a deadline again.
func TestStreamsSetTheirOwnDeadlines(t *testing.T) {
	t.Parallel()
	mine := time.Now().Add(time.Hour)
	c := &timed{ResponseRecorder: httptest.NewRecorder()}
	d := doorOf(t, func(w http.ResponseWriter, _ *http.Request) {
		ctl := http.NewResponseController(w)
		if err := ctl.SetWriteDeadline(mine); err != nil {
			t.Error(err)
		}
		if _, err := w.Write([]byte("x")); err != nil || ctl.Flush() != nil || !c.left.Equal(mine) {
			t.Errorf("the deadline is %v (%v)", c.left, err)
		}
		if err := ctl.SetWriteDeadline(time.Time{}); err != nil {
			t.Error(err)
		}
	})
	d.ServeHTTP(c, local(t, http.MethodGet, "/v1/events/stream"))
	if c.left.IsZero() || c.left.Equal(mine) {
		t.Errorf("at the end the deadline is %v", c.left)
	}
}

func local(t *testing.T, method, path string) *http.Request {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	req.RemoteAddr = "127.0.0.1:1"
	return req
}

// stuck is a client that reads nothing until it is let go.
type stuck struct {
	*httptest.ResponseRecorder
	waits *sync.WaitGroup
	goOn  chan struct{}
	once  sync.Once
}

func (c *stuck) Write(b []byte) (int, error) {
	c.once.Do(func() {
		c.waits.Done()
		<-c.goOn
	})
	return c.ResponseRecorder.Write(b)
}

// TestUnreadResponsesOfAWorkspaceAreBounded: beyond 16 MiB a workspace is refused, others
// are not, and neither is what tells of a change.
func TestUnreadResponsesOfAWorkspaceAreBounded(t *testing.T) {
	t.Parallel()
	d := doorOf(t, func(w http.ResponseWriter, r *http.Request) {
		obs.RequestOf(r.Context()).Workspace = r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(1<<20))
		w.Write(make([]byte, 1<<20))
	})
	var all, waits sync.WaitGroup
	goOn := make(chan struct{})
	for range 16 {
		waits.Add(1)
		c := &stuck{ResponseRecorder: httptest.NewRecorder(), waits: &waits, goOn: goOn}
		all.Go(func() { d.ServeHTTP(c, local(t, http.MethodGet, "/v1/a")) })
	}
	waits.Wait()
	for _, tt := range []struct {
		method, path string
		status, size int
	}{
		{"GET", "/v1/a", http.StatusTooManyRequests, 0},
		{"GET", "/v1/b", http.StatusOK, 1 << 20},
		{"POST", "/v1/a", http.StatusOK, 1 << 20},
	} {
		a := httptest.NewRecorder()
		d.ServeHTTP(a, local(t, tt.method, tt.path))
		if a.Code != tt.status || tt.size > 0 && a.Body.Len() != tt.size {
			t.Errorf("%s %s is answered %d with %d bytes", tt.method, tt.path, a.Code, a.Body.Len())
		}
		if tt.size == 0 && (d.reason(a) != postern.RateLimited || a.Header().Get("Retry-After") == "" ||
			a.Header().Get("Content-Length") != "") {
			t.Errorf("the refusal is %v %s", a.Header(), a.Body)
		}
	}
	close(goOn)
	all.Wait()
	a := httptest.NewRecorder()
	if d.ServeHTTP(a, local(t, http.MethodGet, "/v1/a")); a.Code != http.StatusOK {
		t.Errorf("when all is read, the answer is %d", a.Code)
	}
}

// visitors is a listener with one connection from each address in turn.
type visitors struct {
	net.Listener
	from []string
}

func (l *visitors) Accept() (net.Conn, error) {
	if len(l.from) == 0 {
		return nil, net.ErrClosed
	}
	next := l.from[0]
	l.from = l.from[1:]
	ours, theirs := net.Pipe()
	return &visitor{Conn: ours, other: theirs, from: netip.MustParseAddrPort(next)}, nil
}

type visitor struct {
	net.Conn
	other net.Conn
	from  netip.AddrPort
}

func (c *visitor) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }

// TestConnectionsAreBounded counts those of one network, of a proxy, and of all.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	proxies := web.Transport{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	many := func(n int, from string) []string {
		return strings.Split(strings.Repeat(from+",", n)[:n*(len(from)+1)-1], ",")
	}
	for name, tt := range map[string]struct {
		from []string
		want int
	}{
		"one address":      {many(300, "203.0.113.9:1"), 256},
		"one IPv6 network": {append(many(200, "[2001:db8::1]:1"), many(200, "[2001:db8:0:1::1]:1")...), 256},
		"two addresses":    {append(many(300, "203.0.113.9:1"), many(300, "203.0.113.8:1")...), 512},
		"a proxy":          {many(300, "10.1.2.3:1"), 300},
		"this machine":     {many(300, "127.0.0.1:1"), 300},
		"all":              {many(web.MaxConns+5, "10.1.2.3:1"), web.MaxConns},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := web.Bound(&visitors{from: tt.from}, proxies)
			var open []net.Conn
			for {
				c, err := l.Accept()
				if err != nil {
					break
				}
				open = append(open, c)
			}
			if len(open) != tt.want {
				t.Errorf("%d of %d connections are open, want %d", len(open), len(tt.from), tt.want)
			}
			for _, c := range open { // closing twice, as net/http does, counts once
				if err := errors.Join(c.Close(), c.Close()); err != nil {
					t.Error(err)
				}
			}
			if n := web.OpenConns(l); n != 0 {
				t.Errorf("%d connections are counted after all were closed", n)
			}
		})
	}
}

// TestUnreadBytesOfAConnectionAreBounded asks the kernel how much it buffers.
func TestUnreadBytesOfAConnectionAreBounded(t *testing.T) {
	t.Parallel()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	c, err := web.Bound(inner, web.Transport{}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := io.CopyN(c, zeros{}, 64<<20)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n > 1<<20 {
		t.Errorf("%d bytes that nobody read are buffered (%v)", n, err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }
