package bench

import (
	"fmt"
	"testing"
	"time"
)

// givenBack is when a server has given back the memory that the connection of its devices needed: it does so 2, 6 and
// 14 seconds after its start. Without this, a faster machine reads 266 kB for a device instead of 155, because it reads
// a moment before.
const givenBack = 8 * time.Second

// empty measures an empty gateway.
func empty(t *testing.T) []figure {
	start, resting := newFleet(t).startAndRest()
	return []figure{start, resting}
}

// startAndRest measures the start of an empty gateway and the memory that it holds afterwards.
func (f *fleetOf) startAndRest() (start, resting figure) {
	f.t.Helper()
	start = figure{name: "start to serving, no devices", unit: "ms", extra: "process included (two peers: 91 and 49)"}
	resting = figure{name: "resident memory, no devices", unit: "kB", extra: "goal 32 MB (two peers: 32 and 18)"}
	for range rounds {
		at := time.Now()
		f.boot()
		start.ours = append(start.ours, float64(time.Since(at).Milliseconds()))
		resting.ours = append(resting.ours, f.resident())
		f.kill()
	}
	return start, resting
}

// memory measures an empty gateway, the memory of an idle linked device after a restart, and how
// long 500 devices take to reconnect.
func memory(t *testing.T) []figure {
	f := newFleet(t)
	start, resting := f.startAndRest()
	f.boot()
	list := []figure{start, resting, f.residentLater("no devices")}
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
			rss.ours = append(rss.ours, f.residentAfter(max(3*time.Second, time.Until(at.Add(givenBack)))))
		}
		rss.extra = fmt.Sprintf("%.0f kB a device above the %.0f kB of an empty gateway (goal 200, at most 250)",
			(median(rss.ours)-median(resting.ours))/float64(n), median(resting.ours))
		list = append(list, rss, again, f.residentLater(fmt.Sprintf("%d idle devices", n)))
	}
	return list
}
