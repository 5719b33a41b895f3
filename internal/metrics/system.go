package metrics

import (
	"context"
	"sync"
	"time"

	"postern/internal/health"
	"postern/internal/postern"
	"postern/internal/store"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// fresh is how long the figures of the database are used again, so that frequent scrapes do not load it.
	fresh = 10 * time.Second
	// patience is how long a scrape waits for the database.
	patience = 3 * time.Second
)

// Source is where figures come from that are read when they are asked for.
type Source struct {
	System func(ctx context.Context) (store.SystemStatus, error)
	Health func() health.Report
	Disk   func() (free int64, err error) // of the data directory, in bytes
	Store  func() store.Figures
}

// System collects the state of the whole installation: of servers that share a database, each reports the
// same.
type System struct {
	source Source

	mu   sync.Mutex
	last store.SystemStatus
	at   time.Time
}

// Watch registers the figures of the system.
func Watch(r prometheus.Registerer, s Source) { r.MustRegister(&System{source: s}) }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("postern_"+name, help, labels, nil)
}

// The descriptions.
//
//nolint:gochecknoglobals // constants
var (
	ready   = desc("ready", "1 if the server can do its work, and 0 if not; see postern_problem.")
	problem = desc("problem", "1 for each reason for which the server is not ready, or works only in part.", "check",
		"reason")
	disk    = desc("disk_free_bytes", "Free space on the file system of the data directory.")
	devices = desc("devices", "Devices, by status. Of the whole database.", "status")
	queued  = desc("queued_messages", "Messages that wait to be sent, counted up to 10,000. Of the whole database.")
	sending = desc("sending_messages", "Messages whose outcome on the network is open, counted up to 10,000. Of the "+
		"whole database.")
	pending = desc("webhook_pending_deliveries", "Deliveries that wait, those of failing and paused endpoints "+
		"included, counted up to 20,000. Of the whole database.")
	due = desc("webhook_due_deliveries", "Deliveries that an active endpoint should have by now. Of the whole "+
		"database.")
	lag    = desc("webhook_lag_seconds", "How long the oldest delivery that is due has been due. Of the whole database.")
	oldest = desc("queue_oldest_seconds", "How long the oldest message that is not scheduled has waited, of the first "+
		"10,000. Of the whole database.")
	size    = desc("database_size_bytes", "Size of the database.")
	waiting = desc("store_waiting_reads", "Reads that wait for a connection or a processor until it is their "+
		"workspace's turn.")
	waits = desc("store_read_waits_total", "Reads that had to wait for a connection of the pool.")
	log   = desc("store_log_size_bytes", "Size of the file of SQLite's write-ahead log; 0 with PostgreSQL.")
	cache = desc("device_cache_reads_total", "Reads of devices, by result: hit or miss. Without reads with "+
		"PostgreSQL, where nothing is cached.", "result")
	nodes = desc("servers", "Servers that share the database; 0 if one has it alone.")
)

// Describe sends the descriptions.
func (s *System) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{ready, problem, disk, devices, queued, sending, pending, due, lag, oldest, size,
		nodes, waiting, waits, log, cache} {
		ch <- d
	}
}

// Collect sends the figures. Without an answer of the database, those from it are missing.
func (s *System) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	report := s.source.Health()
	gauge(ready, boolean(report.Status == health.Ready))
	for _, list := range [][]health.Problem{report.Problems, report.Warnings} {
		for _, p := range list {
			gauge(problem, 1, p.Check, p.Reason)
		}
	}
	if free, err := s.source.Disk(); err == nil {
		gauge(disk, float64(free))
	}
	collectStore(s.source.Store(), ch)
	if status, at, ok := s.read(); ok {
		collect(status, at, gauge)
	}
}

// collectStore sends the figures of the store in this process.
func collectStore(f store.Figures, ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, float64(value), labels...)
	}
	send(waiting, prometheus.GaugeValue, f.Waiting)
	send(waits, prometheus.CounterValue, f.Waits)
	send(log, prometheus.GaugeValue, f.Log)
	send(cache, prometheus.CounterValue, f.CacheHits, "hit")
	send(cache, prometheus.CounterValue, f.CacheMisses, "miss")
}

// collect sends the figures of the database as they were when it was read: what waited then may be done now.
func collect(st store.SystemStatus, read time.Time, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	for _, status := range postern.Statuses() {
		gauge(devices, float64(st.Devices[status]), string(status))
	}
	gauge(queued, float64(st.Queued))
	gauge(sending, float64(st.Sending))
	gauge(pending, float64(st.Waiting))
	gauge(due, float64(st.Due))
	gauge(lag, age(st.OldestDue, read))
	gauge(oldest, age(st.OldestQueued, read))
	gauge(size, float64(st.Size))
	gauge(nodes, float64(st.Servers))
}

// since returns the seconds from t until now, or 0 if t is zero.
func since(t postern.Time) float64 { return age(t, time.Now()) }

// age returns the seconds from t until now, or 0 if t is zero or later than now.
func age(t postern.Time, now time.Time) float64 {
	if t == 0 {
		return 0
	}
	return max(0, now.Sub(t.Std()).Seconds())
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// read returns figures that are at most [fresh] old.
func (s *System) read() (store.SystemStatus, time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < fresh {
		return s.last, s.at, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	status, err := s.source.System(ctx)
	if err != nil {
		return status, s.at, false
	}
	s.last, s.at = status, time.Now()
	return status, s.at, true
}
