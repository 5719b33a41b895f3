package whatsapp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/postern"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

func (w world) fault(tb testing.TB, f vendorsim.Fault) {
	tb.Helper()
	if err := w.vendor.Fault(tb.Context(), ownNumber, f); err != nil {
		tb.Fatal(err)
	}
}

func isUnread(id string) func(network.Undecryptable) bool {
	return func(u network.Undecryptable) bool { return u.NetworkID == id }
}

// TestT28PanickingDecryptionIsSetAside: three tries, one report, and everything after it.
func TestT28PanickingDecryptionIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	w.fault(t, vendorsim.FaultPoison)
	poison := send(t, w, "poison")
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = send(t, w, fmt.Sprint("after ", i))
	}
	for range panicTries - 1 {
		c.EndedAs(t, postern.Disconnected, "decryption-panicked")
		if e := entryOf(t, w, poison); e.AckedAt != nil {
			t.Fatal("the message was acknowledged before it was set aside")
		}
		if got := networktest.All(c.Host, isUnread(poison)); len(got) != 0 {
			t.Fatalf("reported %v too early", got)
		}
		c = networktest.Reconnect(t, c.Session, c.Host)
	}
	c.Live(t, 2)
	for i, id := range ids {
		if m := networktest.Wait(t, c.Host, 1, byID(id)); m.Content.Text != fmt.Sprint("after ", i) {
			t.Errorf("message %d is %q", i, m.Content.Text)
		}
	}
	u := networktest.Wait(t, c.Host, 1, isUnread(poison))
	if u.Why != postern.DecryptionPanicked || u.From != friendNumber || u.ChatID != friendNumber || u.At.IsZero() {
		t.Errorf("reported %+v", u)
	}
}

func TestUnparsableMessageIsReported(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fault vendorsim.Fault
		code  int
		why   postern.FailureCode
	}{
		{vendorsim.FaultBadProtobuf, 491, postern.MalformedContent},
		{vendorsim.FaultBadTime, 487, postern.MalformedMessage},
	}
	for _, tt := range tests {
		t.Run(string(tt.fault), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			c := w.live(t, ownNumber)
			c.Host.Rule(func(u network.Update) error {
				if _, ok := u.(network.Undecryptable); ok {
					return networktest.ErrRefused
				}
				return nil
			})
			w.fault(t, tt.fault)
			id := send(t, w, "unreadable")
			c.EndedAs(t, postern.Disconnected, "store-unavailable")
			if e := entryOf(t, w, id); e.AckedAt != nil {
				t.Fatal("the message was acknowledged before it was stored")
			}
			c.Host.Rule(nil)
			c = networktest.Reconnect(t, c.Session, c.Host).Live(t, 2)
			u := networktest.Wait(t, c.Host, 1, isUnread(id))
			if u.Why != tt.why || u.From != friendNumber || u.Sender == "" || u.At.IsZero() {
				t.Errorf("reported %+v, want %s", u, tt.why)
			}
			next := send(t, w, "next")
			networktest.Wait(t, c.Host, 1, byID(next))
			w.until(t, "the message is acknowledged", func() bool { return entryOf(t, w, id).AckedAt != nil })
			if e := entryOf(t, w, id); e.Refused != tt.code {
				t.Errorf("the vendor got %+v, want a refusal with %d", e, tt.code)
			}
			if got := networktest.All(c.Host, isUnread(id)); len(got) != 1 {
				t.Errorf("reported %d times", len(got))
			}
		})
	}
}

func TestUndecodableStreamEndsTheConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	w.fault(t, "undecodable:1")
	id := send(t, w, "after one frame")
	networktest.Wait(t, c.Host, 1, byID(id))
	w.fault(t, vendorsim.FaultUndecodable)
	c.EndedAs(t, postern.Disconnected, "undecodable")
}

// TestHalfOpenConnectionEndsInTime: after the first ping without an answer there is one more.
func TestHalfOpenConnectionEndsInTime(t *testing.T) {
	t.Parallel()
	if most := vendorInterval + 2*vendorWait; most.Seconds() > 60 {
		t.Errorf("a half-open connection lasts for up to %v", most)
	}
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	w.fault(t, vendorsim.FaultSilence)
	s := c.Session.(*session)
	v := &run{conn: s.liveConn(), session: s}
	v.handle(t.Context(), &events.KeepAliveTimeout{ErrorCount: 1})
	if ended := v.ended(); ended == nil || ended.Reason != "keepalive-timeout" {
		t.Errorf("after two pings without an answer the connection ended with %v", ended)
	}
	c.EndedAs(t, postern.Disconnected, "keepalive-timeout")
}

func TestReceiptNamesWhoConfirms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	m := outbound("3EB000000000000000D7", friendNumber, "hello")
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	own := networktest.Wait(t, c.Host, 1, networktest.Any[network.Receipt])
	if len(own.Chats) != 2 || own.Chats[0] != friendNumber || !strings.HasPrefix(own.Chats[1], "lid:") {
		t.Errorf("the recipient's receipt is of %q", own.Chats)
	}
	s := c.Session.(*session)
	v := &run{conn: s.liveConn(), session: s}
	stranger := types.NewJID("99900011122233", types.HiddenUserServer)
	v.handle(t.Context(), &events.Receipt{
		MessageSource: types.MessageSource{Chat: stranger, Sender: stranger}, MessageIDs: []string{m.NetworkID},
		Type: types.ReceiptTypeRead,
	})
	forged := networktest.Wait(t, c.Host, 1, func(r network.Receipt) bool { return r.Status == postern.Read })
	if len(forged.Chats) != 1 || forged.Chats[0] != "lid:99900011122233" {
		t.Errorf("a stranger's receipt is of %q", forged.Chats)
	}
}

// TestWhatsmeowLogsWhatIsPassedOn guards the formats that tap knows.
func TestWhatsmeowLogsWhatIsPassedOn(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.mau.fi/whatsmeow").Output()
	if err != nil {
		t.Fatal(err)
	}
	for format, file := range map[string]string{
		undecryptedFrame: "socket/noisesocket.go", uncompressed: "client.go", undecodedFrame: "client.go",
		panickedMessage: "message.go",
	} {
		src, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), file))
		if err != nil || !strings.Contains(string(src), fmt.Sprintf("f(%q", format)) {
			t.Errorf("%s does not log %q (%v)", file, format, err)
		}
	}
}
