package whatsapp

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"postern/internal/network"
	"postern/internal/network/networktest"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/vendorsim"

	"go.mau.fi/whatsmeow"
)

// vendorKeys are shared by all vendors of the tests: whatsmeow trusts one root key per
// process.
var vendorKeys = vendorsim.NewKeys()

func TestMain(m *testing.M) {
	// Pings often enough for a test; nothing reads these variables yet.
	whatsmeow.KeepAliveIntervalMin, whatsmeow.KeepAliveIntervalMax = 900*time.Millisecond, time.Second
	whatsmeow.KeepAliveResponseDeadline = 2 * time.Second
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

// world is a driver, its key store and its vendor.
type world struct {
	networktest.World
	driver *Driver
	vendor *vendorsim.Vendor
	db     *sql.DB
}

func newWorld(tb testing.TB, log *slog.Logger) world {
	tb.Helper()
	vendor, err := vendorsim.Open(vendorsim.Options{Keys: vendorKeys})
	if err != nil {
		tb.Fatalf("open vendor: %v", err)
	}
	tb.Cleanup(func() { closing(tb, vendor.Close) })
	return worldOf(tb, vendor, Network{Dial: vendor.DialContext}, log)
}

func worldOf(tb testing.TB, vendor *vendorsim.Vendor, n Network, log *slog.Logger) world {
	tb.Helper()
	db, err := store.OpenKeys(tb.Context(), filepath.Join(tb.TempDir(), "keys.db"))
	if err != nil {
		tb.Fatalf("open keys: %v", err)
	}
	tb.Cleanup(func() { closing(tb, db.Close) })
	root := vendor.RootKey()
	n.RootKey = root[:]
	driver, err := New(tb.Context(), Options{Keys: db, Network: n, Log: log})
	if err != nil {
		tb.Fatalf("new driver: %v", err)
	}
	return world{
		World:  networktest.World{Driver: driver, Vendor: simulated{vendor}},
		driver: driver, vendor: vendor, db: db,
	}
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

const (
	ownNumber    = "+15550001111"
	friendNumber = "+15550003333"
)

func outbound(id, to, body string) network.Outbound {
	return network.Outbound{NetworkID: id, ChatID: to, Body: body}
}

func TestDriverConforms(t *testing.T) {
	networktest.TestDriver(t, func(t *testing.T) networktest.World { return newWorld(t, nil).World })
}
