package live_test

import (
	"testing"
	"time"

	"postern/internal/network/whatsapp/live"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// The phone is seen in what it writes, reads and confirms, and not in what others or other companions do.
func TestPhoneSeen(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	source := func(device uint16, fromMe bool) types.MessageSource {
		return types.MessageSource{
			Chat: types.NewJID("15550000011", types.DefaultUserServer), IsFromMe: fromMe,
			Sender: types.JID{User: "15550001111", Device: device, Server: types.DefaultUserServer},
		}
	}
	message := func(s types.MessageSource) types.MessageInfo {
		return types.MessageInfo{MessageSource: s, Timestamp: at}
	}
	for name, test := range map[string]struct {
		evt  any
		seen bool
	}{
		"a message":          {&events.Message{Info: message(source(0, true))}, true},
		"a sealed message":   {&events.UndecryptableMessage{Info: message(source(0, true))}, true},
		"what it has read":   {&events.Receipt{MessageSource: source(0, true), Timestamp: at, Type: types.ReceiptTypeReadSelf}, true},
		"what it confirms":   {&events.Receipt{MessageSource: source(0, true), Timestamp: at, Type: types.ReceiptTypeSender}, true},
		"another companion":  {&events.Message{Info: message(source(3, true))}, false},
		"somebody's message": {&events.Message{Info: message(source(0, false))}, false},
		"somebody's receipt": {&events.Receipt{MessageSource: source(0, false), Timestamp: at}, false},
		"a call":             {&events.CallOffer{}, false},
	} {
		got, seen := live.PhoneSeen(test.evt)
		if seen != test.seen || seen && !got.Equal(at) {
			t.Errorf("%s: %v, %t", name, got, seen)
		}
	}
}
