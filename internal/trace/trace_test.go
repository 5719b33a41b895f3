package trace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	"postern/internal/trace"
	"postern/internal/trace/tracetest"

	"github.com/prometheus/client_golang/prometheus"
)

// start returns a tracer that sends to a collector, and the metrics of what becomes of its spans.
func start(t *testing.T, url string) (*trace.Tracer, *prometheus.Registry) {
	t.Helper()
	r := prometheus.NewRegistry()
	tracer, err := trace.New(t.Context(), trace.Options{
		Endpoint: url, Version: "1.2.3", Log: slog.New(slog.DiscardHandler), Registerer: r,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tracer.Close(t.Context()) })
	return tracer, r
}

// count returns how many spans had an outcome.
func count(t *testing.T, r *prometheus.Registry, outcome string) int {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == outcome {
			return int(m.GetCounter().GetValue())
		}
	}
	t.Fatalf("no spans are counted as %s", outcome)
	return 0
}

// A span belongs to the trace of the text that was stored, and Close sends what waits.
func TestTraceContinuesFromItsText(t *testing.T) {
	t.Parallel()
	c := tracetest.Start(t)
	tracer, r := start(t, c.URL)
	ctx, first := tracer.Start(t.Context(), "first")
	stored, id := trace.Parent(ctx), trace.ID(ctx)
	first.Set("device", "dev_1")
	first.End()
	later, second := tracer.Start(tracer.Continue(context.Background(), stored), "second")
	second.Fail("refused")
	second.End()
	if got := trace.ID(later); got != id || len(id) != 32 {
		t.Errorf("the trace continues as %q, want %q", got, id)
	}
	tracer.Close(t.Context())
	spans := c.Spans()
	if len(spans) != 2 || count(t, r, "exported") != 2 || count(t, r, "dropped") != 0 {
		t.Fatalf("the collector has %+v", spans)
	}
	slices.SortFunc(spans, func(a, b tracetest.Span) int { return int(a.Start) - int(b.Start) })
	one, two := spans[0], spans[1]
	if one.Trace != id || two.Trace != id || one.Parent != "" || two.Parent != one.ID || two.Failed != "refused" {
		t.Errorf("spans %+v, %+v", one, two)
	}
	if one.Attributes["device"] != "dev_1" || one.Attributes["service.version"] != "1.2.3" {
		t.Errorf("attributes %v", one.Attributes)
	}
}

func TestInvalidTextContinuesNothing(t *testing.T) {
	t.Parallel()
	tracer, _ := start(t, tracetest.Start(t).URL)
	for _, text := range []string{
		"", "x", "00-0-0-01", "00-00000000000000000000000000000000-0123456789abcdef-01",
		"ff-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
	} {
		if got := trace.Parent(tracer.Continue(t.Context(), text)); got != "" {
			t.Errorf("%q continues %q", text, got)
		}
	}
}

// Nobody waits for a collector that does not answer: what is too much is dropped and counted, and Close ends
// when its time is over.
func TestSlowCollectorDropsSpans(t *testing.T) {
	t.Parallel()
	c := tracetest.Start(t)
	asked, free := make(chan struct{}, 1000), make(chan struct{})
	c.Answer(func() int {
		asked <- struct{}{}
		<-free
		return http.StatusOK
	})
	tracer, r := start(t, c.URL)
	const more = 3
	for range 4096 + more {
		_, s := tracer.Start(t.Context(), "step")
		s.End()
	}
	<-asked
	if got := count(t, r, "dropped"); got != more {
		t.Errorf("%d spans were dropped, want %d", got, more)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tracer.Close(ctx)
	if got := count(t, r, "dropped"); got != 4096+more {
		t.Errorf("%d spans were dropped after Close, want %d", got, 4096+more)
	}
	close(free)
}

// A collector that fails loses spans, and gets those that follow once it works.
func TestCollectorComesBack(t *testing.T) {
	t.Parallel()
	c := tracetest.Start(t)
	tracer, r := start(t, c.URL)
	refused := make(chan struct{}, 100)
	c.Answer(func() int { refused <- struct{}{}; return http.StatusBadRequest })
	_, lost := tracer.Start(t.Context(), "lost")
	lost.End()
	<-refused
	c.Answer(func() int { return http.StatusOK })
	_, kept := tracer.Start(t.Context(), "kept")
	kept.End()
	tracer.Close(t.Context())
	if spans := c.Spans(); len(spans) != 1 || spans[0].Name != "kept" || count(t, r, "dropped") != 1 {
		t.Errorf("the collector has %+v", spans)
	}
}

func TestLogLinesNameTheTrace(t *testing.T) {
	t.Parallel()
	tracer, _ := start(t, tracetest.Start(t).URL)
	var out bytes.Buffer
	log := tracer.Logger(slog.New(slog.NewJSONHandler(&out, nil))).With("part", "x")
	ctx, s := tracer.Start(t.Context(), "step")
	defer s.End()
	log.InfoContext(ctx, "within")
	log.Info("without")
	var lines [2]map[string]any
	d := json.NewDecoder(&out)
	for i := range lines {
		if err := d.Decode(&lines[i]); err != nil {
			t.Fatal(err)
		}
	}
	if lines[0]["trace_id"] != trace.ID(ctx) || lines[0]["part"] != "x" || lines[1]["trace_id"] != nil {
		t.Errorf("lines %v", lines)
	}
}

// Without a tracer, a step costs no memory.
func TestNoTracerAllocatesNothing(t *testing.T) {
	var tracer *trace.Tracer
	ctx := context.WithValue(t.Context(), struct{}{}, 1)
	if n := testing.AllocsPerRun(100, func() {
		ctx, s := tracer.StartAt(tracer.Continue(ctx, "00-x"), "step", time.Time{})
		_, within := tracer.Within(ctx, "inner")
		s.Set("a", "b")
		s.SetInt("n", 1)
		s.Fail(trace.Parent(ctx))
		within.End()
		s.End()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	tracer.Close(ctx)
}

// The standard variables set what has no setting of ours.
func TestStandardVariables(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
	t.Setenv("OTEL_SERVICE_NAME", "postern-eu")
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	c := tracetest.Start(t)
	tracer, _ := start(t, c.URL)
	_, unsampled := tracer.Start(t.Context(), "unsampled")
	unsampled.End()
	_, sampled := tracer.Start(tracer.Continue(t.Context(),
		"00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"), "sampled")
	sampled.End()
	tracer.Close(t.Context())
	spans := c.Spans()
	if len(spans) != 1 || spans[0].Name != "sampled" || spans[0].Attributes["service.name"] != "postern-eu" {
		t.Errorf("the collector has %+v", spans)
	}
	if got := c.Header().Get("Authorization"); got != "Bearer abc" {
		t.Errorf("the collector got the authorization %q", got)
	}
}
