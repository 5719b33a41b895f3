package whatsapp

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
)

// vendorKeys are shared by all vendors of the tests: whatsmeow trusts one root key per
// process.
var vendorKeys = vendorsim.NewKeys()

// vendorInterval and vendorWait are the times of pings as whatsmeow has them.
var vendorInterval, vendorWait = whatsmeow.KeepAliveIntervalMax, whatsmeow.KeepAliveResponseDeadline

func TestMain(m *testing.M) {
	// Pings often enough for a test; nothing reads these variables yet.
	whatsmeow.KeepAliveIntervalMin, whatsmeow.KeepAliveIntervalMax = 900*time.Millisecond, time.Second
	whatsmeow.KeepAliveResponseDeadline = 10 * time.Second // a busy machine answers late
	m.Run()
}

// simulated makes a vendorsim.Vendor a networktest.Vendor.
type simulated struct{ *vendorsim.Vendor }

func (v simulated) Fault(ctx context.Context, account string, f networktest.Fault) error {
	return v.Vendor.Fault(ctx, account, vendorsim.Fault(f))
}

func (v simulated) Receipt(ctx context.Context, account, networkID string, status postern.MessageStatus) error {
	return v.Vendor.Receipt(ctx, account, networkID, vendorsim.ReceiptKind(status))
}

func (v simulated) Shown(number string) []networktest.Shown {
	var list []networktest.Shown
	for _, m := range v.Vendor.Shown(number) {
		list = append(list, networktest.Shown{ID: m.ID, Body: m.Body, At: m.At})
	}
	return list
}

// Attach lets a contact send a document.
func (v simulated) Attach(ctx context.Context, account, from string, data []byte) (string, error) {
	return v.SendContent(ctx, account, from, vendorsim.Content{
		Type: vendorsim.TypeDocument, Media: &vendorsim.Media{Data: data, FileName: "file.bin"},
	})
}

// File returns the file of a message on a phone.
func (v simulated) File(number, networkID string) ([]byte, error) {
	m, err := v.ShownMessage(number, networkID)
	if err != nil {
		return nil, err
	}
	r, err := v.OpenMedia(*m.Media)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// world is a driver, its key store and its vendor.
type world struct {
	networktest.World
	driver *Driver
	vendor *vendorsim.Vendor
	dir    string
	db     *store.Store
	box    *seal.Box
	raw    *sql.DB       // another connection to the same file
	reads  *atomic.Int64 // queries of keys, but not of those that receipts need
}

func newWorld(tb testing.TB, log *slog.Logger) world {
	tb.Helper()
	vendor, err := vendorsim.Open(vendorsim.Options{Keys: vendorKeys})
	if err != nil {
		tb.Fatalf("open vendor: %v", err)
	}
	tb.Cleanup(func() { closing(tb, vendor.Close) })
	return worldOf(tb, vendor, Network{Dial: dialing(vendor)}, log)
}

// dialing connects to a vendor, whatever the number space.
func dialing(v *vendorsim.Vendor) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, _ string) (net.Conn, error) { return v.DialContext(ctx) }
}

func worldOf(tb testing.TB, vendor *vendorsim.Vendor, n Network, log *slog.Logger) world {
	tb.Helper()
	dir := migrated.Dir(tb, "")
	reads := &atomic.Int64{}
	count := func(query string, args []any) {
		if strings.Contains(query, "FROM session_key") && (len(args) < 2 || args[1] != "lid") {
			reads.Add(1)
		}
	}
	db, err := store.Open(context.WithoutCancel(tb.Context()), store.Options{Dir: dir, Trace: count})
	if err != nil {
		tb.Fatalf("open store: %v", err)
	}
	tb.Cleanup(func() { closing(tb, db.Close) })
	box, err := seal.NewBox(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		tb.Fatal(err)
	}
	root := vendor.RootKey()
	n.RootKey = root[:]
	driver, err := New(Options{Store: db, Seal: box, Network: n, Log: log})
	if err != nil {
		tb.Fatalf("new driver: %v", err)
	}
	return world{
		World:  networktest.World{Driver: driver, Vendor: simulated{vendor}},
		driver: driver, vendor: vendor, dir: dir, db: db, box: box, raw: openRaw(tb, dir),
		reads: reads,
	}
}

// openRaw opens the file of a store beside it.
func openRaw(tb testing.TB, dir string) *sql.DB {
	tb.Helper()
	raw, err := sql.Open(
		"sqlite",
		"file:"+filepath.Join(dir, "postern.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate",
	)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closing(tb, raw.Close) })
	return raw
}

func closing(tb testing.TB, closeIt func() error) {
	tb.Helper()
	if err := closeIt(); err != nil {
		tb.Errorf("close: %v", err)
	}
}

// live links a number and makes a live connection.
func (w world) live(tb testing.TB, number string) *networktest.Connection {
	tb.Helper()
	return networktest.Connect(tb, w.World, networktest.Link(tb, w.World, number), &networktest.Recorder{}).Live(tb, 1)
}

// settled waits until the account has acknowledged all that the vendor has for it: after the first
// login, that is the key of the app state.
func (w world) settled(tb testing.TB) {
	tb.Helper()
	w.until(tb, "the vendor's queue is empty", func() bool { return w.vendor.Accounts()[0].Queued == 0 })
}

// until waits for a change of the vendor that makes done report true.
func (w world) until(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		changed := w.vendor.Watch()
		if done() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			tb.Fatalf("waited too long until %s", what)
		}
	}
}

const (
	ownNumber    = "+15550001111"
	friendNumber = "+15550003333"
)

func outbound(id, to, body string) network.Outbound {
	return network.Outbound{NetworkID: id, ChatID: to, Content: postern.Text(body)}
}

func TestDriverConforms(t *testing.T) {
	networktest.TestDriver(t, func(t *testing.T) networktest.World { return newWorld(t, nil).World })
}
