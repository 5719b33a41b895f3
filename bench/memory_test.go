package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fleetOf measures the gateway's process, with the simulated vendor in a separate
// process, over TLS.
type fleetOf struct {
	t       *testing.T
	dir     string
	bin     string
	prefix  []string // a command that runs the gateway, such as nice
	network []string // the gateway's flags for the vendor
	control string
	gateway *exec.Cmd
	url     string
	keys    []string // one workspace holds 50 devices
	devices int
}

// newFleet starts the simulated vendor. prefix is a command that runs it, such as nice.
func newFleet(t *testing.T, prefix ...string) *fleetOf {
	t.Helper()
	dir, err := os.MkdirTemp("", "fleet") //nolint:usetesting // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f := &fleetOf{t: t, dir: dir, bin: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", f.bin, "postern/cmd/postern",
		"postern/cmd/vendorsim")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f.startVendor(prefix)
	return f
}

func (f *fleetOf) startVendor(prefix []string) {
	args := append(slices.Clone(prefix), filepath.Join(f.bin, "vendorsim"), "--listen", "127.0.0.1:0", "--control",
		"127.0.0.1:0", "--state", filepath.Join(f.dir, "vendor"))
	cmd := exec.CommandContext(f.t.Context(), args[0], args[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		f.t.Fatal(err)
	}
	var ready struct{ URL, RootKey, CA, Control string }
	if err := json.Unmarshal(line, &ready); err != nil {
		f.t.Fatal(err)
	}
	f.control = ready.Control
	f.network = []string{"--network-url", ready.URL, "--network-root-key", ready.RootKey, "--network-ca", ready.CA}
}

func (f *fleetOf) boot() {
	args := []string{
		"serve", "--data-dir", filepath.Join(f.dir, "data"), "--addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0",
	}
	args = append(append(slices.Clone(f.prefix), filepath.Join(f.bin, "postern")), append(args, f.network...)...)
	cmd := exec.CommandContext(f.t.Context(), args[0], args[1:]...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	lines := bufio.NewReader(errs)
	at := regexp.MustCompile(`"msg":"serving","url":"([^"]+)"`)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			f.t.Fatalf("the gateway did not start: %v", err)
		}
		if m := at.FindStringSubmatch(line); m != nil {
			f.gateway, f.url = cmd, m[1]
			break
		}
	}
	go io.Copy(io.Discard, lines)
}

func (f *fleetOf) kill() {
	f.gateway.Process.Kill()
	f.gateway.Wait()
}

func (f *fleetOf) postern(args ...string) string {
	f.t.Helper()
	out, err := exec.CommandContext(f.t.Context(), filepath.Join(f.bin, "postern"),
		append(args, "--json", "--data-dir",
			filepath.Join(f.dir, "data"))...).
		Output()
	if err != nil {
		f.t.Fatalf("postern %v: %v", args, err)
	}
	return string(out)
}

func (f *fleetOf) call(method, url, key string, in, out any) int {
	f.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		f.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, url, bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if in == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		f.t.Fatalf("%s %s = %d: %v", method, url, res.StatusCode, err)
	}
	return res.StatusCode
}

// grow links devices until there are n.
func (f *fleetOf) grow(n int) {
	f.t.Helper()
	for f.devices < n {
		if f.devices%50 == 0 {
			ws := regexp.MustCompile(`ws_[0-9A-Z]+`).
				FindString(f.postern("workspace", "create", "--name", "x", "--plan", "enterprise"))
			f.keys = append(
				f.keys,
				regexp.MustCompile(`pst_[0-9A-Za-z]+`).
					FindString(f.postern("key", "create", "--workspace", ws, "--name", "x")),
			)
		}
		key := f.keys[len(f.keys)-1]
		var d struct{ ID string }
		f.call("POST", f.url+"/v1/devices", key, map[string]string{"name": "d"}, &d)
		f.link(key, d.ID, fmt.Sprintf("+1555000%04d", f.devices))
		f.devices++
	}
	f.awaitConnected()
}

// link scans the code of a device with the phone of a number.
func (f *fleetOf) link(key, device, number string) {
	f.t.Helper()
	var l struct{ QR string }
	f.call("POST", f.url+"/v1/devices/"+device+"/link", key, nil, &l)
	for l.QR == "" {
		f.call("GET", f.url+"/v1/devices/"+device+"/link", key, nil, &l)
	}
	var none map[string]any
	status := f.call("POST", f.control+"/scan", "", map[string]string{"qr": l.QR, "phoneNumber": number}, &none)
	if status != http.StatusOK {
		f.t.Fatal(none)
	}
}

func (f *fleetOf) awaitConnected() {
	f.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		connected := 0
		for _, key := range f.keys {
			var list struct{ Data []struct{ Status string } }
			f.call("GET", f.url+"/v1/devices?limit=200", key, nil, &list)
			for _, d := range list.Data {
				if d.Status == "connected" {
					connected++
				}
			}
		}
		if connected == f.devices {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%d of %d devices are connected", connected, f.devices)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// resident returns the gateway's resident memory in kB after it has settled.
func (f *fleetOf) resident() float64 {
	f.t.Helper()
	<-time.After(3 * time.Second) // there is no event to wait for: the runtime returns memory by itself
	return f.residentNow()
}

func (f *fleetOf) residentNow() float64 {
	f.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.gateway.Process.Pid))
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kB, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				f.t.Fatal(err)
			}
			return kB
		}
	}
	f.t.Fatal("no VmRSS")
	return 0
}

// memory measures an empty gateway, the memory of an idle linked device after a restart, and how
// long 500 devices take to reconnect.
func memory(t *testing.T) []figure {
	f := newFleet(t)
	start := figure{name: "start to serving, no devices", unit: "ms", extra: "process included (two peers: 91 and 49)"}
	resting := figure{name: "resident memory, no devices", unit: "kB", extra: "goal 32 MB (two peers: 32 and 18)"}
	for range rounds {
		at := time.Now()
		f.boot()
		start.ours = append(start.ours, float64(time.Since(at).Milliseconds()))
		resting.ours = append(resting.ours, f.resident())
		f.kill()
	}
	empty := resting.ours
	f.boot()
	list := []figure{start, resting}
	for _, n := range []int{1, 100, 500} {
		f.grow(n)
		rss := figure{name: fmt.Sprintf("resident memory, %d idle devices over TLS", n), unit: "kB"}
		again := figure{
			name: fmt.Sprintf("%d devices connected after kill -9 and start", n), unit: "ms",
			extra: "goal 10 s for 500",
		}
		for range rounds {
			f.kill() // memory used for linking is not part of the cost of an idle device
			at := time.Now()
			f.boot()
			f.awaitConnected()
			again.ours = append(again.ours, float64(time.Since(at).Milliseconds()))
			rss.ours = append(rss.ours, f.resident())
		}
		rss.extra = fmt.Sprintf("%.0f kB a device above the %.0f kB of an empty gateway (goal 200, at most 250)",
			(median(rss.ours)-median(empty))/float64(n), median(empty))
		list = append(list, rss, again)
	}
	return list
}
