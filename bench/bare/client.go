package bare

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// Clients are plain whatsmeow clients on one sqlstore with an fsync at every commit, as a
// program without a gateway would use them.
type Clients struct {
	network   Network
	db        *sql.DB
	container *sqlstore.Container
	list      []*whatsmeow.Client

	received, fetched tally
}

// OpenClients creates the key store in dir.
func OpenClients(ctx context.Context, n Network, dir string) (*Clients, error) {
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
	return &Clients{network: n, db: db, container: container}, container.Upgrade(ctx)
}

// Linked says how long the steps of a link took.
type Linked struct {
	Shown     time.Duration // from the beginning to the code
	Connected time.Duration // from the scan until the client is connected
}

// Link links another client to a number and waits until it is connected.
func (c *Clients) Link(ctx context.Context, number string) (took Linked, err error) {
	began := time.Now()
	cli := whatsmeow.NewClient(c.container.NewDevice(), waLog.Noop)
	cli.SetPreLoginHTTPClient(c.network.HTTP)
	cli.SetWebsocketHTTPClient(c.network.HTTP)
	cli.SetMediaHTTPClient(c.network.HTTP)
	connected := make(chan time.Time, 1)
	cli.AddEventHandler(func(e any) {
		switch e := e.(type) {
		case *events.Connected:
			select {
			case connected <- time.Now():
			default: // it connected again later
			}
		case *events.Message:
			if e.Message.GetConversation() != "" { // the phone sends keys as messages, too
				c.received.add()
			}
		}
	})
	codes, err := cli.GetQRChannel(ctx)
	if err != nil {
		return took, err
	}
	if err := cli.Connect(); err != nil {
		return took, err
	}
	code := (<-codes).Code
	took.Shown = time.Since(began)
	scanned := time.Now()
	if err := c.network.Scan(ctx, code, number); err != nil {
		return took, err
	}
	select {
	case at := <-connected:
		took.Connected = at.Sub(scanned)
	case <-ctx.Done():
		return took, ctx.Err()
	}
	c.list = append(c.list, cli)
	return took, nil
}

// Send sends a text from client n and waits for the vendor's acknowledgement.
func (c *Clients) Send(ctx context.Context, n int, digits, body string) error {
	_, err := c.list[n].SendMessage(ctx, types.NewJID(digits, types.DefaultUserServer),
		&waE2E.Message{Conversation: new(body)})
	return err
}

// SendToGroup is Send to a group.
func (c *Clients) SendToGroup(ctx context.Context, n int, id, body string) error {
	_, err := c.list[n].SendMessage(ctx, types.NewJID(id, types.GroupServer), &waE2E.Message{Conversation: new(body)})
	return err
}

// AwaitReceived waits until n texts have arrived, over all clients.
func (c *Clients) AwaitReceived(ctx context.Context, n int) error { return c.received.await(ctx, n) }

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
			c.fetched.add()
		})
	}
}

// AwaitFetched waits until n files have been downloaded, over all clients.
func (c *Clients) AwaitFetched(ctx context.Context, n int) error { return c.fetched.await(ctx, n) }
