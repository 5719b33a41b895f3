package dash

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"postern/internal/dash/page"
	"postern/internal/gateway"
	"postern/internal/paging"
	"postern/internal/postern"
)

// eventQuery reads the filters of a page.
func eventQuery(r *http.Request) gateway.EventQuery {
	q := gateway.EventQuery{
		DeviceID: postern.DeviceID(r.FormValue("device")), Page: paging.Page{Cursor: r.FormValue("after")},
	}
	if t := r.FormValue("type"); t != "" {
		q.Types = []string{t}
	}
	return q
}

// eventsPath is the path of a page of the log with the filters of a request.
func eventsPath(r *http.Request, path, after string) string {
	q := url.Values{}
	for name, value := range map[string]string{
		"type": r.FormValue("type"), "device": r.FormValue("device"), "after": after,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

func (d events) list(w http.ResponseWriter, r *http.Request, v visit) error {
	list, err := d.g.Events.Recent(r.Context(), v.caller, eventQuery(r))
	if err != nil {
		return err
	}
	view := page.EventsView{
		Type: r.FormValue("type"), Types: loggedPatterns(), Device: r.FormValue("device"),
		Newest: eventsPath(r, "/events", ""),
	}
	names, err := d.deviceNames(r.Context(), v, postern.DeviceID(view.Device))
	if err != nil {
		return err
	}
	view.Devices, view.Events = choices(names, view.Device), eventsOf(list.Data, v, names)
	if list.End != "" {
		view.Newer = eventsPath(r, "/events/new", list.End)
	}
	if list.Next != "" {
		view.More = eventsPath(r, "/events", list.Next)
	}
	return d.write(w, r, http.StatusOK, page.Events(d.frame(r, v, "Events", "/events"), view))
}

func eventPath(id postern.EventID) string { return "/events/" + url.PathEscape(string(id)) }

// show shows an event and what has become of it at each webhook.
func (d events) show(w http.ResponseWriter, r *http.Request, v visit) error {
	e, err := d.g.Events.Get(r.Context(), v.caller, postern.EventID(r.PathValue("id")))
	if err != nil {
		return err
	}
	names, err := d.deviceNames(r.Context(), v)
	if err != nil {
		return err
	}
	view := page.EventView{Event: eventOf(e.LoggedEvent, v, names), Most: gateway.MostOfEvent}
	view.Event.JSON = indented(e.Body)
	if view.Hooks = v.may(postern.WebhooksRead) && !isPart(r); view.Hooks { // a list asks for the JSON alone
		if view.Deliveries, err = d.posted(r, v, e.Deliveries); err != nil {
			return err
		}
	}
	return d.write(w, r, http.StatusOK, page.EventPage(d.frame(r, v, "Event", "/events"), view))
}

// posted names the webhooks of deliveries.
func (d events) posted(r *http.Request, v visit, deliveries []postern.Delivery) (list []page.Posted, err error) {
	for _, one := range deliveries {
		hook, err := d.g.Webhooks.Get(r.Context(), v.caller, one.EndpointID)
		if postern.ReasonOf(err) == postern.NotFound { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, page.Posted{
			Webhook: string(hook.ID), Name: cmp.Or(hook.Description, hook.URL), Delivery: deliveryOf(one),
		})
	}
	return list, nil
}

// newer returns the events after a position, newest first, for a page that is open. If more came than fit on a page, it
// returns the newest, so that a page that follows a busy log shows what happens now. With a filter it does not: the
// newest part of the log may have no event that matches.
func (d events) newer(w http.ResponseWriter, r *http.Request, v visit) error {
	list, place, more, err := d.g.Events.New(r.Context(), v.caller, eventQuery(r))
	if postern.ReasonOf(err) == postern.EventsExpired { // the page was asleep for longer than events are kept
		w.Header().Set("HX-Refresh", "true")
		w.WriteHeader(http.StatusOK)
		return nil
	}
	if err != nil {
		return err
	}
	if place == r.FormValue("after") {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	slices.Reverse(list)
	all := r.FormValue("type") == "" && r.FormValue("device") == ""
	view := page.EventsView{Behind: more && !all}
	if more && all {
		if list, place, view.Passed, err = d.passed(r, v); err != nil {
			return err
		}
	}
	var names map[postern.DeviceID]string
	if len(list) > 0 {
		if names, err = d.deviceNames(r.Context(), v); err != nil {
			return err
		}
	}
	view.Newer, view.Events = eventsPath(r, "/events/new", place), eventsOf(list, v, names)
	return d.write(w, r, http.StatusOK, page.NewEvents(view))
}

// passing is how many of the events that come faster than they are read a page shows at a time.
const passing = 12

// passed returns the newest events, the end of the log, and the path of the events before them.
func (d events) passed(r *http.Request, v visit) (list []gateway.LoggedEvent, end, before string, err error) {
	q := eventQuery(r)
	q.Page = paging.Page{Limit: passing}
	newest, err := d.g.Events.Recent(r.Context(), v.caller, q)
	if newest.Next != "" {
		before = eventsPath(r, "/events", newest.Next)
	}
	return newest.Data, newest.End, before, err
}

// loggedPatterns are the event types that the log can be filtered by. webhook.disabled is
// delivered only to webhooks and not logged.
func loggedPatterns() []string {
	return slices.DeleteFunc(eventPatterns()[1:], func(p string) bool { return p == string(postern.WebhookDisabled) })
}

func eventsOf(list []gateway.LoggedEvent, v visit, names map[postern.DeviceID]string) (events []page.Event) {
	for _, e := range list {
		events = append(events, eventOf(e, v, names))
	}
	return events
}

// eventOf shows an event. We wrote its envelope; if it cannot be read, the row still has the ID and the type, and its
// page shows the bytes.
func eventOf(e gateway.LoggedEvent, v visit, names map[postern.DeviceID]string) page.Event {
	var in struct {
		Timestamp time.Time `json:"timestamp"`
		DeviceID  string    `json:"deviceId"`
		Message   struct {
			ID string `json:"id"`
		} `json:"message"`
	}
	_ = json.Unmarshal(e.Body, &in) // the row has what could be read
	one := page.Event{ID: string(e.ID), Type: string(e.Type), At: in.Timestamp}
	if v.may(postern.DevicesRead) && in.DeviceID != "" {
		one.Device = page.Choice{Value: in.DeviceID, Label: cmp.Or(names[postern.DeviceID(in.DeviceID)], in.DeviceID)}
	}
	if v.may(postern.MessagesRead) {
		one.Message = in.Message.ID
	}
	return one
}
