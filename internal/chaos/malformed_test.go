package chaos_test

import (
	"fmt"
	"testing"
	"time"
)

// TestT28MalformedFrameStopsOneDevice: frames that end the process cost the device that gets
// them its connection, and the others a restart. Each time the others are connected before
// that device is, and after three crashes it is not connected any more, until it is resumed.
func TestT28MalformedFrameStopsOneDevice(t *testing.T) {
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			w := newGateway(t, options{Bin: bin, Devices: 4, Room: 1, Seed: 1, Database: engine})
			w.linkAll()
			bad, others := w.devices[0], w.devices[1:]
			const crashes = 3
			for n := range crashes {
				if n > 0 { // as the first frame after the login, which the device reaches last
					w.await("the vendor to notice the crash", func() bool { return !w.online(bad) })
					w.malform(bad, n)
					w.boot()
				} else {
					w.malform(bad, n)
				}
				w.crashed()
			}
			w.await("the vendor to notice the crash", func() bool { return !w.online(bad) })
			w.boot()
			for _, d := range others {
				w.await("the others", func() bool { return w.state(d).Status == "connected" })
				if got, want := w.connections(d), crashes+1; got != want {
					t.Errorf("%s was connected %d times, want %d", d.number, got, want)
				}
			}
			if s := w.state(bad); s.Status != "disconnected" || s.StatusReason != "quarantined" {
				t.Errorf("after %d crashes the device is %+v", crashes, s)
			}
			w.api("POST", "/v1/devices/"+bad.id+"/resume", nil, nil)
			w.await("the device that was resumed", func() bool { return w.state(bad).Status == "connected" })
		})
	}
}

// malform sends one of the vendor's malformed frames to a device, or keeps it for the login.
func (w *world) malform(d device, n int) {
	w.t.Helper()
	kind := fmt.Sprint("malformed:", n)
	if err := w.vendor.ask("POST", "/faults", map[string]string{"account": d.number, "kind": kind}, nil); err != nil {
		w.t.Fatal(err)
	}
}

// crashed waits until the gateway has ended by itself.
func (w *world) crashed() {
	w.t.Helper()
	select {
	case <-w.gateway.running().ended:
	case <-time.After(patience(w.t)):
		w.t.Fatal("the gateway does not crash")
	}
}

func (w *world) online(d device) bool {
	var list struct {
		Data []struct {
			Number string
			Online bool
		}
	}
	if err := w.vendor.ask("GET", "/accounts", nil, &list); err != nil {
		w.t.Error(err)
	}
	for _, a := range list.Data {
		if a.Number == d.number {
			return a.Online
		}
	}
	return false
}

type deviceState struct{ Status, StatusReason string }

func (w *world) state(d device) (s deviceState) {
	w.api("GET", "/v1/devices/"+d.id, nil, &s)
	return s
}

// connections counts how often a device became connected.
func (w *world) connections(d device) int {
	var log struct{ Data []struct{ Type string } }
	w.api("GET", "/v1/events?limit=200&type=device.connected&deviceId="+d.id, nil, &log)
	return len(log.Data)
}
