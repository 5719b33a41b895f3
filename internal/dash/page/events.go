package page

import "time"

// EventsView is a page of the log of events.
type EventsView struct {
	Type    string   // the chosen pattern; "": all
	Types   []string // patterns to choose from
	Device  string   // the chosen one's id; "": all
	Devices []Choice
	Events  []Event // newest first
	Newer   string  // where newer ones are to be had; "": the page does not follow the log
	Behind  bool    // there are newer ones already
	Newest  string  // where the newest are
	More    string  // where older ones are; "": there are none
}

// Event is one of the log.
type Event struct {
	ID      string
	Type    string
	At      time.Time
	Device  Choice // its id and its name; the zero one: none
	Message string // the id of the message that it is about, if that is shown; "": none
	JSON    string
}

// eventsHeld is how many events a page that follows the log holds.
const eventsHeld = 200

// pace is when newer events are asked for: soon when there are some already, or a page
// that follows a busy log would fall further and further behind.
func (v EventsView) pace() string {
	if v.Behind {
		return "load delay:200ms, every 2s"
	}
	return "every 2s"
}
