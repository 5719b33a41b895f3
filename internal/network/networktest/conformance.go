package networktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/postern"

	"go.uber.org/goleak"
)

// World is a driver under test and the vendor it talks to.
type World struct {
	Driver network.Driver
	Vendor Vendor
}

const (
	ownNumber    = "+15550001111"
	otherNumber  = "+15550002222"
	friendNumber = "+15550003333"
)

// TestDriver is the conformance suite. open makes a fresh World for each test.
// The tests are not parallel, because some look for leaked goroutines.
func TestDriver(t *testing.T, open func(t *testing.T) World) {
	t.Helper()
	tests := []struct {
		name string
		run  func(t *testing.T, w World)
	}{
		{"a phone links an account", testLink},
		{"a refused account is not kept", testLinkRefused},
		{"a host that panics refuses the account", testLinkPanic},
		{"keys do not stay when the link was not stored", testLinkNotStored},
		{"a canceled link ends", testLinkCanceled},
		{"a code entered on a phone links an account", testCode},
		{"a wrong code ends the link", testWrongCode},
		{"an unknown account is not opened", testUnknownAccount},
		{"a forgotten account is gone", testForget},
		{"a session becomes live", testLive},
		{"nothing is sent without a connection", testSendOffline},
		{"a message is sent under its id", testSend},
		{"a message that may not leave is not sent", testLeave},
		{"a number off the network is refused", testSendUnknownNumber},
		{"receipts follow a message", testReceipts},
		{"a contact's message arrives once", testInbound},
		{"messages keep their order", testInboundOrder},
		{"messages that waited come before live", testWaiting},
		{"what the host does not store comes again", testHostError},
		{"what a host panics at comes again", testHostPanic},
		{"what the owner writes on the phone is echoed", testEcho},
		{"an unanswered message is sent again under its id", testResend},
		{"a cut connection can be opened again", testDrop},
		{"a refused connection can be opened again", testRefuse},
		{"a removed companion is logged out", ending(FaultLogout, postern.LoggedOut)},
		{"a banned account is banned", ending(FaultBan, postern.Banned)},
		{"a restricted account is restricted", ending(FaultRestrict, postern.Restricted)},
		{"a replaced connection is a conflict", ending(FaultConflict, postern.Conflict)},
		{"a file reaches the phone of a contact", testUpload},
		{"a contact's file arrives", testDownload},
		{"a transfer that failed can be repeated", testFailedTransfers},
		{"the phone uploads a file again", testOffer},
		{"an offer that the host does not store comes again", testOfferRefused},
		{"no file is transferred without a connection", testMediaOffline},
		{"unlinking removes the companion", testUnlink},
		{"a canceled run leaves nothing behind", testCancel},
		{"two accounts do not mix", testTwoAccounts},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open(t)) })
	}
}

// Link links a number and returns the driver's name for it.
func Link(tb testing.TB, w World, number string) string {
	tb.Helper()
	rec := &Recorder{}
	done := goLink(tb.Context(), w, rec)
	code := Wait(tb, rec, 1, Any[network.Code])
	if err := w.Vendor.Scan(tb.Context(), code.Text, number); err != nil {
		tb.Fatalf("scan: %v", err)
	}
	if err := within(tb, done); err != nil {
		tb.Fatalf("link: %v", err)
	}
	return Wait(tb, rec, 1, Any[network.Paired]).Account
}

func goLink(ctx context.Context, w World, host network.LinkHost) <-chan error {
	return goLinkTo(ctx, w, host, "")
}

func goLinkTo(ctx context.Context, w World, host network.LinkHost, number string) <-chan error {
	done := make(chan error, 1)
	go func() { done <- w.Driver.Link(ctx, host, number) }()
	return done
}

// within waits for done and returns its value.
func within(tb testing.TB, done <-chan error) error {
	tb.Helper()
	timer := time.NewTimer(waitLimit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		tb.Fatal("did not end in time")
		return nil
	}
}

// Connection is a Run of a session in the background.
type Connection struct {
	network.Session
	Host *Recorder
	done chan error
	stop context.CancelFunc
}

// Connect opens an account and runs its session with host; [Connection.Live] waits
// until messages flow. The connection ends with the test.
func Connect(tb testing.TB, w World, account string, host *Recorder) *Connection {
	tb.Helper()
	s, err := w.Driver.Open(tb.Context(), account)
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	return Reconnect(tb, s, host)
}

// Reconnect runs a session that is not running.
func Reconnect(tb testing.TB, s network.Session, host *Recorder) *Connection {
	tb.Helper()
	ctx, stop := context.WithCancel(tb.Context())
	c := &Connection{Session: s, Host: host, done: make(chan error, 1), stop: stop}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.done <- s.Run(ctx, host)
	}()
	tb.Cleanup(func() {
		stop()
		<-ended
	})
	return c
}

// Live waits until the n-th connection of the host is live.
func (c *Connection) Live(tb testing.TB, n int) *Connection {
	tb.Helper()
	Wait(tb, c.Host, n, Any[network.Live])
	return c
}

// Stop ends the connection, and fails the test unless Run returns nil.
func (c *Connection) Stop(tb testing.TB) {
	tb.Helper()
	c.stop()
	if err := within(tb, c.done); err != nil {
		tb.Fatalf("run after cancel = %v, want nil", err)
	}
}

// Ended waits for the end of the connection.
func (c *Connection) Ended(tb testing.TB) *network.Ended {
	tb.Helper()
	err := within(tb, c.done)
	var ended *network.Ended
	if !errors.As(err, &ended) {
		tb.Fatalf("run = %v, want an *Ended", err)
	}
	return ended
}

// EndedAs waits for the end of the connection and checks its status, and its
// reason unless that is "".
func (c *Connection) EndedAs(tb testing.TB, want postern.Status, reason string) {
	tb.Helper()
	ended := c.Ended(tb)
	if ended.Status != want || ended.Reason == "" || reason != "" && ended.Reason != reason {
		tb.Fatalf("ended as %q for %q, want %q for %q", ended.Status, ended.Reason, want, reason)
	}
}

// live links a number and makes a live connection.
func live(t *testing.T, w World, number string) *Connection {
	t.Helper()
	return Connect(t, w, Link(t, w, number), &Recorder{}).Live(t, 1)
}

// fault injects a fault for the account under test.
func fault(tb testing.TB, w World, f Fault) {
	tb.Helper()
	if err := w.Vendor.Fault(tb.Context(), ownNumber, f); err != nil {
		tb.Fatalf("fault %s: %v", f, err)
	}
}

// write lets the friend write to an account.
func write(tb testing.TB, w World, account, body string) string {
	tb.Helper()
	id, err := w.Vendor.Send(tb.Context(), account, friendNumber, body)
	if err != nil {
		tb.Fatalf("contact writes: %v", err)
	}
	return id
}

// byID matches an inbound message.
func byID(id string) func(network.Inbound) bool {
	return func(m network.Inbound) bool { return m.NetworkID == id }
}

// leaks returns a check that no goroutine started since is left. goleak itself waits for less than
// half a second.
func leaks() func(testing.TB) {
	before := goleak.IgnoreCurrent()
	return func(tb testing.TB) {
		tb.Helper()
		err := goleak.Find(before)
		for deadline := time.Now().Add(promptly); err != nil && time.Now().Before(deadline); {
			err = goleak.Find(before)
		}
		if err != nil {
			tb.Errorf("goroutines were left: %v", err)
		}
	}
}
