package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"postern/internal/obs"
	"postern/internal/postern"
)

// NoteVisit tells the log which page of the dashboard a request is for, and who
// asks for it. Before a sign-in the member has no ids.
func NoteVisit(ctx context.Context, pattern string, m postern.Member) {
	if q := obs.RequestOf(ctx); q != nil {
		q.Route, q.Workspace, q.UserID = pattern, string(m.WorkspaceID), string(m.UserID)
	}
}

// logRequest writes the one line of a request. It names the route and not the
// path: a path holds what the caller sent.
func (d *Door) logRequest(r *http.Request, status int, q *obs.Request, took time.Duration) {
	_, route, _ := strings.Cut(routeOf(r, q), " ")
	attrs := append(make([]slog.Attr, 0, 9),
		slog.String("request_id", q.ID), slog.String("method", knownMethod(r.Method)), slog.String("route", route),
		slog.Int("status", status), slog.Int64("duration_ms", took.Milliseconds()),
		slog.String("client", addressText(q.Client)))
	for _, id := range []struct{ name, value string }{
		{"workspace", q.Workspace}, {"key_id", q.KeyID}, {"user_id", q.UserID}, {"reason", q.Reason},
	} {
		if id.value != "" {
			attrs = append(attrs, slog.String(id.name, id.value))
		}
	}
	d.log.LogAttrs(r.Context(), slog.LevelInfo, "request", attrs...)
	if d.observe != nil {
		d.observe(knownMethod(r.Method), route, status, q.Reason, took)
	}
	if d.record != nil {
		d.record(obs.Served{Request: q, Method: knownMethod(r.Method), Path: r.URL.Path, Status: status, Took: took})
	}
}

// routeOf is the pattern of the route that serves a request; "" if none does.
func routeOf(r *http.Request, q *obs.Request) string { return cmp.Or(q.Route, r.Pattern) }

// addressText is an address as text, "" for one that is unknown.
func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// knownMethod keeps what a caller made up out of the log.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}
