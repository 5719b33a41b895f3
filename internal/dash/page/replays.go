package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ReplayFormView is the form that sends a part of the log again.
type ReplayFormView struct {
	ID         string // of the endpoint
	URL        string
	Since      Field // "2026-11-21T09:00", UTC
	Until      Field
	Types      []EventChoice
	TypesError string
	OnlyFailed bool
	Problem    string
}

func (v ReplayFormView) faults() []fault {
	return faults(fault{"since", v.Since.Error}, fault{"until", v.Until.Error}, fault{"types", v.TypesError})
}

// ReplaysView is a page of the list of replays to an endpoint.
type ReplaysView struct {
	ID      string // of the endpoint
	URL     string
	Replays []ReplayView
	More    string // where the next page is; "": this is the last
	Replay  bool   // the person may start one
}

// ReplayView is a replay and its progress.
type ReplayView struct {
	Webhook    string // id
	URL        string
	ID         string
	Status     string // "running", "completed", "stopped"
	Since      time.Time
	Until      time.Time
	Types      []string // nil: all that the endpoint asks for
	OnlyFailed bool
	Matched    int // so far
	Pending    int // events whose delivery was already pending
	Delivered  int
	Failed     int
	Created    time.Time
	Ended      time.Time
	Stop       bool // the person may stop it
}

func (v ReplayView) path() string { return path("webhooks", v.Webhook, "replays", v.ID) }

func (v ReplayView) running() bool { return v.Status == "running" }

// done is the progress value; "": no event was found yet. A completed replay is full even if no
// event was found.
func (v ReplayView) done() string {
	switch {
	case v.Status == "completed":
		return v.all()
	case v.running() && v.Matched == 0:
		return ""
	}
	return strconv.Itoa(min(v.Delivered+v.Failed, v.Matched))
}

func (v ReplayView) all() string { return strconv.Itoa(max(v.Matched, 1)) }

// chosen reports whether the list of event types is open.
func (v ReplayFormView) chosen() bool {
	return v.TypesError != "" || slices.ContainsFunc(v.Types, func(e EventChoice) bool { return e.Chosen })
}

func (v ReplayView) text() string {
	s := fmt.Sprintf("%d of %s delivered", v.Delivered, count(v.Matched, "event", "events"))
	if v.running() {
		s = fmt.Sprintf("%d of %s delivered so far", v.Delivered, count(v.Matched, "event", "events"))
	}
	if v.Failed > 0 {
		s += fmt.Sprintf(", %d failed", v.Failed)
	}
	if v.Pending > 0 {
		s += fmt.Sprintf(", %d more were already being delivered", v.Pending)
	}
	return s
}

func (v ReplayView) types() string {
	if v.Types == nil {
		return "All subscribed events"
	}
	return strings.Join(v.Types, ", ")
}
