package page

import "time"

// AlertsView is who in a workspace is told what is wrong.
type AlertsView struct {
	Host     string // of the URL that alerts are posted to; "": none
	FailedAt time.Time
	Failed   Why // why alerts do not arrive there; zero if the last one did
	URL      Field
	Mail     bool // the server sends mail
	Members  []Told
	Problem  string
}

// Told is a member of the workspace.
type Told struct {
	ID, Email string
	Told      bool // by mail
}

func (v AlertsView) urlLabel() string {
	if v.Host == "" {
		return "URL"
	}
	return "New URL"
}
