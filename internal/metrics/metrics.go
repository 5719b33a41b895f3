// Package metrics counts for operators what the server does. Its labels are bounded: none is an id, except that
// of the workspace in metrics that the operator has switched on.
package metrics

import (
	"runtime"
	"slices"
	"time"

	"postern/internal/postern"
	"postern/internal/store"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts what it is told. Its methods may be called from many goroutines.
type Metrics struct {
	messages  *prometheus.CounterVec // by direction, kind and status
	toSent    prometheus.Histogram
	received  prometheus.Histogram
	delivered prometheus.Histogram
	events    *prometheus.CounterVec // by type
	sessions  prometheus.Gauge
	states    *prometheus.CounterVec // by status and reason
	links     *prometheus.CounterVec // by outcome
	requests  *prometheus.HistogramVec
	refusals  *prometheus.CounterVec // by reason
	commits   prometheus.Histogram
	groups    prometheus.Histogram

	reasons    bounded
	workspaces *workspaces // nil: nothing is counted per workspace
}

// seconds are the buckets of what takes from a millisecond to minutes.
func seconds() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
}

// Options configure [New].
type Options struct {
	Version    string // of the program
	Workspaces bool   // counts per workspace, too
}

// New registers the metrics of a server.
func New(r prometheus.Registerer, opts Options) *Metrics {
	f := promauto.With(r)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "postern_build_info", Help: "1, with the version of the program and of Go.",
		ConstLabels: prometheus.Labels{"version": opts.Version, "go": runtime.Version()},
	}, func() float64 { return 1 })
	m := &Metrics{reasons: newBounded(maxReasons)}
	if opts.Workspaces {
		m.workspaces = newWorkspaces(f)
	}
	m.countWork(f)
	m.countServer(f)
	return m
}

// countWork registers what the server does for workspaces.
func (m *Metrics) countWork(f promauto.Factory) {
	m.messages = f.NewCounterVec(prometheus.CounterOpts{
		Name: "postern_messages_total", Help: "Messages that came to a status, by direction, kind and status.",
	}, []string{"direction", "kind", "status"})
	m.toSent = f.NewHistogram(prometheus.HistogramOpts{
		Name: "postern_message_sent_seconds", Buckets: seconds(),
		Help: "Time from the request, or the time that a message is scheduled for, until the network has the message.",
	})
	m.received = f.NewHistogram(prometheus.HistogramOpts{
		Name: "postern_message_received_seconds", Buckets: seconds()[:13],
		Help: "Time from when a message is read from the socket until it is on disk.",
	})
	m.delivered = f.NewHistogram(prometheus.HistogramOpts{
		Name: "postern_message_delivered_seconds", Buckets: seconds(),
		Help: "Time from when the network has a message until it is delivered to the recipient.",
	})
	m.events = f.NewCounterVec(prometheus.CounterOpts{
		Name: "postern_events_total", Help: "Events that were recorded, by type.",
	}, []string{"type"})
	m.sessions = f.NewGauge(prometheus.GaugeOpts{
		Name: "postern_sessions", Help: "Live connections to the network. A device has one, on one of the servers.",
	})
	m.states = f.NewCounterVec(prometheus.CounterOpts{
		Name: "postern_device_state_changes_total", Help: "Changes of the states of devices, by the new status and " +
			"its reason.",
	}, []string{"status", "reason"})
	m.links = f.NewCounterVec(prometheus.CounterOpts{
		Name: "postern_link_attempts_total", Help: "Link attempts that have ended, by outcome.",
	}, []string{"outcome"})
}

// countServer registers what the server needs for it.
func (m *Metrics) countServer(f promauto.Factory) {
	m.requests = f.NewHistogramVec(prometheus.HistogramOpts{
		Name: "postern_http_request_seconds", Buckets: []float64{.005, .025, .1, .5, 2.5, 10},
		Help: "Duration of HTTP requests, by method, route and status. A stream counts when it ends.",
	}, []string{"method", "route", "status"})
	m.refusals = f.NewCounterVec(prometheus.CounterOpts{
		Name: "postern_http_refusals_total",
		Help: "Requests that were refused, by reason. Those with the reason rate-limited were throttled.",
	}, []string{"reason"})
	m.commits = f.NewHistogram(prometheus.HistogramOpts{
		Name: "postern_store_commit_seconds", Buckets: seconds()[:13],
		Help: "Time that a group of writes takes, until it is on disk.",
	})
	m.groups = f.NewHistogram(prometheus.HistogramOpts{
		Name: "postern_store_group_writes", Help: "Writes that share a commit.", Buckets: []float64{1, 2, 4, 8, 16, 32,
			64, 128, 256},
	})
}

// Changed counts a change of the store; see [store.Options].
func (m *Metrics) Changed(change any) {
	switch c := change.(type) {
	case store.MessageMoved:
		m.moved(c)
	case store.EventsRecorded:
		c.Each(func(e *postern.Event) {
			m.events.WithLabelValues(string(e.Type)).Inc()
			m.workspaces.recorded(e)
		})
	case store.DeviceMoved:
		m.states.WithLabelValues(string(c.Status), m.reasons.of(c.Reason)).Inc()
	case store.LinkEnded:
		m.links.WithLabelValues(string(c.Status)).Inc()
	}
}

func (m *Metrics) moved(c store.MessageMoved) {
	msg := c.Message
	statuses := []postern.MessageStatus{msg.Status}
	if msg.Direction == postern.Outbound {
		statuses = passed(c.From, msg.Status)
	}
	for _, status := range statuses {
		m.messages.WithLabelValues(msg.Direction, string(msg.Content.Kind), string(status)).Inc()
		m.workspaces.moved(msg, status)
		if msg.Direction != postern.Outbound || msg.Source != postern.FromAPI {
			continue
		}
		switch status {
		case postern.Sent:
			m.toSent.Observe(since(max(msg.CreatedAt, msg.SendAt)))
		case postern.Delivered:
			m.delivered.Observe(since(msg.SentAt))
		}
	}
}

// way are the statuses of a message that arrives, in their order. It may pass several at once: a receipt can
// overtake what the network says about the sending.
var way = []postern.MessageStatus{postern.Sent, postern.Delivered, postern.Read,
	postern.Played} //nolint:gochecknoglobals // a constant

// passed are the statuses that an outbound message comes to when it changes from one status to another.
func passed(from, to postern.MessageStatus) []postern.MessageStatus {
	end := slices.Index(way, to)
	if end < 0 || to == postern.Played && from != postern.Read { // what was played need not have been read
		return []postern.MessageStatus{to}
	}
	return way[min(slices.Index(way, from)+1, end) : end+1]
}

// Received counts a message that arrived and is on disk.
func (m *Metrics) Received(took time.Duration) { m.received.Observe(took.Seconds()) }

// Live counts that sessions have become live, or have ended.
func (m *Metrics) Live(change int) { m.sessions.Add(float64(change)) }

// Requested counts an HTTP request.
func (m *Metrics) Requested(method, route string, status int, reason string, took time.Duration) {
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(method, route, statusText(status)).Observe(took.Seconds())
	if reason != "" {
		m.refusals.WithLabelValues(m.reasons.of(reason)).Inc()
	}
}

// statusText is a status as text; requests that were broken off have none.
func statusText(status int) string {
	if status < 100 || status > 599 {
		return "none"
	}
	return string([]byte{byte('0' + status/100), byte('0' + status/10%10),
		byte('0' + status%10)}) //nolint:gosec // digits
}

// Committed counts a group of writes.
func (m *Metrics) Committed(writes int, took time.Duration) {
	m.commits.Observe(took.Seconds())
	m.groups.Observe(float64(writes))
}
