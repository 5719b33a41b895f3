package page

import "time"

// WebhookView is one endpoint.
type WebhookView struct {
	Webhook  Webhook
	Pending  string // the address that it moves to once that has answered; "": none
	Why      Why    // it is as it is
	Tries    int    // that were made of the handshake
	TriesOf  int
	NextTry  time.Time // zero: none comes
	Asked    bool      // a handshake is under way
	Ordered  bool
	Devices  []string // nil: all
	Headers  []string // names
	InFlight int      // deliveries at once
	Key      string   // public, of signatures v1a; "": there are none
	LastFour string   // of the secret
	Created  time.Time
	Verified time.Time
	Chart    Chart // of its attempts in the last day
	Change   bool  // the person may change it
}

// Why says in plain words why something failed, and what to do.
type Why struct {
	What, Do string // sentences; "": nothing to say
}

// live is the page's own path while a handshake is under way: what it shows
// changes then.
func (v WebhookView) live() string {
	if !v.Asked {
		return ""
	}
	return path("webhooks", v.Webhook.ID)
}

func (v WebhookView) can(verb string) bool {
	switch s := v.Webhook.Status; verb {
	case "test":
		return s == "active"
	case "pause":
		return s == "active" || s == "pending"
	case "resume":
		return s == "paused" || s == "disabled"
	case "verify":
		return s == "failed" || s == "pending" || s == "active"
	}
	return false
}

func (v WebhookView) act(verb string) string { return path("webhooks", v.Webhook.ID, verb) }
