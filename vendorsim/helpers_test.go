package vendorsim_test

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/vendorsim"

	"go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"
	_ "modernc.org/sqlite"
)

// waitLimit is how long anything may take before a test gives up on it.
const waitLimit = 5 * time.Minute

// testKeys are shared by all vendors of the test process, as whatsmeow trusts one root key.
var testKeys = vendorsim.NewKeys()

func TestMain(m *testing.M) {
	whatsmeow.WACertPubKey = testKeys.RootKey()
	logger.Configure("all") // libsignal makes its logger at the first use, without a lock
	os.Exit(m.Run())
}

// openVendor opens a vendor that is closed with the test.
func openVendor(t *testing.T, dir string) *vendorsim.Vendor {
	t.Helper()
	v, err := vendorsim.Open(vendorsim.Options{Dir: dir, Keys: testKeys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// newContainer makes a store for whatsmeow devices.
func newContainer(t *testing.T) *sqlstore.Container {
	t.Helper()
	dsn := "file:" + t.TempDir() + "/wa.db?_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	container := sqlstore.NewWithDB(db, "sqlite3", waLog.Noop)
	if err := container.Upgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	return container
}

// client is an unmodified whatsmeow client with a record of its events.
type client struct {
	t      *testing.T
	wa     *whatsmeow.Client
	device *store.Device
	number string

	mu      sync.Mutex
	events  []any
	changed chan struct{}
	refuse  bool // the handler reports messages as not handled
}

// newClient makes a client for a device, not connected.
func newClient(t *testing.T, v *vendorsim.Vendor, device *store.Device) *client {
	t.Helper()
	c := &client{t: t, device: device, changed: make(chan struct{})}
	c.wa = whatsmeow.NewClient(device, waLog.Noop)
	c.wa.SetPreLoginHTTPClient(v.HTTPClient())
	c.wa.SetWebsocketHTTPClient(v.HTTPClient())
	c.wa.SetMediaHTTPClient(v.HTTPClient())
	c.wa.AddEventHandlerWithSuccessStatus(c.handle)
	t.Cleanup(c.wa.Disconnect)
	return c
}

func (c *client) handle(evt any) bool {
	m, isMessage := evt.(*events.Message)
	if isMessage && m.Info.Category == "peer" {
		return true // what the own phone tells the client
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, evt)
	close(c.changed)
	c.changed = make(chan struct{})
	return !isMessage || !c.refuse
}

func (c *client) refuseMessages(refuse bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = refuse
}

// await returns the next event of a type that matches, and takes it out of the record.
func await[E any](c *client, what string, match func(E) bool) E {
	c.t.Helper()
	deadline := time.After(waitLimit)
	for {
		c.mu.Lock()
		changed := c.changed
		for i, evt := range c.events {
			if e, ok := evt.(E); ok && (match == nil || match(e)) {
				c.events = append(c.events[:i:i], c.events[i+1:]...)
				c.mu.Unlock()
				return e
			}
		}
		c.mu.Unlock()
		select {
		case <-changed:
		case <-deadline:
			c.mu.Lock()
			defer c.mu.Unlock()
			var seen []string
			for _, evt := range c.events {
				seen = append(seen, fmt.Sprintf("%T", evt))
			}
			c.t.Fatalf("%s of %s did not come; events: %s", what, c.number, strings.Join(seen, ", "))
		}
	}
}

// count tells how many events of a type the record holds.
func count[E any](c *client) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, evt := range c.events {
		if _, ok := evt.(E); ok {
			n++
		}
	}
	return n
}

// link links a fresh device to a number and waits until it is connected.
func link(t *testing.T, v *vendorsim.Vendor, number string) *client {
	t.Helper()
	c := newClient(t, v, newContainer(t).NewDevice())
	c.link(v, number)
	return c
}

func (c *client) link(v *vendorsim.Vendor, number string) {
	c.t.Helper()
	c.number = number
	qr, err := c.wa.GetQRChannel(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.wa.Connect(); err != nil {
		c.t.Fatal(err)
	}
	if err := v.Scan(c.t.Context(), (<-qr).Code, number); err != nil {
		c.t.Fatal(err)
	}
	await[*events.Connected](c, "Connected", nil)
}

// synced waits until the client has read all of the app state, and so fetches no more of it by itself.
// A client that is logged out replaces its stores, which whatsmeow does not keep from such a fetch.
func (c *client) synced() {
	c.t.Helper()
	last := appstate.AllPatchNames[len(appstate.AllPatchNames)-1]
	await(c, "the last collection", func(e *events.AppStateSyncComplete) bool { return e.Name == last })
}

func (c *client) connect() {
	c.t.Helper()
	if err := c.wa.Connect(); err != nil {
		c.t.Fatal(err)
	}
	await[*events.Connected](c, "Connected", nil)
}

func jid(number string) types.JID {
	return types.NewJID(strings.TrimPrefix(number, "+"), types.DefaultUserServer)
}

func textOf(body string) *waE2E.Message { return &waE2E.Message{Conversation: new(body)} }

// send sends a text and returns its id.
func (c *client) send(to, body string) string {
	c.t.Helper()
	resp, err := c.wa.SendMessage(c.t.Context(), jid(to), textOf(body))
	if err != nil {
		c.t.Fatalf("send %q to %s: %v", body, to, err)
	}
	return resp.ID
}

// sendAcrossDrop sends a text while the vendor cuts the connection, connects again and returns the
// id once whatsmeow has sent the text again. The client must not reconnect by itself: in whatsmeow
// that is a data race with the message that waits.
func (c *client) sendAcrossDrop(to, body string) string {
	c.t.Helper()
	sent := make(chan error, 1)
	id := c.wa.GenerateMessageID()
	go func() {
		_, err := c.wa.SendMessage(c.t.Context(), jid(to), textOf(body), whatsmeow.SendRequestExtra{ID: id})
		sent <- err
	}()
	await[*events.Disconnected](c, "Disconnected", nil)
	c.connect()
	if err := <-sent; err != nil {
		c.t.Fatal(err)
	}
	return id
}

// message waits for a text.
func (c *client) message(body string) *events.Message {
	c.t.Helper()
	return await(c, fmt.Sprintf("message %q", body), func(m *events.Message) bool {
		return m.Message.GetConversation() == body
	})
}

// receipt waits for a receipt of a message.
func (c *client) receipt(id string, kind types.ReceiptType) {
	c.t.Helper()
	await(c, fmt.Sprintf("receipt %q of %s", kind, id), func(r *events.Receipt) bool {
		return r.Type == kind && len(r.MessageIDs) > 0 && r.MessageIDs[0] == id
	})
}

// until waits for a change of the vendor that makes done report true.
func until(t *testing.T, v *vendorsim.Vendor, what string, done func() bool) {
	t.Helper()
	deadline := time.After(waitLimit)
	for {
		changed := v.Watch()
		if done() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited too long until %s", what)
		}
	}
}

// bodies are the texts of alice that the phone of a number shows.
func bodies(v *vendorsim.Vendor, number string) []string {
	var out []string
	for _, m := range v.Shown(number) {
		if m.From == alice {
			out = append(out, m.Body)
		}
	}
	return out
}

// entry finds a message of alice in the ledger.
func entry(t *testing.T, v *vendorsim.Vendor, id string) vendorsim.Entry {
	t.Helper()
	for _, e := range v.Ledger(0, 0) {
		if e.Account == alice && e.NetworkID == id {
			return e
		}
	}
	t.Fatalf("message %s is not in the ledger", id)
	return vendorsim.Entry{}
}

// write lets somebody write to alice.
func write(t *testing.T, v *vendorsim.Vendor, from, body string) string {
	t.Helper()
	id, err := v.Send(t.Context(), alice, from, body)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func fault(t *testing.T, v *vendorsim.Vendor, account string, f vendorsim.Fault) {
	t.Helper()
	if err := v.Fault(t.Context(), account, f); err != nil {
		t.Fatal(err)
	}
}
