// Package trace records the steps of a message as spans of OpenTelemetry: the request or the arrival, the
// commit, the send, and each attempt of each webhook. A trace has one id in all of them.
//
// A trace outlives a context: [Parent] is its text, which is stored with a message and its deliveries, and
// [Tracer.Continue] makes a context of it again.
//
// A span has ids of ours, outcomes and counts. It never has a text of a message, a number, a key or an address
// of a customer.
//
// A nil *Tracer records nothing, and costs a comparison.
package trace

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	otel "go.opentelemetry.io/otel/trace"
)

// Tracer starts spans. Its methods may be called from many goroutines, and on nil.
type Tracer struct {
	tracer otel.Tracer
	sink   *sink
}

// Start starts a span within that of ctx, or a trace if ctx has none. End must be called on it.
func (t *Tracer) Start(ctx context.Context, name string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx, s := t.tracer.Start(ctx, name)
	return ctx, Span{s}
}

// StartAt is like Start, for a step that began before, at a time that may be zero if it is not known.
func (t *Tracer) StartAt(ctx context.Context, name string, began time.Time) (context.Context, Span) {
	if t == nil || began.IsZero() {
		return t.Start(ctx, name)
	}
	ctx, s := t.tracer.Start(ctx, name, otel.WithTimestamp(began))
	return ctx, Span{s}
}

// Within is like Start, but starts nothing if ctx has no span.
func (t *Tracer) Within(ctx context.Context, name string) (context.Context, Span) {
	if t == nil || !otel.SpanContextFromContext(ctx).IsValid() {
		return ctx, Span{}
	}
	return t.Start(ctx, name)
}

// Continue returns a context whose spans belong to the trace of a traceparent header. Without a valid one, it
// returns ctx.
func (t *Tracer) Continue(ctx context.Context, parent string) context.Context {
	if t == nil || parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{header: parent})
}

const header = "traceparent"

// Parent returns the span of ctx as a traceparent header, or "" if ctx has none.
func Parent(ctx context.Context) string {
	if !otel.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[header]
}

// ID returns the id of the trace of ctx, 32 digits, or "" if ctx has none.
func ID(ctx context.Context) string {
	c := otel.SpanContextFromContext(ctx)
	if !c.IsValid() {
		return ""
	}
	return c.TraceID().String()
}

// Span is a step in progress. The zero Span records nothing.
type Span struct{ span otel.Span }

// Name gives the span another name.
func (s Span) Name(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Set adds an attribute. An empty value adds none.
func (s Span) Set(key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// SetInt adds an attribute that is a number.
func (s Span) SetInt(key string, value int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(key, value))
	}
}

// Fail marks the span as failed, for a reason that is one of ours: an error of others may quote anything.
func (s Span) Fail(reason string) {
	if s.span != nil {
		s.span.SetStatus(codes.Error, reason)
	}
}

// End ends the step.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// Logger returns a logger that adds the trace of the context to its lines, as trace_id. With a nil Tracer it is
// log itself.
func (t *Tracer) Logger(log *slog.Logger) *slog.Logger {
	if t == nil {
		return log
	}
	return slog.New(handler{log.Handler()})
}

type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if id := ID(ctx); id != "" {
		r.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
