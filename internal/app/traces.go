package app

import (
	"context"
	"net/http"
	"strings"
	"time"

	"postern/internal/postern"
	"postern/internal/trace"
)

// flushTime is how long the end of the server waits for the collector to take the last spans.
const flushTime = 3 * time.Second

// openTraces begins to record traces if there is a collector for them.
func (a *App) openTraces(ctx context.Context) (err error) {
	if a.cfg.OTLPEndpoint == "" {
		return nil
	}
	a.tracer, err = trace.New(ctx, trace.Options{
		Endpoint: a.cfg.OTLPEndpoint, Version: a.version, Log: a.log, Registerer: a.registry,
	})
	if err != nil {
		return err
	}
	a.log = a.tracer.Logger(a.log)
	a.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		a.tracer.Close(ctx)
		return nil
	})
	return nil
}

// traceCommit returns what the store calls for each write; nil without traces. Only the writes of a step
// that is traced are.
func (a *App) traceCommit() func(ctx context.Context, write string) (end func(error)) {
	if a.tracer == nil {
		return nil
	}
	return func(ctx context.Context, write string) func(error) {
		_, span := a.tracer.Within(ctx, "commit")
		span.Set("write", write)
		return func(err error) {
			if err != nil {
				span.Fail(string(postern.ReasonOf(err)))
			}
			span.End()
		}
	}
}

// traceRequest returns what the front door calls for each request; nil without traces. Requests of the
// API are traced, and continue the trace of their caller.
func (a *App) traceRequest() func(*http.Request) (*http.Request, func(route string, status int, reason string)) {
	if a.tracer == nil {
		return nil
	}
	return func(r *http.Request) (*http.Request, func(string, int, string)) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			return r, func(string, int, string) {}
		}
		ctx, span := a.tracer.Start(a.tracer.Continue(r.Context(), r.Header.Get("Traceparent")), "request")
		return r.WithContext(ctx), func(route string, status int, reason string) {
			if route != "" {
				span.Name(route)
			}
			span.SetInt("http.response.status_code", status)
			if status >= http.StatusInternalServerError {
				span.Fail(reason)
			}
			span.End()
		}
	}
}
