package db

import (
	"context"
	"database/sql"
)

// Each read from PostgreSQL borrows a connection. The first read on a connection that
// was lost while idle in the pool notices, and is repeated once.

func (db *DB) remoteRow(ctx context.Context, query string, args, dst []any) error {
	ask := func(conn *sql.Conn) error {
		return conn.QueryRowContext(context.WithoutCancel(ctx), query, args...).Scan(dst...)
	}
	err := db.borrow(ctx, ask)
	if db.wasStale(err) {
		err = db.borrow(ctx, ask)
	}
	return db.report(unavailable(err))
}

// remoteRows waits for a connection until the end of ctx. The end of asked ends the read.
func (db *DB) remoteRows(
	ctx, asked context.Context, query string, args []any, scan func(*sql.Rows) error,
) error {
	seen := false // scan cannot take a row back
	ask := func(conn *sql.Conn) error {
		rows, err := conn.QueryContext(asked, query, args...)
		if err != nil {
			return err
		}
		return each(rows, func(r *sql.Rows) error { seen = true; return scan(r) })
	}
	err := db.borrow(ctx, ask)
	if !seen && asked.Err() == nil && db.wasStale(err) {
		err = db.borrow(ctx, ask)
	}
	return err
}

// borrow takes a connection for one read. ctx ends only the wait for it. The driver caches
// prepared statements.
func (db *DB) borrow(ctx context.Context, ask func(*sql.Conn) error) error {
	wait, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	conn, err := db.read.Conn(wait)
	if err != nil {
		return busyOr(err)
	}
	defer conn.Close() // returns it to the pool
	return ask(conn)
}

// busyOr tells a wait for a connection that took too long from a server that cannot be
// reached: the pool returns the end of the wait as it is, while a driver says what it tried.
func busyOr(err error) error {
	if err == context.DeadlineExceeded { //nolint:errorlint // see above
		return fails("the storage is busy now")
	}
	return err
}

// wasStale tells whether a read met a lost connection. The idle connections of the pool
// were most likely lost with it, so they are closed.
func (db *DB) wasStale(err error) bool {
	if err == nil || !isDisconnect(err) {
		return false
	}
	db.read.SetMaxIdleConns(-1)
	db.read.SetMaxIdleConns(db.dialect.readers)
	return true
}
