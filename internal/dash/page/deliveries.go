package page

import (
	"fmt"
	"time"
)

// DeliveriesView is a page of the deliveries to an endpoint.
type DeliveriesView struct {
	ID         string // of the endpoint
	URL        string
	Status     string   // the chosen one; "": all
	Type       string   // the chosen pattern; "": all
	Types      []string // patterns to choose from
	Deliveries []Delivery
	More       string // where the next page is; "": this is the last
}

// Delivery is the delivery of an event to an endpoint.
type Delivery struct {
	ID       string
	Event    string
	Type     string
	Status   string // "pending", "succeeded", "exhausted"
	Attempts int
	Outcome  string // of the last attempt, in a few words
	Created  time.Time
	Next     time.Time // when it is tried again; zero: never
}

// tried says how often it was attempted. A verification is attempted once, and is numbered.
func (d Delivery) tried() string {
	if d.Type == "webhook.verification" {
		return fmt.Sprintf("attempt %d", d.Attempts)
	}
	return count(d.Attempts, "attempt", "attempts")
}

// deliveryStates are the filters of the list.
func deliveryStates() []Choice {
	return []Choice{{"", "All"}, {"pending", "Pending"}, {"succeeded", "Succeeded"}, {"exhausted", "Exhausted"}}
}

// DeliveryView is one delivery.
type DeliveryView struct {
	Webhook  string // id
	URL      string
	Delivery Delivery
	Logged   bool   // the event is in the log, and the person may see it
	Device   Choice // its id and name; zero: the event has none
	Message  string // the id of the one that the event is about; "": none
	Body     string // as it is posted
	Hidden   string // why there is no body; "": there is one
	Headers  []Header
	Attempts []Attempt // newest first
	Retry    bool      // the person may have it tried again
}

// Header is a header of the request.
type Header struct {
	Name, Value string
}

// Attempt is one POST.
type Attempt struct {
	Number     int
	At         time.Time
	DurationMs int
	Status     int // of the answer; 0: there was none
	Why        Why // the attempt failed
	Good       bool
	Answer     string    // the first KiB
	Signed     time.Time // the time in its signature, to a second or so
}

func (a Attempt) title() string {
	if a.Status == 0 {
		return fmt.Sprintf("Attempt %d: no response", a.Number)
	}
	return fmt.Sprintf("Attempt %d: HTTP %d", a.Number, a.Status)
}

func (a Attempt) id() string { return fmt.Sprintf("attempt-%d", a.Number) }

// live is the page's own path while the delivery is pending.
func (v DeliveryView) live() string {
	if v.Delivery.Status != "pending" {
		return ""
	}
	return v.path()
}

func (v DeliveryView) path() string { return path("webhooks", v.Webhook, "deliveries", v.Delivery.ID) }
