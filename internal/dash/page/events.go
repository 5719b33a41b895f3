package page

import "time"

// EventsView is a page of the log of events.
type EventsView struct {
	Type    string   // the chosen pattern; "": all
	Types   []string // patterns to choose from
	Device  string   // the chosen one's id; "": all
	Devices []Choice
	Events  []Event // newest first
	Newer   string  // the path of newer events; "": the page does not follow the log
	Behind  bool    // the log has further events, or further parts in which events may match
	Passed  string  // where the events are that came too fast for an open page; "": none did
	Newest  string  // the path of the newest events
	More    string  // the path of older ones; "": there are none
}

// Event is one of the log.
type Event struct {
	ID      string
	Type    string
	At      time.Time
	Device  Choice // its id and its name; the zero one: none
	Message string // the id of its message, if it may be shown; "": none
	JSON    string // only on its own page
}

// jsonID is the id of the element with the JSON of the event, which a list takes from the event's page.
func (e Event) jsonID() string { return straight("json-" + e.ID) }

// EventView is one event.
type EventView struct {
	Event      Event
	Hooks      bool // the person may see webhooks
	Deliveries []Posted
	Most       int // how many of them are shown
}

// Posted is the delivery of an event to a webhook.
type Posted struct {
	Webhook  string // its id
	Name     string // its description or URL
	Delivery Delivery
}

// eventsHeld is the number of events on a page that follows the log.
const eventsHeld = 200

// pace is when newer events are asked for: soon if there may be some already.
func (v EventsView) pace() string {
	if v.Behind {
		return "load delay:200ms, news from:body, every 10s"
	}
	return "news from:body, every 10s"
}
