package page

import "time"

// OverviewView is the first page.
type OverviewView struct {
	Attention AttentionView
	Board     BoardView

	Steps  []Step // of getting started; nil: the list is not shown
	Tiles  []Tile
	Meters []Meter // of the plan
	Usage  string  // where more is said of the plan; "": nowhere
	Charts []Chart
	Spans  []Choice // paths of the page with charts of other spans
	Span   string   // the path of the spans that are shown
	Of     ChartsOf
}

// ChartsOf is whose messages charts show.
type ChartsOf struct {
	Span    string // the form's name of the spans that are shown
	Device  string // "": all devices
	Devices []Choice
}

// UsageView is what a workspace may use, and does.
type UsageView struct {
	Plan    string // its name
	Meters  []Meter
	Month   string // "November 2026"
	Ends    time.Time
	Limits  []Tile
	Outcome []Tile // what happens at each limit: its name and a sentence
}

// Step is something to do to get started.
type Step struct {
	Title string
	Text  string
	Href  string // where it is done; "": nowhere here
	Done  bool
}

// Tile is one figure.
type Tile struct {
	Label, Value string
	Note         string // what the figure means or what it is out of; "": nothing
}

func (v OverviewView) done() (n int) {
	for _, s := range v.Steps {
		if s.Done {
			n++
		}
	}
	return n
}

// BoardView is the state of each device and each webhook.
type BoardView struct {
	Devices  []DeviceTile
	Webhooks []HookTile
	Most     int // how many of each there are at most
}

// DeviceTile is a device in a few figures.
type DeviceTile struct {
	ID, Name, Status string
	Number           string    // of the account; "": not known yet
	Why              string    // a sentence; "": nothing to say
	Since            time.Time // of the status
	Waiting          string    // messages, such as "12 messages"; "": none
	WaitingSince     time.Time
	In, Out          time.Time // the last messages
}

// HookTile is a webhook in a few figures.
type HookTile struct {
	ID, Name, Status string
	FailingSince     time.Time
	Rate             string // of success in the last 15 minutes, such as "98.5% of 1,204 attempts"; "": no attempts
	Bad              bool   // it fails
	Success, Failure time.Time
	Waiting          string // events, such as "12 events"; "": none
}
