package networktest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/postern"
)

// promptly is how fast a canceled connection must end.
const promptly = time.Minute

func testLive(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	c.Stop(t)
	Reconnect(t, c.Session, c.Host).Live(t, 2).Stop(t)
}

func outbound(id, to, body string) network.Outbound {
	return network.Outbound{NetworkID: id, ChatID: to, Content: postern.Text(body)}
}

func testSendOffline(t *testing.T, w World) {
	s, err := w.Driver.Open(t.Context(), Link(t, w, ownNumber))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	_, err = s.Send(t.Context(), outbound("3EB000000000000000AA", friendNumber, "hello"))
	if !errors.Is(err, network.ErrNotConnected) {
		t.Errorf("send before Run = %v, want ErrNotConnected", err)
	}
	c := Reconnect(t, s, &Recorder{}).Live(t, 1)
	c.Stop(t)
	_, err = s.Send(t.Context(), outbound("3EB000000000000000AB", friendNumber, "hello"))
	if !errors.Is(err, network.ErrNotConnected) {
		t.Errorf("send after Run = %v, want ErrNotConnected", err)
	}
}

// mustShow waits until a phone shows a message, and fails if it shows it twice.
func mustShow(t *testing.T, w World, number, id, body string) {
	t.Helper()
	deadline := time.Now().Add(waitLimit)
	for {
		var found []Shown
		for _, m := range w.Vendor.Shown(number) {
			if m.ID == id {
				found = append(found, m)
			}
		}
		if len(found) == 1 && found[0].Body == body {
			return
		}
		if len(found) > 1 || time.Now().After(deadline) {
			t.Fatalf("the phone shows %d messages under the id, want 1 with the text", len(found))
		}
		<-time.After(5 * time.Millisecond) // a phone sends no notification
	}
}

func testSend(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	const body = "Grüße, 👋\n\"second\" line"
	for i := range 3 {
		id := fmt.Sprintf("3EB0000000000000000%d", i)
		at, err := c.Send(t.Context(), outbound(id, friendNumber, body))
		if err != nil {
			t.Fatalf("send: %v", err)
		}
		if age := time.Since(at); age < -time.Minute || age > time.Minute {
			t.Errorf("network time is %v off", age)
		}
		mustShow(t, w, friendNumber, id, body)
	}
}

func testLeave(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	canceled := errors.New("canceled")
	m := outbound("3EB000000000000000AE", friendNumber, "canceled")
	m.Leave = func() error { return canceled }
	if _, err := c.Send(t.Context(), m); !errors.Is(err, canceled) {
		t.Errorf("send = %v, want the error of Leave", err)
	}
	asked := 0
	m = outbound("3EB000000000000000AF", friendNumber, "next")
	m.Leave = func() error { asked++; return nil }
	if _, err := c.Send(t.Context(), m); err != nil || asked == 0 {
		t.Errorf("send = %v after %d calls of Leave", err, asked)
	}
	mustShow(t, w, friendNumber, m.NetworkID, "next")
	for _, shown := range w.Vendor.Shown(friendNumber) {
		if shown.Body == "canceled" {
			t.Error("the phone shows a message that could not leave")
		}
	}
}

func testSendUnknownNumber(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	_, err := c.Send(t.Context(), outbound("3EB000000000000000AC", NumberUnknown, "hello"))
	var rejected *network.Rejected
	if !errors.As(err, &rejected) || rejected.Code != postern.RecipientNotFound {
		t.Fatalf("send = %v, want Rejected with %s", err, postern.RecipientNotFound)
	}
}

func testReceipts(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	const id = "3EB000000000000000AD"
	if _, err := c.Send(t.Context(), outbound(id, friendNumber, "hello")); err != nil {
		t.Fatalf("send: %v", err)
	}
	reached := func(want postern.MessageStatus) func(network.Receipt) bool {
		return func(r network.Receipt) bool {
			return len(r.NetworkIDs) == 1 && r.NetworkIDs[0] == id && r.Status == want
		}
	}
	Wait(t, c.Host, 1, reached(postern.Delivered))
	if err := w.Vendor.Receipt(t.Context(), ownNumber, id, postern.Read); err != nil {
		t.Fatalf("receipt: %v", err)
	}
	if r := Wait(t, c.Host, 1, reached(postern.Read)); r.At.IsZero() {
		t.Error("the receipt has no time")
	}
}

func testInbound(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	const body = "hello\nfrom 👋 a friend"
	id := write(t, w, ownNumber, body)
	m := Wait(t, c.Host, 1, byID(id))
	if m.From != friendNumber || m.ChatID != friendNumber || m.Sender == "" || !reflect.DeepEqual(m.Content, postern.Text(body)) ||
		m.At.IsZero() {
		t.Errorf("inbound = %+v, want the text from %s", m, friendNumber)
	}
	// The next one is delivered only after the first was acknowledged.
	Wait(t, c.Host, 1, byID(write(t, w, ownNumber, "next")))
	c.Stop(t)
	c = Reconnect(t, c.Session, c.Host).Live(t, 2)
	last := write(t, w, ownNumber, "after")
	Wait(t, c.Host, 1, byID(last))
	if again := All(c.Host, byID(id)); len(again) != 1 {
		t.Errorf("an acknowledged message came %d times", len(again))
	}
}

func testInboundOrder(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	const count = 30
	for i := range count {
		write(t, w, ownNumber, fmt.Sprint(i))
	}
	Wait(t, c.Host, count, Any[network.Inbound])
	for i, m := range All(c.Host, Any[network.Inbound]) {
		if m.Content.Text != fmt.Sprint(i) {
			t.Fatalf("message %d is %+v", i, m.Content)
		}
	}
}

func testWaiting(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	c.Stop(t)
	id := write(t, w, ownNumber, "while you were away")
	Reconnect(t, c.Session, c.Host).Live(t, 2)
	if got := All(c.Host, byID(id)); len(got) != 1 {
		t.Fatalf("%d messages before live, want the one that waited", len(got))
	}
}

func testHostError(t *testing.T, w World) {
	testComesAgain(t, w, refuses[network.Inbound])
}

func testHostPanic(t *testing.T, w World) {
	testComesAgain(t, w, func(u network.Update) error {
		if _, ok := u.(network.Inbound); ok {
			panic("the host is broken")
		}
		return nil
	})
}

func testComesAgain(t *testing.T, w World, rule func(network.Update) error) {
	t.Helper()
	c := live(t, w, ownNumber)
	first := write(t, w, ownNumber, "stored at once")
	Wait(t, c.Host, 1, byID(first))
	c.Host.Rule(rule)
	second := write(t, w, ownNumber, "not stored at first")
	c.EndedAs(t, postern.Disconnected, "store-unavailable")
	third := write(t, w, ownNumber, "meanwhile")
	c.Host.Rule(nil)
	c = Reconnect(t, c.Session, c.Host).Live(t, 2)
	Wait(t, c.Host, 1, byID(third))
	for _, id := range []string{first, second, third} {
		if got := All(c.Host, byID(id)); len(got) != 1 {
			t.Errorf("message stored %d times, want 1", len(got))
		}
	}
}

func testEcho(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	id, err := w.Vendor.Type(t.Context(), ownNumber, friendNumber, "typed on the phone")
	if err != nil {
		t.Fatalf("type: %v", err)
	}
	e := Wait(t, c.Host, 1, func(e network.Echo) bool { return e.NetworkID == id })
	if e.To != friendNumber || e.ChatID != friendNumber || e.Content.Text != "typed on the phone" {
		t.Errorf("echo = %+v, want the text to %s", e, friendNumber)
	}
}

func testResend(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	m := outbound("3EB000000000000000AE", friendNumber, "hello")
	fault(t, w, FaultDropBeforeAck)
	_, err := c.Send(t.Context(), m)
	var rejected *network.Rejected
	if err == nil || errors.Is(err, network.ErrNotConnected) || errors.As(err, &rejected) {
		t.Fatalf("send = %v, want an unknown outcome", err)
	}
	c.EndedAs(t, postern.Disconnected, "")
	c = Reconnect(t, c.Session, c.Host).Live(t, 2)
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatalf("send again: %v", err)
	}
	mustShow(t, w, friendNumber, m.NetworkID, m.Content.Text)
}

func testDrop(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	fault(t, w, FaultDrop)
	c.EndedAs(t, postern.Disconnected, "socket-closed")
	Reconnect(t, c.Session, c.Host).Live(t, 2)
}

func testRefuse(t *testing.T, w World) {
	c := live(t, w, ownNumber)
	c.Stop(t)
	fault(t, w, FaultRefuse)
	c = Reconnect(t, c.Session, c.Host)
	c.EndedAs(t, postern.Disconnected, "vendor-unavailable")
	Reconnect(t, c.Session, c.Host).Live(t, 2)
}

// ending tests that a fault ends a connection with a status, and later connections
// too.
func ending(f Fault, want postern.Status) func(*testing.T, World) {
	return func(t *testing.T, w World) {
		t.Helper()
		c := live(t, w, ownNumber)
		fault(t, w, f)
		ended := c.Ended(t)
		if want == postern.LoggedOut || want == postern.Conflict {
			if ended.Status != want || ended.Reason == "" {
				t.Fatalf("ended as %+v, want %s", ended, want)
			}
		}
		if want == postern.Conflict {
			return
		}
		c = Reconnect(t, c.Session, c.Host)
		ended = c.Ended(t)
		if ended.Status != want || ended.Reason == "" {
			t.Fatalf("then ended as %+v, want %s", ended, want)
		}
		if want == postern.Restricted && time.Until(ended.Until) <= 0 {
			t.Errorf("restricted until %v, want a time to come", ended.Until)
		}
	}
}

func testUnlink(t *testing.T, w World) {
	account := Link(t, w, ownNumber)
	c := Connect(t, w, account, &Recorder{}).Live(t, 1)
	if err := c.Unlink(t.Context()); err != nil {
		t.Fatalf("unlink: %v", err)
	}
	c.EndedAs(t, postern.LoggedOut, "")
	mustBeGone(t, w, account)
	if err := c.Unlink(t.Context()); !errors.Is(err, network.ErrNotConnected) {
		t.Errorf("unlink without a connection = %v, want ErrNotConnected", err)
	}
}

func testCancel(t *testing.T, w World) {
	s, err := w.Driver.Open(t.Context(), Link(t, w, ownNumber))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	check := leaks()
	began := time.Now()
	for i := range 3 {
		Reconnect(t, s, &Recorder{}).Live(t, 1).Stop(t)
		if took := time.Since(began); took > promptly*time.Duration(i+1) {
			t.Fatalf("connecting and ending took %v", took)
		}
	}
	check(t)
}

func testTwoAccounts(t *testing.T, w World) {
	a, b := live(t, w, ownNumber), live(t, w, otherNumber)
	toA := write(t, w, ownNumber, "to the first")
	toB := write(t, w, otherNumber, "to the second")
	Wait(t, a.Host, 1, byID(toA))
	Wait(t, b.Host, 1, byID(toB))
	if len(All(a.Host, byID(toB)))+len(All(b.Host, byID(toA))) != 0 {
		t.Error("a message reached the other account")
	}
	fault(t, w, FaultLogout)
	a.EndedAs(t, postern.LoggedOut, "")
	if _, err := b.Send(t.Context(), outbound("3EB000000000000000AF", friendNumber, "hello")); err != nil {
		t.Errorf("send of the account that stays: %v", err)
	}
	const id = "3EB000000000000000B0"
	if _, err := b.Send(t.Context(), outbound(id, ownNumber, "hello")); err != nil {
		t.Errorf("send to the other account's phone: %v", err)
	}
	mustShow(t, w, ownNumber, id, "hello")
}
