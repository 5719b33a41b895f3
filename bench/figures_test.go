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
	"postern/internal/db/dbtest"
	"postern/internal/testkit"
)

var (
	run  = flag.Bool("figures", false, "measure the figures")
	only = flag.String("only", "", "measure one subject: devices, accept, device, inbound, link, files, deliver, slow, "+
		"recover, isolate, memory, empty, pages, search, neighbour, nodes or scale")
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
		return fmt.Errorf("%s is at %.2f of its bare value, want at most %.2f", f.name, ratio, f.ceiling)
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

// subject is a name by which figures can be measured alone.
type subject struct {
	name    string
	measure func(*testing.T) []figure
	apart   bool // a run of all leaves it out: its figures belong to another subject, too, or it takes long
}

func subjects() []subject {
	return []subject{
		{name: "devices", measure: devices},
		{name: "accept", measure: accept},
		{name: "device", measure: device},
		{name: "inbound", measure: inbound},
		{name: "link", measure: link},
		{name: "files", measure: files},
		{name: "group", measure: group},
		{name: "deliver", measure: deliver},
		{name: "slow", measure: slow},
		{name: "recover", measure: recovery},
		{name: "isolate", measure: isolate},
		{name: "memory", measure: memory},
		{name: "empty", measure: empty, apart: true},
		{name: "pages", measure: pages},
		{name: "search", measure: search},
		{name: "neighbour", measure: neighbour},
		{name: "nodes", measure: nodes},
		{name: "scale", measure: scale, apart: true},
		{name: "restart", measure: restart, apart: true},
	}
}

// subjectsNamed returns the subject with a name; "" means all.
func subjectsNamed(name string) []subject {
	return slices.DeleteFunc(subjects(), func(s subject) bool {
		return name != s.name && (name != "" || s.apart)
	})
}

// engine is a database server for measurements. url creates an empty database and returns its URL;
// "" is the embedded one.
type engine struct {
	name string
	url  func(*testing.T) string
}

// on is the end of a figure's name: nothing for the embedded database.
func (e engine) on() string {
	if e.name == "SQLite" {
		return ""
	}
	return " on " + e.name
}

// engines are both databases, each of which waits for the disk at every commit.
func engines(t *testing.T) []engine {
	t.Helper()
	cluster := dbtest.NewDurable(t)
	return []engine{
		{"SQLite", func(*testing.T) string { return "" }},
		{"PostgreSQL", func(t *testing.T) string { return cluster.URL(t) }},
	}
}

// TestFigures measures the subject that -only names, or all of them.
func TestFigures(t *testing.T) {
	if !*run {
		t.Log("figures are measured with -figures; see make bench")
		return
	}
	var table, samples strings.Builder
	fmt.Fprintf(&table,
		"%s, %d cores, %s, kernel %s, load at start %s\n\n| figure | Postern | bare limit | ratio | beside it |\n|---|---|---|---|---|\n",
		time.Now().UTC().Format("2006-01-02 15:04 MST"), runtime.NumCPU(), runtime.Version(), kernel(), load())
	chosen := subjectsNamed(*only)
	if len(chosen) == 0 {
		t.Fatalf("there is no subject named %q", *only)
	}
	for _, s := range chosen {
		t.Run(s.name, func(t *testing.T) { // what it started ends before the next one
			for _, f := range s.measure(t) {
				fmt.Fprintln(&table, f)
				samples.WriteString(f.samples())
				if err := f.judge(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	fmt.Fprintf(&table,
		"\nLoad at end %s. Each figure is the median of %d samples, taken in turn with its bare limit; those of scale are single ones.\n", load(),
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
func caller(key, method, url, body string, want int) func() error {
	return func() error {
		req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+key)
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
	k := testkit.StartAsServed(t, "")
	c := fiveDevices(k)
	body := c.Do("GET", "/v1/devices", nil).Body
	plain := httptest.NewServer(bare.Handler(body))
	defer plain.Close()
	f := figure{name: "GET /v1/devices, 5 devices, 16 connections", unit: "requests/s", floor: 0.5}
	for range rounds {
		rate, _ := pound(t, 16, spread(k))
		f.ours = append(f.ours, rate)
		rate, _ = pound(t, 16, caller(c.Key, "GET", plain.URL, "", 200))
		f.bare = append(f.bare, rate)
	}
	return []figure{f}
}

// spread requests the devices of several workspaces in turn, because a single one would
// use up its plan's 30,000 requests per minute.
func spread(k *testkit.Kit) func() error {
	var calls []func() error
	for range 4 {
		calls = append(calls, caller(fiveDevices(k).Key, "GET", k.URL()+"/v1/devices", "", 200))
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
	k := testkit.StartAsServed(t, "")
	f := figure{name: "messages accepted, 64 callers, fsynced", unit: "/s"}
	var p99s []float64
	for n := range rounds {
		c := k.Workspace("enterprise")
		d := c.Link(fmt.Sprintf("+1555000%04d", n))
		body := `{"deviceId":"` + string(d.ID) + `","to":"+15005550002","body":"A message of ordinary length, as people write them."}`
		rate, p99 := pound(t, 64, caller(c.Key, "POST", k.URL()+"/v1/messages", body, 202))
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
