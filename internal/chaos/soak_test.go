package chaos_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/chaos"
)

var (
	soaking  = flag.Duration("soak", 0, "how long to watch what the gateway holds, in place of a few rounds")
	soakFile = flag.String("soak-out", "", "write the table to this file and .md, and the picture to this file and .svg")
)

const (
	soakRounds  = 6 // without -soak
	warmRounds  = 2 // before the first sample
	soakDevices = 8
	floodIn     = 150 // messages that are written to one device in a round
	floodOut    = 50  // messages that it sends meanwhile
)

// A gateway holds no more memory, goroutines and descriptors the longer it works: devices are linked and deleted,
// paused and resumed, dropped by the vendor and flooded, again and again.
func TestSoakedGatewayHoldsNoMore(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{
		Bin: bin, Devices: soakDevices, Room: floodIn + floodOut, Seed: seedOrClock(), Calm: true, Once: true, Texts: true,
	})
	t.Cleanup(func() { close(w.driver.over) })
	r := rand.New(rand.NewPCG(w.opts.Seed, 8))
	began := time.Now()
	var list []chaos.Sample
	for n := 0; soaks(began, len(list)) && !t.Failed(); n++ {
		w.soak(n, r)
		if n == warmRounds-1 {
			began = time.Now()
		} else if n >= warmRounds {
			list = append(list, w.sample(began))
		}
	}
	if t.Failed() {
		return
	}
	t.Logf("%d rounds on %s\n%s", len(list), *database, chaos.SoakTable(list))
	if err := errors.Join(chaos.Growth(list), w.writeSoak(list)); err != nil {
		t.Error(err)
	}
}

// soaks reports whether there is another round.
func soaks(began time.Time, samples int) bool {
	if *soaking > 0 {
		return samples < soakRounds || time.Since(began) < *soaking
	}
	return samples < soakRounds
}

// soak is one round, which ends when nothing is under way.
func (w *world) soak(n int, r *rand.Rand) {
	w.t.Helper()
	target := w.driver.done() + floodIn + floodOut
	guest := w.link(fmt.Sprintf("+1555003%04d", n%10_000))
	dev, other := w.devices[n%len(w.devices)], w.devices[(n+1)%len(w.devices)]
	w.api("POST", "/v1/devices/"+other.id+"/pause", nil, nil)
	var work sync.WaitGroup
	work.Go(func() { w.floodIn(dev, n) })
	work.Go(func() { w.floodOut(dev, n, r) })
	w.fault("*", "drop")
	w.api("POST", "/v1/devices/"+other.id+"/resume", nil, nil)
	work.Wait()
	w.delete(guest)
	w.await("the end of the flood", func() bool { return w.driver.done() >= target })
	w.await("all devices", func() bool { return w.unconnected() == "" })
}

// delete deletes a device, which is gone when the network has confirmed that.
func (w *world) delete(dev device) {
	base, _ := w.where()
	if status, answer := w.driver.ask(base, http.MethodDelete, "/v1/devices/"+dev.id, nil, ""); status/100 != 2 {
		w.t.Errorf("deleting a device is answered %d %s", status, answer)
	}
}

func (w *world) floodIn(dev device, n int) {
	for i := range floodIn {
		in := map[string]any{
			"to": dev.number, "from": fmt.Sprintf("+1555888%04d", i%20), "type": "text",
			"body": fmt.Sprintf("in-%08x-%d-%024x", n, i, i),
		}
		if err := w.vendor.ask("POST", "/inbound", in, nil); err != nil {
			w.t.Error(err)
			return
		}
	}
}

func (w *world) floodOut(dev device, n int, r *rand.Rand) {
	for i := range floodOut {
		a := chaos.Ask{
			Device: dev.id, To: fmt.Sprintf("+1555777%04d", r.IntN(4)), Body: fmt.Sprintf("out-%08x-%d-%024x", n, i, i),
		}
		a.Key = a.Body
		w.driver.insist(a, r)
	}
}

// sample reads what the gateway holds.
func (w *world) sample(began time.Time) chaos.Sample {
	w.t.Helper()
	p := w.gateway.running()
	m := p.memory(w.t)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		w.t.Fatal(err)
	}
	return chaos.Sample{
		At: time.Since(began), Messages: w.driver.done(),
		Own: float64(m.now-m.files) / 1024, Files: float64(m.files) / 1024,
		Runtime:     (w.metric("go_memstats_sys_bytes") - w.metric("go_memstats_heap_released_bytes")) / (1 << 20),
		Descriptors: float64(len(files)), Goroutines: w.metric("go_goroutines"),
	}
}

// metric reads one of the gateway's metrics.
func (w *world) metric(name string) (value float64) {
	w.t.Helper()
	res, err := w.driver.http.Get(strings.TrimSuffix(w.gateway.readiness(), "/readyz") + "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), name+" %g", &value); err == nil {
			return value
		}
	}
	w.t.Fatalf("there is no metric %s", name)
	return 0
}

// writeSoak writes the table and the picture, if they are wanted.
func (w *world) writeSoak(list []chaos.Sample) error {
	if *soakFile == "" {
		return nil
	}
	text := fmt.Sprintf(`# Soak

%s, %d cores, %s, %s. In each of %d rounds, a device is linked and deleted, another is paused and resumed, the
vendor drops all of them, and one receives %d messages while it sends %d. Sampled at the end of each round, when all devices
are connected.

%s`, time.Now().UTC().Format("2006-01-02 15:04 MST"), runtime.NumCPU(), runtime.Version(), *database, len(list), floodIn,
		floodOut, chaos.SoakTable(list))
	return errors.Join(os.WriteFile(*soakFile+".md", []byte(text), 0o644),
		os.WriteFile(*soakFile+".svg", []byte(chaos.SoakPicture(list)), 0o644))
}

// A figure that grows from the first third to the last is named, and one that rises once at the beginning is not.
func TestGrowthIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(i int, s *chaos.Sample)
		want   string
	}{
		"nothing":            {func(int, *chaos.Sample) {}, ""},
		"noise":              {func(i int, s *chaos.Sample) { s.Own += float64(i % 7) }, ""},
		"a start":            {func(i int, s *chaos.Sample) { s.Own -= 40 * float64(max(3-i, 0)) / 3 }, ""},
		"memory leaks":       {func(i int, s *chaos.Sample) { s.Own += float64(2 * i) }, "own memory"},
		"goroutines leak":    {func(i int, s *chaos.Sample) { s.Goroutines += float64(2 * i) }, "goroutines"},
		"descriptors leak":   {func(i int, s *chaos.Sample) { s.Descriptors += float64(i) }, "descriptors"},
		"too few to compare": {nil, "samples"},
	} {
		var list []chaos.Sample
		for i := range 30 {
			s := chaos.Sample{At: time.Duration(i) * time.Second, Own: 80, Runtime: 60, Files: 40, Goroutines: 100, Descriptors: 40}
			if tt.change != nil {
				tt.change(i, &s)
				list = append(list, s)
			}
		}
		err := chaos.Growth(list)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if len(list) > 0 && (!strings.Contains(chaos.SoakTable(list), "| descriptors |") ||
			strings.Count(chaos.SoakPicture(list), "<polyline") != 5) {
			t.Errorf("%s: %s%s", name, chaos.SoakTable(list), chaos.SoakPicture(list))
		}
	}
}
