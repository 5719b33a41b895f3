package chaos_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"postern/internal/chaos"
	"postern/internal/failpoint"
)

var everything = flag.Bool("everything", false, "fail and wait at each fail point too, instead of only crashing")

// TestNothingIsLostAtAnyPoint stops the gateway at each chosen place of a
// message's life, under load, and judges the whole at the end.
func TestNothingIsLostAtAnyPoint(t *testing.T) {
	bin, err := rigged()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{Bin: bin, Devices: 5, Callers: 3, Room: 20, Seed: seedOrClock()})
	w.driver.start()
	actions := []string{"crash@20"}
	if *everything {
		actions = append(actions, "crash@1", "error", "delay")
	}
	for _, p := range failpoint.Points() {
		for _, act := range actions {
			w.meet(p, act)
		}
	}
	w.kill()
	w.gateway.env = nil
	w.boot()
	w.settle()
	e := w.evidence()
	t.Log(w.summary(e))
	w.report(chaos.Judge(e))
}

// meet starts the gateway with a fail point and stays until it was met.
func (w *world) meet(p failpoint.Point, act string) {
	w.t.Helper()
	w.kill()
	before := w.met(p)
	w.gateway.env = []string{fmt.Sprintf("POSTERN_FAILPOINT=%s=%s", p, act)}
	w.boot()
	enough := 1
	if act == "error" || act == "delay" {
		enough = 5
	}
	w.await(fmt.Sprintf("%s at %s", act, p), func() bool { return w.met(p) >= before+enough })
}

// met counts how often the gateway came to a fail point and did what was asked.
func (w *world) met(p failpoint.Point) int {
	log, err := os.ReadFile(w.gateway.log.Name())
	if err != nil {
		w.t.Error(err)
	}
	return bytes.Count(log, fmt.Appendf(nil, `"fail point","point":%q`, p))
}
