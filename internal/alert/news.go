package alert

import (
	"fmt"
	"strconv"
	"strings"

	"postern/internal/postern"
	"postern/internal/store/alerts"
)

// News is what has become wrong, and what no longer is.
type News struct {
	Note         string // is told first; "": nothing
	Began, Ended []alerts.Alert
	At           postern.Time
}

// Text describes news for people, a line for each alert.
func (n News) Text() string {
	var b strings.Builder
	if n.Note != "" {
		b.WriteString(n.Note + "\n")
	}
	for _, a := range n.Began {
		b.WriteString(line(a))
	}
	for _, a := range n.Ended {
		b.WriteString("Over: " + line(a))
	}
	return b.String()
}

func line(a alerts.Alert) string {
	where := called(a.Workspace, string(a.WorkspaceID))
	return fmt.Sprintf("%s (workspace %s, since %s)\n", sentence(a), where, a.Since)
}

// Title summarizes news in a line.
func (n News) Title() string {
	switch {
	case len(n.Began) == 1 && len(n.Ended) == 0:
		return sentence(n.Began[0])
	case len(n.Began) == 0 && len(n.Ended) == 1:
		return "Over: " + sentence(n.Ended[0])
	}
	began := many(len(n.Began), "problem began", "problems began")
	over := many(len(n.Ended), "problem is over", "problems are over")
	switch {
	case len(n.Ended) == 0:
		return began
	case len(n.Began) == 0:
		return over
	}
	return began + ", " + over
}

func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}

func sentence(a alerts.Alert) string {
	name := called(a.Name, a.Subject)
	switch a.Kind {
	case alerts.DeviceDown:
		return fmt.Sprintf("Device %s is not connected: %s", name, a.Detail)
	case alerts.DeviceLimited:
		return fmt.Sprintf("The account of device %s may not start chats", name)
	case alerts.PhoneUnseen:
		return fmt.Sprintf("The phone of device %s has not been seen for long; the network removes the link of a phone "+
			"that is not used for 14 days", name)
	case alerts.EndpointFailing:
		return fmt.Sprintf("Webhook endpoint %s is failing", name)
	case alerts.EndpointDisabled:
		if reason, unverified := strings.CutPrefix(a.Detail, alerts.Unverified+", "); unverified {
			return fmt.Sprintf("Webhook endpoint %s did not answer the challenge: %s", name, reason)
		}
		if a.Detail == alerts.Verifying {
			return fmt.Sprintf("Webhook endpoint %s is being verified; nothing is delivered until it has answered the "+
				"challenge", name)
		}
		return fmt.Sprintf("Webhook endpoint %s is disabled: %s", name, a.Detail)
	case alerts.MessagesWaiting:
		return fmt.Sprintf("Messages of device %s have been waiting for long, although it is connected", name)
	}
	return string(a.Kind) + " " + name
}

// called returns a name with an id, or the id alone.
func called(name, id string) string {
	if name == "" {
		return id
	}
	return fmt.Sprintf("%q (%s)", name, id)
}
