package page

import (
	"fmt"
	"time"
)

// AttentionView is the state of a workspace, and what is wrong in it.
type AttentionView struct {
	Up, Down     int       // devices that are connected, and those that are not but should be
	Idle         int       // other devices
	Waiting      string    // messages still to be sent, as a number; "": none
	WaitingSince time.Time // when the oldest of them was accepted
	Hooks        bool      // the reader may see webhooks
	Endpoints    int       // active webhooks, and those that failed for too long
	Failing      int       // of these
	Problems     []Trouble // the oldest first
	More         bool      // there are more
}

// Trouble is something that is wrong.
type Trouble struct {
	ID     string // of the row
	Title  string // "Support is not connected"
	Why    string // a sentence; "": nothing more is known
	Impact string // what waits because of it; "": nothing
	Since  time.Time
	Href   string // the page of its subject
	Fix    Fix    // "": the reader cannot do anything
}

// Fix is a button that ends a trouble.
type Fix struct {
	Label string
	Post  string // where its form is posted; "" for a link to Href
	Href  string
}

// badges is what scripts show in the navigation, in JSON: how many devices are down, and how many webhooks fail.
func (v AttentionView) badges() string {
	return fmt.Sprintf(`{"/devices": [%d, "down"], "/webhooks": [%d, "failing"]}`, v.Down, v.Failing)
}

// unused tells whether there is no device that anything could be said of.
func (v AttentionView) unused() bool { return v.well() && v.Up+v.Down+v.Idle == 0 }

func (v AttentionView) well() bool { return len(v.Problems) == 0 }
