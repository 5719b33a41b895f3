package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"postern/internal/access"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// request is what is known about a request while it is served.
type request struct {
	id            string
	client        netip.Addr // where it comes from
	authorization string
	caller        access.Caller
	idem          *gateway.Idempotency // nil: it may happen more than once
	reason        postern.Reason       // of the refusal, "" when there was none
	page          string               // of the dashboard: its pattern
	member        postern.Member       // who asks for the page
}

type requestKey struct{}

// requestOf finds the request that ctx belongs to.
func requestOf(ctx context.Context) *request {
	q, _ := ctx.Value(requestKey{}).(*request) // serve puts one into every request's context
	return q
}

// NoteVisit tells the log which page of the dashboard a request is for, and who
// asks for it; nobody has an id before a sign-in.
func NoteVisit(ctx context.Context, pattern string, m postern.Member) {
	if q := requestOf(ctx); q != nil {
		q.page, q.member = pattern, m
	}
}

// recorder remembers whether and how a request was answered.
type recorder struct {
	http.ResponseWriter
	rates   *throttle
	request *http.Request
	client  netip.Addr
	status  int
}

// WriteHeader notes the status, and tells a rate where none was told yet.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
		if h := r.Header(); h["Ratelimit"] == nil { // the canonical form of the name
			r.rates.tell(r.request.Context(), r.client, h)
		}
		r.ResponseWriter.WriteHeader(status)
	}
}

// Write answers 200 when nothing was said before.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Values of headers that are on every answer, shared: nobody changes them.
var noStore, noSniff = []string{"no-store"}, []string{"nosniff"} //nolint:gochecknoglobals // made once, never changed

func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	q, start := &request{id: postern.NewRequestID(), client: a.transport.Client(r)}, time.Now()
	rec := &recorder{ResponseWriter: w, rates: a.throttle, request: r, client: q.client}
	h := w.Header()
	h.Set("Request-Id", q.id)
	h["Cache-Control"], h["X-Content-Type-Options"] = noStore, noSniff
	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, q))
	defer func() {
		p := recover()
		started := rec.status != 0
		if p != nil {
			a.panicked(rec, q, p)
		}
		a.logRequest(r, rec.status, q, time.Since(start))
		if p != nil && started {
			panic(http.ErrAbortHandler) // the answer is cut: the caller must see that
		}
	}()
	a.dispatch(rec, r, q)
}

// panicked logs where it happened, never the value: it may hold anything.
func (a *API) panicked(w *recorder, q *request, p any) {
	what := fmt.Sprintf("%T", p)
	if err, ok := p.(runtime.Error); ok {
		what = err.Error()
	}
	a.log.Error("panic", "request_id", q.id, "panic", what, "stack", string(debug.Stack()))
	q.reason = postern.Internal
	if w.status == 0 {
		a.refuse(w, q, postern.Errorf(postern.Internal, ""))
	}
}

// logRequest writes the one line of a request. It names the route and not the
// path: a path holds what the caller sent.
func (a *API) logRequest(r *http.Request, status int, q *request, took time.Duration) {
	_, route, _ := strings.Cut(cmp.Or(q.page, r.Pattern), " ")
	attrs := append(make([]slog.Attr, 0, 9), slog.String("request_id", q.id), slog.String("method", knownMethod(r.Method)), slog.String("route", route),
		slog.Int("status", status), slog.Int64("duration_ms", took.Milliseconds()), slog.String("client", addressText(q.client)))
	if id := q.caller.Key.ID; id != "" {
		attrs = append(attrs, slog.String("workspace", string(q.caller.Workspace())), slog.String("key_id", string(id)))
	}
	if id := q.member.UserID; id != "" {
		attrs = append(attrs, slog.String("workspace", string(q.member.WorkspaceID)), slog.String("user_id", string(id)))
	}
	if q.reason != "" {
		attrs = append(attrs, slog.String("reason", string(q.reason)))
	}
	a.log.LogAttrs(r.Context(), slog.LevelInfo, "request", attrs...)
}

// addressText is an address, "" when it is not known.
func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

// dispatch finds the route. The mux would redirect odd paths and answer in
// plain text; both are refused here first.
// isOurs tells the paths of the API and its documents from those of the dashboard.
func isOurs(where string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(where, "/"), "/")
	return slices.Contains([]string{"v1", "docs", "problems", "link"}, first)
}

func (a *API) dispatch(w http.ResponseWriter, r *http.Request, q *request) {
	switch {
	case !a.transport.admits(r, q.client):
		a.refuse(w, q, plainRefused())
		return
	case headerBytes(r) > HeaderLimit:
		w.Header().Set("Connection", "close")
		a.refuse(w, q, postern.Errorf(postern.HeadersTooLarge, "the headers have at most %d bytes", HeaderLimit))
		return
	case !plainPath(r.URL):
		a.refuse(w, q, noRoute())
		return
	}
	if a.dashboard != nil && !isOurs(r.URL.Path) {
		a.dashboard.ServeHTTP(w, r)
		return
	}
	h, pattern := a.mux.Handler(r)
	if pattern != "" {
		a.mux.ServeHTTP(w, r)
		return
	}
	var p probe
	h.ServeHTTP(&p, r)
	allow := p.Header().Get("Allow")
	if allow == "" {
		a.refuse(w, q, noRoute())
		return
	}
	w.Header().Set("Allow", allow)
	a.refuse(w, q, postern.Errorf(postern.MethodNotAllowed, "this path takes %s", allow))
}

func noRoute() error {
	return postern.Errorf(postern.NotFound, "there is no such route; the routes are in %s", specPath)
}

// plainPath tells whether a path is written in its one plain form: without
// empty or dotted parts and without a slash at the end.
func plainPath(u *url.URL) bool {
	p := u.EscapedPath()
	return strings.HasPrefix(p, "/") && path.Clean(p) == p
}

func headerBytes(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

// probe learns from the mux which methods a path takes.
type probe struct{ header http.Header }

// Header holds what the mux sets.
func (p *probe) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}

// Write drops the mux's text.
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader drops the mux's status.
func (*probe) WriteHeader(int) {}
