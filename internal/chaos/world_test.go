package chaos_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/chaos"
	"postern/internal/db/dbtest"
	"postern/internal/failpoint"
	"postern/internal/mail/mailtest"
	"postern/internal/seal"
)

// patience is how long a wait may last: until shortly before the test binary times out.
// Every wait ends with its event, however slow the machine is.
func patience(t *testing.T) time.Duration {
	end, ok := t.Deadline()
	if !ok {
		return time.Hour
	}
	const report = 20 * time.Second // time to say what was waited for, and to stop the programs
	return max(time.Until(end)-report, time.Second)
}

// options configure a world.
type options struct {
	Bin     binaries
	Devices int
	Callers int // of each device
	Room    int // how many messages may be under way for each device and direction
	Seed    uint64
	Faults  []string // of the vendor, by chance
	Calm    bool     // the receiver does not misbehave
	Stumble bool     // the receiver now and then refuses a series of first attempts
	Once    bool     // nothing is asked twice on purpose
	Sweep   bool     // the storage is swept at the end
	Changes bool     // groups, and what is set for chats, are changed

	// Mistake is what the gateway does wrong on purpose.
	Mistake failpoint.Mistake

	Database string // the gateway's engine; "" means the flag's
	Nodes    int    // servers that share the database; 0 means one that is alone

	Flags []string // of the servers

	Prepare func(*world) // called before anything is started; the directory is there
	Env     []string     // of the servers
	Texts   bool         // nobody sends files
	Wired   bool         // the gateway reaches the vendor and the receiver through wires
}

func (o options) env() []string {
	if o.Mistake == "" {
		return o.Env
	}
	return append(slices.Clone(o.Env), "POSTERN_SABOTAGE="+string(o.Mistake))
}

// loses reports whether the gateway answers for messages that a kill makes it lose.
func (o options) loses() bool {
	return o.Mistake == failpoint.AnswerEarly || o.Mistake == failpoint.AcknowledgeEarly
}

type device struct{ id, number string }

// world is a gateway with everything around it: a vendor, a receiver and a driver, each
// with a ledger.
type world struct {
	t    *testing.T
	opts options
	dir  string
	url  string // of a PostgreSQL database; "" for the file in dir

	cluster  *dbtest.Cluster // of url
	vendor   *vendor
	gateway  *gateway
	nodes    []node // all servers that share the database, gateway first; none if it is alone
	turn     atomic.Int64
	receiver *receiver
	driver   *driver

	toVendor, toReceiver *wire // if Wired
	mail                 *mailtest.Server
	toMail               *wire

	workspace string
	key       string
	header    http.Header // of the API
	hook      string      // the endpoint's id
	devices   []device
	numbers   map[string]string // by device

	takeovers takeovers
	shifts    int // how often a wall clock was moved
	outages   outages
	settling  int               // how often in a row only groups or settings were not as at the vendor
	marking   bool              // the phones will mark chats as read, so that what is unread need not be right yet
	seen      []chaos.Violation // during the run, beside what the judge finds

	boots []time.Duration
	kills int
	since time.Time // of the last kill
	depth []int     // what was under way at each kill
	left  string    // what was still under way when w.quieten looked last
	ended []int64   // how many messages had come to their end until each kill

	written map[string]bool // ids and network ids of messages that are known to be in the database
}

// newWorld starts everything and links the devices.
func newWorld(t *testing.T, opts options) *world {
	t.Helper()
	w := newGateway(t, opts)
	w.receiver = startReceiver(t, w.dir, opts.Seed, w.driver.happened)
	w.receiver.calm.Store(opts.Calm)
	w.hook = w.subscribe(map[string]any{"url": w.wiredReceiver(), "maxInFlight": 32})
	w.linkAll()
	return w
}

// newGateway starts a vendor and a gateway, which has a workspace with a key.
func newGateway(t *testing.T, opts options) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "chaos") //nolint:usetesting // short enough for a socket, and kept when the test fails
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, opts: opts, dir: dir, numbers: map[string]string{}, written: map[string]bool{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d; ledgers, log and database are in %s", opts.Seed, dir)
			return
		}
		os.RemoveAll(dir)
	})
	if opts.Prepare != nil {
		opts.Prepare(w)
		opts = w.opts
	}
	w.vendor = startVendor(t, opts.Bin.vendorsim, filepath.Join(dir, "vendor"))
	w.openDatabase()
	if opts.Nodes == 0 {
		w.gateway = w.newServer("", slices.Concat(w.databaseFlags(), w.wiredVendor(), opts.Flags))
	} else {
		w.nodes = []node{w.newNode(0)}
		w.gateway = w.nodes[0].gateway
	}
	w.driver = newDriver(w, &http.Client{
		Timeout: patience(t), Transport: &http.Transport{MaxIdleConnsPerHost: 1000},
	})
	if w.driver.notes, err = chaos.OpenJournal(filepath.Join(dir, "driver.jsonl")); err != nil {
		t.Fatal(err)
	}
	w.boot()
	w.furnish()
	w.startNodes()
	return w
}

// newServer returns a server that is not started yet. The names of its directory and its log end in a
// suffix.
func (w *world) newServer(suffix string, flags []string) *gateway {
	w.t.Helper()
	log, err := os.Create(filepath.Join(w.dir, "gateway"+suffix+".log"))
	if err != nil {
		w.t.Fatal(err)
	}
	g := &gateway{
		bin: w.opts.Bin, dir: filepath.Join(w.dir, "data"+suffix), flags: flags, env: w.opts.env(), log: log,
		changed: make(chan struct{}),
	}
	w.t.Cleanup(func() { g.kill(); log.Close() })
	return g
}

// openDatabase starts a PostgreSQL server, which outlives the gateway, if that is the engine.
func (w *world) openDatabase() {
	w.t.Helper()
	if cmp.Or(w.opts.Database, *database) != "postgres" {
		return
	}
	w.cluster = dbtest.NewDurable(w.t)
	w.url = w.cluster.URL(w.t)
	if _, err := seal.LoadOrMakeKeys(w.keyFile()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) keyFile() string { return filepath.Join(w.dir, "secret.key") }

// wiredVendor are the flags with which the gateway finds the vendor.
func (w *world) wiredVendor() []string {
	if !w.opts.Wired {
		return w.vendor.flags
	}
	var at string
	w.toVendor, at = w.wireTo(w.vendor.flags[1])
	return slices.Concat([]string{"--network-url", at}, w.vendor.flags[2:])
}

// wiredReceiver is the URL at which the gateway finds the receiver.
func (w *world) wiredReceiver() string {
	if !w.opts.Wired {
		return w.receiver.url
	}
	var at string
	w.toReceiver, at = w.wireTo(w.receiver.url)
	return at
}

// wireTo starts a wire to the host of a URL, and returns the URL that leads through it.
func (w *world) wireTo(address string) (*wire, string) {
	w.t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		w.t.Fatal(err)
	}
	to := newWire(w.t, "tcp", at.Host)
	at.Host = to.addr
	return to, at.String()
}

// databaseFlags selects the engine.
func (w *world) databaseFlags() []string {
	if w.url == "" {
		return nil
	}
	return append([]string{"--database-url", w.url}, w.sharedFlags()...)
}

// sharedFlags are the same for all servers on a PostgreSQL database.
func (w *world) sharedFlags() []string {
	return []string{
		"--secret-key-file", w.keyFile(), "--media-url", "file://" + filepath.Join(w.dir, "data", "media"),
	}
}

// where returns the address of the API of a server, in turn, and a channel that is closed when it
// changes. The address is "" while none is there.
func (w *world) where() (string, <-chan struct{}) {
	for range w.nodes {
		n := w.nodes[int(w.turn.Add(1))%len(w.nodes)]
		if at, changed := n.where(); at != "" {
			return at, changed
		}
	}
	return w.gateway.where()
}

// furnish creates a workspace with a key.
func (w *world) furnish() { w.furnishWith("chaos", "enterprise") }

func (w *world) furnishWith(name, plan string) {
	w.t.Helper()
	var made struct{ ID, Key string }
	w.command(&made, "workspace", "create", "--name", name, "--plan", plan)
	w.workspace = made.ID
	w.command(&made, "key", "create", "--workspace", made.ID, "--name", "driver")
	w.key = made.Key
	w.header = http.Header{"Authorization": {"Bearer " + made.Key}}
}

// subscribe creates a webhook endpoint and waits until it is active.
func (w *world) subscribe(endpoint map[string]any) (id string) {
	w.t.Helper()
	var hook struct{ ID string }
	endpoint["secret"] = secret
	w.api("POST", "/v1/webhooks", endpoint, &hook)
	w.awaitActive(hook.ID)
	return hook.ID
}

func (w *world) awaitActive(hook string) {
	w.await("an active endpoint", func() bool {
		var now struct{ Status string }
		w.api("GET", "/v1/webhooks/"+hook, nil, &now)
		return now.Status == "active"
	})
}

// linkAll links the devices.
func (w *world) linkAll() {
	w.devices = make([]device, w.opts.Devices)
	var linking sync.WaitGroup
	for i := range w.devices {
		linking.Go(func() { w.devices[i] = w.link(fmt.Sprintf("+1555000%04d", i)) })
	}
	linking.Wait()
	for _, d := range w.devices {
		w.numbers[d.id] = d.number
		w.driver.rooms[d.id], w.driver.rooms[d.number] = make(room, w.opts.Room), make(room, w.opts.Room)
		w.driver.subjects[d.id], w.driver.subjects[d.number] = make(chan subject, 2), make(chan subject, 2)
		w.driver.createGroup(d)
	}
}

func (w *world) link(number string) device {
	var d, l struct{ ID, QR, Status string }
	w.api("POST", "/v1/devices", map[string]string{"name": number}, &d)
	w.api("POST", "/v1/devices/"+d.ID+"/link", nil, nil)
	w.await("a code", func() bool {
		w.api("GET", "/v1/devices/"+d.ID+"/link", nil, &l)
		return l.QR != ""
	})
	if err := w.vendor.ask("POST", "/scan", map[string]string{"qr": l.QR, "phoneNumber": number}, nil); err != nil {
		w.t.Error(err)
	}
	w.await("a connected device", func() bool {
		w.api("GET", "/v1/devices/"+d.ID, nil, &d)
		return d.Status == "connected"
	})
	return device{d.ID, number}
}

// command runs the postern command against the running server.
func (w *world) command(out any, args ...string) {
	w.t.Helper()
	cmd := exec.Command(w.opts.Bin.postern, append(args, "--json", "--data-dir", w.gateway.dir)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		w.t.Fatalf("postern %v: %v", args, err)
	}
}

// api calls the running gateway, which must answer.
func (w *world) api(method, path string, in, out any) {
	url, _ := w.where()
	if err := (caller{w.driver.http, w.header}).call(method, url+path, in, out); err != nil {
		w.t.Error(err)
	}
}

// await waits until ok returns true. It looks again after a while that is longer when
// looking takes longer, so that it leaves the processor to the programs.
func (w *world) await(what string, ok func() bool) {
	const share = 5 // of the time is for looking: one in so many parts
	for deadline := time.Now().Add(patience(w.t)); ; {
		began := time.Now()
		if ok() {
			return
		}
		if time.Now().After(deadline) {
			w.t.Errorf("waited in vain for %s", what)
			return
		}
		<-time.After(max(10*time.Millisecond, (share-1)*time.Since(began)))
	}
}

// kill kills the gateway, whatever it is doing.
func (w *world) kill() {
	w.depth = append(w.depth, w.driver.underWay())
	w.ended = append(w.ended, w.driver.done())
	w.kills++
	w.gateway.kill()
	if w.opts.loses() { // the vendor may still read acknowledgements of what the kill has lost
		w.await("the end of the killed connections", w.offline)
	}
	w.since = time.Now()
}

// evidence gathers the ledgers and the database.
func (w *world) evidence() chaos.Evidence {
	w.t.Helper()
	var e chaos.Evidence
	var err error
	e.Calls = w.calls()
	if w.receiver != nil {
		if e.Posts, err = chaos.ReadJournal[chaos.Post](w.receiver.path); err != nil {
			w.t.Fatal(err)
		}
	}
	e.Vendor = w.ledger()
	w.asAtTheVendor(&e)
	if e.State, err = chaos.ReadState(context.Background(), w.gateway.dir, w.url, w.workspace); err != nil {
		w.t.Fatal(err)
	}
	e.Leaks = w.leaks()
	e.Swept = w.opts.Sweep
	e.Interrupted = w.kills*len(w.devices) + int(w.driver.faults.Load())
	return e
}

// calls reads the driver's ledger.
func (w *world) calls() []chaos.Call {
	w.t.Helper()
	list, err := chaos.ReadJournal[chaos.Call](filepath.Join(w.dir, "driver.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// leaks looks for secrets and texts in the logs of the servers.
func (w *world) leaks() (found []chaos.Leak) {
	w.t.Helper()
	for _, g := range w.servers() {
		log, err := os.Open(g.log.Name())
		if err != nil {
			w.t.Fatal(err)
		}
		list, err := chaos.FindLeaks(log, map[string]string{"the API key": w.key, "the webhook's secret": secret})
		if err := errors.Join(err, log.Close()); err != nil {
			w.t.Fatal(err)
		}
		found = append(found, list...)
	}
	return found
}

// servers are those that share the database, or the one that is alone.
func (w *world) servers() []*gateway {
	if len(w.nodes) == 0 {
		return []*gateway{w.gateway}
	}
	list := make([]*gateway, len(w.nodes))
	for i, n := range w.nodes {
		list[i] = n.gateway
	}
	return list
}

// maxShown limits the violations that are printed.
const maxShown = 40

// report fails the test for each violation.
func (w *world) report(found []chaos.Violation) {
	w.t.Helper()
	for _, v := range found[:min(maxShown, len(found))] {
		w.t.Errorf("seed %d: %s", w.opts.Seed, v)
	}
	if len(found) > maxShown {
		count := map[chaos.Rule]int{}
		for _, v := range found {
			count[v.Rule]++
		}
		w.t.Errorf("… and %d more; in all %v", len(found)-maxShown, count)
	}
}

// summary says how much work the run did.
func (w *world) summary(e chaos.Evidence) string {
	count, acts := map[string]int{}, map[string]int{}
	for _, a := range e.State.Actions {
		acts[a.Direction+" "+a.Kind]++
	}
	for _, m := range e.State.Messages {
		count[m.Direction]++
		count[m.Status]++
		if m.Failure != "" {
			count[m.Failure]++
		}
	}
	slices.Sort(w.depth)
	slices.Sort(w.boots)
	var s strings.Builder
	fmt.Fprintf(&s,
		"seed %d: %d thousand messages through %d kills: %d accepted, %d received, %d events, %d webhook posts",
		w.opts.Seed, (len(e.State.Messages)+500)/1000, w.kills, count["outbound"], count["inbound"],
		len(e.State.Events), len(e.Posts))
	fmt.Fprintf(&s,
		"\n%d requests broken off, %d repeated on purpose, %d faults of the vendor, %d resends under the same id, %d files deleted",
		w.driver.broken.Load(), w.driver.repeats.Load(), w.driver.faults.Load(), resends(e), w.driver.discarded.Load())
	if w.kills > 0 {
		fmt.Fprintf(&s, "\nunder way at a kill: median %d, least %d; came to their end between two kills: median %d",
			w.depth[len(w.depth)/2], w.depth[0], w.flow())
	}
	fmt.Fprintf(&s, "\nstart to serving: median %s, longest %s", w.boots[len(w.boots)/2].Round(time.Millisecond),
		w.boots[len(w.boots)-1].Round(time.Millisecond))
	fmt.Fprintf(&s, "\nhow messages ended: %v\nactions: %v", count, acts)
	if w.opts.Changes {
		s.WriteString("\ngroups: " + groupsIn(e))
	}
	return s.String()
}

// resends counts messages that reached the vendor again, under the same id.
func resends(e chaos.Evidence) (n int) {
	for _, v := range e.Vendor {
		n += v.Copies - 1
	}
	return n
}

// flow is the median number of messages that came to their end between two kills.
func (w *world) flow() int64 {
	var each []int64
	for i := 1; i < len(w.ended); i++ {
		each = append(each, w.ended[i]-w.ended[i-1])
	}
	if len(each) == 0 {
		return 0
	}
	slices.Sort(each)
	return each[len(each)/2]
}
