package vendorsim_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

const (
	alice = "+15550001111"
	bob   = "+15550002222"
	carol = "+15550003333"
)

func TestTextsGoBothWays(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)

	first := a.send(bob, "one")
	second := a.send(bob, "two")
	if got, want := bodies(v, bob), []string{"one", "two"}; !slices.Equal(got, want) {
		t.Errorf("bob's phone shows %q, want %q", got, want)
	}
	if got, want := bodies(v, alice), []string{"one", "two"}; !slices.Equal(got, want) {
		t.Errorf("alice's own phone shows %q, want %q", got, want)
	}
	a.receipt(first, types.ReceiptTypeDelivered)
	a.receipt(second, types.ReceiptTypeDelivered)

	write(t, v, bob, "three")
	m := a.message("three")
	if m.Info.SenderAlt.User != bob[1:] {
		t.Errorf("message comes from %v / %v, want %s", m.Info.Sender, m.Info.SenderAlt, bob)
	}
	write(t, v, bob, "four")
	a.message("four")
	write(t, v, carol, "first of carol")
	a.message("first of carol")
	a.send(carol, "answer")

	e := entry(t, v, first)
	if e.Direction != vendorsim.Outbound || e.Body != "one" || e.Peer != bob || e.Copies != 1 ||
		e.AckedAt == nil || e.DeliveredAt == nil {
		t.Errorf("ledger entry is %+v", e)
	}
}

func TestOwnerTypesOnThePhone(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	id, err := v.Type(t.Context(), alice, bob, "from the phone")
	if err != nil {
		t.Fatal(err)
	}
	m := c.message("from the phone")
	if !m.Info.IsFromMe || m.Info.ID != id || m.Info.RecipientAlt.User != bob[1:] {
		t.Errorf("copy is %+v", m.Info)
	}
	if got, want := bodies(v, bob), []string{"from the phone"}; !slices.Equal(got, want) {
		t.Errorf("bob's phone shows %q, want %q", got, want)
	}
	for _, e := range v.Ledger(0, 0) {
		t.Errorf("ledger has %+v", e)
	}
}

func TestNumbersThatAct(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)

	read := c.send(vendorsim.NumberReader, "read me")
	c.receipt(read, types.ReceiptTypeDelivered)
	c.receipt(read, types.ReceiptTypeRead)

	c.send(vendorsim.NumberEcho, "hello echo")
	m := c.message("hello echo")
	if m.Info.IsFromMe || m.Info.SenderAlt.User != vendorsim.NumberEcho[1:] {
		t.Errorf("echo comes from %+v", m.Info.MessageSource)
	}

	silent := c.send(vendorsim.NumberSilent, "are you there")
	if e := entry(t, v, silent); e.DeliveredAt != nil {
		t.Errorf("the silent number confirmed %+v", e)
	}
	if err := v.Receipt(t.Context(), alice, silent, vendorsim.Delivered); err != nil {
		t.Fatal(err)
	}
	c.receipt(silent, types.ReceiptTypeDelivered)
	if err := v.Receipt(t.Context(), alice, silent, vendorsim.Read); err != nil {
		t.Fatal(err)
	}
	c.receipt(silent, types.ReceiptTypeRead)
}

// Two that answer each text do not write to each other for ever.
func TestEchoEnds(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	text := "hello"
	for range 4 { // the first text, and three answers to its echoes
		c.send(vendorsim.NumberEcho, text)
		c.message(text)
		text = "you said: " + text
	}
	c.send(vendorsim.NumberEcho, text)
	c.send(vendorsim.NumberEcho, "something else")
	c.message("something else") // the echoes are in the order of the texts
	echoed := 0
	for _, e := range v.Ledger(0, 0) {
		if e.Direction == vendorsim.Inbound && e.Body == text {
			t.Errorf("a fourth answer is echoed")
		}
		if e.Direction == vendorsim.Inbound {
			echoed++
		}
	}
	if echoed != 5 {
		t.Errorf("%d echoes, want 5", echoed)
	}
}

func TestReceiptsOfWhatIsNot(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	link(t, v, alice)
	for _, tt := range []struct {
		account, id string
		kind        vendorsim.ReceiptKind
		want        error
	}{
		{alice, "nothing", vendorsim.Read, vendorsim.ErrUnknownMessage},
		{bob, "nothing", vendorsim.Read, vendorsim.ErrUnknownAccount},
		{"bob", "nothing", vendorsim.Read, vendorsim.ErrBadNumber},
		{alice, "nothing", "eaten", vendorsim.ErrUnknownReceipt},
	} {
		if err := v.Receipt(t.Context(), tt.account, tt.id, tt.kind); !errors.Is(err, tt.want) {
			t.Errorf("Receipt(%s, %s) = %v, want %v", tt.account, tt.kind, err, tt.want)
		}
	}
}

func TestInboundWaitsForTheClient(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	if err := v.WithholdStateKeys(alice); err != nil { // the message with the key might wait too
		t.Fatal(err)
	}
	c := link(t, v, alice)
	until(t, v, "nothing waits", func() bool { return v.Accounts()[0].Queued == 0 })
	c.wa.Disconnect()
	until(t, v, "alice is offline", func() bool { return !v.Accounts()[0].Online })
	want := []string{"one", "two", "three", "four"}
	for _, body := range want {
		write(t, v, bob, body)
	}
	c.connect()
	done := await[*events.OfflineSyncCompleted](c, "OfflineSyncCompleted", func(e *events.OfflineSyncCompleted) bool {
		return e.Count > 0
	})
	if done.Count != len(want) {
		t.Errorf("offline count is %d, want %d", done.Count, len(want))
	}
	var got []string
	for range want {
		got = append(got, await[*events.Message](c, "message", nil).Message.GetConversation())
	}
	if !slices.Equal(got, want) {
		t.Errorf("order is %q, want %q", got, want)
	}
	until(t, v, "all are acknowledged", func() bool {
		return !slices.ContainsFunc(v.Ledger(0, 0), func(e vendorsim.Entry) bool { return e.AckedAt == nil })
	})
}

func TestRefusedMessageComesAgain(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := newClient(t, v, newContainer(t).NewDevice())
	c.wa.SynchronousAck = true
	c.wa.EnableDecryptedEventBuffer = true
	c.link(v, alice)
	write(t, v, bob, "taken")
	c.message("taken")

	c.refuseMessages(true)
	id := write(t, v, bob, "refused at first")
	c.message("refused at first")
	if e := entry(t, v, id); e.AckedAt != nil {
		t.Errorf("refused message is acknowledged: %+v", e)
	}
	c.refuseMessages(false)
	c.wa.ResetConnection()
	c.message("refused at first")
	until(t, v, "it is acknowledged", func() bool { return entry(t, v, id).AckedAt != nil })
	write(t, v, bob, "taken again")
	c.message("taken again")
	if n := count[*events.UndecryptableMessage](c); n != 0 {
		t.Errorf("%d messages were undecryptable", n)
	}
}

func TestManyMessagesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const total = 2500 // more than the window
	v := openVendor(t, "")
	c := link(t, v, alice)
	c.wa.Disconnect()
	until(t, v, "alice is offline", func() bool { return !v.Accounts()[0].Online })
	for i := range total {
		write(t, v, bob, strconv.Itoa(i))
	}
	c.connect()
	for i := range total {
		if got := await[*events.Message](c, "message", nil).Message.GetConversation(); got != strconv.Itoa(i) {
			t.Fatalf("message %d is %q", i, got)
		}
	}
}

func TestPreKeysAreReplenished(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	for i := range 60 { // more people than one upload has prekeys
		write(t, v, fmt.Sprintf("+1666000%04d", i), strconv.Itoa(i))
		c.message(strconv.Itoa(i))
	}
}

func TestPersonIsKnownByTheNameItHasTaken(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	for _, name := range []string{"Phone " + bob, "Bob", "<b>Bob</b>\u202e"} {
		if name != "Phone "+bob { // which is what the vendor calls those who took none
			if err := v.PhoneProfiles().SetName(bob, name); err != nil {
				t.Fatal(err)
			}
		}
		write(t, v, bob, "I am "+name)
		if got := a.message("I am " + name).Info.PushName; got != name {
			t.Errorf("the name is %q, want %q", got, name)
		}
	}
	if err := v.PhoneProfiles().SetName("12", "x"); err == nil {
		t.Error("an invalid number has a name")
	}
}
