package db

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// courier passes wake-ups on between the servers that share a PostgreSQL database. It tells
// the others what this server has committed, in notifications that are sent after the commit:
// PostgreSQL commits transactions that notify one after the other.
//
// A notification is lost when the connection of its receiver is. So each new connection, and
// the clock every pollInterval, makes all listeners look for themselves.
type courier struct {
	config *pgx.ConnConfig
	name   string // of this server, which ignores what it has sent itself
	hub    *hub
	log    *slog.Logger

	mu      sync.Mutex
	waiting map[Wake]struct{} // to be sent
	flooded bool              // more was to be sent than waiting may hold
	told    []News            // to be sent, the oldest first
	more    chan struct{}     // readable while something waits

	quit  context.CancelFunc
	loops sync.WaitGroup
}

// notice is the payload of a notification.
type notice struct {
	From     string             `json:"from"`
	Wakes    map[Topic][]string `json:"wakes,omitempty"`
	Anything bool               `json:"anything,omitempty"` // everything may have changed
	News     *News              `json:"news,omitempty"`
}

func startCourier(config *pgx.ConnConfig, name string, h *hub, log *slog.Logger) *courier {
	own := config.Copy()
	own.RuntimeParams["application_name"] = "postern notifications"
	own.RuntimeParams["synchronous_commit"] = "off" // a notification has nothing to lose
	own.BuildContextWatcherHandler = endAtOnce
	c := &courier{
		config: own, name: name, hub: h, log: log,
		waiting: map[Wake]struct{}{}, more: make(chan struct{}, 1),
	}
	var ctx context.Context
	ctx, c.quit = context.WithCancel(context.Background())
	c.loops.Go(func() { c.again(ctx, c.send) })
	c.loops.Go(func() { c.again(ctx, c.receive) })
	c.loops.Go(func() { c.poll(ctx) })
	return c
}

// endAtOnce ends what a connection waits for when its context ends. There is no statement that the server
// could cancel while it has nothing to notify of, and waiting for its confirmation would take cancelLimit.
func endAtOnce(conn *pgconn.PgConn) ctxwatch.Handler {
	return &pgconn.DeadlineContextWatcherHandler{Conn: conn.Conn()}
}

// close ends the loops, and sends what waits if the database is there.
func (c *courier) close() {
	c.quit()
	c.loops.Wait()
	if !c.idle() { // the connection of the loop was lost
		ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
		defer cancel()
		if err := c.connected(ctx, c.flush); err != nil {
			c.log.Warn("other servers learn of the last changes late", "error", unavailable(err))
		}
	}
}

// idle reports whether there is nothing to send.
func (c *courier) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) == 0 && !c.flooded
}

// add has wake-ups sent. It never blocks.
func (c *courier) add(wakes []Wake) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range wakes {
		if len(c.waiting) == maxNotices {
			clear(c.waiting)
			c.flooded = true
		}
		c.waiting[w] = struct{}{}
	}
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// tell has news sent. It never blocks.
func (c *courier) tell(n News) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.told) == maxTold {
		c.told = slices.Delete(c.told, 0, 1)
	}
	c.told = append(c.told, n)
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// again runs a loop on a connection of its own, and once more on a new one when it has ended.
func (c *courier) again(ctx context.Context, loop func(context.Context, *pgx.Conn) error) {
	for ctx.Err() == nil {
		err := c.connected(ctx, loop)
		if ctx.Err() != nil {
			return
		}
		c.log.Warn("notifications of other servers are late", "error", unavailable(err))
		_ = sleep(ctx, writerTick)
	}
}

func (c *courier) connected(ctx context.Context, loop func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, c.config)
	if err != nil {
		return err
	}
	err = loop(ctx, conn)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectLimit)
	defer cancel()
	return errors.Join(err, conn.Close(closing))
}

// send sends what waits until ctx is done, and then what is left. The end of ctx interrupts no notification
// that is being sent: the others would not learn of the last changes of a server that stops.
func (c *courier) send(ctx context.Context, conn *pgx.Conn) error {
	for ctx.Err() == nil {
		select {
		case <-c.more:
		case <-ctx.Done():
		}
		if err := c.flush(context.WithoutCancel(ctx), conn); err != nil {
			return err
		}
	}
	return nil
}

// flush sends what waits. After a failure, the others are told that anything may have changed.
func (c *courier) flush(ctx context.Context, conn *pgx.Conn) error {
	list := append(c.take(), c.takeTold()...)
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	_, err := conn.Exec(ctx, `SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload`, channel, list)
	if err != nil {
		c.mu.Lock()
		c.flooded = true
		c.mu.Unlock()
		c.add(nil)
	}
	return err
}

// take returns the payloads of what waits.
func (c *courier) take() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flooded {
		clear(c.waiting)
		c.flooded = false
		return []string{c.payload(notice{Anything: true})}
	}
	wakes, size := map[Topic][]string{}, 0
	for w := range c.waiting {
		if size += len(w.Topic) + len(w.ID) + noticeMargin; size > noticeSize {
			list = append(list, c.payload(notice{Wakes: wakes}))
			wakes, size = map[Topic][]string{}, 0
		}
		wakes[w.Topic] = append(wakes[w.Topic], w.ID)
	}
	clear(c.waiting)
	if len(wakes) > 0 {
		list = append(list, c.payload(notice{Wakes: wakes}))
	}
	return list
}

// takeTold returns the payloads of the news that wait. They are lost if they cannot be sent.
func (c *courier) takeTold() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.told {
		list = append(list, c.payload(notice{News: &c.told[i]}))
	}
	c.told = nil
	return list
}

func (c *courier) payload(n notice) string {
	n.From = c.name
	text, _ := json.Marshal(n) // it contains strings and bytes only
	return string(text)
}

// receive wakes the listeners of this server until ctx is done.
func (c *courier) receive(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	c.hub.publishAnything() // what was sent before is lost
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		c.deliver(n.Payload)
	}
}

// deliver wakes the listeners for a payload. A later release may send what this one cannot
// read.
func (c *courier) deliver(payload string) {
	if losesNotices() {
		return
	}
	var n notice
	err := json.Unmarshal([]byte(payload), &n)
	switch {
	case err != nil || n.Anything && n.From != c.name:
		c.hub.publishAnything()
	case n.From == c.name:
	case n.News != nil:
		n.News.From = n.From
		c.hub.hear(*n.News)
	default:
		c.hub.publish(n.list())
	}
}

func (n notice) list() (wakes []Wake) {
	for topic, ids := range n.Wakes {
		for _, id := range ids {
			wakes = append(wakes, Wake{topic, id})
		}
	}
	return wakes
}

// poll makes all listeners look for themselves now and then.
func (c *courier) poll(ctx context.Context) {
	for sleep(ctx, pollInterval) == nil {
		polled()
		c.hub.publishAnything()
	}
}
