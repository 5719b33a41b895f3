package web

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A client that opens all windows of HTTP/2 and then reads nothing from its connection does not keep a handler.
func TestHTTP2ClientThatReadsNothing(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = NewServer(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		for chunk := make([]byte, 1<<20); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}), slog.New(slog.DiscardHandler))
	if limit := &srv.Config.HTTP2.WriteByteTimeout; *limit != writeTimeout {
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
	for _, h := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "example.com"}, {":path", "/"}} {
		if err := fields.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			return err
		}
	}
	return f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true,
	})
}
