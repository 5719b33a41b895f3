package chaos_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"postern/internal/chaos"
)

var (
	cycles  = flag.Int("cycles", 10, "how often the gateway is killed")
	seconds = flag.Int("seconds", 0, "kill for so long instead")
	seed    = flag.Uint64("seed", 0, "what is chosen by chance; 0: by the clock")
)

func seedOrClock() uint64 {
	if *seed != 0 {
		return *seed
	}
	return uint64(time.Now().UnixNano()) % 1_000_000
}

// TestNothingIsLostOrDoubledByKills is the proof of docs/architecture.md, "What
// must always be true": kill -9 under backlog, at random moments.
func TestNothingIsLostOrDoubledByKills(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{
		Bin: bin, Devices: 10, Callers: 3, Room: 40, Seed: seedOrClock(),
		Faults: []string{"drop", "drop-before-ack", "drop-on-message", "duplicate", "reorder", "garble", "retry", "noack", "refuse:503", "restrict:1", "hang"},
	})
	w.driver.start()
	w.killAgainAndAgain()
	w.settle()
	e := w.evidence()
	t.Log(w.summary(e))
	w.report(chaos.Judge(e))
}

// killAgainAndAgain kills the gateway at random moments, now and then before
// it has even started, and leaves it running.
func (w *world) killAgainAndAgain() {
	r := rand.New(rand.NewPCG(w.opts.Seed, 0))
	end := time.Now().Add(time.Duration(*seconds) * time.Second)
	for n := 0; *seconds > 0 && time.Now().Before(end) || *seconds == 0 && n < *cycles; n++ {
		<-time.After(time.Duration(200+r.IntN(1300)) * time.Millisecond)
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
