package dash

import (
	"net/http"
	"strconv"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// overviewRoutes are those of what is used, and of what happened.
func (d *dash) overviewRoutes() {
	d.member("GET /{$}", d.overview, postern.UsageRead, postern.DevicesRead)
	d.member("GET /usage", d.usage, postern.UsageRead)
	d.eventRoutes()
}

// overview is the first page: what to do next, what is used of the plan, and what
// happened lately.
func (d *dash) overview(w http.ResponseWriter, r *http.Request, v visit) error {
	usage, err := d.g.Statistics.Usage(r.Context(), v.caller)
	if err != nil {
		return err
	}
	hooks, err := d.hooksUsed(r, v)
	if err != nil {
		return err
	}
	view := page.OverviewView{Usage: "/usage", Meters: metersOf(v, usage, hooks)}
	if view.Steps, err = d.steps(r, v, usage, hooks); err != nil {
		return err
	}
	if err := d.figures(r, v, &view); err != nil {
		return err
	}
	view.Tiles = append([]page.Tile{
		{Label: "Messages sent this month", Value: number(usage.Messages.Used), Note: "of " + number(usage.Messages.Limit)},
		{Label: "Devices linked", Value: number(usage.Devices.Used), Note: "of " + number(usage.Devices.Limit)},
	}, view.Tiles...)
	return d.show(w, r, http.StatusOK, page.Overview(d.frame(r, v, "Overview", "/"), view))
}

// steps lead into a new workspace: those who may not see its keys may take none of
// them. One that the plan does not allow leads nowhere.
func (d *dash) steps(r *http.Request, v visit, usage gateway.Usage, hooks gateway.Used) ([]page.Step, error) {
	hasKey, err := d.g.Keys.Any(r.Context(), v.actor, v.workspace())
	if postern.ReasonOf(err) == postern.MissingScope {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sent, err := d.g.Statistics.EverSent(r.Context(), v.caller)
	if err != nil {
		return nil, err
	}
	lead := func(may bool, to string) string {
		if may {
			return to
		}
		return ""
	}
	return []page.Step{
		{Title: "Add a device and link a phone", Text: "The page shows a code for the phone to scan. In the sandbox a simulated phone scans it.", Href: lead(v.may(postern.DevicesWrite), "/devices/new"), Done: usage.Devices.Used > 0},
		{Title: "Create an API key", Text: "Your backend sends it with every request.", Href: "/keys/new", Done: hasKey},
		{Title: "Send a message", Text: "Write one here, or let your backend do it with POST /v1/messages.", Href: lead(v.may(postern.MessagesWrite, postern.DevicesRead), "/messages/new"), Done: sent},
		{Title: "Add a webhook", Text: "What happens is posted to your backend, signed.", Href: lead(v.may(postern.WebhooksWrite, postern.MessagesRead, postern.EventsRead), "/webhooks/new"), Done: hooks.Used > 0},
	}, nil
}

// figures adds the charts of what the caller may see, and a tile of each rate.
func (d *dash) figures(r *http.Request, v visit, view *page.OverviewView) error {
	p, spans := lastHours(), gateway.LastDay()
	view.Spans, view.Span = []page.Choice{{Value: "/", Label: "Last 24 hours"}, {Value: "/?span=month", Label: "Last 30 days"}}, "/"
	if r.FormValue("span") == "month" {
		p, spans, view.Span = lastDays(), gateway.LastMonth(), "/?span=month"
	}
	if v.may(postern.MessagesRead) {
		list, err := d.g.Statistics.MessageSpans(r.Context(), v.caller, spans)
		if err != nil {
			return err
		}
		var sent, delivered int64
		for _, m := range list {
			sent, delivered = sent+m.Sent, delivered+m.Delivered
		}
		view.Tiles = append(view.Tiles, page.Tile{Label: "Messages delivered", Value: rate(delivered, sent), Note: "in " + p.words})
		view.Charts = append(view.Charts, messagesChart(list, p), deliveredChart(list, p))
	}
	if v.may(postern.WebhooksRead) {
		list, err := d.g.Statistics.AttemptSpans(r.Context(), v.caller, spans)
		if err != nil {
			return err
		}
		var good, bad int64
		for _, h := range list {
			good, bad = good+h.Succeeded, bad+h.Failed
		}
		view.Tiles = append(view.Tiles, page.Tile{Label: "Webhook success", Value: rate(good, good+bad), Note: "in " + p.words})
		view.Charts = append(view.Charts, attemptsChart(list, p), latencyChart(list, p))
	}
	return nil
}

// hooksUsed says how many webhooks there are; those who may not see any are not
// told.
func (d *dash) hooksUsed(r *http.Request, v visit) (gateway.Used, error) {
	if !v.may(postern.WebhooksRead) {
		return gateway.Used{}, nil
	}
	return d.g.Statistics.Endpoints(r.Context(), v.caller)
}

// metersOf are what is used of the plan.
func metersOf(v visit, u gateway.Usage, hooks gateway.Used) []page.Meter {
	list := []page.Meter{meter("Messages this month", u.Messages), meter("Devices linked", u.Devices)}
	if v.may(postern.WebhooksRead) && v.caller.Plan.API {
		list = append(list, meter("Webhooks", hooks))
	}
	return list
}

// nearly is the part of a limit, in per cent, from which on it is pointed out.
const nearly = 90

func meter(label string, u gateway.Used) page.Meter {
	m := page.Meter{Label: label, Words: number(u.Used) + " of " + number(u.Limit), Used: u.Used, Limit: u.Limit}
	switch {
	case u.Used >= u.Limit:
		m.Note = "All of it is used."
	case u.Used*100 >= u.Limit*nearly:
		m.Note = "Nearly all of it is used."
	}
	return m
}

// number writes a number with its thousands apart: 1,000,000.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// usage is what the plan allows, what is used of it, and what happens at its end.
func (d *dash) usage(w http.ResponseWriter, r *http.Request, v visit) error {
	usage, err := d.g.Statistics.Usage(r.Context(), v.caller)
	if err != nil {
		return err
	}
	hooks, err := d.hooksUsed(r, v)
	if err != nil {
		return err
	}
	kept, err := d.g.Statistics.Retention(r.Context(), v.caller, d.kept)
	if err != nil {
		return err
	}
	p := v.caller.Plan
	view := page.UsageView{
		Plan: word(p.Name), Meters: metersOf(v, usage, hooks), Month: usage.ResetsAt.Std().AddDate(0, -1, 0).Format("January 2006"), Ends: usage.ResetsAt.Std(),
		Limits: limitsOf(p, kept), Outcome: outcomes(p),
	}
	return d.show(w, r, http.StatusOK, page.Usage(d.frame(r, v, "Plan and usage", "/"), view))
}

func limitsOf(p postern.Plan, kept gateway.Retention) []page.Tile {
	list := []page.Tile{
		{Label: "Devices linked at a time", Value: number(p.Devices)},
		{Label: "Messages sent in a month", Value: number(p.Messages), Note: "UTC calendar months"},
		{Label: "REST API and webhooks", Value: "Not in this plan"},
	}
	if p.API {
		list[2].Value = "Yes"
		list = append(list,
			page.Tile{Label: "Requests a minute", Value: number(p.RequestsPerMinute), Note: "of each key, and of the workspace"},
			page.Tile{Label: "Webhooks", Value: number(p.Endpoints)},
			page.Tile{Label: "First attempts of deliveries a minute", Value: number(p.FirstAttempts)})
	}
	return append(list, page.Tile{Label: "Messages are kept", Value: timeWords(kept.Messages)}, page.Tile{Label: "Events are kept", Value: timeWords(kept.Events)}, page.Tile{Label: "The audit log is kept", Value: timeWords(kept.Audit)})
}

// timeWords writes a time as days, or as what it is when it is not whole days.
func timeWords(t time.Duration) string {
	const day = 24 * time.Hour
	if t%day != 0 {
		return t.String()
	}
	return many(int64(t/day), "day", "days")
}

// outcomes says what happens at each limit.
func outcomes(p postern.Plan) []page.Tile {
	list := []page.Tile{
		{Label: "Messages", Value: "A message more is refused (403, quota-exhausted) until the month ends. What comes in is still received, and events and webhooks go on. A message that provably never left is not counted."},
		{Label: "Devices", Value: "An attempt to link another phone is refused (403, device-limit) until a device is unlinked or deleted. A smaller plan pauses the devices that were linked last; they keep their link."},
	}
	if p.API {
		list = append(list,
			page.Tile{Label: "Requests", Value: "A request more is refused (429, rate-limited) with the time after which to try again."},
			page.Tile{Label: "Webhooks", Value: "Another webhook is refused (403, endpoint-limit) until one is deleted."},
			page.Tile{Label: "Deliveries", Value: "First attempts beyond the number wait for the next minute. Nothing is lost."})
	} else {
		list = append(list, page.Tile{Label: "REST API and webhooks", Value: "Requests are refused, and webhooks are paused. With a plan that has them they catch up, up to 72 hours back."})
	}
	return append(list, page.Tile{Label: "What is kept", Value: "Messages and events that are older are removed. What is still to be sent or delivered stays until it is."})
}
