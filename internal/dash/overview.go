package dash

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/postern"
)

// show shows the first page: the next steps, the plan usage, and recent activity.
func (d overview) show(w http.ResponseWriter, r *http.Request, v visit) error {
	usage, err := d.g.Statistics.Usage(r.Context(), v.caller)
	if err != nil {
		return err
	}
	hooks, err := d.hooksUsed(r, v)
	if err != nil {
		return err
	}
	view := page.OverviewView{Usage: "/usage", Meters: metersOf(v, usage, hooks)}
	if view.Attention, err = d.attention(r, v); err != nil {
		return err
	}
	if view.Board, err = d.boardOf(r, v); err != nil {
		return err
	}
	if view.Steps, err = d.steps(r, v, usage, hooks); err != nil {
		return err
	}
	if err := d.figures(r, v, &view); err != nil {
		return err
	}
	view.Tiles = append([]page.Tile{
		{Label: "Messages sent this month", Value: number(usage.Messages.Used), Note: "of " + number(usage.Messages.Limit)},
		{Label: "Linked devices", Value: number(usage.Devices.Used), Note: "of " + number(usage.Devices.Limit)},
	}, view.Tiles...)
	f := d.frame(r, v, "Overview", "/")
	f.Health = &view.Attention
	return d.write(w, r, http.StatusOK, page.Overview(f, view))
}

// steps are the first steps in a new workspace. Members who may not see keys cannot take any of
// them. A step that the role or plan does not allow has no link.
func (d overview) steps(r *http.Request, v visit, usage gateway.Usage, hooks gateway.Used) ([]page.Step, error) {
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
		{
			Title: "Add a device and link a phone",
			Text:  "The device page shows a code to scan with the phone. In the sandbox, a simulated phone scans it.",
			Href:  lead(v.may(postern.DevicesWrite), "/devices/new"), Done: usage.Devices.Used > 0,
		},
		{Title: "Create an API key", Text: "Your backend sends it with every request.", Href: "/keys/new", Done: hasKey},
		{
			Title: "Send a message", Text: "Write one here, or send it from your backend with POST /v1/messages.",
			Href: lead(v.may(postern.MessagesWrite, postern.DevicesRead), "/messages/new"), Done: sent,
		},
		{
			Title: "Add a webhook", Text: "Postern posts signed events to your backend.",
			Href: lead(v.mayHook(postern.WebhooksWrite, postern.MessagesRead, postern.EventsRead), "/webhooks/new"),
			Done: hooks.Used > 0,
		},
	}, nil
}

// figures adds the charts that the caller may see, and a tile for each rate.
func (d overview) figures(r *http.Request, v visit, view *page.OverviewView) error {
	device, span := postern.DeviceID(r.FormValue("device")), r.FormValue("span")
	p, spans := lastHours(), gateway.LastDay()
	switch {
	case span == "hour":
		p, spans = lastMinutes(), gateway.LastHour()
	case span == "month" && device == "": // of one device, only the last day is counted
		p, spans = lastDays(), gateway.LastMonth()
	default:
		span = ""
	}
	spans.Device = device
	d.spanChoices(view, span, device)
	if err := d.chartsOf(r, v, span, device, view); err != nil {
		return err
	}
	if err := d.messageFigures(r, v, p, spans, view); err != nil || device != "" {
		return err // webhooks are not those of a device
	}
	return d.attemptFigures(r, v, p, spans, view)
}

// spanChoices adds the links to charts of other spans.
func (overview) spanChoices(view *page.OverviewView, span string, device postern.DeviceID) {
	path := func(span string) string {
		asked := url.Values{}
		if span != "" {
			asked.Set("span", span)
		}
		if device != "" {
			asked.Set("device", string(device))
		}
		if len(asked) == 0 {
			return "/"
		}
		return "/?" + asked.Encode()
	}
	view.Spans, view.Span = []page.Choice{
		{Value: path("hour"), Label: "Last hour"}, {Value: path(""), Label: "Last 24 hours"},
	}, path(span)
	if device == "" {
		view.Spans = append(view.Spans, page.Choice{Value: path("month"), Label: "Last 30 days"})
	}
}

// of says whose messages are counted, if they are those of one device.
func of(c page.ChartsOf) string {
	for _, one := range c.Devices {
		if c.Device != "" && one.Value == c.Device {
			return ", of " + one.Label
		}
	}
	return ""
}

// chartsOf adds the devices to choose from, if there are several.
func (d overview) chartsOf(
	r *http.Request, v visit, span string, device postern.DeviceID, view *page.OverviewView,
) error {
	if !v.may(postern.MessagesRead, postern.DevicesRead) {
		return nil
	}
	names, err := d.deviceNames(r.Context(), v)
	if len(names) > 1 || device != "" {
		view.Of = page.ChartsOf{
			Span: span, Device: string(device), Devices: append([]page.Choice{{Label: "All devices"}}, choices(names, string(device))...),
		}
	}
	return err
}

func (d overview) messageFigures(r *http.Request, v visit, p period, s gateway.Spans, view *page.OverviewView) error {
	if !v.may(postern.MessagesRead) {
		return nil
	}
	list, err := d.g.Statistics.MessageSpans(r.Context(), v.caller, s)
	if err != nil {
		return err
	}
	var sent, delivered int64
	for _, m := range list {
		sent, delivered = sent+m.Sent, delivered+m.Delivered
	}
	view.Tiles = append(view.Tiles, page.Tile{
		Label: "Messages delivered", Value: rate(delivered, sent), Note: "in " + p.words + of(view.Of),
	})
	view.Charts = append(view.Charts, messagesChart(list, p), deliveredChart(list, p))
	return nil
}

func (d overview) attemptFigures(r *http.Request, v visit, p period, s gateway.Spans, view *page.OverviewView) error {
	if !v.may(postern.WebhooksRead) {
		return nil
	}
	list, err := d.g.Statistics.AttemptSpans(r.Context(), v.caller, s)
	if err != nil {
		return err
	}
	var good, bad int64
	for _, h := range list {
		good, bad = good+h.Succeeded, bad+h.Failed
	}
	view.Tiles = append(view.Tiles, page.Tile{
		Label: "Webhook success", Value: rate(good, good+bad), Note: "in " + p.words,
	})
	view.Charts = append(view.Charts, attemptsChart(list, p), latencyChart(list, p))
	return nil
}

// hooksUsed returns the number of webhooks; zero for members who may not see them.
func (d overview) hooksUsed(r *http.Request, v visit) (gateway.Used, error) {
	if !v.may(postern.WebhooksRead) {
		return gateway.Used{}, nil
	}
	return d.g.Statistics.Endpoints(r.Context(), v.caller)
}

// metersOf returns the plan usage.
func metersOf(v visit, u gateway.Usage, hooks gateway.Used) []page.Meter {
	list := []page.Meter{meter("Messages this month", u.Messages), meter("Linked devices", u.Devices)}
	if u.Storage != nil {
		list = append(list, storageMeter(*u.Storage))
	}
	if v.may(postern.WebhooksRead) && v.caller.Plan.API {
		list = append(list, meter("Webhooks", hooks))
	}
	return list
}

// nearly is the percentage of a limit from which a meter warns.
const nearly = 90

func meter(label string, u gateway.Used) page.Meter {
	return page.Meter{
		Label: label, Words: number(u.Used) + " of " + number(u.Limit), Note: nearness(u.Used, u.Limit),
		Used: u.Used, Limit: u.Limit,
	}
}

// storageMeter counts KiB, so that a small part of the limit is seen.
func storageMeter(u gateway.UsedBytes) page.Meter {
	used, limit := int(u.Used>>10), int(u.Limit>>10)
	return page.Meter{
		Label: "Stored files", Words: postern.BytesWords(u.Used) + " of " + postern.BytesWords(u.Limit),
		Note: nearness(used, limit), Used: used, Limit: limit,
	}
}

// nearness says whether a limit is reached, or nearly.
func nearness(used, limit int) string {
	switch {
	case used >= limit:
		return "Limit reached."
	case used*100 >= limit*nearly:
		return "Almost at the limit."
	}
	return ""
}

// number formats a number with thousands separators: 1,000,000.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// usage shows the plan, its usage, and what happens at each limit.
func (d overview) usage(w http.ResponseWriter, r *http.Request, v visit) error {
	usage, err := d.g.Statistics.Usage(r.Context(), v.caller)
	if err != nil {
		return err
	}
	hooks, err := d.hooksUsed(r, v)
	if err != nil {
		return err
	}
	kept, err := d.g.Statistics.Retention(r.Context(), v.caller, d.retention)
	if err != nil {
		return err
	}
	p := v.caller.Plan
	view := page.UsageView{
		Plan: word(p.Name), Meters: metersOf(v, usage, hooks),
		Month: usage.ResetsAt.Std().AddDate(0, -1, 0).Format("January 2006"), Ends: usage.ResetsAt.Std(),
		Limits: limitsOf(p, kept), Outcome: outcomes(p),
	}
	return d.write(w, r, http.StatusOK, page.Usage(d.frame(r, v, "Plan and usage", "/"), view))
}

func limitsOf(p postern.Plan, kept gateway.Retention) []page.Tile {
	list := []page.Tile{
		{Label: "Linked devices", Value: number(p.Devices)},
		{Label: "Messages per month", Value: number(p.Messages), Note: "UTC calendar months"},
		{Label: "REST API and webhooks", Value: "Not included"},
	}
	if p.API {
		list[2].Value = "Included"
		list = append(list,
			page.Tile{
				Label: "Requests per minute", Value: number(p.RequestsPerMinute),
				Note: "per key and for the workspace",
			},
			page.Tile{Label: "Webhooks", Value: number(p.Endpoints)},
			page.Tile{Label: "First delivery attempts per minute", Value: number(p.FirstAttempts)})
	}
	list = append(list,
		page.Tile{Label: "Devices in total", Value: number(p.Caps.Devices), Note: "linked or not"},
		page.Tile{Label: "API keys", Value: number(p.Caps.Keys), Note: "that are neither expired nor revoked"},
		page.Tile{Label: "Members", Value: number(p.Caps.Members)},
		page.Tile{Label: "Open invitations", Value: number(p.Caps.Invitations)},
		page.Tile{
			Label: "Stored files", Value: postern.BytesWords(p.Caps.Bytes),
			Note: "sent and received; the same content counts once",
		},
		page.Tile{
			Label: "Dashboard requests per minute", Value: number(p.PagesPerMinute()),
			Note: "per person and for the workspace",
		})
	return append(
		list, page.Tile{Label: "Message retention", Value: timeWords(kept.Messages)},
		page.Tile{Label: "Event retention", Value: timeWords(kept.Events)},
		page.Tile{Label: "Audit log retention", Value: timeWords(kept.Audit)},
	)
}

// timeWords formats whole days as days, and any other duration as it is.
func timeWords(t time.Duration) string {
	const day = 24 * time.Hour
	if t%day != 0 {
		return t.String()
	}
	return many(int64(t/day), "day", "days")
}

// outcomes describes what happens at each limit.
func outcomes(p postern.Plan) []page.Tile {
	list := []page.Tile{
		{
			Label: "Devices in total, API keys, members, invitations",
			Value: "Creating one more is refused (403, resource-limit) until you remove one.",
		},
		{
			Label: "Stored files",
			Value: "Uploads are refused (403, resource-limit) until files are deleted or expire. Messages are still " +
				"received; the files for which there is no room fail, and can be fetched again later.",
		},
		{
			Label: "Messages",
			Value: "New messages are refused (403, quota-exhausted) until the month ends. Inbound messages, events, and " +
				"webhooks continue. Messages that were certainly never sent are not counted.",
		},
		{
			Label: "Devices",
			Value: "Linking another phone is refused (403, device-limit) until you unlink or delete a device. If a new " +
				"plan allows fewer devices, the most recently linked ones are paused. They stay linked.",
		},
	}
	if p.API {
		list = append(list,
			page.Tile{
				Label: "Requests", Value: "Further requests are refused (429, rate-limited). The response says when to try again.",
			},
			page.Tile{Label: "Webhooks", Value: "Adding a webhook is refused (403, endpoint-limit) until you delete one."},
			page.Tile{
				Label: "Deliveries",
				Value: "First attempts beyond the limit wait for the next minute. Nothing is lost.",
			})
	} else {
		list = append(list, page.Tile{
			Label: "REST API and webhooks",
			Value: "Requests are refused and webhooks are paused. On a plan with the API, webhooks catch up on events from " +
				"the last 72 hours.",
		})
	}
	return append(list, page.Tile{
		Label: "Retention",
		Value: "Older messages and events are deleted. Anything still to be sent or delivered is kept until it is.",
	})
}

func num(n int64) string { return number(int(n)) }

// many formats a number with its noun.
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

// rate is a share in percent, cut to a tenth, so that only a complete share is 100%. Without a
// whole it is a dash.
func rate(part, of int64) string {
	if of == 0 {
		return "–"
	}
	part = min(part, of) // what was sent before the counts began may be delivered after that
	tenths := part * 1000 / of
	s := strconv.FormatInt(tenths/10, 10)
	if tenths%10 != 0 {
		s += "." + strconv.FormatInt(tenths%10, 10)
	}
	return s + "%"
}

// orNone formats n, or a dash if of is zero.
func orNone(n, of int64) string {
	if of == 0 {
		return "–"
	}
	return num(n)
}

// period is the time range of the charts.
type period struct {
	words string // "the last 24 hours"
	grain page.Grain
}

func lastMinutes() period { return period{"the last hour", page.Minutes} }
func lastHours() period   { return period{"the last 24 hours", page.Hours} }
func lastDays() period    { return period{"the last 30 days", page.Days} }

// attemptsChart shows the results of delivery attempts.
func attemptsChart(hours []postern.EndpointHour, p period) page.Chart {
	c := page.Chart{
		ID: "attempts", Title: "Webhook deliveries", Colours: "outcome", Grain: p.grain,
		Parts: []string{"Succeeded", "Failed"}, Columns: []string{"Succeeded", "Failed", "Rate", "Mean (ms)"},
	}
	var good, bad int64
	for _, h := range hours {
		good, bad = good+h.Succeeded, bad+h.Failed
		c.Spans = append(
			c.Spans,
			span(
				h.Hour, []int64{h.Succeeded, h.Failed}, num(h.Succeeded), num(h.Failed),
				rate(h.Succeeded, h.Succeeded+h.Failed),
				orNone(h.MeanMs, h.Succeeded+h.Failed),
			),
		)
	}
	c.Gist = "Nothing was sent in " + p.words + "."
	if good+bad > 0 {
		c.Gist = fmt.Sprintf(
			"In %s, %s succeeded and %s failed (%s success rate).", p.words, many(good, "attempt", "attempts"),
			num(bad),
			rate(good, good+bad),
		)
	}
	return c
}

// latencyChart shows how long receivers took to respond.
func latencyChart(hours []postern.EndpointHour, p period) page.Chart {
	c := page.Chart{
		ID: "latency", Title: "Webhook latency", Grain: p.grain, Unit: " ms", Levels: true,
		Parts: []string{"Median", "95%", "99%"}, Columns: []string{"Attempts", "Median (ms)", "95% (ms)", "99% (ms)", "Slowest (ms)"},
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
		c.Spans = append(c.Spans, span(h.Hour, parts, num(attempts), cells[0], cells[1], cells[2], orNone(h.MaxMs, attempts)))
	}
	c.Gist = "Nothing was sent in " + p.words + "."
	if n > 0 {
		c.Gist = fmt.Sprintf("In %s, the slowest attempt took %s ms.", p.words, num(slowest))
	}
	if _, cells := percentiles(all, slowest); all.Sum() > 0 && all.Sum() == n { // an earlier version counted no durations
		c.Gist = fmt.Sprintf("In %s, 50%% of attempts took at most %s ms, 95%% at most %s ms, and the slowest %s ms.",
			p.words, cells[0], cells[1], num(slowest))
	}
	return c
}

// percentiles returns the median, the 95th and the 99th percentile of attempts, as numbers and in words.
func percentiles(took postern.Took, slowest int64) (parts []int64, cells [3]string) {
	for i, p := range [...]int64{50, 95, 99} {
		ms, ok := took.Percentile(p, slowest)
		parts, cells[i] = append(parts, ms), "–"
		if ok {
			cells[i] = num(ms)
		}
	}
	return parts, cells
}

// messagesChart shows messages sent and received.
func messagesChart(list []postern.MessageSpan, p period) page.Chart {
	c := page.Chart{
		ID: "messages", Title: "Messages", Colours: "traffic", Grain: p.grain,
		Parts: []string{"Sent", "Received", "Failed"}, Columns: []string{"Sent", "Received", "Failed"},
		Note: "Messages are counted at the time they were accepted or received. Failed messages include expired ones.",
	}
	var sum postern.MessageSpan
	for _, m := range list {
		sum.Sent, sum.Received, sum.Failed = sum.Sent+m.Sent, sum.Received+m.Received, sum.Failed+m.Failed
		c.Spans = append(c.Spans, span(m.Start, []int64{m.Sent, m.Received, m.Failed}, num(m.Sent), num(m.Received),
			num(m.Failed)))
	}
	c.Gist = fmt.Sprintf(
		"In %s, %s sent, %s received, and %s failed.", p.words, wereMany(sum.Sent), num(sum.Received), num(sum.Failed),
	)
	return c
}

// deliveredChart shows the share of sent messages that were delivered.
func deliveredChart(list []postern.MessageSpan, p period) page.Chart {
	c := page.Chart{
		ID: "delivered", Title: "Delivery rate", Grain: p.grain, Unit: "%", Most: 100, Parts: []string{"Delivered"},
		Columns: []string{"Sent", "Delivered", "Rate"},
		Note:    "The share of sent messages that reached the recipient's phone.",
	}
	var sent, delivered int64
	for _, m := range list {
		sent, delivered = sent+m.Sent, delivered+m.Delivered
		c.Spans = append(
			c.Spans,
			span(m.Start, []int64{min(m.Delivered*100/max(m.Sent, 1), 100)}, num(m.Sent), num(m.Delivered),
				rate(m.Delivered, m.Sent)),
		)
	}
	c.Gist = "Nothing was sent in " + p.words + "."
	if sent > 0 {
		c.Gist = fmt.Sprintf(
			"In %s, %s of %s reached the recipient (%s).", p.words, num(delivered),
			many(sent, "sent message",
				"sent messages"),
			rate(delivered, sent),
		)
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

// design shows the components of the pages, on servers with a simulated network.
func (d overview) design(w http.ResponseWriter, r *http.Request, v visit) error {
	if !d.g.SandboxPhones.On() {
		return errNoPage
	}
	return d.write(w, r, http.StatusOK, page.Design(d.frame(r, v, "Design", "/")))
}

// hits is how many things of a kind the palette shows.
const hits = 8

// find returns what the palette shows for a text: pages, devices and people with such a name, and what an id names.
func (d overview) find(w http.ResponseWriter, r *http.Request, v visit) error {
	text := strings.TrimSpace(r.FormValue("q"))
	var list []page.Hit
	for _, e := range entries(v.caller.Member) {
		if matches(e.Label, text) {
			list = append(list, page.Hit{Label: e.Label, Kind: "Page", Path: e.Path})
		}
	}
	if text == "" {
		return d.write(w, r, http.StatusOK, page.Found(text, list))
	}
	named, err := d.named(r, v, text)
	if err != nil {
		return err
	}
	if to := d.pathOfID(r, v, text); to != "" {
		list = append(list, page.Hit{Label: text, Kind: "ID", Path: to})
	}
	list = append(list, named...)
	if v.may(postern.MessagesRead) {
		list = append(list, page.Hit{
			Label: text, Kind: "Search the messages", Path: "/messages/chats?" + url.Values{"q": {text}}.Encode(),
		})
	}
	return d.write(w, r, http.StatusOK, page.Found(text, list))
}

// matches reports whether a text is a part of a name, in any case.
func matches(name, text string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(text))
}

// named returns the devices and the people whose names or numbers match a text.
func (d overview) named(r *http.Request, v visit, text string) (list []page.Hit, err error) {
	names, err := d.deviceNames(r.Context(), v)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(names)) {
		if matches(names[id], text) && len(list) < hits {
			list = append(list, page.Hit{Label: names[id], Kind: "Device", Path: pathOf(id)})
		}
	}
	if !v.may(postern.ContactsRead, postern.MessagesRead) {
		return list, nil
	}
	q := personIn(text)
	q.Page.Limit = hits
	found, err := d.g.Contacts.List(r.Context(), v.caller, q)
	for _, c := range found.Data {
		for _, id := range c.DeviceIDs[:min(len(c.DeviceIDs), max(0, 2*hits-len(list)))] {
			list = append(list, page.Hit{
				Label: cmp.Or(string(c.Name), string(c.PhoneNumber), c.ChatID),
				Kind:  "Conversation via " + cmp.Or(names[id], string(id)), Path: chatPath(id, c.ChatID),
			})
		}
	}
	return list, err
}

// pathOfID returns the page of what an id names; "" for other texts.
func (d overview) pathOfID(r *http.Request, v visit, text string) string {
	kind, _, _ := strings.Cut(text, "_")
	switch kind {
	case "msg":
		return messagePath(postern.MessageID(text))
	case "dev":
		return pathOf(postern.DeviceID(text))
	case "whk":
		return hookPath(postern.EndpointID(text))
	case "evt":
		if v.may(postern.EventsRead) {
			return eventPath(postern.EventID(text))
		}
	case "req":
		if v.caller.Member.Role.Covers(postern.Developer) {
			return "/keys/requests?" + url.Values{"q": {text}}.Encode()
		}
	case "dlv":
		l, err := d.g.Deliveries.Get(r.Context(), v.caller, postern.DeliveryID(text))
		if err == nil {
			return deliveryPath(l.Delivery)
		}
	}
	return ""
}
