package vendorsim_test

import (
	"errors"
	"testing"
	"time"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// A companion is told who types while it is available itself, and who is online after it has subscribed. The next login
// ends both; a vendor that repeats what it told before does so although nobody wants it.
func TestPhonesShowThemselves(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	a.synced()
	if err := a.wa.SendAppState(t.Context(), appstate.BuildSettingPushName("Alice")); err != nil {
		t.Fatal(err)
	}
	last := time.Unix(1_700_000_000, 0)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	seen := func(kind vendorsim.MomentKind) func() bool {
		return func() bool {
			list := v.Moments(alice)
			return len(list) > 0 && list[len(list)-1].Kind == kind
		}
	}
	check(v.Online().Type(alice, bob, "", vendorsim.MomentTyping)) // not seen: Alice is not available
	check(v.Online().Appear(bob, vendorsim.Seen{Last: last}))
	check(a.wa.SendPresence(t.Context(), types.PresenceAvailable))
	until(t, v, "Alice is available", seen(vendorsim.MomentAvailable))
	check(v.Online().Appear(bob, vendorsim.Seen{Online: true})) // not seen: Alice has not subscribed
	check(v.Online().Type(alice, bob, "", vendorsim.MomentRecording))
	typing := await[*events.ChatPresence](a, "the typing", nil)
	if typing.State != types.ChatPresenceComposing || typing.Media != types.ChatPresenceMediaAudio ||
		typing.Sender.Server != types.HiddenUserServer || typing.SenderAlt.User != bob[1:] {
		t.Errorf("Alice is told %+v", typing)
	}
	check(a.wa.SubscribePresence(t.Context(), typing.Sender))
	if now := await[*events.Presence](a, "the presence", nil); now.Unavailable || now.From != typing.Sender {
		t.Errorf("Bob is %+v", now)
	}
	check(v.Online().Appear(bob, vendorsim.Seen{Last: last}))
	await(a, "the time", func(p *events.Presence) bool { return p.Unavailable && p.LastSeen.Equal(last) })
	check(v.Online().Appear(bob, vendorsim.Seen{}))
	await(a, "no time", func(p *events.Presence) bool { return p.Unavailable && p.LastSeen.IsZero() })

	a.wa.Disconnect()
	check(v.Fault(t.Context(), alice, vendorsim.FaultReplay))
	check(a.wa.Connect())
	await[*events.Connected](a, "the connection", nil)
	write(t, v, bob, "hello")
	a.message("hello")
	if n, m := count[*events.ChatPresence](a), count[*events.Presence](a); n != 1 || m != 3 {
		t.Errorf("%d and %d updates were repeated, want 1 and 3", n, m)
	}
	g, err := v.CreateGroup("Friends", bob, alice)
	check(err)
	check(a.wa.SendPresence(t.Context(), types.PresenceAvailable))
	until(t, v, "Alice is available again", seen(vendorsim.MomentAvailable))
	check(v.Online().Type(alice, bob, g.ID, vendorsim.MomentPaused))
	in := await(a, "the group", func(p *events.ChatPresence) bool { return p.IsGroup })
	if in.State != types.ChatPresencePaused || in.Chat.User != g.ID || in.SenderAlt.User != bob[1:] {
		t.Errorf("Alice is told %+v", in)
	}
	for err, want := range map[error]error{
		v.Online().Type(carol, bob, "", vendorsim.MomentTyping):     vendorsim.ErrUnknownAccount,
		v.Online().Type(alice, "1", "", vendorsim.MomentTyping):     vendorsim.ErrBadNumber,
		v.Online().Type(alice, carol, g.ID, vendorsim.MomentTyping): vendorsim.ErrNotMember,
		v.Online().Type(alice, bob, "1", vendorsim.MomentTyping):    vendorsim.ErrUnknownGroup,
		v.Online().Appear("1", vendorsim.Seen{}):                    vendorsim.ErrBadNumber,
	} {
		if !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
}
