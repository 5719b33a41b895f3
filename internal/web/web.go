// Package web is the front door of the server. Every request passes it, in
// this order: request id and client address, plain text or TLS, size of the
// headers, form of the path, and then the API, the documentation, a link page or
// the dashboard. It writes one line to the log for each request.
package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"postern/internal/obs"
	"postern/internal/postern"
	"postern/internal/problem"
)

// Options configure a Door. A handler that is nil is not mounted: its paths are
// answered with 404.
type Options struct {
	Log       *slog.Logger // nil discards
	BaseURL   string       // where callers reach the server; the start of a problem's type
	Transport Transport    // which requests may come in plain text; zero: those from this machine

	API       http.Handler // serves /v1
	LinkPages http.Handler // serves /link/
	Dashboard http.Handler // serves every path that nothing else has

	// Document returns the OpenAPI document, which is searched with the documentation. Nil leaves it out.
	Document func() ([]byte, error)

	// Announce adds headers to the answer to r, just before its first byte. client is
	// invalid when its address is unknown. nil adds none.
	Announce func(r *http.Request, client netip.Addr, h http.Header)

	// Late tells of the address of a client whether its connection uses a spare file: its request is refused,
	// because the server cannot open more files. Nil means never; see [Spares].
	Late func(remote string) bool

	// Observe is called after each request. The route is a pattern, "" if none matched; the reason
	// is that of a refusal. Nil calls nothing.
	Observe func(method, route string, status int, reason string, took time.Duration)

	// Record is called after each request. Nil calls nothing.
	Record func(obs.Served)

	// Trace is called before each request. It returns the request to serve, and what is called after it, with
	// the method and the pattern of the route, "" if none matched. Nil calls nothing.
	Trace func(*http.Request) (traced *http.Request, end func(route string, status int, reason string))
}

// Door is the front door.
type Door struct {
	log       *slog.Logger
	transport Transport
	problems  *problem.Writer
	announce  func(*http.Request, netip.Addr, http.Header)
	observe   func(method, route string, status int, reason string, took time.Duration)
	record    func(obs.Served)
	trace     func(*http.Request) (*http.Request, func(route string, status int, reason string))
	late      func(remote string) bool
	api       http.Handler
	pages     http.Handler // the documentation, pages about problems, link pages
	dashboard http.Handler
	nothing   http.Handler // has no path
	flights   *flights
	leaving   atomic.Bool

	compressors compressors
	archive     archive
}

// New returns a Door.
func New(opts Options) *Door {
	d := &Door{
		log: opts.Log, transport: opts.Transport, announce: opts.Announce, observe: opts.Observe, api: opts.API, dashboard: opts.Dashboard,
		flights: newFlights(), compressors: newCompressors(), late: opts.Late,
		trace: opts.Trace, record: opts.Record,
	}
	if d.late == nil {
		d.late = func(string) bool { return false }
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.announce == nil {
		d.announce = func(*http.Request, netip.Addr, http.Header) {}
	}
	d.problems = problem.NewWriter(opts.BaseURL, d.log)
	mux := http.NewServeMux()
	if opts.LinkPages != nil {
		mux.Handle("/link/", opts.LinkPages)
	}
	d.pages, d.nothing = d.limited(d.problems.Routed(mux)), d.problems.Routed(http.NewServeMux())
	d.mountPages(mux, opts.Document)
	return d
}

// Values of headers that are on every answer, shared: nobody changes them.
var noStore, noSniff = []string{"no-store"}, []string{"nosniff"} //nolint:gochecknoglobals // made once, never changed

// Leave lets no client use its connection again after the response that it waits for, because the
// server will stop. Connections without a request stay open: a request may just be on its way.
func (d *Door) Leave() { d.leaving.Store(true) }

// ServeHTTP serves one request.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, start := &obs.Request{ID: postern.NewRequestID(), Client: d.transport.Client(r)}, time.Now()
	rec := &recorder{ResponseWriter: w, door: d, about: q, client: q.Client}
	h := w.Header()
	h.Set("Request-Id", q.ID)
	h["Cache-Control"], h["X-Content-Type-Options"] = noStore, noSniff
	r, ended := d.traced(r.WithContext(obs.WithRequest(r.Context(), q)))
	rec.request = r
	served(r.Context())
	if r.ProtoMajor == 1 {
		rec.roll() // net/http may write 100 Continue, and the deadline of an earlier response may have passed
	}
	defer func() {
		p := recover()
		started := rec.sent
		if p != nil && !aborts(p) {
			d.panicked(rec, q, p)
		}
		rec.finish()
		cut := rec.isCut()
		if cut && r.Context().Err() == nil { // the client has not left
			q.Reason = string(postern.Internal)
		}
		d.logRequest(r, rec.status, q, time.Since(start))
		ended(routeOf(r, q), rec.status, q.Reason)
		// The client must see that the answer is not complete. Over HTTP/1, net/http ends the connection of one that is
		// cut.
		if p != nil && (started || aborts(p)) || cut && r.ProtoMajor >= 2 {
			panic(http.ErrAbortHandler)
		}
	}()
	d.admit(rec, r, q)
}

func (d *Door) traced(r *http.Request) (*http.Request, func(route string, status int, reason string)) {
	if d.trace == nil {
		return r, func(string, int, string) {}
	}
	return d.trace(r)
}

// aborts tells whether a handler panicked to end its response early, because the client has left.
func aborts(p any) bool {
	err, ok := p.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

// panicked logs where a panic happened, never its value, which may hold anything.
func (d *Door) panicked(w *recorder, q *obs.Request, p any) {
	what := fmt.Sprintf("%T", p)
	if err, ok := p.(runtime.Error); ok {
		what = err.Error()
	}
	d.log.Error("panic", "request_id", q.ID, "panic", what, "stack", string(debug.Stack()))
	q.Reason = string(postern.Internal)
	if !w.sent {
		w.drop()
		d.problems.Refuse(w, q, postern.Errorf(postern.Internal, ""))
	}
}

// admit refuses what no part of the server may see, and passes the rest on. A
// mux would redirect an odd path; it is refused here first.
func (d *Door) admit(w http.ResponseWriter, r *http.Request, q *obs.Request) {
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// A proxy may see a Content-Length beside it, which net/http hides from us, and take
		// what follows for something else than we do (RFC 9112, 6.1).
		w.Header().Set("Connection", "close")
	}
	switch {
	case d.late(r.RemoteAddr):
		w.Header().Set("Connection", "close")
		d.problems.Refuse(w, q, noFiles())
	case !d.transport.admits(r, q.Client):
		d.problems.Refuse(w, q, plainRefused())
	case headerBytes(r) > HeaderLimit:
		w.Header().Set("Connection", "close")
		d.problems.Refuse(w, q, headersTooLarge())
	case !plainPath(r.URL):
		d.problems.Refuse(w, q, problem.NoRoute())
	default:
		d.handler(r).ServeHTTP(w, r)
	}
}

func noFiles() error {
	return postern.Errorf(postern.Unavailable, "the server cannot open more connections now; try again shortly")
}

func headersTooLarge() error {
	return postern.Errorf(postern.HeadersTooLarge,
		"the headers are too large; together they may have at most %d bytes", HeaderLimit)
}

// handler returns the part of the server that has a path. The dashboard is for people:
// a program that asks for one of its paths has left out /v1.
func (d *Door) handler(r *http.Request) http.Handler {
	switch first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); {
	case first == "v1" && d.api != nil:
		return d.api
	case first == "v1", first == "docs", first == "problems", first == "link", d.dashboard == nil:
		return d.pages
	case callsAPI(r.Header):
		return d.nothing
	}
	return d.dashboard
}

// callsAPI tells whether a request comes from a program that sends or wants JSON.
func callsAPI(h http.Header) bool {
	accept := strings.ToLower(strings.Join(h["Accept"], ","))
	return len(h["Authorization"]) > 0 || strings.Contains(strings.ToLower(h.Get("Content-Type")), "json") ||
		strings.Contains(accept, "json") && !strings.Contains(accept, "html")
}

// plainPath tells whether a path is written in its one plain form: without
// empty or dotted parts and without a slash at the end.
func plainPath(u *url.URL) bool {
	p := u.EscapedPath()
	return strings.HasPrefix(p, "/") && path.Clean(p) == p
}

// headerBytes is the size of the request line and the headers.
func headerBytes(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}
