package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Pace limits how fast a device sends. A zero field means no limit.
type Pace struct {
	PerMinute         int
	NewChatsPerMinute int
	given             bool
}

const maxPace = 1000 // of either field

// UnmarshalText reads "off", "30/min,5 new chats/min", or one half of the latter.
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
			return fmt.Errorf("%q is neither off nor limits such as %q, each from 1 to %d", b, "30/min,5 new chats/min", maxPace)
		}
		*member = n
	}
	return nil
}

// String formats a pace as UnmarshalText reads it.
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

// DefaultPace is the pace of devices without their own. If POSTERN_PACE is not set,
// it is off on networks where no real account is at risk.
func (s *Server) DefaultPace() Pace {
	switch {
	case s.Pace.given:
		return s.Pace
	case bool(s.Sandbox) || s.NetworkURL != "":
		return Pace{}
	}
	return Pace{PerMinute: 30, NewChatsPerMinute: 5}
}
