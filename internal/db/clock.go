package db

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// clock is the clock of the database's machine, as its offset from ours.
type clock struct {
	ahead atomic.Int64 // milliseconds
	query string       // "": both machines are one
}

// Now is the time by the database's clock, so that all machines agree on the month in
// which something is counted. The clock is read with every new connection and, between
// two groups of writes, every second.
func (db *DB) Now() time.Time {
	return time.Now().Add(time.Duration(db.clock.ahead.Load()) * time.Millisecond)
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
	c.ahead.Store(there - asked.Add(trip).UnixMilli())
	return nil
}

const serverClock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`
