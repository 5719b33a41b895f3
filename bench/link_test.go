package bench

import (
	"fmt"
	"testing"
	"time"

	"postern/bench/bare"
	"postern/internal/postern"
	"postern/internal/testkit"
)

// link measures linking a device beside a bare client of the same simulated vendor, on both engines:
// from the request to the code, and from the scan until the device is connected.
func link(t *testing.T) (list []figure) {
	for _, e := range engines(t) {
		t.Run(e.name, func(t *testing.T) { list = append(list, links(t, e)...) })
	}
	return list
}

func links(t *testing.T, e engine) []figure {
	k := testkit.StartAsServed(t, e.url(t))
	c := k.Workspace("enterprise")
	clients := bareClientsOf(t, k, 0)
	shown := figure{name: "code of a link shown" + e.on(), unit: "ms", extra: "from the request for a link"}
	connected := figure{name: "device connected after the scan" + e.on(), unit: "ms"}
	for n := range rounds {
		ours := linkDevice(t, k, c, fmt.Sprintf(ourNumber, n))
		plain, err := clients.Link(t.Context(), fmt.Sprintf(bareNumber, n))
		if err != nil {
			t.Fatal(err)
		}
		shown.ours, shown.bare = append(shown.ours, millis(ours.Shown)), append(shown.bare, millis(plain.Shown))
		connected.ours = append(connected.ours, millis(ours.Connected))
		connected.bare = append(connected.bare, millis(plain.Connected))
	}
	connected.extra = fmt.Sprintf("%+.1f ms after bare (goal 40), which writes 50 keys with an fsync each",
		median(connected.ours)-median(connected.bare))
	return []figure{shown, connected}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// linkDevice links a new device as an API client does, and scans its code.
func linkDevice(t *testing.T, k *testkit.Kit, c *testkit.Client, number string) (took bare.Linked) {
	t.Helper()
	var d postern.Device
	c.Call("POST", "/v1/devices", map[string]any{"name": "support"}, 201, &d)
	path := "/v1/devices/" + string(d.ID)
	began := time.Now()
	var attempt struct{ QR string }
	c.Call("POST", path+"/link", nil, 201, &attempt)
	for attempt.QR == "" {
		<-time.After(time.Millisecond)
		c.Call("GET", path+"/link", nil, 200, &attempt)
	}
	took.Shown = time.Since(began)
	scanned := time.Now()
	if err := k.Vendor.Scan(t.Context(), attempt.QR, number); err != nil {
		t.Fatal(err)
	}
	for c.Device(d.ID).Status != postern.Connected {
		<-time.After(time.Millisecond)
	}
	took.Connected = time.Since(scanned)
	return took
}
