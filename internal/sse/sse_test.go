package sse

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestStream(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	s, ok := Open(w, httptest.NewRequest(http.MethodGet, "/", nil), time.Minute)
	if !ok || !s.Text(": here\n\n") || !s.Event("code", []byte(`{"a":1}`)) || !s.Lines("part", "<p>\n</p>") {
		t.Error("the stream ended")
	}
	const want = ": here\n\nevent: code\ndata: {\"a\":1}\n\nevent: part\ndata: <p>\ndata: </p>\n\n"
	if got := w.Body.String(); got != want || w.Header().Get("Content-Type") != ContentType || !w.Flushed {
		t.Errorf("%q, flushed %t\nwant %q", got, w.Flushed, want)
	}
	if _, ok := Open(httptest.NewRecorder(), httptest.NewRequest(http.MethodHead, "/", nil), time.Minute); ok {
		t.Error("a HEAD request has a body")
	}
}
