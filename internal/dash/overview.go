package dash

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"postern/internal/dash/charts"
	"postern/internal/dash/limits"
	"postern/internal/dash/numbers"
	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/postern"

	"github.com/oklog/ulid/v2"
)

// show shows the first page: what is wrong, the devices and webhooks, and figures. A page that is open asks for the
// figures alone.
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
	if view.Steps, err = d.steps(r, v, usage, hooks); err != nil {
		return err
	}
	if err := d.figures(r, v, &view); err != nil {
		return err
	}
	view.Tiles = append([]page.Tile{
		usedTile("Messages this month", usage.Messages), usedTile("Linked devices", usage.Devices),
	}, view.Tiles...)
	f := d.frame(r, v, "Overview", "/")
	if f.Part {
		return d.write(w, r, http.StatusOK, page.Figures(view))
	}
	if view.Board, err = d.boardOf(r, v); err != nil {
		return err
	}
	f.Health = &view.Attention
	return d.write(w, r, http.StatusOK, page.Overview(f, view))
}

func usedTile(label string, u gateway.Used) page.Tile {
	return page.Tile{Label: label, Value: numbers.Of(u.Used), Note: "of " + numbers.Of(u.Limit)}
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
	p, spans := charts.LastDay(), gateway.LastDay()
	switch {
	case span == "hour":
		p, spans = charts.LastHour(), gateway.LastHour()
	case span == "month" && device == "": // of one device, only the last day is counted
		p, spans = charts.LastMonth(), gateway.LastMonth()
	default:
		span = ""
	}
	spans.Device = device
	data := r.FormValue("data") != ""
	d.spanChoices(view, span, device, data)
	if err := d.chartsOf(r, v, span, device, view); err != nil {
		return err
	}
	err := d.messageFigures(r, v, p, spans, view)
	if err == nil && device == "" { // webhooks are not those of a device
		err = d.attemptFigures(r, v, p, spans, view)
	}
	for i := range view.Charts {
		if !data {
			view.Charts[i].Data = figuresPath(span, device, true)
		}
	}
	return err
}

// figuresPath is the path of the page with the charts of a span and a device, with or without their data as tables.
func figuresPath(span string, device postern.DeviceID, data bool) string {
	asked := url.Values{}
	if span != "" {
		asked.Set("span", span)
	}
	if device != "" {
		asked.Set("device", string(device))
	}
	if data {
		asked.Set("data", "1")
	}
	if len(asked) == 0 {
		return "/"
	}
	return "/?" + asked.Encode()
}

// spanChoices adds the links to charts of other spans.
func (overview) spanChoices(view *page.OverviewView, span string, device postern.DeviceID, data bool) {
	path := func(span string) string { return figuresPath(span, device, data) }
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
	names, err := d.deviceNames(r.Context(), v, device)
	if len(names) > 1 || device != "" {
		view.Of = page.ChartsOf{
			Span: span, Device: string(device), Devices: append([]page.Choice{{Label: "All devices"}}, choices(names, string(device))...),
		}
	}
	return err
}

func (d overview) messageFigures(
	r *http.Request, v visit, p charts.Period, s gateway.Spans, view *page.OverviewView,
) error {
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
		Label: "Messages delivered", Value: numbers.Rate(delivered, sent), Note: "in " + p.Words + of(view.Of),
	})
	view.Charts = append(view.Charts, charts.Messages(list, p), charts.Delivered(list, p))
	return nil
}

func (d overview) attemptFigures(
	r *http.Request, v visit, p charts.Period, s gateway.Spans, view *page.OverviewView,
) error {
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
		Label: "Webhook success", Value: numbers.Rate(good, good+bad), Note: "in " + p.Words,
	})
	view.Charts = append(view.Charts, charts.Attempts(list, p), charts.Latency(list, p))
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
	list := []page.Meter{limits.Meter("Messages this month", u.Messages), limits.Meter("Linked devices", u.Devices)}
	if u.Storage != nil {
		list = append(list, limits.StorageMeter(*u.Storage))
	}
	if v.may(postern.WebhooksRead) && v.caller.Plan.API {
		list = append(list, limits.Meter("Webhooks", hooks))
	}
	return list
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
		Limits: limits.Of(p, kept), Outcome: limits.Outcomes(p),
	}
	return d.write(w, r, http.StatusOK, page.Usage(d.frame(r, v, "Plan and usage", "/"), view))
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
	kind, rest, _ := strings.Cut(text, "_")
	if len(rest) < ulid.EncodedSize && kind != "req" {
		return ""
	}
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
