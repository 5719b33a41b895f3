package page

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// WebhooksView is a page of the list of webhook endpoints.
type WebhooksView struct {
	Webhooks []Webhook
	More     string // where the next page is; "": this is the last
	Change   bool   // the person may register endpoints
	Plan     bool   // the plan has webhooks
}

// Webhook is an endpoint and its recent health.
type Webhook struct {
	ID          string
	URL         string
	Description string
	Status      string   // as the API says it: "pending", "active"
	Events      []string // patterns
	Succeeded   int      // attempts of the last day
	Failed      int
	// LastSuccess is the start of its minute, or of its hour if that was more than a day ago; zero: none within a week.
	LastSuccess time.Time
	LastFailure time.Time
}

// health describes the attempts of the last 24 hours.
func (w Webhook) health() string {
	switch all := w.Succeeded + w.Failed; {
	case all == 0:
		return "No attempts"
	case w.Failed == 0:
		return count(all, "attempt", "attempts") + ", all succeeded"
	case w.Succeeded == 0:
		return count(all, "attempt", "attempts") + ", all failed"
	default:
		return fmt.Sprintf("%d of %d attempts failed", w.Failed, all)
	}
}

// ill reports whether more than about a tenth of the attempts failed.
func (w Webhook) ill() bool { return w.Failed > w.Succeeded/10 }

// WebhookFormView is the form that registers an endpoint, or changes one.
type WebhookFormView struct {
	ID          string // of the one to change; "": a new one
	URL         Field
	Description Field
	Events      []EventChoice
	EventsError string
	Ordered     bool

	Devices      []DeviceChoice
	DevicesError string
	Headers      Field // a line for each: "X-Tenant: acme"
	InFlight     Field
	V1a          bool
	Signed       bool // the handshake

	Problem string // what is wrong with the form; "": nothing
	Seen    string // identifies the webhook as it is shown; "" for a new one
}

// DeviceChoice is a device to which a webhook or a key may be limited.
type DeviceChoice struct {
	ID     string
	Name   string
	Chosen bool
}

// detailed reports whether a detail is set or faulty.
func (v WebhookFormView) detailed() bool {
	wrong := v.DevicesError + v.Headers.Error + v.InFlight.Error
	return wrong != "" || v.V1a || v.Signed || v.Headers.Value != "" ||
		slices.ContainsFunc(v.Devices, func(d DeviceChoice) bool { return d.Chosen })
}

// EventChoice is an event type, or a family of types.
type EventChoice struct {
	Pattern string // "message.*"
	Text    string // when it happens, as a sentence
	Chosen  bool
}

// isFamily reports whether the choice is more than one type.
func (e EventChoice) isFamily() bool { return strings.HasSuffix(e.Pattern, "*") }

// families are the choices of more than one event type.
func (v WebhookFormView) families() []EventChoice {
	return slices.DeleteFunc(slices.Clone(v.Events), func(e EventChoice) bool { return !e.isFamily() })
}

// types are the choices of one event type.
func (v WebhookFormView) types() []EventChoice {
	return slices.DeleteFunc(slices.Clone(v.Events), EventChoice.isFamily)
}

// picky reports whether a single event type is chosen.
func (v WebhookFormView) picky() bool {
	return slices.ContainsFunc(v.types(), func(e EventChoice) bool { return e.Chosen })
}

func (v WebhookFormView) faults() []fault {
	return faults(fault{"url", v.URL.Error}, fault{"description", v.Description.Error}, fault{"events", v.EventsError},
		fault{"devices", v.DevicesError}, fault{"headers", v.Headers.Error}, fault{"inFlight", v.InFlight.Error})
}

func (v WebhookFormView) action() string {
	if v.ID == "" {
		return "/webhooks"
	}
	return path("webhooks", v.ID)
}

func (v WebhookFormView) headersHint() string {
	const always = "Sent with every delivery. One per line, for example X-Tenant: acme. At most 10. " +
		"Headers that Postern sets itself are not allowed. Values are stored encrypted and not shown again."
	if v.ID == "" {
		return always
	}
	return always + " Leave a value empty to keep it. If the URL changes to another host, enter the values again."
}

func (v WebhookFormView) title() string {
	if v.ID == "" {
		return "Add a webhook"
	}
	return "Edit webhook"
}

// WebhookSecretView is the secret of an endpoint, on the one page that shows it.
type WebhookSecretView struct {
	ID     string
	URL    string
	Secret string
	Made   bool      // the endpoint is new
	Old    time.Time // until when the old secret also signs; zero: there is none
}

func (v WebhookSecretView) title() string {
	if v.Made {
		return "Your new webhook"
	}
	return "Signing secret"
}

// WebhookRevealView is the form before a secret is shown.
type WebhookRevealView struct {
	ID       string
	Password Field
	Again    Again
}

// WebhookView is one endpoint.
type WebhookView struct {
	Webhook  Webhook
	Pending  string // the URL that it moves to after the handshake; "": none
	Why      Why    // it has its status
	Tries    int    // of the handshake so far
	TriesOf  int
	NextTry  time.Time // zero: none comes
	Asked    bool      // a handshake is under way
	Ordered  bool
	Devices  []Choice // ids and names; nil: all
	Headers  []string // names
	Signed   bool     // the handshake
	InFlight int      // deliveries at once
	Key      string   // public, of signatures v1a; "": there are none
	LastFour string   // of the secret
	Created  time.Time
	Verified time.Time
	Chart    Chart // of its attempts in the last day
	Backlog  BacklogView
	Change   bool // the person may change it
	Plan     bool // the plan has webhooks
}

// BacklogView is what a webhook has not received.
type BacklogView struct {
	Webhook      string // id
	FailingSince time.Time
	Failures     string // "97% of 1,240 attempts failed."; "" if nothing fails
	Active       bool   // it is attempted
	Retried      int    // deliveries that the person has retried; 0: none
	At           int64  // when, in milliseconds
	Older        int    // deliveries from before that which still wait
	Waiting      int
	WaitingText  string // "12 events"
	WaitingSince time.Time
	Failed       int
	FailedText   string    // "12 events"
	FailedSince  time.Time // zero: not known
	RetryLabel   string    // "Retry 12 now"
	Retry        bool      // the person may retry
	Replay       bool      // the person may start a replay
}

func (v BacklogView) empty() bool {
	return v.FailingSince.IsZero() && v.Retried == 0 && v.Waiting == 0 && v.Failed == 0
}

// gone is how many of the retried deliveries no longer wait.
func (v BacklogView) gone() int { return max(v.Retried-v.Older, 0) }

// goesOn says whether what waits is attempted.
func (v BacklogView) goesOn() string {
	if v.Active {
		return ". Attempts go on by themselves for 72 hours."
	}
	return ". They are attempted when the webhook is active again."
}

// every is how often the backlog is asked for: often while it changes.
func (v BacklogView) every() string {
	if v.Waiting > 0 || v.Retried > 0 {
		return "news from:body, every 2s"
	}
	return "news from:body, every 10s"
}

// again is where the backlog is asked for again.
func (v BacklogView) again() string {
	return fmt.Sprintf("%s?retried=%d&at=%d", path("webhooks", v.Webhook, "backlog"), v.Retried, v.At)
}

// replay is the form for a replay of what failed.
func (v BacklogView) replay() string {
	to := path("webhooks", v.Webhook, "replay") + "?failed=on"
	if v.FailedSince.IsZero() {
		return to + "&since=2000-01-01T00:00"
	}
	return to + "&since=" + v.FailedSince.UTC().Truncate(time.Minute).Format("2006-01-02T15:04")
}

// Why explains why something failed and what to do.
type Why struct {
	What, Do string // sentences; "": nothing to say
}

// shown is the status to show: an active webhook may be failing.
func (v WebhookView) shown() string {
	if v.Webhook.Status == "active" && !v.Backlog.FailingSince.IsZero() {
		return "failing"
	}
	return v.Webhook.Status
}

// live is the page's own path while a handshake is running and the page is polled.
func (v WebhookView) live() string {
	if !v.Asked {
		return ""
	}
	return path("webhooks", v.Webhook.ID)
}

func (v WebhookView) can(verb string) bool {
	switch s := v.Webhook.Status; {
	case verb == "pause":
		return s == "active" || s == "pending"
	case !v.Plan:
		return false
	case verb == "test":
		return s == "active"
	case verb == "resume":
		return s == "paused" || s == "disabled"
	case verb == "verify":
		return s == "failed" || s == "pending" || s == "active"
	}
	return false
}

func (v WebhookView) act(verb string) string { return path("webhooks", v.Webhook.ID, verb) }
