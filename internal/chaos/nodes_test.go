package chaos_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"postern/internal/chaos"
	"postern/internal/failpoint"
)

var (
	nodes  = flag.Int("nodes", 3, "how many servers share a database")
	losses = flag.Int("losses", 1, "how often one of them is lost")
)

// node is one of several servers that share a database, with the wires to what it needs and its clock, which
// only programs of unsteady read.
type node struct {
	*gateway

	database, vendor *wire
	clock            wallClock
}

// id is what the database calls the server.
func (n node) id(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, "node.id"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// TestNothingIsLostOrDoubledByLostServers proves the same as the test with kills for several
// servers on one database: they are killed, stopped, held up and cut off while work is queued, and
// the others take over what they did.
func TestNothingIsLostOrDoubledByLostServers(t *testing.T) {
	bin, err := unsteady()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{
		Bin: bin, Devices: 4 * *nodes, Callers: 2, Room: 20, Seed: seedOrClock(), Stumble: true,
		Faults: []string{"duplicate", "reorder", "retry"}, // the others disconnect devices, which must be told from a loss
		Sweep:  true, Database: "postgres", Nodes: *nodes,
	})
	w.driver.start()
	w.loseServers(*losses)
	w.settle()
	e := w.evidence()
	t.Log(w.summary(e) + w.takeovers.String() + w.outages.String() + fmt.Sprintf("\nmoved clocks: %d", w.shifts))
	w.report(append(chaos.Judge(e), w.seen...))
}

// TestServerThatGoesOnWithoutItsLeaseIsNamed proves that a server is reported that is cut off from the
// database and keeps the connections of its devices when its lease has ended. There is no load, because a
// message that cannot be stored ends a connection too.
func TestServerThatGoesOnWithoutItsLeaseIsNamed(t *testing.T) {
	bin, err := rigged()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{
		Bin: bin, Devices: 4, Seed: 1, Mistake: failpoint.StayConnected, Calm: true, Database: "postgres", Nodes: 2,
	})
	w.await("each server to work for devices", w.isSpread)
	w.cutFromDatabase(w.nodes[0], nil)
	if len(w.seen) != 1 || w.seen[0].Rule != chaos.TwoConnections {
		t.Errorf("found %v, want %v", w.seen, chaos.TwoConnections)
	}
}

// startNodes starts the further servers, each in a directory of its own.
func (w *world) startNodes() {
	w.t.Helper()
	for len(w.nodes) < w.opts.Nodes {
		n := w.newNode(len(w.nodes))
		w.nodes = append(w.nodes, n)
		w.bootNode(n.gateway)
	}
}

// newNode makes a server with wires to the database and to the vendor.
func (w *world) newNode(i int) node {
	w.t.Helper()
	at, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	toVendor, vendor := w.wireTo(w.vendor.flags[1])
	n := node{database: newWire(w.t, "unix", w.socket()), vendor: toVendor}
	at.Host, at.RawQuery = n.database.addr, "sslmode=disable"
	flags := slices.Concat([]string{"--database-url", at.String()}, w.sharedFlags(),
		[]string{"--network-url", vendor}, w.vendor.flags[2:], w.opts.Flags)
	suffix := ""
	if i > 0 {
		suffix = fmt.Sprint("-", i)
	}
	n.gateway, n.clock = w.newServer(suffix, flags), newWallClock(w.t, filepath.Join(w.dir, "clock"+suffix))
	n.env = append(n.env, n.clock.env())
	return n
}

// loss is a way in which a server is lost for a while.
type loss struct {
	name   string
	happen func(*world, node, *rand.Rand)
}

func lossesOf() []loss {
	return []loss{
		{"killed", (*world).killNode},
		{"killed, and away until the others work for its devices", (*world).loseNode},
		{"held up longer than its lease", (*world).holdNode},
		{"cut off from the database", (*world).cutFromDatabase},
		{"stopped in good order", (*world).stopNode},
		{"held up for a moment", (*world).pauseNode},
		{"cut off from the vendor", (*world).cutFromVendor},
		{"without a database, as all are", (*world).crashDatabase},
		{"with a clock that is moved", (*world).moveClock},
		{"cut off from the database, with a clock that is moved meanwhile", (*world).moveClockOfLost},
		{"without a database until its standby is promoted, as all are", (*world).promoteStandby},
	}
}

// loseServers loses servers one after the other, while the others go on.
func (w *world) loseServers(times int) {
	r := rand.New(rand.NewPCG(w.opts.Seed, 8))
	all := lossesOf()
	for i := range times {
		w.await("each server to work for devices", w.isSpread)
		enough := w.driver.done() + r.Int64N(meanFlow)
		w.await("messages to come to their end", func() bool { return w.driver.done() >= enough })
		w.depth = append(w.depth, w.driver.underWay())
		w.ended = append(w.ended, w.driver.done())
		w.kills++
		n := w.nodes[r.IntN(len(w.nodes))]
		all[(i+int(w.opts.Seed%uint64(len(all))))%len(all)].happen(w, n, r)
	}
	w.await("each server to work for devices", w.isSpread)
}

func (w *world) killNode(n node, _ *rand.Rand) {
	n.kill()
	w.bootNode(n.gateway)
}

func (w *world) loseNode(n node, _ *rand.Rand) {
	work := w.workOf(n)
	n.kill()
	w.takenOver(work, "killed")
	w.bootNode(n.gateway)
}

func (w *world) stopNode(n node, _ *rand.Rand) {
	work := w.workOf(n)
	n.serve("")
	stopped := make(chan error, 1)
	go func() { stopped <- n.running().stop(patience(w.t)) }()
	w.takenOver(work, "stopped")
	if err := <-stopped; err != nil { // it may take longer to finish its requests and deliveries
		w.t.Errorf("a server's stop: %v", err)
	}
	w.bootNode(n.gateway)
}

func (w *world) holdNode(n node, _ *rand.Rand) {
	work := w.workOf(n)
	release := n.hold()
	w.takenOver(work, "held up")
	release()
}

func (w *world) pauseNode(n node, r *rand.Rand) {
	release := n.hold()
	<-time.After(time.Duration(r.Int64N(int64(4 * time.Second))))
	release()
}

func (w *world) cutFromDatabase(n node, _ *rand.Rand) { w.cutWhile(n, func() {}) }

// cutWhile cuts a server off from the database, does something, and waits for the others.
func (w *world) cutWhile(n node, do func()) {
	before, work := w.replaced(), w.workOf(n)
	mend := n.database.cut()
	do()
	w.takenOver(work, "cut off from the database")
	w.seesSecond(n, before)
	mend()
}

// seesSecond reports connections that were open when another one of their device came, since there were as
// many as before.
func (w *world) seesSecond(n node, before int) {
	if now := w.replaced(); now != before {
		w.seen = append(w.seen, chaos.Violation{
			Rule: chaos.TwoConnections, ID: n.id(w.t),
			Detail: fmt.Sprintf("it held %d connections when the devices were connected elsewhere", now-before),
		})
	}
}

// replaced counts the connections that were open when another one of the same device came.
func (w *world) replaced() (n int) {
	for _, a := range w.accounts() {
		n += a.Replaced
	}
	return n
}

func (w *world) cutFromVendor(n node, r *rand.Rand) {
	mend := n.vendor.cut()
	<-time.After(time.Duration(r.Int64N(int64(5 * time.Second))))
	mend()
}

func (w *world) crashDatabase(_ node, _ *rand.Rand) {
	w.cluster.Crash()
	w.cluster.Start(w.t)
}

// hold stops the process, as a machine does that has too much to do, until release is called. No
// requests are sent to it meanwhile.
func (g *gateway) hold() (release func()) {
	at, _ := g.where()
	g.serve("")
	p := g.running().cmd.Process
	p.Signal(syscall.SIGSTOP)
	return func() {
		p.Signal(syscall.SIGCONT)
		g.serve(at)
	}
}

// takeovers says how long it took until all devices of a lost server were connected elsewhere.
type takeovers map[string][]time.Duration

func (o takeovers) String() string {
	var s strings.Builder
	for what, list := range o {
		slices.Sort(list)
		at := func(percent int) time.Duration { return list[(len(list)-1)*percent/100].Round(10 * time.Millisecond) }
		fmt.Fprintf(&s, "\nall devices of a server that was %s connected elsewhere: median %s, 95th percentile %s, longest %s of %d",
			what, at(50), at(95), at(100), len(list))
	}
	return s.String()
}

// work is what a server did before it was lost.
type work struct {
	server string
	began  time.Time
	logins map[string]int // for each number of its devices, how often they had connected
}

func (w *world) workOf(n node) work {
	w.t.Helper()
	lost := work{server: n.id(w.t), logins: map[string]int{}}
	logins := w.logins()
	for _, d := range w.owned() {
		if d.Owner == lost.server {
			number := w.numberOf(d.Device)
			lost.logins[number] = logins[number]
		}
	}
	lost.began = time.Now()
	return lost
}

// numberOf returns the phone number of a device.
func (w *world) numberOf(id string) string {
	w.t.Helper()
	i := slices.IndexFunc(w.devices, func(d device) bool { return d.id == id })
	if i < 0 {
		w.t.Fatalf("the database has a device %s, which was not linked", id)
	}
	return w.devices[i].number
}

func (w *world) logins() map[string]int {
	n := map[string]int{}
	for _, a := range w.accounts() {
		n[a.Number] = a.Logins
	}
	return n
}

// takenOver waits until all devices are connected, none of them by the lost server, and its own ones have
// connected again.
func (w *world) takenOver(lost work, what string) {
	w.t.Helper()
	w.await("the devices of a server that is "+what+" to be connected elsewhere", func() bool {
		now := w.logins()
		for number, before := range lost.logins {
			if now[number] == before {
				return false
			}
		}
		return !slices.ContainsFunc(w.owned(), func(d chaos.Owned) bool {
			return d.Status != "connected" || d.Owner == lost.server || d.Owner == ""
		})
	})
	if w.takeovers == nil {
		w.takeovers = takeovers{}
	}
	w.takeovers[what] = append(w.takeovers[what], time.Since(lost.began))
}

// isSpread reports whether all devices are connected and each server has some of them.
func (w *world) isSpread() bool {
	owners := map[string]bool{}
	for _, d := range w.owned() {
		if d.Status != "connected" {
			return false
		}
		owners[d.Owner] = true
	}
	for _, n := range w.nodes {
		if !owners[n.id(w.t)] {
			return false
		}
	}
	return true
}

func (w *world) owned() []chaos.Owned {
	w.t.Helper()
	list, err := chaos.Owners(w.t.Context(), w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}
