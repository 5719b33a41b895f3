// Package webhook delivers events to endpoints: signed, retried by a schedule,
// recorded attempt by attempt. It also asks a new endpoint to prove that it
// wants them.
//
// Each endpoint with work has a lane, which reads what is due from the store
// and has a few attempts in flight. Lanes share nothing but a bound on
// attempts, of which each has one for itself: an endpoint that hangs delays no
// other. A lane without work ends; wake-ups of the store and timers start it
// again. All that must outlive the process is in the store.
package webhook

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"postern/internal/egress"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"

	"github.com/prometheus/client_golang/prometheus"
)

// Options configure New.
type Options struct {
	DB         *store.Store
	Client     *egress.Client
	Box        *seal.Box             // opens the endpoints' secrets
	Log        *slog.Logger          // nil discards
	Version    string                // of the program, for User-Agent
	Registerer prometheus.Registerer // nil: nothing is exported
	Drain      time.Duration         // for attempts in flight when Run ends; 0: 15 s
	Unfair     bool                  // a workspace may make as many first attempts as it likes; for measurements
}

// Dispatcher makes the deliveries and handshakes of all endpoints. One process
// runs one of them.
type Dispatcher struct {
	db      *store.Store
	box     *seal.Box
	log     *slog.Logger
	agent   string
	drain   time.Duration
	metrics metrics
	slots   *slots   // shared by all lanes
	workers *workers // make their attempts
	fair    *fairUse // nil: none
	post    poster
	jitter  func() float64
}

// poster makes one POST.
type poster func(ctx context.Context, tenant, url string, header http.Header, body []byte) (egress.Answer, error)

// New makes a dispatcher; Run starts it.
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
	var fair *fairUse
	if !opts.Unfair {
		fair = newFairUse()
	}
	return &Dispatcher{
		fair: fair, db: opts.DB, box: opts.Box, log: opts.Log, agent: "Postern/" + opts.Version, drain: opts.Drain,
		metrics: newMetrics(opts.Registerer),
		slots:   newSlots(sharedSlots),
		workers: newWorkers(),
		post:    hooked(opts.Client.Post),
		jitter:  rand.Float64,
	}
}

// send signs and posts one letter.
func (d *Dispatcher) send(ctx context.Context, e *postern.Endpoint, s *signer, l letter) (egress.Answer, error) {
	d.metrics.inFlight.Inc()
	defer d.metrics.inFlight.Dec()
	return d.post(ctx, string(e.WorkspaceID), e.URL, s.header(e, l, d.agent, time.Now()), l.body)
}

func now() postern.Time { return postern.TimeOf(time.Now()) }

// until is how long to wait for a time.
func until(at postern.Time) time.Duration { return max(0, time.Until(at.Std())) }
