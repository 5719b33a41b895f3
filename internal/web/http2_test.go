package web_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"postern/internal/web"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A client that grants the largest windows of HTTP/2 and then reads nothing from its connection does not keep a
// handler.
func TestHTTP2ClientThatReadsNothingIsCutOff(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = web.NewServer(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		for chunk := make([]byte, 1<<20); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}), slog.New(slog.DiscardHandler))
	if limit := &srv.Config.HTTP2.WriteByteTimeout; *limit < time.Second {
		t.Errorf("a client has %v to read something", *limit)
	} else {
		*limit = time.Second
	}
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	conn, err := tls.Dial("tcp", srv.Listener.Addr().String(),
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // it is our own
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := request(conn); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the handler still writes")
	}
}

// An answer over HTTP/2 that is not complete ends with an error: not all clients compare its length, as Go's does.
func TestCutHTTP2AnswerIsAnError(t *testing.T) {
	t.Parallel()
	client, url := servedBy(t, true, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		if _, err := w.Write(make([]byte, 40)); err != nil || http.NewResponseController(w).Flush() != nil {
			t.Error(err)
		}
	})
	res, err := client.Get(url + "/v1/x")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); !strings.Contains(fmt.Sprint(err), "INTERNAL_ERROR") {
		t.Errorf("the answer ends with %v", err)
	}
}

// A refusal that ends a connection of HTTP/1 leaves one of HTTP/2 to the other requests on it.
func TestRefusalLeavesTheConnectionToOthers(t *testing.T) {
	t.Parallel()
	for _, second := range []bool{false, true} {
		client, url := servedBy(t, second, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusBadRequest)
		})
		reused := false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused },
		})
		for range 2 {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		if reused != second {
			t.Errorf("HTTP/2 %t: the connection is used again: %t", second, reused)
		}
	}
}

// servedBy serves what answers at the front door, by HTTP/1 or HTTP/2.
func servedBy(t *testing.T, http2 bool, api http.HandlerFunc) (client *http.Client, url string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(doorOf(t, api))
	srv.EnableHTTP2 = http2
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.Client(), srv.URL
}

// request asks for a page, with windows that take two gigabytes.
func request(conn *tls.Conn) error {
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		return err
	}
	const window = 1<<31 - 1
	f := http2.NewFramer(conn, conn)
	if err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		return err
	}
	if err := f.WriteWindowUpdate(0, window-1<<16); err != nil {
		return err
	}
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	for _, h := range [][2]string{
		{":method", "GET"}, {":scheme", "https"}, {":authority", "example.com"}, {":path", "/"},
	} {
		if err := fields.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			return err
		}
	}
	return f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true,
	})
}
