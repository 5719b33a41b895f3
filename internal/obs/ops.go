package obs

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Health says whether the server is ready for requests, and if not, why.
type Health struct {
	mu  sync.Mutex
	why string // "" when ready
}

// NewHealth returns a Health that is not ready yet.
func NewHealth() *Health { return &Health{why: "starting"} }

// Set makes the server ready if why is "", and otherwise not ready for that reason.
func (h *Health) Set(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.why = why
}

func (h *Health) reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why
}

// NewRegistry returns a registry with metrics of the Go runtime and the process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// OpsHandler serves /metrics, /healthz, /readyz and /debug/pprof. Serve it only on an
// address that operators alone can reach.
func OpsHandler(health *Health, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, "") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, health.reason()) })
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	return mux
}

func answer(w http.ResponseWriter, why string) {
	w.Header().Set("Content-Type", "application/json")
	status := "ok"
	if why != "" {
		status = why
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(w).Encode(map[string]string{"status": status}) //nolint:errcheck,gosec // the caller is gone
}

// Vitals contains some metrics of the process.
type Vitals struct {
	Started    time.Time
	Memory     int64 // resident, in bytes
	Goroutines int
}

// VitalsOf reads the vitals from gathered metrics. A missing metric is zero.
func VitalsOf(metrics prometheus.Gatherer) (v Vitals, err error) {
	families, err := metrics.Gather()
	for _, f := range families {
		if len(f.GetMetric()) == 0 {
			continue
		}
		value := f.GetMetric()[0].GetGauge().GetValue()
		switch f.GetName() {
		case "process_start_time_seconds":
			v.Started = time.UnixMilli(int64(value * 1000))
		case "process_resident_memory_bytes":
			v.Memory = int64(value)
		case "go_goroutines":
			v.Goroutines = int(value)
		}
	}
	return v, err
}
