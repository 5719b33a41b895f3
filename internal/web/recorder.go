package web

import (
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"postern/internal/obs"
	"postern/internal/postern"
)

// recorder remembers whether and how a request was answered. It holds the status and
// the headers back until the first byte of the body, announces what every answer
// tells, and bounds what a client that does not read may cost: time on each write, and
// memory for each workspace.
type recorder struct {
	http.ResponseWriter
	door    *Door
	request *http.Request
	about   *obs.Request
	client  netip.Addr
	status  int   // 0 before a handler has named one
	sent    bool  // the status and the headers are written
	written int64 // bytes of the body
	own     bool  // the handler sets deadlines itself, as streams do
	refused bool  // the answer of the handler is dropped
}

// WriteHeader notes the status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// errTooMuch is returned to a handler whose answer is not sent.
var errTooMuch = errors.New("too many bytes of the workspace's responses are not read")

// Write sends a part of the body, with status 200 when none was named. A workspace
// whose clients leave too much unread gets a refusal instead, unless the answer tells of
// a change that was made.
func (r *recorder) Write(b []byte) (int, error) {
	if r.refused {
		return 0, errTooMuch
	}
	ws := r.about.Workspace
	if !r.door.flights.take(ws, len(b), r.request.Method == http.MethodGet) {
		r.refuse()
		return 0, errTooMuch
	}
	defer r.door.flights.give(ws, len(b))
	if r.sent {
		return r.send(b)
	}
	r.WriteHeader(http.StatusOK)
	return r.sendFirst(b, r.encode(b))
}

// sendFirst sends the headers, and the encoded form of the first part of a body. Both are
// in memory until the client has read it.
func (r *recorder) sendFirst(b, encoded []byte) (int, error) {
	if len(encoded) == len(b) {
		r.start()
		return r.send(b)
	}
	ws := r.about.Workspace
	r.door.flights.take(ws, len(encoded), false)
	defer r.door.flights.give(ws, len(encoded))
	r.start()
	if n, err := r.send(encoded); err != nil {
		return n, err
	}
	return len(b), nil
}

// send writes chunk by chunk. A client has [writeTimeout] for each.
func (r *recorder) send(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		r.roll()
		m, err = r.ResponseWriter.Write(b[n:min(n+writeChunk, len(b))])
		n += m
	}
	r.clearDeadline()
	r.written += int64(n)
	return n, err
}

// refuse answers that the workspace has to read first, unless the answer has begun.
func (r *recorder) refuse() {
	if !r.sent {
		r.drop()
		about := *r.about
		about.Workspace = "" // this answer is small, and is not counted
		q := r.about
		r.about = &about
		r.door.problems.Refuse(r, &about, unread())
		r.about, q.Reason = q, about.Reason
		_ = r.FlushError() // the client may be gone
	}
	r.refused = true
}

func unread() error {
	return &postern.Error{
		Reason: postern.RateLimited, RetryAfter: time.Second,
		Detail: "too many responses to the workspace are not read yet; read them before you ask for more",
	}
}

// drop forgets an answer that was prepared and not sent.
func (r *recorder) drop() {
	r.status = 0
	for _, name := range []string{
		"Content-Type", "Content-Length", "Content-Disposition", "Content-Encoding", "ETag", "Last-Modified", "Location",
		"Vary",
	} {
		r.Header().Del(name)
	}
}

// start writes the status and the headers, once.
func (r *recorder) start() {
	if r.sent {
		return
	}
	r.WriteHeader(http.StatusOK)
	r.sent = true
	r.door.announce(r.request, r.client, r.Header())
	switch {
	case r.door.leaving.Load() || r.door.late(r.request.RemoteAddr):
		r.Header().Set("Connection", "close")
	case r.request.ProtoMajor >= 2:
		r.Header().Del("Connection") // of one request; it would close the connection to further ones
	}
	r.roll()
	r.ResponseWriter.WriteHeader(r.status)
}

// roll gives the client time for the next write, unless the handler does.
func (r *recorder) roll() {
	if !r.own { // not every transport has deadlines
		_ = http.NewResponseController(r.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	}
}

// clearDeadline ends the deadline of a write. Over HTTP/2, it would also end an answer whose source takes its time.
func (r *recorder) clearDeadline() {
	if !r.own {
		_ = http.NewResponseController(r.ResponseWriter).SetWriteDeadline(time.Time{})
	}
}

// SetWriteDeadline leaves deadlines to the handler, until it sets none.
func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.own = !t.IsZero()
	return http.NewResponseController(r.ResponseWriter).SetWriteDeadline(t)
}

// FlushError sends what is written so far, with status 200 when none was named.
func (r *recorder) FlushError() error {
	r.start()
	r.roll()
	defer r.clearDeadline()
	return http.NewResponseController(r.ResponseWriter).Flush()
}

// isCut reports whether less was sent than the headers announce.
func (r *recorder) isCut() bool {
	n, err := strconv.ParseInt(r.Header().Get("Content-Length"), 10, 64)
	return err == nil && r.written < n && r.request.Method != http.MethodHead &&
		(r.status == http.StatusOK || r.status == http.StatusPartialContent)
}

// finish ends the answer: with status 200 and no body when the handler wrote nothing,
// as net/http would. The server sends what it has buffered after that.
func (r *recorder) finish() {
	r.start()
	r.roll()
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
