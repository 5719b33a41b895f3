package content

import (
	"time"

	"postern/internal/postern"

	"go.mau.fi/whatsmeow/proto/waE2E"
)

func eventFromWire(m *waE2E.EventMessage) postern.Content {
	var text clipper
	e := postern.CalendarEvent{
		Name: text.bytes(m.GetName(), postern.MaxPlace), Description: text.runes(m.GetDescription(), maxDetail),
		StartsAt: seconds(m.GetStartTime()), EndsAt: seconds(m.GetEndTime()),
		JoinLink: text.bytes(m.GetJoinLink(), postern.MaxURL), Canceled: m.GetIsCanceled(),
	}
	if m.Location != nil {
		if l := placeFromWire(m.Location, &text); l.IsValid() {
			e.Location = &l
		}
	}
	return postern.Content{Kind: postern.KindEvent, Truncated: text.cut, ReceivedOnly: postern.ReceivedOnly{Event: &e}}
}

// latest is the last time that RFC 3339 can express.
const latest = 253402300799 // 9999-12-31T23:59:59Z

// seconds returns a time of the network, or 0 if it is missing or not possible.
func seconds(s int64) postern.Time {
	if s <= 0 || s > latest {
		return 0
	}
	return postern.TimeOf(time.Unix(s, 0))
}
