package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"postern/bench/bare"
)

// fleetOf measures the gateway's process, with the simulated vendor in a separate
// process, over TLS.
type fleetOf struct {
	t         *testing.T
	dir       string
	bin       string
	prefix    []string // a command that runs the gateway, such as nice
	network   []string // the gateway's flags for the vendor
	vendor    bare.Remote
	vendorPID int      // id of the vendor's process
	env       []string // of the gateway and of commands, beside that of this process
	gateway   *exec.Cmd
	url       string
	keys      []string // one workspace holds 50 devices
	devices   []string // their ids
}

const lookEach = 20 * time.Millisecond // a plan allows only so many requests

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
	f.vendorPID = cmd.Process.Pid
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		f.t.Fatal(err)
	}
	if err := json.Unmarshal(line, &f.vendor); err != nil {
		f.t.Fatal(err)
	}
	f.network = []string{
		"--network-url", f.vendor.URL, "--network-root-key", f.vendor.RootKey, "--network-ca", f.vendor.CA,
		"--allow-private-webhooks=on",
	}
}

// useDatabase makes the gateway use the PostgreSQL database with a URL; "" is the embedded one.
func (f *fleetOf) useDatabase(url string) {
	f.t.Helper()
	if url == "" {
		return
	}
	key := filepath.Join(f.dir, "secret.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("A", 43)+"=\n"), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.env = []string{"POSTERN_DATABASE_URL=" + url, "POSTERN_SECRET_KEY_FILE=" + key}
}

// command is one of our programs, or another one, with the environment of the gateway.
func (f *fleetOf) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(f.t.Context(), name, args...)
	cmd.Env = append(os.Environ(), f.env...)
	return cmd
}

func (f *fleetOf) boot() { f.gateway, f.url = f.start("data") }

// start starts a gateway with the data directory of a name, and returns it with its URL.
func (f *fleetOf) start(name string) (cmd *exec.Cmd, url string) {
	f.t.Helper()
	args := []string{
		"serve", "--data-dir", filepath.Join(f.dir, name), "--addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0",
	}
	args = append(append(slices.Clone(f.prefix), filepath.Join(f.bin, "postern")), append(args, f.network...)...)
	cmd = f.command(args[0], args[1:]...)
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
			go io.Copy(io.Discard, lines)
			return cmd, m[1]
		}
	}
}

func (f *fleetOf) kill() {
	f.gateway.Process.Kill()
	f.gateway.Wait()
}

func (f *fleetOf) postern(args ...string) string {
	f.t.Helper()
	out, err := f.command(filepath.Join(f.bin, "postern"),
		append(args, "--json", "--data-dir", filepath.Join(f.dir, "data"))...).Output()
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
	req, err := http.NewRequestWithContext(f.t.Context(), method, url, bytes.NewReader(body))
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
	for len(f.devices) < n {
		if len(f.devices)%50 == 0 {
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
		f.link(key, d.ID, fmt.Sprintf(ourNumber, len(f.devices)))
		f.devices = append(f.devices, d.ID)
	}
	f.awaitConnected()
}

// link scans the code of a device with the phone of a number.
func (f *fleetOf) link(key, device, number string) {
	f.t.Helper()
	var l struct{ QR string }
	f.call("POST", f.url+"/v1/devices/"+device+"/link", key, nil, &l)
	for l.QR == "" {
		<-time.After(lookEach)
		f.call("GET", f.url+"/v1/devices/"+device+"/link", key, nil, &l)
	}
	var none map[string]any
	status := f.call("POST", f.vendor.Control+"/scan", "", map[string]string{"qr": l.QR, "phoneNumber": number}, &none)
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
		if connected == len(f.devices) {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%d of %d devices are connected", connected, len(f.devices))
		}
		<-time.After(lookEach)
	}
}

// receive registers a receiver for the events that are named, or for all. It answers the handshake,
// and every other delivery by answer.
func (f *fleetOf) receive(key string, answer http.HandlerFunc, events ...string) (endpoint string) {
	f.t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e event
		if json.NewDecoder(r.Body).Decode(&e) == nil && e.Challenge != "" {
			json.NewEncoder(w).Encode(map[string]string{"challenge": e.Challenge})
			return
		}
		answer(w, r.WithContext(context.WithValue(r.Context(), eventKey{}, e)))
	}))
	f.t.Cleanup(srv.CloseClientConnections)
	body := map[string]any{"url": srv.URL}
	if len(events) > 0 {
		body["events"] = events
	}
	var hook struct{ ID, Status string }
	f.call("POST", f.url+"/v1/webhooks", key, body, &hook)
	for hook.Status != "active" {
		<-time.After(lookEach)
		f.call("GET", f.url+"/v1/webhooks/"+hook.ID, key, nil, &hook)
	}
	return hook.ID
}

type (
	event struct {
		Type      string
		Challenge string
		Timestamp time.Time
		Message   struct{ ID, Body string }
	}
	eventKey struct{}
)

// eventOf returns what a receiver was sent.
func eventOf(r *http.Request) event {
	e, _ := r.Context().Value(eventKey{}).(event)
	return e
}

// inbound lets somebody write to a number.
func (f *fleetOf) inbound(number, text string) {
	var none map[string]any
	f.call("POST", f.vendor.Control+"/inbound", "",
		map[string]string{"to": number, "from": "+15551234567", "type": "text", "body": text}, &none)
}

// resident returns the gateway's resident memory in kB after it has settled.
func (f *fleetOf) resident() float64 { return f.residentAfter(3 * time.Second) }

// residentAfter waits, since there is no event for it: the runtime returns memory by itself.
func (f *fleetOf) residentAfter(wait time.Duration) float64 {
	f.t.Helper()
	<-time.After(wait)
	return f.residentNow()
}

// residentLater is one reading of the gateway's resident memory after it has given back what its start
// used, and after the collection that the runtime makes every two minutes.
func (f *fleetOf) residentLater(what string) figure {
	f.t.Helper()
	return figure{
		name: "resident memory, " + what + ", 130 s after the last start", unit: "kB",
		ours: []float64{f.residentAfter(130 * time.Second)}, extra: "one reading",
	}
}

func (f *fleetOf) residentNow() float64 { return f.residentOf(f.gateway.Process.Pid) }

// residentOf returns the resident memory of a process in kB.
func (f *fleetOf) residentOf(pid int) float64 {
	f.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
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
