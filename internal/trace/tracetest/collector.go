// Package tracetest is a collector of traces for tests: an HTTP server that takes OTLP.
package tracetest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	proto3 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as the collector got it.
type Span struct {
	Trace, ID, Parent string // in hex; Parent is "" for the first span of a trace
	Name              string
	Failed            string // why; "" if it did not fail
	Attributes        map[string]string
	Start, End        uint64 // nanoseconds of the Unix clock
}

// Collector takes traces. Its methods may be called from many goroutines.
type Collector struct {
	URL string

	mu    sync.Mutex // guards the fields below
	spans []Span
	last  http.Header
	gate  func() int // returns the status of a response
}

// Start starts a collector, which ends with the test.
func Start(tb testing.TB) *Collector {
	tb.Helper()
	c := &Collector{gate: func() int { return http.StatusOK }}
	s := httptest.NewServer(http.HandlerFunc(c.take))
	tb.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// Answer makes the collector respond with what gate returns, once it does. Only what is answered with 200 is
// taken.
func (c *Collector) Answer(gate func() int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gate = gate
}

// Spans returns what was taken so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Header returns the header of the last request whose spans were taken.
func (c *Collector) Header() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	gate := c.gate
	c.mu.Unlock()
	if status := gate(); status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	batch, err := read(r)
	if err != nil || r.URL.Path != "/v1/traces" || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = r.Header
	for _, resource := range batch.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(s, resource.GetResource().GetAttributes()))
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func read(r *http.Request) (*collector.ExportTraceServiceRequest, error) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		body = unzipped
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	batch := &collector.ExportTraceServiceRequest{}
	return batch, proto.Unmarshal(b, batch)
}

// spanOf reads a span. It has the attributes of its resource, too.
func spanOf(s *proto3.Span, resource []*common.KeyValue) Span {
	got := Span{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
		Parent: hex.EncodeToString(s.GetParentSpanId()), Name: s.GetName(), Attributes: map[string]string{},
		Start: s.GetStartTimeUnixNano(), End: s.GetEndTimeUnixNano(),
	}
	if s.GetStatus().GetCode() == proto3.Status_STATUS_CODE_ERROR {
		got.Failed = s.GetStatus().GetMessage()
	}
	for _, a := range append(resource, s.GetAttributes()...) {
		got.Attributes[a.GetKey()] = textOf(a.GetValue())
	}
	return got
}

func textOf(v *common.AnyValue) string {
	if text, is := v.GetValue().(*common.AnyValue_StringValue); is {
		return text.StringValue
	}
	return v.String()
}
