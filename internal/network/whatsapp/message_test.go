package whatsapp

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/postern"
	"postern/vendorsim"
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
	if m.Body != "hello" {
		t.Errorf("body = %q, want hello", m.Body)
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
	v := &visit{conn: w.driver.connect(w.driver.keys.fresh(), c.Host)}
	account, err := w.driver.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jid, _ := parseAccount(account[0])
	device, err := w.driver.keys.load(t.Context(), jid)
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
	if got := v.messageForRetry(lid, lid, m.NetworkID); got.GetConversation() != m.Body {
		t.Error("the recipient does not get the message")
	}
	if got := v.messageForRetry(stranger, stranger, m.NetworkID); got != nil {
		t.Error("a stranger gets the message")
	}
	if got := v.messageForRetry(lid, lid, "3EB0FFFFFFFFFFFFFFFF"); got != nil {
		t.Error("a message that was never sent is found")
	}
}

func waitShown(tb testing.TB, w world, number string, m network.Outbound) {
	tb.Helper()
	deadline := time.After(20 * time.Second)
	for {
		change := w.vendor.Watch()
		for _, shown := range w.vendor.Shown(number) {
			if shown.ID == m.NetworkID && shown.Type == vendorsim.TypeText && shown.Body == m.Body {
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
	ctx, cancel := contextOf(t, 500*time.Millisecond)
	defer cancel()
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
	waitShown(t, w, friendNumber, m)
}

func TestCodesRunOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.driver.pace.firstCode, w.driver.pace.nextCode = 20*time.Millisecond, 5*time.Millisecond
	rec := &networktest.Recorder{}
	var failed *network.LinkError
	if err := w.driver.Link(t.Context(), rec); !errors.As(err, &failed) || failed.Reason != "timeout" || !failed.Expired {
		t.Fatalf("link = %v, want an expired *LinkError", err)
	}
	codes := networktest.All(rec, networktest.Any[network.Code])
	if len(codes) != 6 {
		t.Errorf("%d codes were shown, want 6", len(codes))
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
	if err := w.driver.Link(t.Context(), &networktest.Recorder{}); !errors.As(err, &failed) || failed.Reason != "dial" {
		t.Errorf("link = %v, want dial", err)
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
		opts.Keys = w.db
		if _, err := New(t.Context(), opts); !errors.Is(err, ErrOtherVendor) {
			t.Errorf("%s: new = %v, want ErrOtherVendor", name, err)
		}
	}
	for _, n := range []Network{{RootKey: root[:5]}, {RootKey: root[:], URL: "https://example.com"}, {RootKey: root[:], URL: "::"}} {
		if _, err := New(t.Context(), Options{Keys: w.db, Network: n}); err == nil || errors.Is(err, ErrOtherVendor) {
			t.Errorf("new with %+v = %v, want a complaint about it", n, err)
		}
	}
}

// lines is a log that can be written to from anywhere.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestLogKeepsSecrets goes through all that can happen, with the log at its most
// talkative, and looks for what must not be in it.
func TestLogKeepsSecrets(t *testing.T) {
	log := &lines{}
	w := newWorld(t, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	const number, friend, secret = "+15550107777", "+15550108888", "canary-text"
	rec := &networktest.Recorder{}
	account := networktest.Link(t, w.World, number)
	c := networktest.Connect(t, w.World, account, rec).Live(t, 1)
	var errs []error
	try := func(_ any, err error) { errs = append(errs, err) }
	faults := []vendorsim.Fault{"", vendorsim.FaultGarble, vendorsim.FaultRetry, vendorsim.FaultDropBeforeAck}
	for i, fault := range faults {
		if fault != "" {
			if err := w.vendor.Fault(t.Context(), number, fault); err != nil {
				t.Fatal(err)
			}
		}
		try(c.Send(t.Context(), outbound(fmt.Sprintf("3EB000000000000000E%d", i), friend, secret)))
		try(c.Send(t.Context(), outbound(fmt.Sprintf("3EB000000000000000F%d", i), vendorsim.NumberUnknown, secret)))
		try(w.vendor.Type(t.Context(), number, friend, secret))
		try(w.vendor.Send(t.Context(), number, friend, secret))
	}
	c.EndedAs(t, postern.Disconnected, "")
	rec.Rule(func(network.Update) error { return networktest.ErrRefused })
	c = networktest.Reconnect(t, c.Session, rec)
	c.EndedAs(t, postern.Disconnected, "")
	rec.Rule(nil)
	c = networktest.Reconnect(t, c.Session, rec).Live(t, 2)
	mend := w.failWrites(t, "INSERT", "whatsmeow_event_buffer")
	try(w.vendor.Send(t.Context(), number, friend, secret))
	c.EndedAs(t, postern.Disconnected, "")
	mend()
	c = networktest.Reconnect(t, c.Session, rec).Live(t, 3)
	if err := w.vendor.Fault(t.Context(), number, vendorsim.FaultLogout); err != nil {
		t.Fatal(err)
	}
	c.EndedAs(t, postern.LoggedOut, "")
	for _, err := range errs {
		if err != nil {
			fmt.Fprintln(log, err)
		}
	}
	secrets := []string{number[1:], friend[1:], vendorsim.NumberUnknown[1:], secret, "@lid", "@s.whatsapp.net"}
	for _, code := range networktest.All(rec, networktest.Any[network.Code]) {
		secrets = append(secrets, code.Text)
	}
	for _, m := range networktest.All(rec, networktest.Any[network.Inbound]) {
		secrets = append(secrets, m.FromLID, m.FromName)
	}
	for _, s := range secrets {
		if s == "" {
			t.Error("an empty secret was looked for")
		} else if strings.Contains(log.String(), s) {
			t.Errorf("the log holds %q", s)
		}
	}
	if !strings.Contains(log.String(), "module=whatsmeow") {
		t.Error("nothing of whatsmeow reached the log: the test proves nothing")
	}
}

// TestFormatsOfWhatsmeowAreConstants guards what tap passes on to the log.
func TestFormatsOfWhatsmeowAreConstants(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.mau.fi/whatsmeow").Output()
	if err != nil {
		t.Skip("no module cache to look at")
	}
	dynamic := regexp.MustCompile(`[lL]og\.(Debug|Info|Warn|Error)f\(\s*[^"\s]`)
	found := 0
	err = filepath.WalkDir(strings.TrimSpace(string(out)), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found += bytes.Count(src, []byte("Log.Warnf("))
		if hit := dynamic.Find(src); hit != nil {
			t.Errorf("%s: a format that is no constant: %s", filepath.Base(path), hit)
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("looked at %d calls, %v", found, err)
	}
}
