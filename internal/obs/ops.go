package obs

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"strings"
	"time"

	"postern/internal/health"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewRegistry returns a registry with metrics of the Go runtime and the process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// OwnHost serves only requests whose Host is this server's: the address at which the request
// arrived, localhost, the name of this machine, or the name in addr, the setting of the
// listener. All others get 421. A web page cannot reach the server through a name that its
// owner has pointed at this address (DNS rebinding).
func OwnHost(addr string, h http.Handler) http.Handler {
	names := map[string]bool{"localhost": true}
	if name, err := os.Hostname(); err == nil {
		names[strings.ToLower(name)] = true
	}
	if name, _, err := net.SplitHostPort(addr); err == nil && name != "" {
		names[strings.ToLower(name)] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := hostOf(r); !names[host] && !isLocal(r, host) {
			http.Error(w, "this server has another name; use its address or the name in POSTERN_OPS_ADDR",
				http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// hostOf is the host that a request names, without the port, in lower case.
func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// isLocal tells whether a host is the address at which the request arrived.
func isLocal(r *http.Request, host string) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	ip, err := netip.ParseAddr(host)
	return ok && err == nil && local.AddrPort().Addr().Unmap().WithZone("") == ip.Unmap()
}

// WarnIfPublic logs a warning if the operations listener can be reached from outside of this
// machine and of private networks, as far as its address says.
func WarnIfPublic(ctx context.Context, log *slog.Logger, addr net.Addr) {
	if tcp, ok := addr.(*net.TCPAddr); ok && isPublic(tcp.AddrPort().Addr().Unmap()) {
		log.WarnContext(ctx, "POSTERN_OPS_ADDR can be reached from other networks: metrics and profiles need no "+
			"sign-in, so use an address of a private network or block the port", "addr", addr.String())
	}
}

func isPublic(ip netip.Addr) bool {
	return ip.IsUnspecified() || ip.IsGlobalUnicast() && !ip.IsPrivate()
}

// OpsHandler serves /metrics, /healthz, /readyz and /debug/pprof. Serve it only on an
// address that operators alone can reach, behind [OwnHost]. /readyz responds with what report
// returns, and with status 503 unless the server is ready.
func OpsHandler(report func() health.Report, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, health.Report{Status: health.Ready}) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, report()) })
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	return mux
}

func answer(w http.ResponseWriter, r health.Report) {
	w.Header().Set("Content-Type", "application/json")
	if r.Status != health.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(w).Encode(r) //nolint:errcheck,gosec // the caller is gone
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
