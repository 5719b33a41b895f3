// Package charts turns the counts of messages and attempts into the charts of the dashboard.
package charts

import (
	"fmt"

	"postern/internal/dash/numbers"
	"postern/internal/dash/page"
	"postern/internal/postern"
)

// Period is the time range of the charts.
type Period struct {
	Words string // "the last 24 hours"
	Grain page.Grain
}

// LastHour is an hour by the minute.
func LastHour() Period { return Period{"the last hour", page.Minutes} }

// LastDay is a day by the hour.
func LastDay() Period { return Period{"the last 24 hours", page.Hours} }

// LastMonth is 30 days by the day.
func LastMonth() Period { return Period{"the last 30 days", page.Days} }

// Attempts shows the results of delivery attempts.
func Attempts(hours []postern.EndpointHour, p Period) page.Chart {
	c := page.Chart{
		ID: "attempts", Title: "Webhook deliveries", Colours: "outcome", Grain: p.Grain,
		Parts: []string{"Succeeded", "Failed"}, Columns: []string{"Succeeded", "Failed", "Rate", "Mean (ms)"},
	}
	var good, bad int64
	for _, h := range hours {
		good, bad = good+h.Succeeded, bad+h.Failed
		c.Spans = append(
			c.Spans,
			span(
				h.Hour, []int64{h.Succeeded, h.Failed}, numbers.Of(h.Succeeded), numbers.Of(h.Failed),
				numbers.Rate(h.Succeeded, h.Succeeded+h.Failed),
				numbers.OrNone(h.MeanMs, h.Succeeded+h.Failed),
			),
		)
	}
	c.Gist = "Nothing was sent in " + p.Words + "."
	if good+bad > 0 {
		c.Gist = fmt.Sprintf(
			"In %s, %s succeeded and %s failed (%s success rate).", p.Words, numbers.Many(good, "attempt", "attempts"),
			numbers.Of(bad),
			numbers.Rate(good, good+bad),
		)
	}
	return c
}

// Latency shows how long receivers took to respond.
func Latency(hours []postern.EndpointHour, p Period) page.Chart {
	c := page.Chart{
		ID: "latency", Title: "Webhook latency", Grain: p.Grain, Unit: " ms", Levels: true,
		Parts:   []string{"Median", "95%", "99%"},
		Columns: []string{"Attempts", "Median (ms)", "95% (ms)", "99% (ms)", "Slowest (ms)"},
		Note: "The time from the start of an attempt to its response or timeout. Percentiles are estimated from counts of " +
			"attempts by duration.",
	}
	var all postern.Took
	var n, slowest int64
	for _, h := range hours {
		attempts := h.Succeeded + h.Failed
		n, slowest = n+attempts, max(slowest, h.MaxMs)
		for i := range all {
			all[i] += h.Took[i]
		}
		parts, cells := percentiles(h.Took, h.MaxMs)
		c.Spans = append(c.Spans, span(h.Hour, parts, numbers.Of(attempts), cells[0], cells[1], cells[2],
			numbers.OrNone(h.MaxMs, attempts)))
	}
	c.Gist = "Nothing was sent in " + p.Words + "."
	if n > 0 {
		c.Gist = fmt.Sprintf("In %s, the slowest attempt took %s ms.", p.Words, numbers.Of(slowest))
	}
	if _, cells := percentiles(all, slowest); all.Sum() > 0 && all.Sum() == n { // an earlier version counted no durations
		c.Gist = fmt.Sprintf("In %s, 50%% of attempts took at most %s ms, 95%% at most %s ms, and the slowest %s ms.",
			p.Words, cells[0], cells[1], numbers.Of(slowest))
	}
	return c
}

// percentiles returns the median, the 95th and the 99th percentile of attempts, as numbers and in words.
func percentiles(took postern.Took, slowest int64) (parts []int64, cells [3]string) {
	for i, p := range [...]int64{50, 95, 99} {
		ms, ok := took.Percentile(p, slowest)
		parts, cells[i] = append(parts, ms), "–"
		if ok {
			cells[i] = numbers.Of(ms)
		}
	}
	return parts, cells
}

// Messages shows messages sent and received.
func Messages(list []postern.MessageSpan, p Period) page.Chart {
	c := page.Chart{
		ID: "messages", Title: "Messages", Colours: "traffic", Grain: p.Grain,
		Parts: []string{"Sent", "Received", "Failed"}, Columns: []string{"Sent", "Received", "Failed"},
		Note: "Messages are counted at the time they were accepted or received. Failed messages include expired ones.",
	}
	var sum postern.MessageSpan
	for _, m := range list {
		sum.Sent, sum.Received, sum.Failed = sum.Sent+m.Sent, sum.Received+m.Received, sum.Failed+m.Failed
		c.Spans = append(c.Spans, span(m.Start, []int64{m.Sent, m.Received, m.Failed},
			numbers.Of(m.Sent), numbers.Of(m.Received), numbers.Of(m.Failed)))
	}
	c.Gist = fmt.Sprintf(
		"In %s, %s sent, %s received, and %s failed.",
		p.Words, wereMany(sum.Sent), numbers.Of(sum.Received), numbers.Of(sum.Failed),
	)
	return c
}

// Delivered shows the share of sent messages that were delivered.
func Delivered(list []postern.MessageSpan, p Period) page.Chart {
	c := page.Chart{
		ID: "delivered", Title: "Delivery rate", Grain: p.Grain, Unit: "%", Most: 100, Parts: []string{"Delivered"},
		Columns: []string{"Sent", "Delivered", "Rate"},
		Note:    "The share of sent messages that reached the recipient's phone.",
	}
	var sent, delivered int64
	for _, m := range list {
		sent, delivered = sent+m.Sent, delivered+m.Delivered
		c.Spans = append(
			c.Spans,
			span(m.Start, []int64{min(m.Delivered*100/max(m.Sent, 1), 100)}, numbers.Of(m.Sent), numbers.Of(m.Delivered),
				numbers.Rate(m.Delivered, m.Sent)),
		)
	}
	c.Gist = "Nothing was sent in " + p.Words + "."
	if sent > 0 {
		c.Gist = fmt.Sprintf(
			"In %s, %s of %s reached the recipient (%s).", p.Words, numbers.Of(delivered),
			numbers.Many(sent, "sent message",
				"sent messages"),
			numbers.Rate(delivered, sent),
		)
	}
	return c
}

func wereMany(n int64) string {
	if n == 1 {
		return "1 message was"
	}
	return numbers.Of(n) + " messages were"
}

func span(at postern.Time, parts []int64, cells ...string) page.Span {
	s := page.Span{At: at.Std(), Cells: cells}
	for _, n := range parts {
		s.Parts = append(s.Parts, int(n))
	}
	return s
}
