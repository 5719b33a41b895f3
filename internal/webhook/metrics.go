package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	attempts   *prometheus.CounterVec // by outcome
	handshakes *prometheus.CounterVec // by outcome
	duration   prometheus.Histogram
	wait       prometheus.Histogram
	inFlight   prometheus.Gauge
	lanes      prometheus.Gauge
	fairWaits  prometheus.Counter
}

func newMetrics(r prometheus.Registerer) metrics {
	f := promauto.With(r)
	buckets := []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30, 60}
	return metrics{
		attempts: f.NewCounterVec(prometheus.CounterOpts{
			Name: "postern_webhook_attempts_total", Help: "Attempts to deliver, by outcome.",
		}, []string{"outcome"}),
		handshakes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "postern_webhook_handshakes_total", Help: "Tries to verify an endpoint, by outcome.",
		}, []string{"outcome"}),
		duration: f.NewHistogram(prometheus.HistogramOpts{
			Name: "postern_webhook_attempt_seconds", Help: "Duration of an attempt.", Buckets: buckets,
		}),
		wait: f.NewHistogram(prometheus.HistogramOpts{
			Name: "postern_webhook_first_attempt_delay_seconds",
			Help: "Time from the event to the begin of its first attempt.", Buckets: buckets,
		}),
		inFlight: f.NewGauge(prometheus.GaugeOpts{
			Name: "postern_webhook_in_flight", Help: "Attempts in flight.",
		}),
		fairWaits: f.NewCounter(prometheus.CounterOpts{
			Name: "postern_webhook_fair_use_waits_total",
			Help: "How often a lane waited because its workspace had used up its first attempts.",
		}),
		lanes: f.NewGauge(prometheus.GaugeOpts{
			Name: "postern_webhook_lanes", Help: "Endpoints that are being worked for.",
		}),
	}
}

// outcome returns the value of the label "outcome": the reason of a failure, or
// "success" if the reason is "".
func outcome(reason string) string {
	if reason == "" {
		return "success"
	}
	return reason
}
