package live

import (
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// PhoneSeen returns when the account's own phone did what an event reports; false if it was not the phone. Besides what
// the owner writes and reads there, a phone that is on confirms what companions send.
func PhoneSeen(evt any) (at time.Time, seen bool) {
	switch evt := evt.(type) {
	case *events.Message:
		return evt.Info.Timestamp, byPhone(evt.Info.MessageSource)
	case *events.UndecryptableMessage:
		return evt.Info.Timestamp, byPhone(evt.Info.MessageSource)
	case *events.Receipt:
		return evt.Timestamp, byPhone(evt.MessageSource)
	}
	return at, false
}

// byPhone reports whether the account's phone is the source of a stanza: its first device, whose number is 0.
func byPhone(src types.MessageSource) bool { return src.IsFromMe && src.Sender.Device == 0 }
