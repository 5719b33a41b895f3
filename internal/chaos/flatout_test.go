package chaos_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/chaos"
)

var flatOut = flag.Int("flatout", 5, "how often to kill the gateway while it delivers at full speed")

const (
	heapSize = 2000 // messages in a backlog
	mostSeen = 500  // POSTs from a start to the kill after it
	low      = 700  // left for one endpoint: it is time for another heap. That of three is far more than mostSeen
	lateness = 20 * time.Millisecond
	vainly   = 10 // kills that may meet nothing in flight, and one in this many more
)

// delivering is a world that delivers a backlog to several endpoints at full speed.
type delivering struct {
	*world
	targets   *targets
	endpoints []chaos.Endpoint
	random    *rand.Rand

	written int // messages
	heaps   int // that they came in
	kills   []chaos.Tally
	met     int    // how many kills met attempts in flight
	memory  memory // the most at any kill
}

// TestDeliveriesFlatOutSurviveSIGKILL kills the gateway at random moments while it
// delivers a backlog as fast as it can, each time with attempts in flight.
func TestDeliveriesFlatOutSurviveSIGKILL(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	d := newDelivering(t, options{Bin: bin, Devices: 5, Room: 1, Seed: seedOrClock()})
	d.killInFlight(*flatOut)
	d.finish()
	e := d.evidence()
	t.Log(d.summary(e))
	d.report(chaos.JudgeFlatOut(e))
}

func newDelivering(t *testing.T, opts options) *delivering {
	t.Helper()
	w := newGateway(t, opts)
	d := &delivering{world: w, targets: startTargets(t, opts.Seed), random: rand.New(rand.NewPCG(opts.Seed, 2))}
	d.endpoint("/wide", chaos.Endpoint{MaxInFlight: 64})
	d.endpoint("/narrow", chaos.Endpoint{MaxInFlight: 8, Types: []string{"message.received"}})
	d.endpoint(shaky, chaos.Endpoint{MaxInFlight: 16})
	d.linkAll()
	t.Cleanup(d.keep)
	return d
}

func (d *delivering) endpoint(path string, e chaos.Endpoint) {
	d.t.Helper()
	settings := map[string]any{"url": d.targets.url + path, "maxInFlight": e.MaxInFlight}
	if e.Types != nil {
		settings["events"] = e.Types
	}
	e.ID = d.subscribe(settings)
	d.targets.named(path, e.ID)
	d.endpoints = append(d.endpoints, e)
}

// keep stores the received POSTs with the other files of a failed test.
func (d *delivering) keep() {
	if !d.t.Failed() {
		return
	}
	posts, _ := d.targets.all()
	text, err := json.Marshal(posts)
	if err == nil {
		err = os.WriteFile(filepath.Join(d.dir, "posts.json"), text, 0o600)
	}
	if err != nil {
		d.t.Error(err)
	}
}

// killInFlight kills the gateway until enough kills have met attempts in flight, and
// leaves it running.
func (d *delivering) killInFlight(enough int) {
	d.t.Helper()
	d.heap()
	for d.met < enough && len(d.kills)-d.met < vainly+enough/vainly && !d.t.Failed() {
		left := d.killOnce()
		if d.kills[len(d.kills)-1].Sum() > 0 {
			d.met++
		} else {
			d.t.Logf("kill %d met no attempt on its way; %d or more wait for each endpoint", len(d.kills)-1, left)
		}
		d.boot()
		if d.met < enough && left < low {
			d.heap()
		}
	}
}

// heap makes a backlog: it pauses the endpoints, lets contacts write, and resumes the
// endpoints when everything is in the log.
func (d *delivering) heap() {
	d.t.Helper()
	d.tellAll("pause")
	var writing sync.WaitGroup
	for i, dev := range d.devices {
		writing.Go(func() { d.contact(dev, i) })
	}
	writing.Wait()
	d.written, d.heaps = d.written+heapSize, d.heaps+1
	d.await("all messages to be received", func() bool { return d.queued() == 0 })
	d.targets.mark()
	d.tellAll("resume")
	for _, e := range d.endpoints {
		d.awaitActive(e.ID)
	}
	if d.t.Failed() {
		d.t.FailNow()
	}
}

func (d *delivering) tellAll(verb string) {
	for _, e := range d.endpoints {
		d.api("POST", "/v1/webhooks/"+e.ID+"/"+verb, nil, nil)
	}
}

// contact writes one device's share of a heap.
func (d *delivering) contact(to device, from int) {
	for n := range heapSize / len(d.devices) {
		in := map[string]string{
			"to": to.number, "from": fmt.Sprintf("+1555888%04d", from), "type": "text",
			"body": fmt.Sprintf("message %d of heap %d", n, d.heaps),
		}
		if err := d.vendor.ask("POST", "/inbound", in, nil); err != nil {
			d.t.Error(err)
			return
		}
	}
}

// killOnce kills the gateway at a random moment, records which attempts were in flight,
// and returns how many first attempts are left for the endpoint with the fewest.
func (d *delivering) killOnce() (left int) {
	d.t.Helper()
	d.flow(1 + d.random.IntN(mostSeen))
	<-time.After(time.Duration(d.random.Int64N(int64(lateness))))
	d.memory = d.memory.or(d.gateway.running().memory(d.t))
	d.kill()
	posts := d.endLife(d.targets)
	pending, err := chaos.ReadPending(d.t.Context(), d.gateway.dir, d.url)
	if err != nil {
		d.t.Fatal(err)
	}
	d.kills = append(d.kills, chaos.Unrecorded(posts, pending))
	return d.leastWaiting(pending)
}

// flow waits until a number of POSTs has arrived from the running gateway.
func (d *delivering) flow(posts int) {
	d.t.Helper()
	select {
	case <-d.targets.after(posts):
	case <-d.gateway.running().ended:
		d.t.Fatalf("seed %d: the gateway ended: %v; see %s", d.opts.Seed, d.gateway.running().err, d.gateway.log.Name())
	case <-time.After(patience(d.t)):
		d.t.Fatalf("seed %d: fewer than %d posts came", d.opts.Seed, posts)
	}
}

// leastWaiting counts the waiting first attempts of the endpoint with the fewest.
func (d *delivering) leastWaiting(pending []chaos.Delivery) int {
	waiting := map[string]int{}
	for _, e := range d.endpoints {
		waiting[e.ID] = 0
	}
	for _, p := range pending {
		if p.Attempts == 0 {
			waiting[p.Endpoint]++
		}
	}
	return slices.Min(slices.Collect(maps.Values(waiting)))
}

// finish waits until nothing is pending and stops the gateway.
func (d *delivering) finish() {
	d.t.Helper()
	d.await("the end of all deliveries", d.delivered)
	d.memory = d.memory.or(d.gateway.running().memory(d.t))
	if err := d.gateway.running().stop(patience(d.t)); err != nil {
		d.t.Errorf("the gateway's last stop: %v", err)
	}
}

// delivered reports whether nothing is pending for any endpoint.
func (d *delivering) delivered() bool {
	for _, e := range d.endpoints {
		var list struct{ Data []json.RawMessage }
		d.api("GET", "/v1/webhooks/"+e.ID+"/deliveries?limit=1&status=pending", nil, &list)
		if len(list.Data) > 0 {
			return false
		}
	}
	return true
}

func (d *delivering) evidence() chaos.FlatOut {
	d.t.Helper()
	posts, retries := d.targets.all()
	state, err := chaos.ReadState(d.t.Context(), d.gateway.dir, d.url, "")
	if err != nil {
		d.t.Fatal(err)
	}
	if d.met < *flatOut || len(state.Events) < d.written || retries == 0 && len(d.kills) > 3 {
		d.t.Errorf(
			"seed %d: the run proves little: %d kills met attempts on their way, %d events of %d messages, %d retries",
			d.opts.Seed, d.met, len(state.Events), d.written, retries)
	}
	return chaos.FlatOut{Endpoints: d.endpoints, Posts: posts, Kills: d.kills, State: state}
}

// summary says how much work the run did, and what the kills cost.
func (d *delivering) summary(e chaos.FlatOut) string {
	var s strings.Builder
	repeats, all := e.Repeats(), 0
	for _, again := range repeats {
		all += again.Sum()
	}
	fmt.Fprintf(&s,
		"seed %d: %d kills, %d of them with attempts on their way; %d events in %d heaps, %d deliveries, %d posts\n%d repeated",
		d.opts.Seed, len(e.Kills), d.met, len(e.State.Events), d.heaps, len(e.State.Deliveries), len(e.Posts), all)
	for _, endpoint := range d.endpoints {
		var each []int
		for i := range e.Kills {
			each = append(each, repeats[i][endpoint.ID])
		}
		slices.Sort(each)
		fmt.Fprintf(&s, "; %d in flight: median %d, most %d, bound %d", endpoint.MaxInFlight, each[len(each)/2],
			each[len(each)-1], 4*endpoint.MaxInFlight)
	}
	slices.Sort(d.boots)
	fmt.Fprintf(&s, "\nmemory: %s; start to serving: median %s", d.memory,
		d.boots[len(d.boots)/2].Round(time.Millisecond))
	return s.String()
}
