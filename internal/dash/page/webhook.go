package page

import (
	"fmt"
	"strconv"
	"time"
)

// WebhookView is one endpoint.
type WebhookView struct {
	Webhook  Webhook
	Pending  string // the address that it moves to once that has answered; "": none
	Why      Why    // it is as it is
	Tries    int    // that were made of the handshake
	TriesOf  int
	NextTry  time.Time // zero: none comes
	Asked    bool      // a handshake is under way
	Ordered  bool
	Devices  []string // nil: all
	Headers  []string // names
	LastFour string   // of the secret
	Created  time.Time
	Verified time.Time
	Hours    []Hour // of the last day, the oldest first
	Change   bool   // the person may change it
	Replay   bool   // the person may replay events
}

// Why says in plain words why something failed, and what to do.
type Why struct {
	What, Do string // sentences; "": nothing to say
}

// Hour is what the attempts of an hour came to.
type Hour struct {
	At                time.Time
	Succeeded, Failed int
	MeanMs            int
}

// live is the page's own path while a handshake is under way: what it shows
// changes then.
func (v WebhookView) live() string {
	if !v.Asked {
		return ""
	}
	return path("webhooks", v.Webhook.ID)
}

func (v WebhookView) can(verb string) bool {
	switch s := v.Webhook.Status; verb {
	case "test", "replay":
		return s == "active"
	case "pause":
		return s == "active" || s == "pending"
	case "resume":
		return s == "paused" || s == "disabled"
	case "verify":
		return s == "failed" || s == "pending" || s == "active"
	}
	return false
}

func (v WebhookView) act(verb string) string { return path("webhooks", v.Webhook.ID, verb) }

// The chart's own units, which the browser stretches.
const (
	chartWide = 480
	chartHigh = 100
)

// bar is an hour of the chart: what failed stands on what succeeded.
type bar struct {
	x, width        string
	goodY, goodHigh string
	badY, badHigh   string
	good, bad       bool
}

func bars(hours []Hour) (list []bar) {
	most := 1
	for _, h := range hours {
		most = max(most, h.Succeeded+h.Failed)
	}
	step := float64(chartWide) / float64(max(len(hours), 1))
	for i, h := range hours {
		good, bad := high(h.Succeeded, most), high(h.Failed, most)
		list = append(list, bar{
			x: unit(float64(i)*step + step*0.1), width: unit(step * 0.8),
			goodY: unit(chartHigh - good), goodHigh: unit(good), badY: unit(chartHigh - good - bad), badHigh: unit(bad), good: good > 0, bad: bad > 0,
		})
	}
	return list
}

// high is the height of a number; one that is not zero can be seen.
func high(n, most int) float64 {
	if n <= 0 {
		return 0
	}
	return max(2, float64(n)/float64(most)*(chartHigh-4))
}

func unit(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

func sums(hours []Hour) (succeeded, failed int) {
	for _, h := range hours {
		succeeded += h.Succeeded
		failed += h.Failed
	}
	return succeeded, failed
}

// sent tells whether there is anything to draw.
func (v WebhookView) sent() bool {
	good, bad := sums(v.Hours)
	return good+bad > 0
}

func chartText(hours []Hour) string {
	good, bad := sums(hours)
	if good+bad == 0 {
		return fmt.Sprintf("In the last %d hours nothing was sent", len(hours))
	}
	return fmt.Sprintf("In the last %d hours %s succeeded and %d failed", len(hours), count(good, "attempt", "attempts"), bad)
}
