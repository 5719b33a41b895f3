package trace

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	maxWaiting = 4096            // spans that wait for the collector; about 4 MB
	batchSize  = 512             // spans in one request
	batchGap   = 2 * time.Second // after which spans are sent although they are fewer
	sendLimit  = 10 * time.Second
)

// Options configure [New].
type Options struct {
	// Endpoint is the base URL of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318. The
	// variables OTEL_… of OpenTelemetry's SDK set the rest: headers, certificates, the sampler, the resource.
	Endpoint   string
	Version    string // of the program
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// New returns a Tracer that sends its spans to a collector, in the background. It does not connect: a collector
// that is down loses spans, and nothing else. The caller must call Close.
func New(ctx context.Context, opts Options) (*Tracer, error) {
	address, err := url.JoinPath(opts.Endpoint, "v1", "traces")
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(address), otlptracehttp.WithTimeout(sendLimit))
	if err != nil {
		return nil, fmt.Errorf("prepare the export of traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "postern"), attribute.String("service.version", opts.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { // the SDK has one for the process
		opts.Log.Warn("OpenTelemetry reports an error", "error", err)
	}))
	s := newSink(exporter, opts)
	s.provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(s), sdk.WithResource(about))
	return &Tracer{s.provider.Tracer("postern"), s}, nil
}

// Close sends what waits, until ctx ends at most.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	defer context.AfterFunc(ctx, t.sink.stop)() // then each request fails at once
	if err := t.sink.provider.Shutdown(context.WithoutCancel(ctx)); err != nil {
		t.sink.log.WarnContext(ctx, "end the export of traces", "error", err)
	}
}

// sink bounds the spans that wait for the collector, and counts what becomes of them. A span that ends while
// too many wait is dropped, so that nobody ever waits for the collector.
type sink struct {
	sdk.SpanProcessor // makes batches

	exporter *otlptrace.Exporter
	provider *sdk.TracerProvider
	log      *slog.Logger
	waiting  atomic.Int64
	failing  atomic.Bool
	stop     context.CancelFunc
	stopped  context.Context //nolint:containedctx // ends requests in flight when Close takes too long

	exported, dropped prometheus.Counter
}

func newSink(exporter *otlptrace.Exporter, opts Options) *sink {
	spans := promauto.With(opts.Registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "postern_trace_spans_total", Help: "Spans that have ended, by outcome: exported or dropped.",
	}, []string{"outcome"})
	s := &sink{
		exporter: exporter, log: opts.Log,
		exported: spans.WithLabelValues("exported"), dropped: spans.WithLabelValues("dropped"),
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.SpanProcessor = sdk.NewBatchSpanProcessor(counting{s}, sdk.WithMaxQueueSize(maxWaiting),
		sdk.WithMaxExportBatchSize(batchSize), sdk.WithBatchTimeout(batchGap), sdk.WithExportTimeout(sendLimit))
	return s
}

// OnEnd takes a span that has ended.
func (s *sink) OnEnd(span sdk.ReadOnlySpan) {
	switch {
	case !span.SpanContext().IsSampled():
	case s.waiting.Add(1) > maxWaiting: // the queue below has room for as many, so it never drops one
		s.waiting.Add(-1)
		s.dropped.Inc()
	default:
		s.SpanProcessor.OnEnd(span)
	}
}

// counting is the exporter that the batches go to.
type counting struct{ *sink }

// ExportSpans sends a batch. A failure is counted and said once; there is nobody to return it to.
func (c counting) ExportSpans(ctx context.Context, batch []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.stopped, cancel)()
	err := c.exporter.ExportSpans(ctx, batch)
	c.waiting.Add(int64(-len(batch)))
	if err != nil {
		c.dropped.Add(float64(len(batch)))
	} else {
		c.exported.Add(float64(len(batch)))
	}
	if failing := err != nil; c.failing.Swap(failing) != failing {
		c.say(ctx, err)
	}
	return nil
}

func (c counting) say(ctx context.Context, err error) {
	if err != nil {
		c.log.WarnContext(ctx, "the collector does not take traces; they are dropped until it does", "error", err)
		return
	}
	c.log.InfoContext(ctx, "the collector takes traces")
}

// Shutdown ends the exporter.
func (c counting) Shutdown(ctx context.Context) error { return c.exporter.Shutdown(ctx) }
