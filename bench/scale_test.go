package bench

import (
	"flag"
	"fmt"
	"net/url"
	"regexp"
	"testing"
	"time"
)

var (
	scaleDevices = flag.Int("devices", 5000, "how many devices the subject scale links")
	vendorAway   = flag.Duration("outage", 30*time.Second, "how long its vendor refuses connections")
)

const (
	scaleServers   = 3
	scaleLinkers   = 8   // workspaces whose devices are linked at the same time
	scaleWorkspace = 50  // devices of a workspace
	connectRate    = 200 // connections per second that a server may open
)

// scale measures many devices over TLS on three servers that share a PostgreSQL database: how long they take to
// connect after a cold start and after an outage of the vendor, and what they hold.
func scale(t *testing.T) []figure {
	w := newScaled(t, engines(t)[1])
	empty := w.memory()
	w.linkAll()
	began := w.restart()
	cold := w.untilOnline(began)
	<-time.After(time.Minute) // the servers give back by and by what the start needed
	held := w.memory()
	return append([]figure{
		{name: w.called("connected after a cold start"), unit: "s", ours: []float64{cold.Seconds()}, extra: "goal 60"},
		{
			name: w.called("resident memory of the servers"), unit: "kB", ours: []float64{held}, extra: fmt.Sprintf(
				"%.0f kB a device, and %.0f above empty servers (goal 200)", held/w.count(), (held-empty)/w.count()),
		},
		{
			name: w.called("resident memory of the simulated vendor"), unit: "kB", ours: []float64{w.residentOf(w.vendorPID)},
		},
	}, w.outage()...)
}

// scaled are servers with many devices.
type scaled struct {
	*servers
	relays [scaleServers]*relay // each between a server and the vendor
}

func newScaled(t *testing.T, e engine) *scaled {
	t.Helper()
	w := &scaled{servers: prepareServers(t, e)}
	vendor, err := url.Parse(w.vendor.URL)
	if err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, fmt.Sprintf("POSTERN_CONNECT_RATE=%d", connectRate))
	for i := range w.relays {
		w.relays[i] = newRelay(t, vendor.Host)
	}
	w.startAll()
	return w
}

// startAll starts the servers, each of which reaches the vendor through its relay.
func (w *scaled) startAll() {
	w.t.Helper()
	w.cmds, w.urls = nil, nil
	common := w.network
	for i, r := range w.relays {
		at, _ := url.Parse(w.vendor.URL)
		at.Host = r.listener.Addr().String()
		w.network = append([]string{"--network-url", at.String()}, common[2:]...)
		cmd, address := w.start([]string{"data", "data2", "data3"}[i])
		w.cmds, w.urls = append(w.cmds, cmd), append(w.urls, address)
	}
	w.network, w.url = common, w.urls[0]
}

func (w *scaled) count() float64 { return float64(*scaleDevices) }

func (w *scaled) called(what string) string {
	return fmt.Sprintf("%s, %d devices over TLS on %d servers", what, *scaleDevices, scaleServers)
}

// linkAll links the devices, spread over the servers.
func (w *scaled) linkAll() {
	w.t.Helper()
	each := scaleWorkspace
	spaces := (*scaleDevices + each - 1) / each
	for range spaces {
		ws := regexp.MustCompile(`ws_[0-9A-Z]+`).
			FindString(w.postern("workspace", "create", "--name", "x", "--plan", "enterprise"))
		w.keys = append(w.keys, regexp.MustCompile(`pst_[0-9A-Za-z]+`).
			FindString(w.postern("key", "create", "--workspace", ws, "--name", "x")))
	}
	began := time.Now()
	inParallel(scaleLinkers, func(linker int) error {
		for s := linker; s < spaces; s += scaleLinkers {
			for n := s * each; n < min((s+1)*each, *scaleDevices); n++ {
				w.linkAt(w.urls[s%len(w.urls)], w.keys[s], n)
			}
		}
		return nil
	}, w.t)
	w.untilOnline(began)
	w.t.Logf("%d devices linked in %v", *scaleDevices, time.Since(began).Round(time.Second))
}

// linkAt links the device with a number at a server.
func (w *scaled) linkAt(server, key string, n int) {
	w.t.Helper()
	at := *w.fleetOf
	at.url = server
	var d struct{ ID string }
	at.call("POST", server+"/v1/devices", key, map[string]string{"name": "d"}, &d)
	at.link(key, d.ID, fmt.Sprintf(ourNumber, n))
}

// restart kills all servers, starts them again, and returns when it began to start them.
func (w *scaled) restart() (began time.Time) {
	w.t.Helper()
	for _, cmd := range w.cmds {
		cmd.Process.Kill()
	}
	for _, cmd := range w.cmds {
		cmd.Wait()
	}
	began = time.Now()
	w.startAll()
	return began
}

// online returns how many devices the vendor has a connection of.
func (w *scaled) online() (n int) {
	var list struct{ Data []struct{ Online bool } }
	w.call("GET", w.vendor.Control+"/accounts", "", nil, &list)
	for _, a := range list.Data {
		if a.Online {
			n++
		}
	}
	return n
}

// untilOnline waits until all devices are connected, and returns how long after a moment that was.
func (w *scaled) untilOnline(since time.Time) time.Duration {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Minute); ; <-time.After(200 * time.Millisecond) {
		n := w.online()
		if n == *scaleDevices {
			return time.Since(since)
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d of %d devices are connected", n, *scaleDevices)
		}
	}
}

// outage lets the vendor drop all connections and refuse new ones for a while.
func (w *scaled) outage() []figure {
	w.t.Helper()
	began := time.Now()
	var none map[string]any
	w.call("POST", w.vendor.Control+"/faults", "",
		map[string]string{"account": "*", "kind": fmt.Sprintf("offline:%.0f", vendorAway.Seconds())}, &none)
	back := w.untilOnline(began) - *vendorAway
	most := figure{
		name: "most connections that a server opened within a second", bare: []float64{connectRate},
		extra:   "bare: POSTERN_CONNECT_RATE; the relay, which counts them, may notice some late",
		ceiling: 1.05,
	}
	var busiest int
	for _, r := range w.relays {
		busiest = max(busiest, r.busiest(began))
	}
	most.ours = []float64{float64(busiest)}
	return []figure{{
		name: w.called(fmt.Sprintf("connected after %v without the vendor", *vendorAway)), unit: "s",
		ours: []float64{back.Seconds()}, extra: "counted from the vendor's return (goal 90)",
	}, most}
}

// memory returns the resident memory of all servers in kB.
func (w *scaled) memory() (sum float64) {
	<-time.After(3 * time.Second)
	for _, cmd := range w.cmds {
		sum += w.residentOf(cmd.Process.Pid)
	}
	return sum
}
