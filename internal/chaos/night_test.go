package chaos_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/chaos"
)

var readyWithin = flag.Duration("ready-within", 0, "how soon a server must be ready again after a fault; 0: it is only measured")

var quietFor = flag.Duration("quiet", 0, "how long a server without a fault must have no alert, at least")

// longest is how long a step of the check may take, so that the others are still tried when one fails.
const longest = 3 * time.Minute

// maxRepeats is how often the log may say the same at level WARN or ERROR during a fault: it must not grow with
// the load.
const maxRepeats = 50

// fault is what happens to a server in the night, and what it then says.
type fault struct {
	name string
	opts options

	begin func(*night)
	end   func(*night) // nil: begin has ended it

	restarts bool // the end is a new start, so the log does not tell that the checks succeed again

	// What the server says while the fault lasts.
	health  int               // /healthz; 0: no answer
	reasons []string          // of /readyz, of the metrics and of the log; none: it stays ready
	ready   bool              // in spite of the reasons, which are warnings
	answer  string            // to a request for a message
	partial bool              // other requests are accepted meanwhile
	noticed func(*night) bool // if nothing of this changes
	log     string            // other lines of the log that may come, as a pattern

	alerts []string // that fire
	alone  bool     // only the alerts are examined
}

// night is a world that a fault happens to.
type night struct {
	*world

	fault      fault
	prometheus *prometheus
	probes     int
	lastURL    string
	restore    []func()      // ends of what begin has done
	ahead      time.Duration // of the clock of the server, at most
}

// TestProductionCheck causes each fault that an operator meets at night while the server works, and compares
// what the server says with the table of the faults. Then it ends the fault: the server must be ready again by
// itself, and nothing that it has accepted may be lost.
func TestProductionCheck(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := startPrometheus(t)
	calm := fault{name: "quiet"}.open(t, bin, p)
	since := time.Now()
	told := map[string]bool{}
	for _, f := range slices.Concat(faultsOfTheNight(), faultsOfAlerts()) {
		t.Run(f.name, func(t *testing.T) { f.happen(t, bin, p) })
		for _, name := range f.alerts {
			told[name] = true
		}
	}
	for _, name := range alertNames(t) {
		if !told[name] {
			t.Errorf("no fault makes %s fire", name)
		}
	}
	<-time.After(*quietFor - time.Since(since))
	if names := p.fired("quiet"); len(names) > 0 {
		t.Errorf("alerts of a server without a fault: %v", names)
	}
	if p.value("quiet", "up") != 1 {
		t.Error("the quiet server was not scraped")
	}
	t.Logf("no alert of a server without a fault in %s, while it received %d messages and sent %d",
		time.Since(since).Round(time.Second), calm.driver.received.Load(), calm.driver.sent.Load())
}

// open starts a server under load.
func (f fault) open(t *testing.T, bin binaries, p *prometheus) *night {
	t.Helper()
	opts := f.opts
	opts.Bin, opts.Devices, opts.Callers = bin, 2, 2
	opts.Room = max(opts.Room, 20)
	opts.Seed, opts.Calm, opts.Wired = seedOrClock(), true, true
	n := &night{fault: f, prometheus: p}
	if prepare := opts.Prepare; prepare != nil {
		opts.Prepare = func(w *world) { n.world = w; prepare(w) }
	}
	n.world = newWorld(t, opts)
	t.Cleanup(n.repair)
	t.Cleanup(func() { p.forget(f.name) })
	n.driver.start()
	n.busy(20)
	n.must("a server that is ready", func() bool { return n.look().Ready == http.StatusOK })
	n.watched()
	return n
}

// alerted reports whether the alerts of the fault have fired.
func (n *night) alerted() bool {
	n.prometheus.watch(n.fault.name, n.ops())
	fired := n.prometheus.fired(n.fault.name)
	return !slices.ContainsFunc(n.fault.alerts, func(name string) bool { return !slices.Contains(fired, name) })
}

func (f fault) happen(t *testing.T, bin binaries, p *prometheus) {
	n := f.open(t, bin, p)
	from := n.logged()
	f.begin(n)
	if f.alone {
		n.must("the alerts", n.alerted)
		t.Logf("%s: %v", f.name, p.fired(f.name))
		return
	}
	n.must("what the fault makes the server say", n.saysSo)
	n.judgeFault()
	n.must("the alerts", n.alerted)
	took := n.recover()
	n.judgeLog(n.lines(from))
	n.settle()
	e := n.evidence()
	e.ClockAhead = n.ahead
	if f.log == lostLease { // a server that loses its lease stops its attempts, as a kill does
		e.Interrupted += len(n.devices)
	}
	lost := chaos.Judge(e)
	n.report(lost)
	t.Logf("%s: ready again after %s; %d broken promises; %s; alerts %v", f.name, took.Round(10*time.Millisecond),
		len(lost), n.account(e), p.fired(f.name))
}

// must waits until ok returns true, or ends the test and says what the server says.
func (n *night) must(what string, ok func() bool) {
	n.t.Helper()
	for end := time.Now().Add(min(patience(n.t), longest)); !ok(); <-time.After(100 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("waited in vain for %s; the server says %s, and these alerts have fired: %v", what, n.look(),
				n.prometheus.fired(n.fault.name))
		}
	}
}

// busy waits until some more messages have come to their end.
func (n *night) busy(messages int64) {
	n.t.Helper()
	enough := n.driver.done() + messages
	n.must("messages to come to their end", func() bool { return n.driver.done() >= enough })
}

// saysSo reports whether the server says what the fault makes it say.
func (n *night) saysSo() bool {
	s := n.look()
	if s.Health != n.fault.health {
		return false
	}
	if n.fault.health != 0 && (!s.agree() || !n.fits(s)) {
		return false
	}
	return n.fault.noticed == nil || n.fault.noticed(n)
}

// fits compares the reasons with those of the table. One of these may be a choice: "database: database-(failed|slow)".
func (n *night) fits(s seen) bool {
	if ready := len(n.fault.reasons) == 0 || n.fault.ready; ready != (s.Ready == http.StatusOK) {
		return false
	}
	return slices.EqualFunc(n.fault.reasons, s.Reasons, matches)
}

func matches(pattern, text string) bool {
	return regexp.MustCompile("^(" + pattern + ")$").MatchString(text)
}

// judgeFault compares what the server answers with the table.
func (n *night) judgeFault() {
	n.t.Helper()
	n.t.Logf("%s: %s", n.fault.name, n.look())
	for range 3 {
		n.must("the answer of the fault", n.answers)
	}
	if n.fault.health == 0 {
		return
	}
	code, text := n.says()
	if ready := n.fits(seen{Ready: http.StatusOK, Reasons: n.fault.reasons}); (code == 0) != ready {
		n.t.Errorf("postern status exits with %d: %s", code, text)
	}
	for _, reason := range n.fault.reasons {
		_, reason, _ = strings.Cut(reason, ": ")
		if !regexp.MustCompile(`(problem|warning) +(` + reason + `): `).MatchString(text) {
			n.t.Errorf("postern status does not name %s: %s", reason, text)
		}
	}
}

// answers sends a request for a message, and reports whether it has the answer of the fault.
func (n *night) answers() bool {
	got := n.probe()
	fits := matches(n.fault.answer, got)
	if !fits && !(n.fault.partial && got == "202") {
		n.t.Fatalf("a request for a message is answered with %q, want %q", got, n.fault.answer)
	}
	return fits
}

// recover ends the fault, and returns how long it took until the server was ready.
func (n *night) recover() time.Duration {
	n.t.Helper()
	if n.fault.end != nil {
		n.fault.end(n)
	}
	began := time.Now()
	var last seen
	n.must("a server that is ready again", func() bool {
		last = n.look()
		return last.Ready == http.StatusOK && (len(last.Reasons) == 0 || n.fault.ready)
	})
	took := time.Since(began)
	if !last.agree() {
		n.t.Errorf("after the repair: %s", last)
	}
	if *readyWithin > 0 && took > *readyWithin {
		n.t.Errorf("it was ready again after %s, want at most %s", took, *readyWithin)
	}
	n.must("a message to be accepted", func() bool { return n.probe() == "202" })
	n.busy(20)
	return took
}

// repair ends what is still broken, so that the world can be removed.
func (n *night) repair() {
	for _, f := range slices.Backward(n.restore) {
		f()
	}
	n.restore = nil
}

// judgeLog checks that each change of a check is one line, and that nothing else was said that is not in the
// table.
func (n *night) judgeLog(list []line) {
	n.t.Helper()
	checks, others := changes(list)
	now := map[string]string{} // by check
	told := map[string]bool{}
	for _, l := range checks {
		if l.Reason == now[l.Check] {
			n.t.Errorf("the log tells twice of %s: %q", l.Check, l.Reason)
		}
		now[l.Check] = l.Reason
		told[l.Check+": "+l.Reason] = true
	}
	for check, reason := range now {
		if reason != "" && !n.fault.ready && !n.fault.restarts {
			n.t.Errorf("the log does not tell that %s succeeds again after %q", check, reason)
		}
	}
	for _, want := range n.fault.reasons {
		if !strings.HasPrefix(want, "lifecycle") && !slices.ContainsFunc(slices.Collect(maps.Keys(told)), func(t string) bool { return matches(want, t) }) {
			n.t.Errorf("the log does not tell of %s", want)
		}
	}
	for msg, times := range others {
		if strings.HasPrefix(msg, "ERROR") && !matches(n.fault.log, msg) || times > maxRepeats {
			n.t.Errorf("the log says %q", msg)
		}
	}
	n.t.Logf("%s: the log: %v; %s", n.fault.name, checks, counted(others))
}

// account says how much work the run did.
func (n *night) account(e chaos.Evidence) string {
	status := map[string]int{}
	for _, c := range e.Calls {
		if c.Told != nil {
			status[fmt.Sprintf("answers %d", c.Told.Status)]++
		}
	}
	return fmt.Sprintf("%d messages, %d events, %d posts; %s", len(e.State.Messages), len(e.State.Events),
		len(e.Posts), counted(status))
}

// ops is the address of the server's health.
func (n *night) ops() string {
	n.gateway.mu.Lock()
	defer n.gateway.mu.Unlock()
	return n.gateway.ops
}
