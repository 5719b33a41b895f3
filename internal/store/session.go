package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
)

// session is the writer's connection. With SQLite there is one for good; with
// PostgreSQL it may be lost and made again, and holds the server's lock.
type session struct {
	dialect dialect
	connect func(context.Context) (*sql.Conn, error)
	look    func(context.Context, *sql.Conn) error // fails when the connection is lost
	conn    *sql.Conn                              // nil while there is none
	stmts   map[string]*sql.Stmt

	failure error     // why the last connection could not be made
	next    time.Time // not tried again before
	since   time.Time // when another server was first seen to hold the database; zero: none does
	taken   chan struct{}
}

// ready makes the connection when there is none. Between two tries it fails at
// once, so that callers are answered.
func (s *session) ready() error {
	if s.conn != nil {
		return nil
	}
	if time.Now().Before(s.next) {
		return s.failure
	}
	s.conn, s.failure = s.connect(context.Background())
	if s.failure != nil {
		s.next = time.Now().Add(reconnectGap)
		s.notice()
		s.failure = errors.Join(storageFails("the storage cannot be reached now"), s.failure)
	}
	return s.failure
}

// notice gives up when another server has held the database for a while.
func (s *session) notice() {
	if _, inUse := errors.AsType[*InUseError](s.failure); !inUse {
		s.since = time.Time{}
		return
	}
	if s.since.IsZero() {
		s.since = time.Now()
	}
	if time.Since(s.since) < takenAfter {
		return
	}
	select {
	case <-s.taken:
	default:
		close(s.taken)
	}
}

// ping asks an idle connection whether it lives, and drops a lost one.
func (s *session) ping() {
	ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
	defer cancel()
	if s.conn != nil && s.look(ctx, s.conn) != nil {
		s.drop()
	}
}

// check drops a connection that was lost.
func (s *session) check() {
	if s.conn != nil && s.lost() {
		s.drop()
	}
}

// lost tells whether the connection was closed under us.
func (s *session) lost() bool {
	return s.dialect.remote && s.conn.Raw(func(dc any) error {
		if c, ok := dc.(*stdlib.Conn); ok && c.Conn().IsClosed() {
			return driver.ErrBadConn
		}
		return nil
	}) != nil
}

// drop closes the connection, with its statements.
func (s *session) drop() {
	if s.conn == nil {
		return
	}
	discard(s.conn)
	s.conn = nil
	clear(s.stmts)
}
