package store

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	"postern/internal/postern"
)

// clock is that of the database's machine, as its distance from ours.
type clock struct {
	ahead atomic.Int64 // milliseconds
	query string       // "": the machines are one
}

// Now is the time by the database's clock. Months are counted by it, whichever
// machine accepts a message. It is looked at with every new connection and every
// second.
func (db *DB) Now() postern.Time {
	return postern.TimeOf(time.Now()) + postern.Time(db.clock.ahead.Load())
}

// look asks for the time over a connection, and so whether that lives.
func (c *clock) look(ctx context.Context, conn *sql.Conn) error {
	if c.query == "" {
		return conn.PingContext(ctx)
	}
	var there int64
	asked := time.Now()
	if err := conn.QueryRowContext(ctx, c.query).Scan(&there); err != nil {
		return err
	}
	way := time.Since(asked) / 2 // it was read about half-way
	c.ahead.Store(there - asked.Add(way).UnixMilli())
	return nil
}

const serverClock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint`
