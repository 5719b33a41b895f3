// Package webhook delivers events to webhook endpoints. It signs each delivery,
// retries it by a schedule and records every attempt. It also makes the handshake
// by which a new endpoint proves that it wants events.
//
// Each endpoint with work has a lane, a goroutine that reads due deliveries from
// the store and keeps a few attempts in flight. All lanes share one bound on the
// number of attempts, and each lane has one slot of its own, so that an endpoint
// that hangs does not delay the others. A lane without work ends; notifications of
// the store and timers start it again. All state that must survive a restart is in
// the store.
package webhook

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"postern/internal/egress"
	"postern/internal/lease"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/trace"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// Options configure [New]. DB, Client and Box are required.
type Options struct {
	DB         *store.Store
	Client     *egress.Client        // makes the POSTs
	Box        *seal.Box             // opens the endpoints' secrets
	Log        *slog.Logger          // nil discards all messages
	Version    string                // version of the program for the User-Agent header; "" means "dev"
	Registerer prometheus.Registerer // registers the metrics; nil exports none
	Drain      time.Duration         // how long Run waits for attempts in flight when it ends; 0 means 15 s
	Unfair     bool                  // disables the limit on first attempts of a workspace, for measurements
	Tracer     *trace.Tracer         // records the attempts; nil records nothing
	Leases     *lease.Holder         // say for which endpoints this server works; nil: for all
}

// Dispatcher makes the deliveries and handshakes of all endpoints. Servers that share a
// database divide the endpoints among themselves; see [lease.Holder].
type Dispatcher struct {
	db      *store.Store
	box     *seal.Box
	log     *slog.Logger
	agent   string
	drain   time.Duration
	metrics metrics
	slots   *shares  // attempts in flight, shared by all lanes
	bodies  *shares  // bytes of bodies in memory, shared by all lanes
	workers *workers // makes the attempts of all lanes
	fair    *fairUse // nil if first attempts are not limited
	post    poster
	jitter  func() float64
	leases  *lease.Holder
	tracer  *trace.Tracer
	now     func() postern.Time // by the database's clock: other servers read and write the same due times

	clockSaid rate.Sometimes // each lane notices that the clock was set back, and the log says it once
}

// poster makes one POST.
type poster func(ctx context.Context, tenant, url string, header http.Header, body []byte) (egress.Answer, error)

// New returns a dispatcher. It does nothing until [Dispatcher.Run] is called.
func New(opts Options) *Dispatcher {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Version == "" {
		opts.Version = "dev"
	}
	if opts.Drain == 0 {
		opts.Drain = drainTime
	}
	if opts.Leases == nil {
		opts.Leases = lease.Alone()
	}
	var fair *fairUse
	if !opts.Unfair {
		fair = newFairUse()
	}
	return &Dispatcher{
		fair: fair, db: opts.DB, box: opts.Box, log: opts.Log, agent: "Postern/" + opts.Version, drain: opts.Drain,
		metrics: newMetrics(opts.Registerer),
		slots:   newShares(sharedSlots),
		bodies:  newShares(sharedBytes),
		workers: newWorkers(),
		post:    hooked(opts.Client.Post),
		jitter:  rand.Float64,
		leases:  opts.Leases,
		tracer:  opts.Tracer,
		now:     opts.DB.Now,

		clockSaid: rate.Sometimes{Interval: time.Minute},
	}
}

// send signs a letter and posts it.
func (d *Dispatcher) send(ctx context.Context, e *postern.Endpoint, s *signer, l letter) (egress.Answer, error) {
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()
	header := s.header(l, d.agent, d.now().Std())
	if parent := trace.Parent(ctx); parent != "" {
		header["Traceparent"] = []string{parent}
	}
	return d.post(ctx, string(e.WorkspaceID), e.URL, header, l.body)
}

// until returns how long it is until at; 0 if at has passed.
func (d *Dispatcher) until(at postern.Time) time.Duration { return max(0, at.Std().Sub(d.now().Std())) }
