package webhook

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"postern/internal/egress"
)

// TestLogNamesTheErrorBehindAReason, without the address or anything that the host said.
func TestLogNamesTheErrorBehindAReason(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{
		Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: 443}, Err: syscall.ECONNREFUSED,
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{&egress.Error{Reason: egress.Connect, Err: dial}, "dial: connection refused"},
		{&egress.Error{Reason: egress.Reset, Err: io.ErrUnexpectedEOF}, "unexpected EOF"},
		{&egress.Error{Reason: egress.Timeout, Err: context.DeadlineExceeded}, "context deadline exceeded"},
		{&egress.Error{Reason: egress.DNS, Err: &net.DNSError{Name: "private.example"}}, ""},
		{&egress.Error{Reason: egress.Body, Err: errors.New(`malformed response "an echo of the event"`)}, ""},
		{errors.New("the address private.example is not allowed"), ""},
	} {
		if got := causeOf(tt.err); got != tt.want {
			t.Errorf("the cause of %v is %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestLogNamesWhyAConnectionEnded(t *testing.T) {
	t.Parallel()
	w, log := newWorld(t), &buffer{}
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer srv.Close()
	e := w.active(srv.URL, nil)
	w.start(w.dispatcher(Options{Log: log.logger()}))
	w.receive("text")
	w.await("the attempt", func() bool { return w.deliveries(e)[0].Attempts == 1 })
	w.stop()
	if line := log.String(); !strings.Contains(line, `"reason":"reset","error":"EOF"`) || strings.Contains(line, "127.0.0.1") {
		t.Errorf("the log says %s", line)
	}
}
