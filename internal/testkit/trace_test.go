package testkit_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"postern/internal/db/dbtest"
	"postern/internal/postern"
	"postern/internal/testkit"
	"postern/internal/trace/tracetest"
)

const (
	callersTrace = "0123456789abcdef0123456789abcdef"
	callersSpan  = "0123456789abcdef"
)

// startTraced starts a server that sends its traces to a collector.
func startTraced(t *testing.T, database string) (*testkit.Kit, *tracetest.Collector) {
	t.Helper()
	collector := tracetest.Start(t)
	k := testkit.StartOn(t, database)
	k.Stop()
	k.Config.OTLPEndpoint = collector.URL
	k.Boot()
	return k, collector
}

// traced returns the spans of a trace, once all those that are named have arrived.
func traced(t *testing.T, c *tracetest.Collector, id string, names ...string) (list []tracetest.Span) {
	t.Helper()
	testkit.Eventually(t, "spans of the trace", func() (bool, any) {
		list = slices.DeleteFunc(c.Spans(), func(s tracetest.Span) bool { return s.Trace != id })
		missing := slices.Clone(names)
		for _, s := range list {
			if i := slices.Index(missing, s.Name); i >= 0 {
				missing = slices.Delete(missing, i, i+1)
			}
		}
		return len(missing) == 0, list
	})
	return list
}

// named returns the first span with a name.
func named(list []tracetest.Span, name string) tracetest.Span {
	i := slices.IndexFunc(list, func(s tracetest.Span) bool { return s.Name == name })
	return list[i]
}

// parentOf returns the trace and the span that a delivery names.
func parentOf(t *testing.T, d testkit.Delivery) (id, span string) {
	t.Helper()
	parts := strings.Split(d.Header.Get("Traceparent"), "-")
	if len(parts) != 4 {
		t.Fatalf("a %s came with traceparent %q", d.Type(), d.Header.Get("Traceparent"))
	}
	return parts[1], parts[2]
}

func onBoth(t *testing.T, f func(t *testing.T, database string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); f(t, "") })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); f(t, dbtest.URL(t)) })
}

// The request, the commit, the send and each attempt to deliver the events are one trace, that of the caller, and
// the receiver of the webhook can continue it. A retry after a restart belongs to it, too.
func TestTraceRunsFromTheRequestToTheWebhook(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database string) {
		k, collector := startTraced(t, database)
		c := k.Workspace("growth")
		hooks := c.Receive("message.sent")
		d := c.Link(phone)
		hooks.Down(500)
		a := c.Do("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": reader, "body": "a secret text"},
			"Traceparent", "00-"+callersTrace+"-"+callersSpan+"-01")
		if a.Status != 202 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		hooks.AwaitRefused(1)
		k.Stop()
		hooks.Down(0)
		k.Boot()
		delivery := hooks.Await(postern.MessageSent)[0]
		list := traced(t, collector, callersTrace, "POST /v1/messages", "commit", "send", "webhook attempt", "webhook attempt")
		request := named(list, "POST /v1/messages")
		if request.Parent != callersSpan {
			t.Errorf("the request is within %q, want the caller's span", request.Parent)
		}
		for _, s := range list {
			if s.Name != request.Name && s.Parent != request.ID {
				t.Errorf("%+v is not within the request", s)
			}
		}
		id, span := parentOf(t, delivery)
		attempt := slices.IndexFunc(list, func(s tracetest.Span) bool { return s.ID == span })
		if id != callersTrace || attempt < 0 || list[attempt].Attributes["delivery"] == "" {
			t.Errorf("the delivery names the span %q of the trace %q", span, id)
		}
		checkLog(t, k.Log.String(), "request", "message attempt", "webhook attempt")
		checkPrivate(t, collector)
	})
}

// checkLog checks that a line with each of these messages names the trace.
func checkLog(t *testing.T, log string, messages ...string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var l struct {
			Msg   string
			Trace string `json:"trace_id"`
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Trace == callersTrace {
			messages = slices.DeleteFunc(messages, func(m string) bool { return m == l.Msg })
		}
	}
	if len(messages) > 0 {
		t.Errorf("no line %q names the trace", messages)
	}
}

// checkPrivate checks that no span has a text or a number.
func checkPrivate(t *testing.T, c *tracetest.Collector) {
	t.Helper()
	text, err := json.Marshal(c.Spans())
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{"a secret text", strings.TrimPrefix(reader, "+"), strings.TrimPrefix(phone, "+"), "pst_"} {
		if strings.Contains(string(text), private) {
			t.Errorf("the spans contain %q: %s", private, text)
		}
	}
}

// The arrival at the socket, the commit and the attempt to deliver the event are one trace.
func TestTraceRunsFromTheSocketToTheWebhook(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, database string) {
		k, collector := startTraced(t, database)
		c := k.Workspace("growth")
		hooks := c.Receive("message.received")
		c.Link(phone)
		if _, err := k.Vendor.Send(t.Context(), phone, customer, "a secret text"); err != nil {
			t.Fatal(err)
		}
		id, _ := parentOf(t, hooks.Await(postern.MessageReceived)[0])
		list := traced(t, collector, id, "receive", "commit", "webhook attempt")
		receive := named(list, "receive")
		if receive.Parent != "" || named(list, "commit").Parent != receive.ID ||
			named(list, "webhook attempt").Parent != receive.ID {
			t.Errorf("spans %+v", list)
		}
		checkPrivate(t, collector)
	})
}

// Without a collector, nothing is traced: no header of a caller is continued, and none is sent.
func TestNothingIsTracedUnlessConfigured(t *testing.T) {
	t.Parallel()
	k := testkit.Start(t)
	c := k.Workspace("growth")
	hooks := c.Receive("message.sent")
	d := c.Link(phone)
	a := c.Do("POST", "/v1/messages", map[string]any{"deviceId": d.ID, "to": reader, "body": "out"},
		"Traceparent", "00-"+callersTrace+"-"+callersSpan+"-01")
	if a.Status != 202 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if got := hooks.Await(postern.MessageSent)[0].Header.Get("Traceparent"); got != "" {
		t.Errorf("the delivery has the traceparent %q", got)
	}
	if strings.Contains(k.Log.String(), "trace_id") {
		t.Error("the log names a trace")
	}
}
