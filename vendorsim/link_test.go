package vendorsim_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"postern/vendorsim"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"go.mau.fi/whatsmeow/util/keys"
	"go.uber.org/goleak"
)

func TestLinkedAccountIsListed(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	until(t, v, "what the phone sent is acknowledged", func() bool { return v.Accounts()[0].Queued == 0 })
	accounts := v.Accounts()
	if len(accounts) != 1 {
		t.Fatalf("accounts are %+v, want one", accounts)
	}
	got := accounts[0]
	want := vendorsim.Account{Number: alice, LID: got.LID, Linked: true, Online: true, Companions: 1, Logins: 1}
	if got != want || got.LID == "" {
		t.Errorf("account is %+v, want %+v", got, want)
	}
	c.wa.Disconnect()
	until(t, v, "alice is offline", func() bool { return !v.Accounts()[0].Online })
}

func TestScanRefusesWhatIsNotShown(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := newClient(t, v, newContainer(t).NewDevice())
	qr, err := c.wa.GetQRChannel(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.wa.Connect(); err != nil {
		t.Fatal(err)
	}
	code := (<-qr).Code
	parts := strings.SplitN(code, ",", 2)
	for _, tt := range []struct {
		name, qr, number string
		want             error
	}{
		{"not a code", "hello", alice, vendorsim.ErrBadQR},
		{"bad base64", "a,b,c,d,e", alice, vendorsim.ErrBadQR},
		{"another reference", "ref," + parts[1], alice, vendorsim.ErrStaleQR},
		{"not a number", code, "123", vendorsim.ErrBadNumber},
		{"unknown number", code, vendorsim.NumberUnknown, vendorsim.ErrNotOnNetwork},
	} {
		if err := v.Scan(t.Context(), tt.qr, tt.number); !errors.Is(err, tt.want) {
			t.Errorf("%s: Scan = %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := v.Scan(t.Context(), code, alice); err != nil {
		t.Errorf("Scan of the right code = %v", err)
	}
	if err := v.Scan(t.Context(), code, alice); !errors.Is(err, vendorsim.ErrStaleQR) {
		t.Errorf("second Scan = %v, want %v", err, vendorsim.ErrStaleQR)
	}
}

func TestClientMayRefuseTheLink(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := newClient(t, v, newContainer(t).NewDevice())
	c.wa.PrePairCallback = func(types.JID, string, string) bool { return false }
	qr, err := c.wa.GetQRChannel(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.wa.Connect(); err != nil {
		t.Fatal(err)
	}
	if err := v.Scan(t.Context(), (<-qr).Code, alice); !errors.Is(err, vendorsim.ErrPairingRefused) {
		t.Errorf("Scan = %v, want %v", err, vendorsim.ErrPairingRefused)
	}
	if got := v.Accounts(); len(got) != 0 {
		t.Errorf("accounts are %+v, want none", got)
	}
}

func TestAnotherKeyIsLoggedOut(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	c.synced()
	c.wa.Disconnect()
	c.device.NoiseKey = keys.NewKeyPair()
	if err := c.wa.Connect(); err != nil {
		t.Fatal(err)
	}
	out := await[*events.LoggedOut](c, "LoggedOut", nil)
	if !out.OnConnect || out.Reason != events.ConnectFailureLoggedOut {
		t.Errorf("event is %+v, want a logout at connect with 401", out)
	}
}

func TestClientLogsOut(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	c.synced()
	if err := c.wa.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, v, "no companion is left", func() bool { return v.Accounts()[0].Companions == 0 })
	if _, err := v.Send(t.Context(), alice, bob, "lost"); !errors.Is(err, vendorsim.ErrUnknownAccount) {
		t.Errorf("Send = %v, want %v", err, vendorsim.ErrUnknownAccount)
	}
}

func TestSecondCompanionGetsCopies(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	one := link(t, v, alice)
	one.send(bob, "before there are two")
	two := link(t, v, alice)
	if got := v.Accounts()[0].Companions; got != 2 {
		t.Fatalf("companions = %d, want 2", got)
	}
	if one.device.ID.Device == two.device.ID.Device {
		t.Fatalf("both companions are device %d", two.device.ID.Device)
	}

	one.send(bob, "from one")
	m := two.message("from one")
	if !m.Info.IsFromMe {
		t.Errorf("copy of the other companion's message is not from me: %+v", m.Info)
	}
	two.send(bob, "from two")
	one.message("from two")
	write(t, v, bob, "for both")
	one.message("for both")
	two.message("for both")
}

func TestLinkedAccountsWriteToEachOther(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	a := link(t, v, alice)
	a.send(bob, "bob has only a phone yet")
	b := link(t, v, bob)
	for _, body := range []string{"first", "later"} {
		id := a.send(bob, body)
		m := b.message(body)
		if m.Info.SenderAlt.User != alice[1:] {
			t.Errorf("%q comes from %v / %v, want %s", body, m.Info.Sender, m.Info.SenderAlt, alice)
		}
		a.receipt(id, types.ReceiptTypeDelivered)
		b.send(alice, "re: "+body)
		a.message("re: " + body)
		if err := b.wa.MarkRead(t.Context(), []string{id}, m.Info.Timestamp, m.Info.Chat, m.Info.Sender); err != nil {
			t.Fatal(err)
		}
		a.receipt(id, types.ReceiptTypeRead)
		if e := entry(t, v, id); e.ReadAt == nil {
			t.Errorf("entry of a message that was read is %+v", e)
		}
	}
}

func TestNumbersAreLookedUp(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	c := link(t, v, alice)
	got, err := c.wa.IsOnWhatsApp(t.Context(), []string{bob, vendorsim.NumberUnknown, "12"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || !got[0].IsIn || got[1].IsIn || got[2].IsIn {
		t.Errorf("IsOnWhatsApp = %+v, want only the first", got)
	}
	if got[0].Query != bob || got[0].PhoneNumber.User != bob[1:] {
		t.Errorf("answer for %s is %+v", bob, got[0])
	}
	if _, err := c.wa.SendMessage(t.Context(), jid(vendorsim.NumberUnknown), textOf("x")); err == nil {
		t.Error("a text to an unknown number was sent")
	}
}

// nothingStays waits until no other goroutines run than those of an option: goleak itself waits for
// less than half a second.
func nothingStays(t *testing.T, but goleak.Option) {
	t.Helper()
	err := goleak.Find(but)
	for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); {
		err = goleak.Find(but)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	v, err := vendorsim.Open(vendorsim.Options{Keys: testKeys})
	if err != nil {
		t.Fatal(err)
	}
	container := newContainer(t)
	c := newClient(t, v, container.NewDevice())
	c.wa.EnableAutoReconnect = false
	c.link(v, alice)
	c.send(bob, "hello")
	l, err := v.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	await[*events.Disconnected](c, "Disconnected", nil)
	c.wa.Disconnect()
	_ = container.Close()
	if _, err := l.Accept(); err == nil {
		t.Error("listener is still open")
	}
	if _, err := v.DialContext(context.Background()); !errors.Is(err, vendorsim.ErrClosed) {
		t.Errorf("DialContext = %v, want %v", err, vendorsim.ErrClosed)
	}
	if _, err := v.Send(t.Context(), alice, bob, "late"); !errors.Is(err, vendorsim.ErrClosed) {
		t.Errorf("Send = %v, want %v", err, vendorsim.ErrClosed)
	}
	nothingStays(t, before)
}

func TestClientOverTCP(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	l, err := v.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}
	c := newClient(t, v, newContainer(t).NewDevice())
	overTCP := &http.Client{Transport: &http.Transport{DialTLSContext: dial}}
	c.wa.SetPreLoginHTTPClient(overTCP)
	c.wa.SetWebsocketHTTPClient(overTCP)
	c.link(v, alice)
	c.send(bob, "over TCP")
}

func TestHandlerRefusesPlainRequests(t *testing.T) {
	t.Parallel()
	v := openVendor(t, "")
	w := httptest.NewRecorder()
	v.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ws/chat", nil))
	if w.Code != http.StatusUpgradeRequired {
		t.Errorf("status is %d, want %d", w.Code, http.StatusUpgradeRequired)
	}
}
