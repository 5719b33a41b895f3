package content

import (
	"time"

	"postern/internal/network"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

// maxTimer is the longest timer that is believed; apps offer 90 days.
const maxTimer = 400 * 24 * 60 * 60 // seconds

// TimerOf returns the timer of a chat that a message sets, or that it carries; ok is false if it
// does neither. A message that was sent at the time at and carries no timer tells nothing, because
// not every message can.
func TimerOf(m *waE2E.Message, at time.Time) (t network.Timer, ok bool) {
	m, _ = unwrap(m)
	if p := m.GetProtocolMessage(); p != nil {
		set := p.GetType() == waE2E.ProtocolMessage_EPHEMERAL_SETTING
		return timer(p.GetEphemeralExpiration(), p.GetEphemeralSettingTimestamp(), at), set
	}
	part := partOf(m)
	if part == nil {
		return t, false
	}
	info := contextOf(m.ProtoReflect().Get(part))
	return timer(info.GetExpiration(), info.GetEphemeralSettingTimestamp(), at), info.GetExpiration() > 0
}

// TimerSince returns the timer of a chat that was set at a time. If that is not known, it is the zero time, so that any
// other timer is a later one.
func TimerSince(seconds uint32, set time.Time) network.Timer {
	return network.Timer{Seconds: int(min(seconds, maxTimer)), Since: set}
}

func timer(seconds uint32, since int64, at time.Time) network.Timer {
	set := time.Unix(since, 0).UTC()
	if since <= 0 || set.After(at) {
		set = at
	}
	return network.Timer{Seconds: int(min(seconds, maxTimer)), Since: set}
}
