package vendorsim_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

func TestDroppedClientReconnects(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	fault(t, v, alice, vendorsim.FaultDrop)
	await[*events.Connected](c, "second Connected", nil)
	c.send(bob, "after the drop")
	if got, want := bodies(v, bob), []string{"after the drop"}; !slices.Equal(got, want) {
		t.Errorf("bob's phone shows %q, want %q", got, want)
	}
}

func TestRefusedLoginIsTriedAgain(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	fault(t, v, alice, "refuse:503")
	fault(t, v, alice, vendorsim.FaultDrop)
	await[*events.Connected](c, "second Connected", nil)
}

func TestRefusalWithOtherReasonIsFinal(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	fault(t, v, vendorsim.AllAccounts, "refuse:405")
	fault(t, v, vendorsim.AllAccounts, vendorsim.FaultDrop)
	await[*events.ClientOutdated](c, "ClientOutdated", nil)
}

func TestLogoutOnThePhone(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	c.synced()
	fault(t, v, alice, vendorsim.FaultLogout)
	if out := await[*events.LoggedOut](c, "LoggedOut", nil); out.OnConnect {
		t.Errorf("event is %+v, want one of a running connection", out)
	}
	if got := v.Accounts()[0]; got.Linked || got.Companions != 0 {
		t.Errorf("account is %+v, want it unlinked", got)
	}
	if err := v.Fault(t.Context(), alice, vendorsim.FaultDrop); !errors.Is(err, vendorsim.ErrUnknownAccount) {
		t.Errorf("Fault = %v, want %v", err, vendorsim.ErrUnknownAccount)
	}
}

func TestRemovedCompanionIsRefused(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	c.synced()
	c.wa.Disconnect()
	until(t, v, "alice is offline", func() bool { return !v.Accounts()[0].Online })
	fault(t, v, alice, vendorsim.FaultLogout)
	if err := c.wa.Connect(); err != nil {
		t.Fatal(err)
	}
	await[*events.LoggedOut](c, "LoggedOut", nil)
}

func TestBannedAccount(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	c.synced()
	fault(t, v, alice, vendorsim.FaultBan)
	if out := await[*events.LoggedOut](c, "LoggedOut", nil); out.Reason != events.ConnectFailureMainDeviceGone {
		t.Errorf("reason is %d, want 403", out.Reason)
	}
}

func TestRestrictionEnds(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	fault(t, v, alice, "restrict:60")
	ban := await[*events.TemporaryBan](c, "TemporaryBan", nil)
	if ban.Code != events.TempBanSentToTooManyPeople || ban.Expire <= 0 || ban.Expire > time.Minute {
		t.Errorf("ban is %+v, want at most a minute for too many people", ban)
	}
	c.wa.Disconnect()
	fault(t, v, alice, "restrict:0")
	c.connect()
}

func TestOfflineAccountComesBack(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	fault(t, v, alice, "offline:600")
	until(t, v, "alice is offline", func() bool { return !v.Accounts()[0].Online })
	write(t, v, bob, "while away")
	for range 2 { // cut off, and refused when it comes back by itself
		await[*events.Disconnected](c, "Disconnected", nil)
	}
	if v.Accounts()[0].Online {
		t.Error("alice is let back in before the time is over")
	}
	fault(t, v, alice, "offline:0")
	if got := await[*events.Message](c, "message", nil).Message.GetConversation(); got != "while away" {
		t.Errorf("the message that waited is %q", got)
	}
}

func TestReporterGetsSenderRestricted(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	c.send(vendorsim.NumberReporter, "buy now")
	await[*events.TemporaryBan](c, "TemporaryBan", nil)
}

func TestConflictReplacesTheStream(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	fault(t, v, alice, vendorsim.FaultConflict)
	await[*events.StreamReplaced](c, "StreamReplaced", nil)
}

func TestSecondLoginReplacesTheFirst(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	first := link(t, v, alice)
	second := newClient(t, v, first.device)
	second.connect()
	await[*events.StreamReplaced](first, "StreamReplaced", nil)
	if a := v.Accounts()[0]; a.Logins != 2 || a.Replaced != 1 {
		t.Errorf("%d logins, of which %d replaced an open connection, want 2 and 1", a.Logins, a.Replaced)
	}
}

func TestSilentVendorAnswersNothing(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	c.send(bob, "heard") // so that the next one needs no queries
	fault(t, v, alice, vendorsim.FaultSilence)
	_, err := c.wa.SendMessage(t.Context(), jid(bob), textOf("into the void"),
		whatsmeow.SendRequestExtra{Timeout: 50 * time.Millisecond})
	if err == nil {
		t.Error("message was acknowledged")
	}
	if !c.wa.IsConnected() {
		t.Error("connection was closed")
	}
	write(t, v, bob, "waits")
	c.wa.ResetConnection()
	c.message("waits")
}

func TestHangingLogin(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	c.wa.Disconnect()
	until(t, v, "alice is offline", func() bool { return !v.Accounts()[0].Online })
	fault(t, v, alice, vendorsim.FaultHang)
	if err := c.wa.Connect(); err != nil {
		t.Fatal(err)
	}
	if v.Accounts()[0].Online {
		t.Error("account is online")
	}
	c.wa.Disconnect()
	c.connect()
}

func TestMessageDroppedBeforeAckIsSentAgain(t *testing.T) {
	t.Parallel()
	v := openVendor(t, t.TempDir())
	c := newClient(t, v, newContainer(t).NewDevice())
	c.wa.EnableAutoReconnect = false
	c.link(v, alice)
	c.send(bob, "warm up")
	fault(t, v, alice, vendorsim.FaultDropBeforeAck)
	id := c.sendAcrossDrop(bob, "once")
	if e := entry(t, v, id); e.Copies != 2 || e.AckedAt == nil || e.Body != "once" {
		t.Errorf("entry is %+v, want two copies", e)
	}
	resp, err := c.wa.SendMessage(t.Context(), jid(bob), textOf("once"), whatsmeow.SendRequestExtra{ID: id})
	if err != nil || resp.ID != id {
		t.Fatal(resp, err)
	}
	if e := entry(t, v, id); e.Copies != 3 {
		t.Errorf("entry is %+v, want three copies", e)
	}
	if got, want := bodies(v, bob), []string{"warm up", "once"}; !slices.Equal(got, want) {
		t.Errorf("bob's phone shows %q, want %q", got, want)
	}
	c.receipt(id, types.ReceiptTypeDelivered)
}

func TestMessageLostWithTheConnection(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := newClient(t, v, newContainer(t).NewDevice())
	c.wa.EnableAutoReconnect = false
	c.link(v, alice)
	fault(t, v, alice, vendorsim.FaultDropOnMessage)
	id := c.sendAcrossDrop(bob, "second try")
	if e := entry(t, v, id); e.Copies != 1 {
		t.Errorf("entry is %+v, want one copy", e)
	}
}

func TestMessageWithoutAck(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	fault(t, v, alice, vendorsim.FaultNoAck)
	extra := whatsmeow.SendRequestExtra{ID: c.wa.GenerateMessageID(), Timeout: 500 * time.Millisecond}
	if _, err := c.wa.SendMessage(t.Context(), jid(bob), textOf("no answer"), extra); !errors.Is(err,
		whatsmeow.ErrMessageTimedOut) {
		t.Errorf("SendMessage = %v, want %v", err, whatsmeow.ErrMessageTimedOut)
	}
	until(t, v, "bob has it", func() bool { return len(v.Shown(bob)) == 1 })
	if e := entry(t, v, extra.ID); e.AckedAt != nil {
		t.Errorf("entry is %+v, want it not acknowledged", e)
	}
	if _, err := c.wa.SendMessage(t.Context(), jid(bob), textOf("no answer"),
		whatsmeow.SendRequestExtra{ID: extra.ID}); err != nil {
		t.Fatal(err)
	}
	if e := entry(t, v, extra.ID); e.AckedAt == nil || e.Copies != 2 {
		t.Errorf("entry is %+v, want two copies and an acknowledgement", e)
	}
}

func TestDuplicateInbound(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	fault(t, v, alice, vendorsim.FaultDuplicate)
	id := write(t, v, bob, "twice")
	c.message("twice")
	until(t, v, "it is acknowledged", func() bool { return entry(t, v, id).AckedAt != nil })
}

func TestReorderedInbound(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	write(t, v, bob, "warm up")
	c.message("warm up")
	fault(t, v, alice, vendorsim.FaultReorder)
	write(t, v, bob, "first")
	write(t, v, bob, "second")
	for _, want := range []string{"second", "first"} {
		if got := await[*events.Message](c, "message", nil).Message.GetConversation(); got != want {
			t.Errorf("message is %q, want %q", got, want)
		}
	}
}

func TestGarbledMessageIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for _, synchronous := range []bool{false, true} {
		v := openVendor(t, "")
		c := newClient(t, v, newContainer(t).NewDevice())
		c.wa.SynchronousAck = synchronous
		c.link(v, alice)
		write(t, v, bob, "fine")
		c.message("fine")
		fault(t, v, alice, vendorsim.FaultGarble)
		id := write(t, v, bob, "garbled")
		await[*events.UndecryptableMessage](c, "UndecryptableMessage", nil)
		c.message("garbled")
		until(t, v, "it is acknowledged", func() bool { return entry(t, v, id).AckedAt != nil })
		write(t, v, bob, "fine again")
		c.message("fine again")
	}
}

func TestCompanionAsksAnotherAgain(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a, b := link(t, v, alice), link(t, v, bob)
	a.send(bob, "fine")
	b.message("fine")
	fault(t, v, bob, vendorsim.FaultGarble)
	id := a.send(bob, "garbled")
	b.message("garbled")
	until(t, v, "it is acknowledged", func() bool {
		return slices.ContainsFunc(v.Ledger(0, 0), func(e vendorsim.Entry) bool {
			return e.Direction == vendorsim.Inbound && e.NetworkID == id && e.AckedAt != nil
		})
	})
	b.send(alice, "got it")
	a.message("got it")
}

func TestPhoneAsksAgain(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	c.send(bob, "fine")
	fault(t, v, alice, vendorsim.FaultRetry)
	id := c.send(bob, "unreadable at first")
	until(t, v, "bob can read it", func() bool { return len(v.Shown(bob)) == 2 })
	c.receipt(id, types.ReceiptTypeDelivered)
	if e := entry(t, v, id); e.Body != "unreadable at first" || e.Type != vendorsim.TypeText {
		t.Errorf("entry is %+v", e)
	}
	c.send(bob, "fine again")
}

func TestUnknownFault(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	for _, f := range []vendorsim.Fault{"", "rain", "refuse:x", "restrict:-1"} {
		if err := v.Fault(context.Background(), vendorsim.AllAccounts, f); !errors.Is(err, vendorsim.ErrUnknownFault) {
			t.Errorf("Fault(%q) = %v, want %v", f, err, vendorsim.ErrUnknownFault)
		}
	}
}
