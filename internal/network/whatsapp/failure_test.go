package whatsapp

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/vendorsim"

	wastore "go.mau.fi/whatsmeow/store"
)

// The kinds of records in which tests make writes fail; see package keys.
const (
	kindEvent    = "event"
	kindIdentity = "identity"
	kindLID      = "lid"
	kindNumber   = "number"
	kindPreKey   = "prekey"
	kindSession  = "session"
)

// count counts rows of the key store on disk.
func (w world) count(tb testing.TB, where string) (n int) {
	tb.Helper()
	if err := w.raw.QueryRowContext(tb.Context(),
		"SELECT count(*) FROM session_key WHERE "+where).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

// sabotage runs SQL on the key store.
func (w world) sabotage(tb testing.TB, statement string, args ...any) {
	tb.Helper()
	if _, err := w.raw.ExecContext(context.WithoutCancel(tb.Context()), statement, args...); err != nil {
		tb.Fatalf("sabotage: %v", err)
	}
}

// failWrites makes writes of a kind of record fail; mend lets them succeed.
func (w world) failWrites(tb testing.TB, write, kind string) (mend func()) {
	tb.Helper()
	row := "NEW"
	if write == "DELETE" {
		row = "OLD"
	}
	w.sabotage(tb, "CREATE TRIGGER broken BEFORE "+write+" ON session_key WHEN "+row+".kind = '"+kind+
		"' BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END")
	return func() { w.sabotage(tb, "DROP TRIGGER broken") }
}

func TestMessageIsNotAcknowledgedWhileKeysFail(t *testing.T) {
	t.Parallel()
	tables := []struct{ write, kind string }{
		{"INSERT", kindEvent},
		{"UPDATE", kindSession},
		{"INSERT", kindSession},
		{"INSERT", kindIdentity},
		{"DELETE", kindPreKey},
		{"INSERT", kindLID},
		{"INSERT", kindNumber},
	}
	for _, tt := range tables {
		t.Run(tt.write+" "+tt.kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			c := w.live(t, ownNumber)
			mend := w.failWrites(t, tt.write, tt.kind)
			if tt.write == "UPDATE" { // needs a session
				mend()
				before := send(t, w, "hello")
				networktest.Wait(t, c.Host, 1, byID(before))
				mend = w.failWrites(t, tt.write, tt.kind)
			}
			id := send(t, w, "hello")
			c.EndedAs(t, postern.Disconnected, "store-unavailable")
			if e := entryOf(t, w, id); e.AckedAt != nil || e.Refused != 0 {
				t.Fatal("the message was acknowledged")
			}
			mend()
			c = networktest.Reconnect(t, c.Session, c.Host).Live(t, 2)
			got := networktest.All(c.Host, byID(id)) // the host may be told again: it knows messages by their id
			if len(got) == 0 || got[len(got)-1].Content.Text != "hello" {
				t.Fatalf("got %d messages after the store was mended, want one or two", len(got))
			}
			if got := networktest.All(c.Host, networktest.Any[network.Undecryptable]); len(got) != 0 {
				t.Error("the message was reported as undecryptable")
			}
		})
	}
}

func TestSendFailsWhileKeysFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	mend := w.failWrites(t, "INSERT", kindSession)
	m := outbound("3EB000000000000000C0", friendNumber, "hello")
	_, err := c.Send(t.Context(), m)
	var rejected *network.Rejected
	if err == nil || errors.As(err, &rejected) {
		t.Fatalf("send = %v, want an error that allows another attempt", err)
	}
	c.EndedAs(t, postern.Disconnected, "store-unavailable")
	if shown := w.vendor.Shown(friendNumber); len(shown) != 0 {
		t.Fatal("something was sent")
	}
	mend()
	c = networktest.Reconnect(t, c.Session, c.Host).Live(t, 2)
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatalf("send again: %v", err)
	}
}

// wrongIdentities stores identities for everybody that are not theirs.
func (w world) wrongIdentities(tb testing.TB) {
	tb.Helper()
	account := w.account(tb)
	rows, err := w.db.SessionKeys.List(tb.Context(), account, kindIdentity, "")
	if err != nil || len(rows) == 0 {
		tb.Fatalf("%d identities, %v", len(rows), err)
	}
	for i := range rows {
		place := "session_key " + account + " " + kindIdentity + " " + rows[i].Name
		rows[i].Value = w.box.Seal(make([]byte, 32), place)
	}
	if err := w.db.SessionKeys.Write(tb.Context(), store.WriteSessionKeys{Account: account, Keys: rows}); err != nil {
		tb.Fatal(err)
	}
}

// account is the one linked account.
func (w world) account(tb testing.TB) string {
	tb.Helper()
	accounts, err := w.driver.Accounts(tb.Context())
	if err != nil || len(accounts) != 1 {
		tb.Fatalf("accounts = %d, %v, want one", len(accounts), err)
	}
	return accounts[0]
}

func TestStaleIdentityIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	if _, err := c.Send(t.Context(), outbound("3EB000000000000000C1", friendNumber, "first")); err != nil {
		t.Fatalf("send: %v", err)
	}
	c.Stop(t)
	w.wrongIdentities(t)
	c = networktest.Reconnect(t, c.Session, c.Host).Live(t, 2)
	if _, err := c.Send(t.Context(), outbound("3EB000000000000000C2", friendNumber, "second")); err != nil {
		t.Fatalf("send: %v", err)
	}
	shown := w.vendor.Shown(friendNumber)
	if len(shown) != 2 || shown[1].Body != "second" {
		t.Errorf("the phone shows %d messages, want 2", len(shown))
	}
}

// distrustful trusts nobody, whatever is deleted.
type distrustful struct{ wastore.IdentityStore }

func (distrustful) IsTrustedIdentity(context.Context, string, [32]byte) (bool, error) {
	return false, nil
}

func TestSendWithoutACopyForTheRecipientIsNoSuccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	if _, err := c.Send(t.Context(), outbound("3EB000000000000000C3", friendNumber, "first")); err != nil {
		t.Fatalf("send: %v", err)
	}
	c.Stop(t)
	c = networktest.Reconnect(t, c.Session, c.Host).Live(t, 2)
	device := c.Session.(*session).liveConn().cli.Store
	device.Identities = distrustful{device.Identities}
	ledger := len(w.vendor.Ledger(0, 0))
	_, err := c.Send(t.Context(), outbound("3EB000000000000000C4", friendNumber, "second"))
	var rejected *network.Rejected
	if !errors.As(err, &rejected) || rejected.Code != postern.EncryptionFailed {
		t.Fatalf("send = %v, want Rejected with %s", err, postern.EncryptionFailed)
	}
	if now := len(w.vendor.Ledger(0, 0)); now != ledger {
		t.Error("the vendor saw the message")
	}
}

// cutting cuts the connection when sessions are looked up after one of them was deleted, which is right
// before the keys for a new one are fetched.
type cutting struct {
	wastore.SessionStore
	deleted atomic.Bool
	cut     func()
}

func (c *cutting) DeleteSession(ctx context.Context, address string) error {
	c.deleted.Store(true)
	return c.SessionStore.DeleteSession(ctx, address)
}

func (c *cutting) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	if c.deleted.Load() {
		c.cut()
	}
	return c.SessionStore.GetManySessions(ctx, addresses)
}

func TestSendThatCannotFetchKeysMayBeRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	if _, err := c.Send(t.Context(), outbound("3EB000000000000000C5", friendNumber, "first")); err != nil {
		t.Fatalf("send: %v", err)
	}
	live := c.Session.(*session).liveConn()
	device := live.cli.Store
	device.Identities = distrustful{device.Identities}
	device.Sessions = &cutting{SessionStore: device.Sessions, cut: live.wire.abort}
	_, err := c.Send(t.Context(), outbound("3EB000000000000000C6", friendNumber, "second"))
	var rejected *network.Rejected
	if err == nil || errors.As(err, &rejected) {
		t.Errorf("send = %v, want an error that allows another attempt", err)
	}
}

func TestSilentVendorEndsTheConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	if err := w.vendor.Fault(t.Context(), ownNumber, vendorsim.FaultSilence); err != nil {
		t.Fatal(err)
	}
	c.EndedAs(t, postern.Disconnected, "keepalive-timeout")
}

func TestLoginWithoutAnAnswerEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	c.Stop(t)
	w.driver.pace.silence = 300 * time.Millisecond // of the next connection only
	if err := w.vendor.Fault(t.Context(), ownNumber, vendorsim.FaultHang); err != nil {
		t.Fatal(err)
	}
	c = networktest.Reconnect(t, c.Session, c.Host)
	c.EndedAs(t, postern.Disconnected, "not-receiving")
}

// unresponsive is a network whose dials or connections lead nowhere.
func unresponsive(t *testing.T, dial func(ctx context.Context) (net.Conn, error)) network.Session {
	t.Helper()
	w := newWorld(t, nil)
	account := networktest.Link(t, w.World, ownNumber)
	target, err := newTarget(Network{Dial: func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }})
	if err != nil {
		t.Fatal(err)
	}
	w.driver.target = target
	s, err := w.driver.Open(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCancelEndsAHangingDial(t *testing.T) {
	t.Parallel()
	dialling := make(chan struct{})
	s := unresponsive(t, func(ctx context.Context) (net.Conn, error) {
		close(dialling)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	c := networktest.Reconnect(t, s, &networktest.Recorder{})
	<-dialling
	promptly(t, func() { c.Stop(t) })
}

// upgrading answers the upgrade request on the far end of a pipe, and then calls
// next with the connection.
func upgrading(next func(net.Conn)) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { next(upgrade(far)) }()
		return near, nil
	}
}

func TestCancelEndsAHangingHandshake(t *testing.T) {
	t.Parallel()
	shaking := make(chan struct{})
	s := unresponsive(t, upgrading(func(c net.Conn) {
		close(shaking)
		drain(c)
	}))
	c := networktest.Reconnect(t, s, &networktest.Recorder{})
	<-shaking
	promptly(t, func() { c.Stop(t) })
}

func TestHandshakeEndsWhenTheVendorHangsUp(t *testing.T) {
	t.Parallel()
	endings := map[string]func(net.Conn){
		"close frame":   func(c net.Conn) { _, _ = c.Write([]byte{0x88, 2, 0x03, 0xe8}); drain(c) },
		"end of stream": func(c net.Conn) { _ = c.Close() },
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := unresponsive(t, upgrading(end))
			c := networktest.Reconnect(t, s, &networktest.Recorder{})
			promptly(t, func() {
				if ended := c.Ended(t); ended.Reason != "handshake" && ended.Reason != "dial" {
					t.Errorf("ended for %q, want handshake", ended.Reason)
				}
			})
		})
	}
}

func TestFailedDialEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := unresponsive(t, func(context.Context) (net.Conn, error) { return nil, errors.New("no route") })
	c := networktest.Reconnect(t, s, &networktest.Recorder{})
	c.EndedAs(t, postern.Disconnected, "dial")
}

func TestForgottenKeysEndTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	c.Stop(t)
	accounts, err := w.driver.Accounts(t.Context())
	if err != nil || len(accounts) != 1 || !strings.HasPrefix(accounts[0], ownNumber[1:]) {
		t.Fatalf("accounts = %d, %v, want one", len(accounts), err)
	}
	if err := w.driver.Forget(t.Context(), accounts[0]); err != nil {
		t.Fatal(err)
	}
	c = networktest.Reconnect(t, c.Session, c.Host)
	c.EndedAs(t, postern.LoggedOut, "keys-gone")
	if accounts, err := w.driver.Accounts(t.Context()); err != nil || len(accounts) != 0 {
		t.Errorf("accounts = %d, %v, want none", len(accounts), err)
	}
}
