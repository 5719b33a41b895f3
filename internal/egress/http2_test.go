package egress

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// newHost2 is a host that speaks HTTP/2.
func newHost2(t *testing.T, answer http.HandlerFunc) (h *host, c *Client) {
	t.Helper()
	h = newHost(t, answer)
	h.EnableHTTP2 = true
	h.StartTLS()
	return h, newTestClient(t, Options{RootCAs: trusted(h.Server)})
}

func TestHTTP2IsUsedWhereItIsOffered(t *testing.T) {
	t.Parallel()
	h, c := newHost2(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for name := range r.Header {
			if strings.EqualFold(name, idempotencyKey) {
				t.Errorf("%s was sent", name)
			}
		}
		io.WriteString(w, r.Proto+" "+string(body))
	})
	for range 5 {
		if a := c.mustPost(t, "ws", h.URL); string(a.Body) != "HTTP/2.0 {}" {
			t.Errorf("the answer is %q", a.Body)
		}
	}
	if n := h.opened.Load(); n != 1 {
		t.Errorf("5 posts opened %d connections, want 1", n)
	}
}

func TestMisbehavingHTTP2ReceiverHasAReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		status int
		want   Reason
	}{
		{"stream reset", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, Reset},
		{"stream reset in the body", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "half")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, 200, Body},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0, Timeout},
		{"head that is a little too long", longHead(maxHeader + 1000), 0, Body},
		{"head that is much too long", longHead(10 * maxHeader), 0, Body},
		{"status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, 410, Status},
		{"redirect", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) }, 302, Redirect},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, c := newHost2(t, tt.answer)
			if tt.want == Timeout {
				c.opts.Timeout = short
			}
			a, err := c.Post(t.Context(), "ws", h.URL, nil, []byte("{}"))
			if reasonOf(err) != tt.want || a.Status != tt.status {
				t.Errorf("status %d, error %v; want %d, %s", a.Status, err, tt.status, tt.want)
			}
		})
	}
}

func longHead(bytes int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := range bytes / 1000 {
			w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("a", 1000))
		}
	}
}

// An endless body is not read to its end, and the connection stays usable.
func TestEndlessHTTP2BodyIsReadToABound(t *testing.T) {
	t.Parallel()
	h, c := newHost2(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.Write(make([]byte, 4096))
		}
	})
	for range 50 {
		if a := c.mustPost(t, "ws", h.URL); len(a.Body) != maxKept || !a.Truncated {
			t.Fatalf("%d bytes were kept, truncated %v", len(a.Body), a.Truncated)
		}
	}
	if n := h.opened.Load(); n != 1 {
		t.Errorf("50 posts opened %d connections, want 1", n)
	}
}

// A host that sends frames that belong to no answer is cut off, long before the
// time for the exchange is over.
func TestFloodOfHTTP2FramesIsCutOff(t *testing.T) {
	t.Parallel()
	const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"          // empty
	const ping = "\x00\x00\x08\x06\x00\x00\x00\x00\x00" + "pingping" // asks for an answer
	h, c := newHost2(t, ok)
	cfg := h.TLS.Clone()
	cfg.NextProtos = []string{"h2"}
	url := speaker(t, func(raw net.Conn) {
		conn := tls.Server(raw, cfg)
		io.WriteString(conn, settings)
		go io.Copy(io.Discard, conn)
		for {
			if _, err := io.WriteString(conn, strings.Repeat(ping, 100)); err != nil {
				return
			}
		}
	})
	_, err := c.Post(t.Context(), "ws", strings.Replace(url, "http:", "https:", 1), nil, []byte("{}"))
	c.Close()
	if reasonOf(err) != Body {
		t.Errorf("error %v, want body", err)
	}
}

// spent is a host whose HTTP/2 connections take one request each: with the answer, it
// allows no more streams, and keeps the connection open.
func spent(t *testing.T) (url string, c *Client) {
	t.Helper()
	const (
		settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"                         // empty
		ack      = "\x00\x00\x00\x04\x01\x00\x00\x00\x00"                         // of the client's settings
		none     = "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00" // MAX_CONCURRENT_STREAMS: 0
		status   = "\x00\x00\x01\x01\x05\x00\x00\x00\x01\x88"                     // of stream 1, and its end: 200
	)
	h, c := newHost2(t, ok)
	cfg := h.TLS.Clone()
	cfg.NextProtos = []string{"h2"}
	url = speaker(t, func(raw net.Conn) {
		conn := tls.Server(raw, cfg)
		io.WriteString(conn, settings+ack)
		if awaitHeaders(conn) == nil {
			io.WriteString(conn, none+status)
		}
		hold(conn)
	})
	t.Cleanup(c.Close) // before the host waits for its connections
	return strings.Replace(url, "http:", "https:", 1), c
}

// awaitHeaders reads up to the first HEADERS frame of an HTTP/2 client.
func awaitHeaders(r io.Reader) error {
	if _, err := io.CopyN(io.Discard, r, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return err
	}
	for head := make([]byte, 9); head[3] != 1; {
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, r, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			return err
		}
	}
	return nil
}

// net/http closes no HTTP/2 connection because there are too many.
func TestUnusableHTTP2ConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	url, c := spent(t)
	c.pools.perHost = 3
	for range 10 {
		c.mustPost(t, "ws", url)
		if n := c.pools.open.Load(); n > 3 {
			t.Fatalf("%d connections are open between two exchanges, want at most 3", n)
		}
	}
}

func TestTenantWithManyConnectionsEvictsNoOther(t *testing.T) {
	t.Parallel()
	url, c := spent(t)
	c.pools.perHost, c.pools.maxIdle = 3, 5
	defer c.pools.release(c.pools.acquire("greedy")) // always has an exchange, so that its transport is never evicted
	h := newHost(t, ok)
	h.Start()
	c.mustPost(t, "other", h.URL)
	for range 10 {
		c.mustPost(t, "greedy", url)
	}
	c.mustPost(t, "other", h.URL)
	if n := h.opened.Load(); n != 1 {
		t.Errorf("2 posts of the other tenant opened %d connections, want 1", n)
	}
}
