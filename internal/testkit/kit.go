// Package testkit starts the whole gateway on loopback, with the real database, the real
// protocol library, the simulated vendor and a webhook receiver. Tests and benchmarks
// use it as a customer would: over HTTP.
package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"postern/internal/access"
	"postern/internal/app"
	"postern/internal/config"
	"postern/internal/gateway"
	"postern/internal/mail/mailtest"
	"postern/internal/obs"
	"postern/internal/people"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
	"postern/internal/store/migrated"
	"postern/vendorsim"
)

// Wait limits every wait of a test. A wait ends with its event, so the limit is generous:
// a test must pass on a machine that is ten times slower.
const Wait = 5 * time.Minute

// vendorKeys are the keys of the simulated vendor, shared by all kits of a process,
// because the protocol library keeps the vendor's root key in a global variable.
//
//nolint:gochecknoglobals // see above
var vendorKeys = sync.OnceValue(vendorsim.NewKeys)

// Kit is a running gateway with a simulated vendor and a log. A test may change Config
// between Stop and Boot.
type Kit struct {
	t      testing.TB
	Config config.Server
	Spaces *vendorsim.Spaces
	Vendor *vendorsim.Vendor // of the first workspace that has a client
	Log    *Log
	Shared bool // other servers may use the PostgreSQL database

	ComparePasskeys bool // see app.Options

	keepStart bool // see app.Options

	app     *app.App
	stop    context.CancelFunc
	stopped chan error
}

// Start starts a gateway in sandbox mode, on free ports, in its own directory, with the
// embedded database. It stops at the end of the test.
func Start(tb testing.TB) *Kit {
	tb.Helper()
	return StartOn(tb, "")
}

// StartOn is like Start, with the PostgreSQL database at databaseURL. "" means the embedded
// database.
func StartOn(tb testing.TB, databaseURL string) *Kit {
	tb.Helper()
	return start(tb, databaseURL, true)
}

// StartAsServed is like StartOn, for benchmarks: the gateway does all that "postern serve" does, and gives
// back the memory of its start.
func StartAsServed(tb testing.TB, databaseURL string) *Kit {
	tb.Helper()
	return start(tb, databaseURL, false)
}

func start(tb testing.TB, databaseURL string, keepStart bool) *Kit {
	tb.Helper()
	d := dir(tb)
	if databaseURL == "" {
		migrated.Fill(tb, d)
	}
	log := &Log{}
	k := &Kit{t: tb, Log: log, keepStart: keepStart, Config: config.Server{
		Data: dataIn(tb, d, databaseURL), Addr: "127.0.0.1:0", OpsAddr: "127.0.0.1:0", Sandbox: true,
		AllowPrivateWebhooks: true, DeviceName: "Postern", LogLevel: "debug",
		MediaURL: seal.Secret("file://" + filepath.Join(d, "media")),
	}}
	tb.Cleanup(func() {
		k.Stop()
		if err := k.Spaces.Close(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			k.Log.keep(tb)
		}
	})
	k.OpenSpaces("", nil)
	k.Boot()
	return k
}

// Another starts another server on the same PostgreSQL database, which the kit must share, with the
// same simulated vendor and, unless change says otherwise, the same settings. It stops at the end of the test, before the first one.
func (k *Kit) Another(change ...func(*config.Server)) *Kit {
	k.t.Helper()
	other := &Kit{
		t: k.t, Config: k.Config, Spaces: k.Spaces, Vendor: k.Vendor, Log: k.Log, Shared: k.Shared, keepStart: k.keepStart,
		ComparePasskeys: k.ComparePasskeys,
	}
	other.Config.Dir = dir(k.t)
	for _, c := range change {
		c(&other.Config)
	}
	k.t.Cleanup(other.Stop)
	other.Boot()
	return other
}

// OpenSpaces replaces the simulated vendor by the one whose state is in a directory, or by a
// new one for "". The gateway must be stopped. See [vendorsim.OpenSpaces].
func (k *Kit) OpenSpaces(dir string, owners map[string]string) {
	k.t.Helper()
	if k.Spaces != nil {
		if err := k.Spaces.Close(); err != nil {
			k.t.Fatal(err)
		}
	}
	var err error
	opts := vendorsim.Options{Dir: dir, Keys: vendorKeys(), Log: obs.NewLogger(k.Log, slog.LevelDebug)}
	if k.Spaces, err = vendorsim.OpenSpaces(opts, owners); err != nil {
		k.t.Fatal(err)
	}
	k.Vendor = nil
}

func dataIn(tb testing.TB, dir, databaseURL string) config.Data {
	tb.Helper()
	data := config.Data{
		Dir: dir, DatabaseURL: seal.Secret(databaseURL), SecretKeyFile: filepath.Join(dir, "secret.key"),
	}
	if _, err := seal.LoadOrMakeKeys(data.SecretKeyFile); err != nil {
		tb.Fatal(err)
	}
	return data
}

// dir returns a new directory whose path is short enough for a socket. The path of
// t.TempDir contains the name of the test and may be too long.
func dir(tb testing.TB) string {
	tb.Helper()
	d, err := os.MkdirTemp("", "postern") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(d); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// BootWithMail starts a mail server on this machine, restarts the gateway with it, and
// returns the mail server.
func (k *Kit) BootWithMail() *mailtest.Server {
	k.t.Helper()
	m := mailtest.New(k.t)
	m.OfferNoTLS()
	k.Stop()
	k.Config.SMTPURL = seal.Secret("smtp://" + m.Addr + "?from=postern@example.com")
	k.Boot()
	return m
}

// Boot starts the gateway again with the same directory and vendor.
func (k *Kit) Boot() {
	k.t.Helper()
	if err := k.TryBoot(); err != nil {
		k.t.Fatal(err)
	}
}

// TryBoot is like Boot, but returns the error if the gateway refuses its settings.
func (k *Kit) TryBoot() error {
	ctx, stop := context.WithCancel(context.Background())
	a, err := app.New(ctx, k.Config,
		app.Options{
			Log: obs.NewLogger(k.Log, slog.LevelDebug), Version: "test", Vendor: k.Spaces, Shared: k.Shared,
			KeepStart: k.keepStart, ComparePasskeys: k.ComparePasskeys,
		})
	if err != nil {
		stop()
		return err
	}
	k.app, k.stop, k.stopped = a, stop, make(chan error, 1)
	go func() { k.stopped <- a.Run(ctx) }()
	return nil
}

// Stop drains and stops the gateway.
func (k *Kit) Stop() {
	k.t.Helper()
	if k.stop == nil {
		return
	}
	k.stop()
	select {
	case err := <-k.stopped:
		if err != nil {
			k.t.Errorf("the gateway stopped with: %v", err)
		}
	case <-time.After(Wait):
		k.t.Error("the gateway did not stop")
	}
	k.stop = nil
}

// SessionAccounts stops the gateway and lists the accounts whose session keys it stores.
func (k *Kit) SessionAccounts() []string {
	k.t.Helper()
	k.Stop()
	db, err := store.Open(k.t.Context(), store.Options{Dir: k.Config.Dir, URL: string(k.Config.DatabaseURL)})
	if err != nil {
		k.t.Fatal(err)
	}
	accounts, err := db.SessionKeys.Accounts(k.t.Context())
	if err := errors.Join(err, db.Close()); err != nil {
		k.t.Fatal(err)
	}
	return accounts
}

// Gateway returns the gateway behind the pages and the API. It changes with Boot.
func (k *Kit) Gateway() *gateway.Gateway { return k.app.Gateway() }

// People returns the operations on users, which the dashboard uses beside Gateway. It
// changes with Boot.
func (k *Kit) People() *people.People { return k.app.People() }

// URL returns the address of the API. It changes with Boot.
func (k *Kit) URL() string { return k.app.URL() }

// SetUpURL returns the link with which the first user sets up the dashboard.
func (k *Kit) SetUpURL() string {
	k.t.Helper()
	url, err := k.app.SetUpURL(k.t.Context())
	if err != nil || url == "" {
		k.t.Fatalf("no set-up link: %v", err)
	}
	return url
}

// OpsURL returns the address of metrics and health. It changes with Boot.
func (k *Kit) OpsURL() string { return k.app.OpsURL() }

// Workspace creates a workspace and a key with every scope.
func (k *Kit) Workspace(plan string) *Client {
	k.t.Helper()
	return k.NamedWorkspace("acme", plan)
}

// NamedWorkspace is like Workspace, with a name.
func (k *Kit) NamedWorkspace(name, plan string) *Client {
	k.t.Helper()
	in := gateway.NewWorkspace{Name: name, Plan: plan}
	ws, err := k.Gateway().Workspaces.Create(k.t.Context(), access.Operator(), in)
	if err != nil {
		k.t.Fatal(err)
	}
	return k.Key(ws.ID, gateway.NewKey{Name: "test"})
}

// VendorOf returns the simulated vendor of a workspace.
func (k *Kit) VendorOf(ws postern.WorkspaceID) *vendorsim.Vendor {
	k.t.Helper()
	v, err := k.Spaces.Of(string(ws))
	if err != nil {
		k.t.Fatal(err)
	}
	return v
}

// VendorOfSetUp returns the simulated vendor of the workspace that was created in the
// dashboard.
func (k *Kit) VendorOfSetUp() *vendorsim.Vendor {
	k.t.Helper()
	list, err := k.Gateway().Workspaces.List(k.t.Context(), access.Operator())
	if err != nil || len(list) == 0 {
		k.t.Fatalf("%d workspaces: %v", len(list), err)
	}
	return k.VendorOf(list[0].ID)
}

// SetPlan changes the plan of a workspace.
func (k *Kit) SetPlan(ws postern.WorkspaceID, plan string) {
	k.t.Helper()
	if err := k.Gateway().Workspaces.SetPlan(k.t.Context(), access.Operator(), ws, plan); err != nil {
		k.t.Fatal(err)
	}
}

// SetDevices overrides the device limit of a workspace; a negative number restores the
// plan's limit.
func (k *Kit) SetDevices(ws postern.WorkspaceID, n int) {
	k.t.Helper()
	change := postern.Limits{Devices: &n}
	if _, err := k.Gateway().Workspaces.ChangeLimits(k.t.Context(), access.Operator(), ws, change); err != nil {
		k.t.Fatal(err)
	}
}

// Key creates an API key and returns a client that uses it.
func (k *Kit) Key(ws postern.WorkspaceID, in gateway.NewKey) *Client {
	k.t.Helper()
	_, secret, err := k.Gateway().Keys.Create(k.t.Context(), access.Operator(), ws, in)
	if err != nil {
		k.t.Fatal(err)
	}
	if k.Vendor == nil {
		k.Vendor = k.VendorOf(ws)
	}
	return &Client{kit: k, Workspace: ws, Key: secret}
}

// Log collects the gateway's log.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends a line.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns the log so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

const logTail = 8 << 10

// keep prints the end of the log of a failed test, and writes the whole log to a file.
func (l *Log) keep(tb testing.TB) {
	tb.Helper()
	text := l.String()
	path := filepath.Join(os.TempDir(), fmt.Sprintf("postern-%d.log", time.Now().UnixNano()))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Log(err)
	}
	tb.Logf("gateway log (whole in %s):\n%s", path, text[max(0, len(text)-logTail):])
}
