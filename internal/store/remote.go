package store

import (
	"context"
	"database/sql"
)

// Reads from a server of its own borrow a connection each. One that was lost
// while it lay in the pool is noticed by the first read, which is then made
// once more.

func (db *DB) remoteRow(ctx context.Context, query string, args, dst []any) error {
	ask := func(conn *sql.Conn) error {
		return conn.QueryRowContext(unending(ctx), query, plain(args)...).Scan(dst...)
	}
	err := db.borrow(ctx, ask)
	if db.wasStale(err) {
		err = db.borrow(ctx, ask)
	}
	return unavailable(err)
}

func (db *DB) remoteRows(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	seen := false // what scan was given cannot be taken back
	ask := func(conn *sql.Conn) error {
		rows, err := conn.QueryContext(unending(ctx), query, plain(args)...)
		if err != nil {
			return err
		}
		return each(rows, func(r *sql.Rows) error { seen = true; return scan(r) })
	}
	err := db.borrow(ctx, ask)
	if !seen && db.wasStale(err) {
		err = db.borrow(ctx, ask)
	}
	return unavailable(err)
}

// borrow takes a connection for one read. Only the wait for it can be ended: a
// read that is broken off would cost its connection. The driver keeps its
// prepared statements.
func (db *DB) borrow(ctx context.Context, ask func(*sql.Conn) error) error {
	wait, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	conn, err := db.read.Conn(wait)
	if err != nil {
		return err
	}
	defer conn.Close() // it goes back to the pool
	return ask(conn)
}

// wasStale tells whether a read met a lost connection. What lies in the pool
// was lost with it, most likely, and is thrown away.
func (db *DB) wasStale(err error) bool {
	if err == nil || !isDisconnect(err) {
		return false
	}
	db.read.SetMaxIdleConns(-1)
	db.read.SetMaxIdleConns(db.dialect.readers)
	return true
}
