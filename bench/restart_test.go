package bench

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var restartDevices = flag.Int("restarted", 2000, "how many devices the subject restart links")

// restart measures how long one server takes to connect many devices over TLS after it was killed, and what an idle one
// of them holds.
func restart(t *testing.T) []figure {
	f := newFleet(t)
	_, resting := f.startAndRest()
	f.boot()
	f.grow(*restartDevices)
	connected := figure{
		name: fmt.Sprintf("%d devices connected after kill -9 and start", *restartDevices), unit: "ms", extra: "goal 20 s",
	}
	rss := figure{name: fmt.Sprintf("resident memory, %d idle devices over TLS", *restartDevices), unit: "kB"}
	for range rounds {
		f.kill()
		at := time.Now()
		f.boot()
		f.awaitConnected()
		connected.ours = append(connected.ours, float64(time.Since(at).Milliseconds()))
		rss.ours = append(rss.ours, f.residentAfter(max(3*time.Second, time.Until(at.Add(givenBack)))))
	}
	rss.extra = fmt.Sprintf("%.0f kB a device above the %.0f kB of an empty gateway (goal 160)",
		(median(rss.ours)-median(resting.ours))/float64(*restartDevices), median(resting.ours))
	return []figure{connected, rss}
}
