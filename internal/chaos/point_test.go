package chaos_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"postern/internal/chaos"
	"postern/internal/failpoint"
)

var everything = flag.Bool("everything", false, "fail and wait at each fail point too, instead of only crashing")

// TestNothingIsLostAtAnyPoint stops the gateway at each fail point, under load, and
// judges the whole run at the end.
func TestNothingIsLostAtAnyPoint(t *testing.T) {
	bin, err := rigged()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{Bin: bin, Devices: 5, Callers: 3, Room: 20, Seed: seedOrClock(), Stumble: true})
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

// meet starts the gateway with a fail point and waits until the gateway reaches it. After
// a crash it judges what must hold at every moment.
func (w *world) meet(p failpoint.Point, act string) {
	w.t.Helper()
	w.kill()
	from := w.logged()
	w.gateway.env = []string{fmt.Sprintf("POSTERN_FAILPOINT=%s=%s", p, act)}
	w.boot()
	if act == "error" || act == "delay" {
		w.await(fmt.Sprintf("%s at %s", act, p), func() bool { return w.met(p, from) >= 5 })
		return
	}
	select {
	case <-w.gateway.running().ended:
	case <-time.After(patience(w.t)):
	}
	if w.met(p, from) == 0 {
		w.t.Errorf("the gateway never came to %s", p)
		return
	}
	for _, v := range chaos.JudgeNow(w.evidence()) {
		w.t.Errorf("after %s at %s: %s", act, p, v)
	}
}

// logged is the size of the gateway's log.
func (w *world) logged() int64 {
	info, err := w.gateway.log.Stat()
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Size()
}

// met counts in the log, from an offset on, how often the gateway took the action of a
// fail point.
func (w *world) met(p failpoint.Point, from int64) int {
	log, err := os.ReadFile(w.gateway.log.Name())
	if err != nil {
		w.t.Fatal(err)
	}
	return bytes.Count(log[from:], fmt.Appendf(nil, `"fail point","point":%q`, p))
}
