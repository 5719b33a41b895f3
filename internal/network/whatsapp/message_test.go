package whatsapp

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/network/whatsapp/keys"
	"postern/internal/postern"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow/proto/waE2E"
	wastore "go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types/events"
)

func TestUnreadableMessageIsReportedAndComesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	if err := w.vendor.Fault(t.Context(), ownNumber, vendorsim.FaultGarble); err != nil {
		t.Fatal(err)
	}
	id := send(t, w, "hello")
	m := networktest.Wait(t, c.Host, 1, byID(id))
	if m.Content.Text != "hello" {
		t.Errorf("body = %q, want hello", m.Content.Text)
	}
	got := networktest.All(c.Host, func(u network.Undecryptable) bool { return u.NetworkID == id })
	if len(got) != 1 || got[0].From != friendNumber || got[0].Sender != m.Sender || got[0].ChatID != m.ChatID {
		t.Errorf("undecryptable = %+v, want one from the friend", got)
	}
}

func TestDuplicateIsNotReportedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	if err := w.vendor.Fault(t.Context(), ownNumber, vendorsim.FaultDuplicate); err != nil {
		t.Fatal(err)
	}
	id, last := send(t, w, "hello"), send(t, w, "last")
	networktest.Wait(t, c.Host, 1, byID(last))
	if got := networktest.All(c.Host, byID(id)); len(got) != 1 {
		t.Errorf("got %d messages, want 1", len(got))
	}
}

func TestRecipientWhoCouldNotReadGetsTheMessageAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	m := outbound("3EB000000000000000D0", friendNumber, "hello")
	c.Host.Keep(m)
	if err := w.vendor.Fault(t.Context(), ownNumber, vendorsim.FaultRetry); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatalf("send: %v", err)
	}
	waitShown(t, w, friendNumber, m)
}

// TestRetryIsAnsweredByTheHost ends the connection between the message and the
// recipient's question, so that no memory of whatsmeow's is left.
func TestRetryIsAnsweredByTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	v := &run{conn: w.driver.connect(w.driver.keys.Fresh(""), c.Host)}
	account, err := w.driver.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jid, _ := parseAccount(account[0])
	device, err := w.driver.keys.Load(t.Context(), jid.String())
	if err != nil {
		t.Fatal(err)
	}
	v.conn = w.driver.connect(device, c.Host)
	m := outbound("3EB000000000000000D1", friendNumber, "hello")
	c.Host.Keep(m)
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatalf("send: %v", err)
	}
	lid, err := c.Session.(*session).liveConn().recipient(t.Context(), friendNumber)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := c.Session.(*session).liveConn().recipient(t.Context(), "+15550004444")
	if err != nil {
		t.Fatal(err)
	}
	if got := v.messageForRetry(lid, lid, m.NetworkID); got.GetConversation() != m.Content.Text {
		t.Error("the recipient does not get the message")
	}
	if got := v.messageForRetry(stranger, stranger, m.NetworkID); got != nil {
		t.Error("a stranger gets the message")
	}
	if got := v.messageForRetry(lid, lid, "3EB0FFFFFFFFFFFFFFFF"); got != nil {
		t.Error("a message that was never sent is found")
	}
	c.Host.Lose(errors.New("the database is gone"))
	if got := v.messageForRetry(lid, lid, m.NetworkID); got != nil || v.ended() == nil {
		t.Errorf("got %v without the database, and the connection ended with %v", got, v.ended())
	}
}

func waitShown(tb testing.TB, w world, number string, m network.Outbound) {
	tb.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		change := w.vendor.Watch()
		for _, shown := range w.vendor.Shown(number) {
			if shown.ID == m.NetworkID && shown.Type == vendorsim.TypeText && shown.Body == m.Content.Text {
				return
			}
		}
		select {
		case <-change:
		case <-deadline:
			tb.Fatal("the phone does not show the message")
		}
	}
}

func TestManyReceipts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	const count = 100
	for i := range count {
		m := outbound(fmt.Sprintf("3EB0000000000000%04d", i), vendorsim.NumberReader, "hello")
		if _, err := c.Send(t.Context(), m); err != nil {
			t.Fatalf("send: %v", err)
		}
	}
	for _, status := range []postern.MessageStatus{postern.Delivered, postern.Read} {
		reached := func(r network.Receipt) bool { return r.Status == status }
		networktest.Wait(t, c.Host, count, reached)
		seen := make(map[string]bool)
		for _, r := range networktest.All(c.Host, reached) {
			for _, id := range r.NetworkIDs {
				seen[id] = true
			}
		}
		if len(seen) != count {
			t.Errorf("%d messages are %s, want %d", len(seen), status, count)
		}
	}
}

func TestSlowAnswerIsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	if err := w.vendor.Fault(t.Context(), ownNumber, vendorsim.FaultNoAck); err != nil {
		t.Fatal(err)
	}
	m := outbound("3EB000000000000000D2", friendNumber, "hello")
	ctx := &timedOut{Context: t.Context(), over: make(chan struct{})}
	go func() { // the time is over once the vendor has the message, which it never acknowledges
		defer close(ctx.over)
		waitShown(t, w, friendNumber, m)
	}()
	_, err := c.Send(ctx, m)
	var rejected *network.Rejected
	if err == nil || errors.As(err, &rejected) || errors.Is(err, network.ErrNotConnected) {
		t.Fatalf("send = %v, want an unknown outcome", err)
	}
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatalf("send again: %v", err)
	}
	if copies := entryOf(t, w, m.NetworkID).Copies; copies != 2 {
		t.Errorf("%d copies under one id, want 2", copies)
	}
}

// timedOut is a context whose time is over when the test says so.
type timedOut struct {
	context.Context

	over chan struct{}
}

func (c *timedOut) Done() <-chan struct{} { return c.over }

func (c *timedOut) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestCodesRunOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.driver.pace.firstCode, w.driver.pace.nextCode = 20*time.Millisecond, 5*time.Millisecond
	rec := &networktest.Recorder{}
	var failed *network.LinkError
	if err := w.driver.Link(
		t.Context(),
		rec,
		"",
	); !errors.As(err, &failed) || failed.Reason != "timeout" ||
		!failed.Expired {
		t.Fatalf("link = %v, want an expired *LinkError", err)
	}
	codes := networktest.All(rec, networktest.Any[network.Code])
	if len(codes) != 6 {
		t.Errorf("%d codes were shown, want 6", len(codes))
	}
}

// TestAccountCanBeLinkedAgain does so without forgetting the old link first: the
// vendor may give the new one the same name.
func TestAccountCanBeLinkedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i := range 4 {
		c := w.live(t, ownNumber)
		if _, err := c.Send(
			t.Context(),
			outbound(fmt.Sprintf("3EB00000000000000AA%d", i), friendNumber, "hello"),
		); err != nil {
			t.Fatalf("send: %v", err)
		}
		networktest.Wait(t, c.Host, 1, byID(send(t, w, "hello")))
		if i%2 == 1 {
			if err := w.vendor.Fault(t.Context(), ownNumber, vendorsim.FaultLogout); err != nil {
				t.Fatal(err)
			}
			c.EndedAs(t, postern.LoggedOut, "device-removed")
		}
	}
}

func TestVendorOverTCP(t *testing.T) {
	t.Parallel()
	vendor := newWorld(t, nil).vendor
	listener, err := vendor.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tls := httptest.NewTLSServer(vendor.Handler())
	t.Cleanup(tls.Close)
	ca := x509.NewCertPool()
	ca.AddCert(tls.Certificate())
	networks := map[string]Network{
		"ws":  {URL: "ws://" + listener.Addr().String() + "/ws/chat"},
		"wss": {URL: "wss" + strings.TrimPrefix(tls.URL, "https") + "/ws/chat", CA: ca},
	}
	for name, n := range networks {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, vendor, n, nil)
			c := w.live(t, ownNumber)
			if _, err := c.Send(t.Context(), outbound("3EB000000000000000D3", friendNumber, "hello")); err != nil {
				t.Errorf("send: %v", err)
			}
			if n.CA != nil { // files always need TLS
				ref := upload(t, c, postern.KindImage, bytesOf(1000))
				if got, err := download(t, c, ref); err != nil || !bytes.Equal(got, bytesOf(1000)) {
					t.Errorf("the file has %d bytes, %v", len(got), err)
				}
			}
			c.Stop(t)
		})
	}
}

func TestUntrustedCertificateIsRefused(t *testing.T) {
	t.Parallel()
	vendor := newWorld(t, nil).vendor
	tls := httptest.NewUnstartedServer(vendor.Handler())
	tls.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	w := worldOf(t, vendor, Network{URL: "wss" + strings.TrimPrefix(tls.URL, "https")}, nil)
	var failed *network.LinkError
	if err := w.driver.Link(
		t.Context(),
		&networktest.Recorder{},
		"",
	); !errors.As(err, &failed) ||
		failed.Reason != "tls-unknown-authority" {
		t.Errorf("link = %v, want tls-unknown-authority", err)
	}
}

func TestOneVendorPerProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	other := vendorsim.NewKeys().RootKey()
	root := w.vendor.RootKey()
	tests := map[string]Options{
		"another root key":    {Network: Network{RootKey: other[:]}},
		"the vendor's own":    {},
		"another device name": {Network: Network{RootKey: root[:]}, DeviceName: "Other"},
	}
	for name, opts := range tests {
		opts.Store, opts.Seal = w.db, w.box
		if _, err := New(opts); !errors.Is(err, ErrOtherVendor) {
			t.Errorf("%s: new = %v, want ErrOtherVendor", name, err)
		}
	}
	for _, n := range []Network{
		{RootKey: root[:5]}, {RootKey: root[:], URL: "https://example.com"}, {RootKey: root[:], URL: "::"},
	} {
		if _, err := New(Options{Store: w.db, Seal: w.box, Network: n}); err == nil || errors.Is(err, ErrOtherVendor) {
			t.Errorf("new with %+v = %v, want a complaint about it", n, err)
		}
	}
}

func TestPlaintextsDoNotStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	for range 3 {
		networktest.Wait(t, c.Host, 1, byID(send(t, w, "hello")))
	}
	c.Stop(t)
	stay, err := w.db.SessionKeys.Count(t.Context(), w.account(t), kindEvent)
	// The acknowledgement of the last one may have been cut off by the end.
	if err != nil || stay > 1 {
		t.Errorf("%d plaintexts stay, %v", stay, err)
	}
}

func TestPlaintextIsNotReadableOnDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	const body = "a text that is looked for"
	networktest.Wait(t, c.Host, 1, byID(send(t, w, body)))
	if _, err := c.Send(t.Context(), outbound("3EB000000000000000D9", friendNumber, body)); err != nil {
		t.Fatal(err)
	}
	c.Stop(t)
	if strings.Contains(diskOf(t, w.dir), body) {
		t.Error("the files hold it")
	}
}

// diskOf is all that the files of a directory hold.
func diskOf(tb testing.TB, dir string) string {
	tb.Helper()
	var all []byte
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, b...)
	}
	return string(all)
}

// decrypt does what decrypting a message does with the keys.
func decrypt(ctx context.Context, v *run, hash byte) error {
	stores := v.cli.Store
	return stores.EventBuffer.DoDecryptionTxn(ctx, func(ctx context.Context) error {
		if err := stores.Sessions.PutSession(ctx, "15550003333:0", []byte{hash}); err != nil {
			return err
		}
		return stores.EventBuffer.PutBufferedEvent(ctx, [32]byte{hash}, []byte("plaintext"), time.Unix(1, 0))
	})
}

// TestMessageThatIsNotReportedIsDurable lets a group message through, of which
// the host hears nothing: whatsmeow acknowledges it when handle returns.
func TestMessageThatIsNotReportedIsDurable(t *testing.T) {
	t.Parallel()
	w, v := ready(t)
	if err := decrypt(t.Context(), v, 1); err != nil {
		t.Fatal(err)
	}
	group := &events.Message{Message: &waE2E.Message{Conversation: new("hello")}}
	group.Info.IsGroup = true
	if !v.handle(t.Context(), group) {
		t.Fatal("the message was refused")
	}
	if n := w.count(t, "kind IN ('session', 'event')"); n != 2 {
		t.Errorf("%d rows of it are on disk, want 2", n)
	}
	mend := w.failWrites(t, "INSERT", kindEvent)
	defer mend()
	if err := decrypt(t.Context(), v, 2); err != nil {
		t.Fatal(err)
	}
	if v.handle(t.Context(), group) {
		t.Error("a message whose keys are not on disk was not refused")
	}
}

func TestSharedKeysAreDurableBeforeTheirMessageIsAcknowledged(t *testing.T) {
	t.Parallel()
	w, v := ready(t)
	shared := &events.Message{
		Message: &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{AppStateSyncKeyShare: &waE2E.AppStateSyncKeyShare{
			Keys: []*waE2E.AppStateSyncKey{{
				KeyID:   &waE2E.AppStateSyncKeyId{KeyID: []byte{1}},
				KeyData: &waE2E.AppStateSyncKeyData{KeyData: []byte("key"), Timestamp: new(int64(5))},
			}},
		}}},
	}
	if !v.handle(t.Context(), shared) || w.count(t, "kind = 'sync-key'") != 0 {
		t.Error("keys from somebody else were kept")
	}
	shared.Info.IsFromMe = true
	if !v.handle(t.Context(), shared) || w.count(t, "kind = 'sync-key'") != 1 {
		t.Error("keys from the phone were not kept")
	}
}

// ready is a connection of a linked account that is not connected.
func ready(t *testing.T) (world, *run) {
	t.Helper()
	w := newWorld(t, nil)
	networktest.Link(t, w.World, ownNumber)
	jid, _ := parseAccount(w.account(t))
	device, err := w.driver.keys.Load(t.Context(), jid.String())
	if err != nil {
		t.Fatal(err)
	}
	return w, (&session{driver: w.driver, account: jid}).newRun(device, &networktest.Recorder{})
}

// impatient is a session store whose first write comes too late.
type impatient struct {
	wastore.SessionStore
	late *atomic.Bool
}

func (s impatient) PutManySessions(ctx context.Context, sessions map[string][]byte) error {
	if s.late.CompareAndSwap(false, true) {
		return keys.ErrStale
	}
	return s.SessionStore.PutManySessions(ctx, sessions)
}

// overtaken is a session store in whose first write something else comes first.
type overtaken struct {
	wastore.SessionStore
	first *sync.Once
	other func()
	stale *atomic.Int64 // sessions that were not stored
}

func (s overtaken) PutSession(ctx context.Context, address string, session []byte) error {
	s.first.Do(s.other)
	err := s.SessionStore.PutSession(ctx, address, session)
	if errors.Is(err, keys.ErrStale) {
		s.stale.Add(1)
	}
	return err
}

// A message that leaves while another one is encrypted again for the same phone takes a key of its own.
func TestAnswerIsEncryptedAgainWhenItsSessionChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	w.settled(t) // reading a message writes sessions too
	again := outbound("3EB000000000000000DA", friendNumber, "hello")
	other := outbound("3EB000000000000000DB", friendNumber, "there")
	store := overtaken{c.Session.(*session).liveConn().cli.Store.Sessions, &sync.Once{}, func() {
		if _, err := c.Send(t.Context(), other); err != nil {
			t.Errorf("send: %v", err)
		}
	}, &atomic.Int64{}}
	if _, err := c.Send(t.Context(), outbound("3EB000000000000000DC", friendNumber, "begin")); err != nil {
		t.Fatal(err)
	}
	c.Session.(*session).liveConn().cli.Store.Sessions = store
	c.Host.Keep(again)
	fault(t, w, vendorsim.FaultRetry)
	if _, err := c.Send(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	waitShown(t, w, friendNumber, other)
	waitShown(t, w, friendNumber, again)
	if n := store.stale.Load(); n != 1 {
		t.Errorf("%d sessions had changed, want 1", n)
	}
}

func TestSendIsEncryptedAgainWhenItsSessionChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.live(t, ownNumber)
	w.settled(t) // reading a message writes sessions too
	device := c.Session.(*session).liveConn().cli.Store
	late := &atomic.Bool{}
	device.Sessions = impatient{device.Sessions, late}
	m := outbound("3EB000000000000000D8", friendNumber, "hello")
	if _, err := c.Send(t.Context(), m); err != nil || !late.Load() {
		t.Fatalf("send = %v, tried again: %v", err, late.Load())
	}
	waitShown(t, w, friendNumber, m)
	if shown := w.vendor.Shown(friendNumber); len(shown) != 1 {
		t.Errorf("the phone shows %d messages, want 1", len(shown))
	}
}

func TestFailedLinkLeavesNoKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	rec := &networktest.Recorder{}
	rec.Rule(func(u network.Update) error {
		if _, ok := u.(network.Paired); ok {
			return networktest.ErrRefused
		}
		return nil
	})
	linked := make(chan error, 1)
	go func() { linked <- w.driver.Link(t.Context(), rec, "") }()
	code := networktest.Wait(t, rec, 1, networktest.Any[network.Code])
	scanned := make(chan error, 1)
	go func() { scanned <- w.vendor.Scan(t.Context(), code.Text, ownNumber) }()
	networktest.Wait(t, rec, 1, networktest.Any[network.Scanned])
	if err := <-linked; err == nil {
		t.Fatal("the link succeeded")
	}
	<-scanned // with whatever the phone makes of it
	if n := w.count(t, "true"); n != 0 {
		t.Errorf("%d rows stay", n)
	}
}
