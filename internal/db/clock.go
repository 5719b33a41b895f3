package db

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// clock is the clock of the database's machine.
type clock struct {
	last  atomic.Pointer[reading] // nil before the first one
	query string                  // "": both machines are one
}

// reading is what the clock said at a moment, from which our monotonic clock goes on: our wall clock may be
// moved at any time.
type reading struct{ at, there time.Time }

// Now is the time by the database's clock, so that all machines agree on the month in
// which something is counted. The clock is read with every new connection and, between
// two groups of writes, every second.
func (db *DB) Now() time.Time {
	if r := db.clock.last.Load(); r != nil {
		return r.there.Add(time.Since(r.at))
	}
	return time.Now()
}

// look reads the time over a connection, and fails when that is lost.
func (c *clock) look(ctx context.Context, conn *sql.Conn) error {
	if c.query == "" {
		return conn.PingContext(ctx)
	}
	var there int64
	asked := time.Now()
	if err := conn.QueryRowContext(ctx, c.query).Scan(&there); err != nil {
		return err
	}
	trip := time.Since(asked) / 2 // it was read about half-way
	c.last.Store(&reading{at: asked.Add(trip), there: time.UnixMilli(there)})
	return nil
}

const serverClock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`
