package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// connection is the writer's connection. With SQLite it lasts; with PostgreSQL it may be
// lost and replaced, and holds the server's lock.
type connection struct {
	dialect dialect
	connect func(context.Context) (*sql.Conn, error)
	look    func(context.Context, *sql.Conn) error // fails when the connection is lost
	conn    *sql.Conn                              // nil while there is none
	stmts   map[string]*prepared

	looked  time.Time // when ping was called last
	failure error     // of the last try to connect
	next    time.Time // no new try before
	since   time.Time // since when another server holds the database; zero: none does
	taken   chan struct{}
}

// ready connects when there is no connection. Between two tries it fails at once, so
// that callers get a response.
func (c *connection) ready() error {
	if c.conn != nil {
		return nil
	}
	if time.Now().Before(c.next) {
		return c.failure
	}
	c.conn, c.failure = c.connect(context.Background())
	if c.failure != nil {
		c.next = time.Now().Add(reconnectGap)
		c.notice()
		c.failure = errors.Join(fails("the storage cannot be reached now"), c.failure)
	}
	return c.failure
}

// notice gives up when another server has held the database for [takenAfter].
func (c *connection) notice() {
	if _, inUse := errors.AsType[*InUseError](c.failure); !inUse {
		c.since = time.Time{}
		return
	}
	if c.since.IsZero() {
		c.since = time.Now()
	}
	if time.Since(c.since) < takenAfter {
		return
	}
	select {
	case <-c.taken:
	default:
		close(c.taken)
	}
}

// ping checks the connection between two groups, and drops a lost one. It reads the
// server's clock.
func (c *connection) ping() {
	c.looked = time.Now()
	if !c.dialect.remote {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	if c.conn != nil && c.look(ctx, c.conn) != nil {
		c.drop()
	}
}

// check drops the connection when it was lost.
func (c *connection) check() {
	if c.conn != nil && c.lost() {
		c.drop()
	}
}

// lost tells whether the connection was closed from outside.
func (c *connection) lost() bool {
	return c.dialect.remote && c.conn.Raw(func(dc any) error {
		if pg, ok := dc.(*stdlib.Conn); ok && pg.Conn().IsClosed() {
			return driver.ErrBadConn
		}
		return nil
	}) != nil
}

// drop closes the connection and its statements. SQLite keeps a connection with open statements, and then
// leaves its journal behind.
func (c *connection) drop() {
	if c.conn == nil {
		return
	}
	for _, p := range c.stmts {
		_ = p.Close() // the connection may be lost
	}
	discard(c.conn)
	c.conn = nil
	clear(c.stmts)
}

// together runs statements of PostgreSQL in one round trip. After a failure the server ignores those that follow.
func (c *connection) together(ctx context.Context, list []statement) error {
	var batch pgx.Batch
	for _, s := range list {
		batch.Queue(s.query, s.args...)
	}
	return c.conn.Raw(func(dc any) error {
		pg := dc.(*stdlib.Conn) //nolint:errcheck,forcetypeassert // the driver of PostgreSQL
		return pg.Conn().SendBatch(ctx, &batch).Close()
	})
}
