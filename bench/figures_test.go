// Package bench measures Postern and bare limits in the same run. Only the ratio is
// meaningful, because the machine's speed varies.
package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/bench/bare"
	"postern/internal/postern"
	"postern/internal/testkit"
)

var (
	run   = flag.Bool("figures", false, "measure the figures")
	only  = flag.String("only", "", "measure one figure: devices, accept, traffic, files, deliver, slow, isolate, memory, pages, search or neighbour")
	out   = flag.String("out", "", "write the table to this file and .md, the samples to this file and .txt")
	short = flag.Duration("time", 2*time.Second, "how long each sample takes")
)

const rounds = 5 // samples of each figure, of which the median is reported

// figure is one line of the table.
type figure struct {
	name  string
	unit  string
	ours  []float64
	bare  []float64
	extra string // what else was measured, such as a percentile
	floor float64

	ceiling float64 // of the ratio; 0: none
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// samples formats the figure like a Go benchmark, for benchstat.
func (f figure) samples() string {
	var s strings.Builder
	name := strings.ReplaceAll(f.name, " ", "_")
	for i, v := range f.ours {
		fmt.Fprintf(&s, "Benchmark%s 1 %g %s", name, v, f.unit)
		if i < len(f.bare) {
			fmt.Fprintf(&s, " %g ratio", v/f.bare[i])
		}
		s.WriteByte('\n')
	}
	return s.String()
}

// judge compares the figure with its bounds.
func (f figure) judge() error {
	if len(f.bare) == 0 {
		return nil
	}
	ratio := median(f.ours) / median(f.bare)
	switch {
	case f.floor > 0 && ratio < f.floor: // without a floor it may be negative
		return fmt.Errorf("%s is at %.2f of its bare limit, want %.2f", f.name, ratio, f.floor)
	case f.ceiling > 0 && ratio > f.ceiling:
		return fmt.Errorf("%s is at %.2f of what it is without, want at most %.2f", f.name, ratio, f.ceiling)
	}
	return nil
}

func (f figure) String() string {
	ours := median(f.ours)
	line := fmt.Sprintf("| %s | %.0f %s |", f.name, ours, f.unit)
	if len(f.bare) > 0 {
		return line + fmt.Sprintf(" %.0f | %.2f | %s |", median(f.bare), ours/median(f.bare), f.extra)
	}
	return line + fmt.Sprintf(" – | – | %s |", f.extra)
}

// TestFigures measures the figures that -only names, or all of them.
func TestFigures(t *testing.T) {
	if !*run {
		t.Log("figures are measured with -figures; see make bench")
		return
	}
	var table, samples strings.Builder
	fmt.Fprintf(&table,
		"%s, %d cores, %s, kernel %s, load at start %s\n\n| figure | Postern | bare limit | ratio | beside it |\n|---|---|---|---|---|\n",
		time.Now().UTC().Format("2006-01-02 15:04 MST"), runtime.NumCPU(), runtime.Version(), kernel(), load())
	for _, m := range []struct {
		name    string
		measure func(*testing.T) []figure
	}{
		{"devices", devices},
		{"accept", accept},
		{"device", device},
		{"traffic", traffic},
		{"files", files},
		{"deliver", deliver},
		{"slow", slow},
		{"isolate", isolate},
		{"memory", memory},
		{"pages", pages},
		{"search", search},
		{"neighbour", neighbour},
	} {
		if *only != "" && *only != m.name {
			continue
		}
		for _, f := range m.measure(t) {
			fmt.Fprintln(&table, f)
			samples.WriteString(f.samples())
			if err := f.judge(); err != nil {
				t.Error(err)
			}
		}
	}
	fmt.Fprintf(&table,
		"\nLoad at end %s. Each figure is the median of %d samples, taken in turn with its bare limit.\n", load(),
		rounds)
	t.Log("\n" + table.String())
	if *out != "" {
		err := os.WriteFile(*out+".md", []byte("# Figures\n\n"+table.String()), 0o644)
		if err := errors.Join(err, os.WriteFile(*out+".txt", []byte(samples.String()), 0o644)); err != nil {
			t.Error(err)
		}
	}
}

func kernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(b))
}

func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Join(strings.Fields(string(b))[:2], " ")
}

// pound calls do from a number of goroutines for a while. It returns the calls per second
// and the 99th percentile of their duration.
func pound(t *testing.T, callers int, do func() error) (rate float64, p99 time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var all []time.Duration
	var group sync.WaitGroup
	start := time.Now()
	for range callers {
		group.Go(func() {
			var mine []time.Duration
			for time.Since(start) < *short {
				at := time.Now()
				if err := do(); err != nil {
					t.Error(err)
					return
				}
				mine = append(mine, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
	}
	group.Wait()
	if len(all) == 0 {
		t.Fatal("nothing was measured")
	}
	rate = float64(len(all)) / time.Since(start).Seconds()
	slices.Sort(all)
	return rate, all[len(all)*99/100]
}

// kept is a transport that keeps as many idle connections as there are callers.
var kept = &http.Transport{MaxIdleConnsPerHost: 256}

// caller makes one request after another on reused connections.
func caller(c *testkit.Client, method, url, body string, want int) func() error {
	return func() error {
		req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+c.Key)
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		res, err := kept.RoundTrip(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return err
		}
		if res.StatusCode != want {
			return fmt.Errorf("%s %s = %d", method, url, res.StatusCode)
		}
		return nil
	}
}

// devices measures GET /v1/devices with five devices on 16 connections.
func devices(t *testing.T) []figure {
	k := testkit.Start(t)
	c := fiveDevices(k)
	body := c.Do("GET", "/v1/devices", nil).Body
	plain := httptest.NewServer(bare.Handler(body))
	defer plain.Close()
	f := figure{name: "GET /v1/devices, 5 devices, 16 connections", unit: "requests/s", floor: 0.5}
	for range rounds {
		rate, _ := pound(t, 16, spread(k))
		f.ours = append(f.ours, rate)
		rate, _ = pound(t, 16, caller(c, "GET", plain.URL, "", 200))
		f.bare = append(f.bare, rate)
	}
	return []figure{f}
}

// spread requests the devices of several workspaces in turn, because a single one would
// use up its plan's 30,000 requests per minute.
func spread(k *testkit.Kit) func() error {
	var calls []func() error
	for range 4 {
		calls = append(calls, caller(fiveDevices(k), "GET", k.URL()+"/v1/devices", "", 200))
	}
	var n atomic.Int64
	return func() error { return calls[int(n.Add(1))%len(calls)]() }
}

func fiveDevices(k *testkit.Kit) *testkit.Client {
	c := k.Workspace("enterprise")
	for range 5 {
		c.Call("POST", "/v1/devices", map[string]any{"name": "support"}, 201, nil)
	}
	return c
}

// accept measures durable POST /v1/messages from 64 callers while the device sends the
// accepted messages. Each sample has its own workspace, because of the plan's rate limit.
func accept(t *testing.T) []figure {
	k := testkit.Start(t)
	f := figure{name: "messages accepted, 64 callers, fsynced", unit: "/s"}
	var p99s []float64
	for n := range rounds {
		c := k.Workspace("enterprise")
		d := c.Link(fmt.Sprintf("+1555000%04d", n))
		body := `{"deviceId":"` + string(d.ID) + `","to":"+15005550002","body":"A message of ordinary length, as people write them."}`
		rate, p99 := pound(t, 64, caller(c, "POST", k.URL()+"/v1/messages", body, 202))
		f.ours, p99s = append(f.ours, rate), append(p99s, float64(p99.Microseconds())/1000)
		// Unlink, so that queued messages are not sent during the next sample.
		c.Call("POST", "/v1/devices/"+string(d.ID)+"/unlink", nil, 200, nil)
		f.bare = append(f.bare, bareCommits(t))
	}
	f.extra = fmt.Sprintf("p99 %.1f ms (goal 5,000/s, 25 ms); bare: group commit of one 500-byte row, no HTTP",
		median(p99s))
	return []figure{f}
}

func bareCommits(t *testing.T) float64 {
	t.Helper()
	commits, err := bare.OpenCommits(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	row := strings.Repeat("x", 500)
	rate, _ := pound(t, 64, func() error { return commits.Write(row) })
	if err := commits.Close(); err != nil {
		t.Fatal(err)
	}
	return rate
}

// fleet are devices that have the same load.
type fleet struct {
	devices   int
	perDevice int // messages of each device in a sample
	callers   int // that send messages by each device
}

// traffic measures texts through 50 devices.
func traffic(t *testing.T) []figure { return trafficOf(t, fleet{50, 40, 1}, 0, 0) }

// device measures texts through one device and ten.
func device(t *testing.T) []figure {
	return append(trafficOf(t, fleet{1, 400, 16}, 0.95, 0.9), trafficOf(t, fleet{10, 100, 2}, 1.5, 1.3)...)
}

// trafficOf measures texts: sent until the vendor has confirmed them, and received until a
// webhook receiver has answered. It compares them with plain clients that only send and decrypt.
func trafficOf(t *testing.T, all fleet, sent, received float64) []figure {
	k := testkit.Start(t)
	c := k.Workspace("enterprise")
	hooks := c.Receive("message.received")
	var list []postern.Device
	for n := range all.devices {
		list = append(list, c.Link(fmt.Sprintf("+1555000%04d", n)))
	}
	clients := bareClientsOf(t, k, all.devices)
	each := fmt.Sprintf("%d devices", all.devices)
	if all.devices == 1 {
		each = "one device"
	}
	sends := figure{
		name: "texts sent, " + each, unit: "/s", floor: sent,
		extra: "accepted to confirmed by the vendor (two peers on such a machine: 872 to 1,320/s); bare: whatsmeow on its sqlstore, the same fsync",
	}
	inbound := figure{
		name: "texts received, " + each, unit: "/s", floor: received,
		extra: "written to answered by the webhook receiver (two peers on such a machine, not durable: 850 to 1,130/s); bare: whatsmeow, decrypted and dropped",
	}
	total := all.devices * all.perDevice
	for round := range rounds {
		sends.ours = append(sends.ours, timed(total, func() { all.send(t, c, k, list) }))
		sends.bare = append(sends.bare, timed(total, func() {
			inParallel(all.devices, func(n int) error {
				for range all.perDevice {
					if err := clients.Send(t.Context(), n, "15005550002", "A message of ordinary length."); err != nil {
						return err
					}
				}
				return nil
			}, t)
		}))
		inbound.ours = append(inbound.ours, timed(total, func() {
			all.receive(t, k, "+1555000%04d")
			hooks.AwaitCount(postern.MessageReceived, (round+1)*total)
		}))
		inbound.bare = append(inbound.bare, timed(total, func() {
			all.receive(t, k, "+1555900%04d")
			if err := clients.AwaitReceived(t.Context(), (round+1)*total); err != nil {
				t.Fatal(err)
			}
		}))
	}
	return []figure{sends, inbound}
}

func timed(n int, do func()) float64 {
	at := time.Now()
	do()
	return float64(n) / time.Since(at).Seconds()
}

func inParallel(n int, do func(int) error, t *testing.T) {
	t.Helper()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if err := do(i); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func bareClientsOf(t *testing.T, k *testkit.Kit, n int) *bare.Clients {
	t.Helper()
	clients, err := bare.OpenClients(t.Context(), bare.In(k.Vendor), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clients.Close(); err != nil {
			t.Error(err)
		}
	})
	for n := range n {
		if _, err := clients.Link(t.Context(), fmt.Sprintf("+1555900%04d", n)); err != nil {
			t.Fatal(err)
		}
	}
	return clients
}

// receive lets a contact write to every account of the fleet.
func (f fleet) receive(t *testing.T, k *testkit.Kit, number string) {
	t.Helper()
	inParallel(f.devices, func(n int) error {
		for range f.perDevice {
			if _, err := k.Vendor.Send(t.Context(), fmt.Sprintf(number, n), "+15551234567",
				"A message of ordinary length."); err != nil {
				return err
			}
		}
		return nil
	}, t)
}

// send lets every device send, and waits until the vendor has confirmed everything.
func (f fleet) send(t *testing.T, c *testkit.Client, k *testkit.Kit, list []postern.Device) {
	t.Helper()
	inParallel(f.devices*f.callers, func(n int) error {
		call := caller(c, "POST", k.URL()+"/v1/messages",
			`{"deviceId":"`+string(list[n%f.devices].ID)+`","to":"+15005550002","body":"A message of ordinary length."}`, 202)
		for range f.perDevice / f.callers {
			if err := call(); err != nil {
				return err
			}
		}
		return nil
	}, t)
	for _, d := range list {
		awaitNewestSent(t, c, d.ID)
	}
}
