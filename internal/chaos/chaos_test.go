package chaos_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"postern/internal/chaos"
)

var (
	cycles  = flag.Int("cycles", 6, "how often to kill the gateway")
	seconds = flag.Int("seconds", 0, "how long to kill it, in seconds, instead of -cycles")
	mixed   = flag.Bool("mix", false, "let other callers of the gateway stall, search and flood meanwhile")
	seed    = flag.Uint64("seed", 0, "seed of all random choices; 0: from the clock")
	// database is the gateway's engine.
	database = flag.String("database", "sqlite", "sqlite or postgres")
)

func seedOrClock() uint64 {
	if *seed != 0 {
		return *seed
	}
	return uint64(time.Now().UnixNano()) % 1_000_000
}

// TestNothingIsLostOrDoubledByKills proves "What must always be true" of
// docs/architecture.md: it kills the gateway with SIGKILL at random moments while work is
// queued, and with -mix while other callers stall, search and flood.
func TestNothingIsLostOrDoubledByKills(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{
		Bin: bin, Devices: 10, Callers: 3, Room: 40, Seed: seedOrClock(), Stumble: true, Faults: faults(),
		Sweep: true, Changes: true,
	})
	var m *mix
	if *mixed {
		m = startMix(w)
	}
	w.driver.start()
	w.killAgainAndAgain()
	m.end()
	w.settle()
	e := w.evidence()
	t.Log(w.summary(e) + m.summary())
	w.report(chaos.Judge(e))
	w.report(m.judge(w.kills))
	w.provesSomething(e, m)
}

// faults lists the vendor's faults. After the last two the gateway waits for a timeout of
// half a minute, so that only long runs have them.
func faults() []string {
	list := []string{
		"drop", "drop-before-ack", "drop-on-message", "duplicate", "reorder", "garble", "retry", "refuse:503",
		"restrict:1",
	}
	if *cycles > 10 || *seconds > 0 {
		list = append(list, "noack", "hang")
	}
	return list
}

// provesSomething fails a run that has not met the situations it was made for.
func (w *world) provesSomething(e chaos.Evidence, m *mix) {
	again := map[string]int{} // posts, by event
	for _, p := range e.Posts {
		again[p.EventID]++
	}
	proof := map[string]int{
		"messages that came to their end between two kills": int(w.flow()),
		"requests that a kill broke off":                    int(w.driver.broken.Load()),
		"messages that were sent again under the same id":   resends(e),
		"events that were posted again":                     len(e.Posts) - len(again),
		"messages to groups":                                0,
		"files that were deleted":                           int(w.driver.discarded.Load()),
		"messages to nobody, which were given back":         strings.Count(fmt.Sprint(e.State.Messages), "RECIPIENT_NOT_FOUND"),
	}
	for _, v := range e.Vendor {
		if v.Group != "" {
			proof["messages to groups"]++
		}
	}
	for _, act := range actsToSee {
		proof["action: "+act] = 0
	}
	for _, what := range groupsToSee() {
		proof[what] = map[bool]int{true: 1}[w.driver.hasSeen(what)]
	}
	for _, a := range e.State.Actions {
		proof["action: "+a.Direction+" "+a.Kind]++
	}
	for what, n := range m.counts() {
		proof[what] = int(n)
	}
	for what, n := range proof {
		if n == 0 && w.kills > 3 {
			w.t.Errorf("the run proves little: no %s", what)
		}
	}
}

// actsToSee are the actions that a run must have met. Nobody sees the other end's stars.
var actsToSee = []string{
	"outbound reaction", "outbound edit", "outbound revoke", "outbound vote", "outbound star",
	"inbound reaction", "inbound edit", "inbound revoke", "inbound vote",
}

// lacks reports whether the run has not met yet what happens in a few messages of a hundred, or less.
func (w *world) lacks() bool {
	resent := slices.ContainsFunc(w.ledger(), func(e chaos.Entry) bool { return e.Copies > 1 })
	return !resent || slices.ContainsFunc(slices.Concat(actsToSee, groupsToSee()), func(act string) bool {
		return !w.driver.hasSeen(act)
	})
}

// killsPerChange is at how many kills the harness waits once until the gateway has made a change that it was asked for.
// For that a device must be connected, and few are so soon after a kill.
const killsPerChange = 3

// meanFlow is how many messages come to their end between two kills, on average.
const meanFlow = 200

// killAgainAndAgain kills the gateway at random moments, now and then before it has even
// started, and leaves it running. A moment is a number of messages that have come to
// their end since the start, and a little time. If chance has left out a situation that
// provesSomething asks for, it goes on, for at most ten times as many kills.
func (w *world) killAgainAndAgain() {
	r := rand.New(rand.NewPCG(w.opts.Seed, 0))
	end := time.Now().Add(time.Duration(*seconds) * time.Second)
	more := func(n int) bool {
		if *seconds > 0 && time.Now().Before(end) || *seconds == 0 && n < *cycles {
			return true
		}
		return w.lacks() && n < 10**cycles
	}
	for n := 0; more(n); n++ {
		enough := w.driver.done() + r.Int64N(2*meanFlow)
		w.await("messages to come to their end", func() bool { return w.driver.done() >= enough })
		if changed := w.driver.byAPI.Load(); n%killsPerChange == killsPerChange-1 {
			w.await("a device to be connected, and changed", func() bool { return w.driver.byAPI.Load() > changed })
		}
		<-time.After(time.Duration(r.Int64N(int64(lateness))))
		w.kill()
		if r.IntN(6) == 0 {
			if _, err := w.gateway.start(); err != nil {
				w.t.Fatal(err)
			}
			<-time.After(time.Duration(r.IntN(300)) * time.Millisecond)
			w.kill()
		}
		w.boot()
	}
}
