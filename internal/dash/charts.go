package dash

import (
	"fmt"
	"strconv"

	"postern/internal/dash/page"
	"postern/internal/postern"
)

// period is what charts are about.
type period struct {
	words string // "the last 24 hours"
	days  bool
}

func lastHours() period { return period{"the last 24 hours", false} }
func lastDays() period  { return period{"the last 30 days", true} }

// attemptsChart is what attempts of deliveries came to.
func attemptsChart(hours []postern.EndpointHour, p period) page.Chart {
	c := page.Chart{
		ID: "attempts", Title: "Webhook deliveries", Colours: "outcome", Days: p.days,
		Parts: []string{"Succeeded", "Failed"}, Columns: []string{"Succeeded", "Failed", "Rate", "Mean (ms)"},
	}
	var good, bad int64
	for _, h := range hours {
		good, bad = good+h.Succeeded, bad+h.Failed
		c.Spans = append(c.Spans, span(h.Hour, []int64{h.Succeeded, h.Failed}, num(h.Succeeded), num(h.Failed), rate(h.Succeeded, h.Succeeded+h.Failed), orNone(h.MeanMs, h.Succeeded+h.Failed)))
	}
	c.Gist = "Nothing was sent in " + p.words + "."
	if good+bad > 0 {
		c.Gist = fmt.Sprintf("In %s, %s succeeded and %s failed (%s success rate).", p.words, many(good, "attempt", "attempts"), num(bad), rate(good, good+bad))
	}
	return c
}

// latencyChart is how long receivers took to answer.
func latencyChart(hours []postern.EndpointHour, p period) page.Chart {
	c := page.Chart{
		ID: "latency", Title: "Webhook latency", Days: p.days, Unit: " ms", Parts: []string{"Mean"}, Columns: []string{"Attempts", "Mean (ms)", "Slowest (ms)"},
		Note: "The time from the start of an attempt to its response or timeout. Percentiles are not recorded.",
	}
	var total, n, slowest int64
	for _, h := range hours {
		all := h.Succeeded + h.Failed
		total, n, slowest = total+h.MeanMs*all, n+all, max(slowest, h.MaxMs)
		c.Spans = append(c.Spans, span(h.Hour, []int64{h.MeanMs}, num(all), orNone(h.MeanMs, all), orNone(h.MaxMs, all)))
	}
	c.Gist = "Nothing was sent in " + p.words + "."
	if n > 0 {
		c.Gist = fmt.Sprintf("In %s, an attempt took %s ms on average. The slowest took %s ms.", p.words, num(total/n), num(slowest))
	}
	return c
}

// messagesChart is what was sent and received.
func messagesChart(list []postern.MessageSpan, p period) page.Chart {
	c := page.Chart{
		ID: "messages", Title: "Messages", Colours: "traffic", Days: p.days,
		Parts: []string{"Sent", "Received"}, Columns: []string{"Sent", "Received", "Failed"},
		Note: "Messages are counted at the time they were accepted or received. Failed messages include expired ones.",
	}
	var sum postern.MessageSpan
	for _, m := range list {
		sum.Sent, sum.Received, sum.Failed = sum.Sent+m.Sent, sum.Received+m.Received, sum.Failed+m.Failed
		c.Spans = append(c.Spans, span(m.Start, []int64{m.Sent, m.Received}, num(m.Sent), num(m.Received), num(m.Failed)))
	}
	c.Gist = fmt.Sprintf("In %s, %s sent, %s received, and %s failed.", p.words, wereMany(sum.Sent), num(sum.Received), num(sum.Failed))
	return c
}

// deliveredChart is how much of what was sent arrived.
func deliveredChart(list []postern.MessageSpan, p period) page.Chart {
	c := page.Chart{
		ID: "delivered", Title: "Delivery rate", Days: p.days, Unit: "%", Most: 100, Parts: []string{"Delivered"}, Columns: []string{"Sent", "Delivered", "Rate"},
		Note: "The share of sent messages that reached the recipient's phone.",
	}
	var sent, delivered int64
	for _, m := range list {
		sent, delivered = sent+m.Sent, delivered+m.Delivered
		c.Spans = append(c.Spans, span(m.Start, []int64{m.Delivered * 100 / max(m.Sent, 1)}, num(m.Sent), num(m.Delivered), rate(m.Delivered, m.Sent)))
	}
	c.Gist = "Nothing was sent in " + p.words + "."
	if sent > 0 {
		c.Gist = fmt.Sprintf("In %s, %s of %s reached the recipient (%s).", p.words, num(delivered), many(sent, "sent message", "sent messages"), rate(delivered, sent))
	}
	return c
}

func span(at postern.Time, parts []int64, cells ...string) page.Span {
	s := page.Span{At: at.Std(), Cells: cells}
	for _, n := range parts {
		s.Parts = append(s.Parts, int(n))
	}
	return s
}

func num(n int64) string { return number(int(n)) }

// many writes a number with what it counts.
func many(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return num(n) + " " + more
}

func wereMany(n int64) string {
	if n == 1 {
		return "1 message was"
	}
	return num(n) + " messages were"
}

// rate is a part of a whole in per cent, cut to a tenth: what is not all is never
// said to be 100%. It is a dash of nothing.
func rate(part, of int64) string {
	if of == 0 {
		return "–"
	}
	tenths := part * 1000 / of
	s := strconv.FormatInt(tenths/10, 10)
	if tenths%10 != 0 {
		s += "." + strconv.FormatInt(tenths%10, 10)
	}
	return s + "%"
}

// orNone is a number that means something when there was something.
func orNone(n, of int64) string {
	if of == 0 {
		return "–"
	}
	return num(n)
}
