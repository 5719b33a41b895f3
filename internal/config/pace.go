package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Pace bounds how fast a device sends; zero members are no limit.
type Pace struct {
	PerMinute         int
	NewChatsPerMinute int
	given             bool
}

const maxPace = 1000 // of either member

// UnmarshalText reads "off", or "30/min,5 new chats/min" or one half of it.
func (p *Pace) UnmarshalText(b []byte) error {
	*p = Pace{given: true}
	if strings.EqualFold(strings.TrimSpace(string(b)), "off") {
		return nil
	}
	for part := range strings.SplitSeq(string(b), ",") {
		part = strings.TrimSpace(part)
		member := &p.PerMinute
		text, fresh := strings.CutSuffix(part, " new chats/min")
		if fresh {
			member = &p.NewChatsPerMinute
		} else {
			text = strings.TrimSuffix(part, "/min")
		}
		n, err := strconv.Atoi(text)
		if err != nil || text == part || n < 1 || n > maxPace || *member != 0 {
			return fmt.Errorf("must be off or such as %q, each 1 to %d", "30/min,5 new chats/min", maxPace)
		}
		*member = n
	}
	return nil
}

// String is the form that UnmarshalText reads.
func (p Pace) String() string {
	var parts []string
	if p.PerMinute > 0 {
		parts = append(parts, fmt.Sprintf("%d/min", p.PerMinute))
	}
	if p.NewChatsPerMinute > 0 {
		parts = append(parts, fmt.Sprintf("%d new chats/min", p.NewChatsPerMinute))
	}
	if parts == nil {
		return "off"
	}
	return strings.Join(parts, ",")
}

// DefaultPace is the pace of devices whose owner set none. Unless it was given
// it is off where no real account can be lost.
func (s *Server) DefaultPace() Pace {
	switch {
	case s.Pace.given:
		return s.Pace
	case bool(s.Sandbox) || s.NetworkURL != "":
		return Pace{}
	}
	return Pace{PerMinute: 30, NewChatsPerMinute: 5}
}
