package live

import (
	"testing"
	"time"

	"postern/internal/postern"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// An older time than the one that is known is a repetition, also after the person was online meanwhile. The account's own
// leaving forgets what is known.
func TestOldPresenceIsNoNews(t *testing.T) {
	t.Parallel()
	ann, bob := types.NewJID("1", types.HiddenUserServer), types.NewJID("2", types.HiddenUserServer)
	past := time.Unix(1_700_000_000, 0)
	left := func(who types.JID, at time.Time) *events.Presence {
		return &events.Presence{From: who, Unavailable: true, LastSeen: at}
	}
	var o Online
	for i, step := range []struct {
		evt  *events.Presence
		want bool
	}{
		{left(ann, past), true},
		{left(ann, past), true},
		{left(ann, past.Add(-time.Second)), false},
		{left(bob, past.Add(-time.Second)), true},
		{left(ann, past.Add(time.Second)), true},
		{&events.Presence{From: ann}, true},
		{left(ann, past.Add(2*time.Second)), false},
		{left(ann, time.Time{}), true},
		{left(ann, time.Now()), true},
	} {
		if got := o.IsNews(step.evt); got != step.want {
			t.Errorf("step %d: news is %t", i, got)
		}
	}
	o.Begin()
	if !o.IsNews(left(ann, past)) {
		t.Error("a new connection remembers the last one")
	}
	for i := range 2 * maxSeen {
		o.IsNews(left(types.JID{Device: uint16(i), User: time.Duration(i).String()}, past)) //nolint:gosec // few
	}
	if len(o.seen) > maxSeen {
		t.Errorf("%d people are remembered", len(o.seen))
	}
}

func TestTypingOf(t *testing.T) {
	t.Parallel()
	for want, evt := range map[postern.Typing]*events.ChatPresence{
		postern.TypingText:   {State: types.ChatPresenceComposing},
		postern.TypingVoice:  {State: types.ChatPresenceComposing, Media: types.ChatPresenceMediaAudio},
		postern.TypingPaused: {State: types.ChatPresencePaused},
		"":                   {State: "thinking"},
	} {
		if got, ok := TypingOf(evt); got != want || ok != (want != "") {
			t.Errorf("%+v is %q, %t", evt, got, ok)
		}
	}
}
