package web

import (
	"context"
	"net/http"
	"net/netip"
)

// recorder remembers whether and how a request was answered, and announces what
// every answer tells.
type recorder struct {
	http.ResponseWriter
	announce func(context.Context, netip.Addr, http.Header)
	request  *http.Request
	client   netip.Addr
	status   int // 0 before the first byte
}

// WriteHeader notes the status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
		r.announce(r.request.Context(), r.client, r.Header())
		r.ResponseWriter.WriteHeader(status)
	}
}

// Write answers 200 when no status was written before.
func (r *recorder) Write(b []byte) (int, error) {
	r.finish()
	return r.ResponseWriter.Write(b)
}

// FlushError answers 200 when no status was written before, and flushes.
func (r *recorder) FlushError() error {
	r.finish()
	return http.NewResponseController(r.ResponseWriter).Flush()
}

// finish answers 200 when no status was written, as net/http would.
func (r *recorder) finish() { r.WriteHeader(http.StatusOK) }

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
