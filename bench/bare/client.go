package bare

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"

	"postern/vendorsim"
)

// Clients are plain whatsmeow clients on one sqlstore with an fsync at every commit, as a
// program without a gateway would use them.
type Clients struct {
	vendor    *vendorsim.Vendor
	db        *sql.DB
	container *sqlstore.Container
	list      []*whatsmeow.Client

	mu       sync.Mutex
	received int
	fetched  int
}

// OpenClients creates the key store in dir.
func OpenClients(ctx context.Context, v *vendorsim.Vendor, dir string) (*Clients, error) {
	q := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"},
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "keys.db")+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	container := sqlstore.NewWithDB(db, "sqlite", waLog.Noop)
	return &Clients{vendor: v, db: db, container: container}, container.Upgrade(ctx)
}

// Link links another client to a number and waits until it is connected.
func (c *Clients) Link(ctx context.Context, number string) error {
	cli := whatsmeow.NewClient(c.container.NewDevice(), waLog.Noop)
	cli.SetPreLoginHTTPClient(c.vendor.HTTPClient())
	cli.SetWebsocketHTTPClient(c.vendor.HTTPClient())
	cli.SetMediaHTTPClient(c.vendor.HTTPClient())
	connected := make(chan struct{}, 1)
	cli.AddEventHandler(func(e any) {
		switch e.(type) {
		case *events.Connected:
			connected <- struct{}{}
		case *events.Message:
			c.mu.Lock()
			c.received++
			c.mu.Unlock()
		}
	})
	codes, err := cli.GetQRChannel(ctx)
	if err != nil {
		return err
	}
	if err := cli.Connect(); err != nil {
		return err
	}
	if err := c.vendor.Scan(ctx, (<-codes).Code, number); err != nil {
		return err
	}
	select {
	case <-connected:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.list = append(c.list, cli)
	return nil
}

// Send sends a text from client n and waits for the vendor's acknowledgement.
func (c *Clients) Send(ctx context.Context, n int, digits, body string) error {
	_, err := c.list[n].SendMessage(ctx, types.NewJID(digits, types.DefaultUserServer),
		&waE2E.Message{Conversation: new(body)})
	return err
}

// AwaitReceived waits until n messages have arrived, over all clients.
func (c *Clients) AwaitReceived(ctx context.Context, n int) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		c.mu.Lock()
		done := c.received >= n
		c.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("messages are missing")
		}
	}
}

// Close disconnects all clients.
func (c *Clients) Close() error {
	for _, cli := range c.list {
		cli.Disconnect()
	}
	return c.db.Close()
}

// SendImage uploads a picture from client n, sends it and waits for the vendor's acknowledgement.
func (c *Clients) SendImage(ctx context.Context, n int, digits string, picture []byte) error {
	up, err := c.list[n].Upload(ctx, picture, whatsmeow.MediaImage)
	if err != nil {
		return err
	}
	_, err = c.list[n].SendMessage(ctx, types.NewJID(digits, types.DefaultUserServer), &waE2E.Message{
		ImageMessage: &waE2E.ImageMessage{
			URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256,
			FileSHA256: up.FileSHA256, FileLength: &up.FileLength, Mimetype: new("image/jpeg"),
		},
	})
	return err
}

// Fetch makes all clients download the files of the messages that arrive from now on, before
// these count as received.
func (c *Clients) Fetch(ctx context.Context) {
	for _, cli := range c.list {
		cli.AddEventHandler(func(e any) {
			m, ok := e.(*events.Message)
			if !ok || m.Message.GetImageMessage() == nil {
				return
			}
			if _, err := cli.Download(ctx, m.Message.GetImageMessage()); err != nil {
				return
			}
			c.mu.Lock()
			c.fetched++
			c.mu.Unlock()
		})
	}
}

// AwaitFetched waits until n files have been downloaded, over all clients.
func (c *Clients) AwaitFetched(ctx context.Context, n int) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		c.mu.Lock()
		done := c.fetched >= n
		c.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("files are missing")
		}
	}
}
