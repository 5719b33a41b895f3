package bench

import (
	"context"
	"flag"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/store/storetest"
)

var beside = flag.String("beside", "", "let a neighbour suffer only from the attacks whose names contain this")

const (
	watchedFor     = 15 * time.Second // each quiet and each loud sample
	usageEach      = 20 * time.Millisecond
	inboundEach    = 50 * time.Millisecond
	attackerOwns   = 300_000 // messages
	attackerTexts  = 200     // of 64 KiB, the newest ones
	memoryAllowed  = 250 * 1000
	usageAllowed   = 3
	receiptAllowed = 2
)

// street is a gateway in a process of its own, in which a workspace on Starter attacks
// while a neighbour works. The attacker has a process of its own too; see [street.suffer].
// So has the simulated network.
type street struct {
	*fleetOf
	attacker, neighbour tenant
	arrived             chan time.Duration // from the commit of the neighbour's events to their receipt
	style               string             // the path of a static file
	browser             *http.Client       // signed in to the attacker's workspace
	worked              atomic.Int64       // requests of an attack that had their effect; in the attacker's process
}

// tenant is a workspace with a device.
type tenant struct{ Workspace, Key, Device, Number string }

// neighbour measures what a neighbour of a misbehaving workspace notices, and the memory
// that the workspace takes, on both engines.
func neighbour(t *testing.T) (list []figure) {
	for _, engine := range engines(t) {
		s := newStreet(t, engine.url(t))
		idle := s.resident()
		for _, a := range attacks() {
			if !strings.Contains(a.name, *beside) {
				continue
			}
			usage := figure{
				name: "p99 of a neighbour's GET /v1/usage on " + engine.name + " beside " + a.name, unit: "µs",
				ceiling: usageAllowed, extra: "bare: nobody attacks",
			}
			receipt := figure{
				name: "p99 from commit to receipt on " + engine.name + " beside " + a.name, unit: "µs",
				ceiling: receiptAllowed, extra: "20 events/s; bare: nobody attacks",
			}
			memory := figure{
				name: "resident memory above idle on " + engine.name + " beside " + a.name, unit: "kB", ceiling: 1,
				extra: "the highest; bare: what is allowed",
			}
			for range rounds {
				quiet := s.sample("")
				loud := s.sample(a.name)
				usage.bare, usage.ours = append(usage.bare, quiet.usage), append(usage.ours, loud.usage)
				receipt.bare, receipt.ours = append(receipt.bare, quiet.receipt), append(receipt.ours, loud.receipt)
				memory.bare, memory.ours = append(memory.bare, memoryAllowed), append(memory.ours, loud.memory-idle)
			}
			list = append(list, usage, receipt, memory)
		}
		s.kill()
	}
	return list
}

func newStreet(t *testing.T, database string) *street {
	t.Helper()
	f := newFleet(t, lowest...)
	f.prefix = lower
	f.useDatabase(database)
	f.boot()
	s := &street{fleetOf: f, arrived: make(chan time.Duration, 10_000)}
	s.attacker, s.neighbour = s.settle("starter", "+15550000001"), s.settle("enterprise", "+15550000002")
	s.receive(s.neighbour.Key, s.note)
	s.crowd(database)
	s.signIn()
	return s
}

// settle makes a workspace with a connected device.
func (s *street) settle(plan, number string) (one tenant) {
	s.t.Helper()
	one.Workspace = regexp.MustCompile(`ws_[0-9A-Z]+`).
		FindString(s.postern("workspace", "create", "--name", plan, "--plan", plan))
	one.Key = regexp.MustCompile(`pst_[0-9A-Za-z]+`).
		FindString(s.postern("key", "create", "--workspace", one.Workspace, "--name", "x"))
	var d struct{ ID, Status string }
	s.call("POST", s.url+"/v1/devices", one.Key, map[string]string{"name": "d"}, &d)
	one.Device, one.Number = d.ID, number
	s.link(one.Key, d.ID, number)
	for d.Status != "connected" {
		<-time.After(lookEach)
		s.call("GET", s.url+"/v1/devices/"+d.ID, one.Key, nil, &d)
	}
	return one
}

// note records how long an event of the neighbour was under way.
func (s *street) note(_ http.ResponseWriter, r *http.Request) {
	s.arrived <- time.Since(eventOf(r).Timestamp)
}

// crowd gives the attacker many messages, of which the newest are long.
func (s *street) crowd(database string) {
	s.t.Helper()
	table := storetest.OpenTable(s.t, filepath.Join(s.dir, "data"), database)
	copies := func(letter string, n int) {
		table.Multiply("message", "n", map[string]string{
			"id": "'msg_" + letter + "' || CAST(i AS TEXT)", "network_id": "'" + letter + "' || CAST(i AS TEXT)",
		}, n)
	}
	s.arrive(s.attacker, "short")
	copies("S", attackerOwns)
	s.arrive(s.attacker, strings.Repeat("x", 64<<10))
	copies("L", attackerTexts)
}

// arrive lets a message arrive, and waits until it is stored.
func (s *street) arrive(one tenant, text string) {
	s.t.Helper()
	s.inbound(one.Number, text)
	for {
		var list struct{ Data []struct{ Body string } }
		s.call("GET", s.url+"/v1/messages?limit=1", one.Key, nil, &list)
		if len(list.Data) == 1 && list.Data[0].Body == text {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
}

// signIn makes an owner of the attacker's workspace, with a browser.
func (s *street) signIn() {
	s.t.Helper()
	made := s.postern("user", "create", "--workspace", s.attacker.Workspace, "--email", "eve@example.com",
		"--role", "owner")
	path := regexp.MustCompile(`/join/[0-9A-Za-z_-]{43}`).FindString(made)
	s.browser = newBrowser()
	s.post(path, url.Values{"password": {"four plain words here"}})
	s.style = regexp.MustCompile(`/assets/app-[0-9a-z]+\.css`).FindString(s.page("/signin"))
}

// heard is what was measured in one sample.
type heard struct{ usage, receipt, memory float64 }

// sample measures the neighbour while an attack runs.
func (s *street) sample(attack string) (h heard) {
	ctx, stop := context.WithTimeout(s.t.Context(), watchedFor)
	defer stop()
	var group sync.WaitGroup
	if attack != "" {
		group.Go(func() { s.suffer(ctx, attack) })
	}
	var usage, receipts []float64
	group.Go(func() { usage = s.watchUsage(ctx) })
	group.Go(func() { receipts = s.watchReceipts(ctx) })
	group.Go(func() {
		for ctx.Err() == nil {
			h.memory = max(h.memory, s.residentNow())
			<-time.After(50 * time.Millisecond)
		}
	})
	group.Wait()
	h.usage, h.receipt = p99(usage), p99(receipts)
	return h
}

func (s *street) watchUsage(ctx context.Context) (took []float64) {
	every(ctx, usageEach, func() {
		var none map[string]any
		at := time.Now()
		s.call("GET", s.url+"/v1/usage", s.neighbour.Key, nil, &none)
		took = append(took, float64(time.Since(at).Microseconds()))
	})
	return took
}

func (s *street) watchReceipts(ctx context.Context) (took []float64) {
	sent := 0
	every(ctx, inboundEach, func() { s.inbound(s.neighbour.Number, "hello"); sent++ })
	for range sent {
		took = append(took, float64((<-s.arrived).Microseconds()))
	}
	return took
}

// every calls f at fixed times until the end of ctx.
func every(ctx context.Context, gap time.Duration, f func()) {
	tick := time.NewTicker(gap)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}

func p99(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)*99/100]
}

// requests lets through what the plan of the attacker allows: a burst of one minute's
// requests, and then as many per minute.
func requests(ctx context.Context) <-chan struct{} {
	const perMinute = 300
	c := make(chan struct{}, perMinute)
	for range perMinute {
		c <- struct{}{}
	}
	go every(ctx, time.Minute/perMinute, func() {
		select {
		case c <- struct{}{}:
		default:
		}
	})
	return c
}

// atPlanRate calls f at the rate of a plan from several goroutines, until the end of ctx.
func atPlanRate(ctx context.Context, goroutines int, f func(i int)) {
	allowed := requests(ctx)
	var group sync.WaitGroup
	for i := range goroutines {
		group.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-allowed:
					f(i)
				}
			}
		})
	}
	group.Wait()
}
