package db

import (
	"context"
	"database/sql"
	"errors"
)

// A read for a caller ends when the caller leaves; see [ReadFor]. A read that the server
// makes for itself ignores the end of its context once it has begun. So does [DB.Row]:
// finding a row by its key takes microseconds, and a context that can end costs a
// goroutine in database/sql and one in the driver for each read.
//
// SQLite ends a statement before its first row at once, and after that between two rows:
// the driver interrupts nothing later. PostgreSQL ends it, and the connection stays.

// Row reads the row with a given key into dst. It returns sql.ErrNoRows if no row matches.
func (db *DB) Row(ctx context.Context, query string, args []any, dst ...any) error {
	return db.One(ctx, query, args...).Scan(dst...)
}

// One is the row that a query finds by its key. The query runs when the row is scanned;
// Scan returns what went wrong.
func (db *DB) One(ctx context.Context, query string, args ...any) Scanner {
	return row(func(dst []any) error {
		db.trace(query, plain(args))
		end, err := db.readers.begin(ctx)
		if err != nil {
			return err
		}
		defer end()
		if db.dialect.remote {
			return db.remoteRow(ctx, query, args, dst)
		}
		s, err := db.stmt(ctx, query)
		if err == nil {
			err = s.QueryRowContext(context.WithoutCancel(ctx), ordered(args, s.order)...).Scan(dst...)
		}
		return db.report(unavailable(err))
	})
}

// Rows calls scan for each row that a query finds. scan must not read.
func (db *DB) Rows(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	db.trace(query, plain(args))
	end, err := db.beginList(ctx)
	if err != nil {
		return err
	}
	defer end()
	asked := heeded(ctx)
	if db.dialect.remote {
		err = db.remoteRows(ctx, asked, query, args, scan)
	} else {
		err = db.localRows(asked, query, args, scan)
	}
	if err != nil && asked.Err() != nil {
		return errors.Join(asked.Err(), err) // the caller has left; the driver's error may be of any kind
	}
	return db.report(unavailable(err))
}

// heeded is the context whose end ends a read.
func heeded(ctx context.Context) context.Context {
	if ctx.Value(readerKey{}) == nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

func (db *DB) localRows(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	s, err := db.stmt(ctx, query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, ordered(args, s.order)...)
	if err != nil {
		return err
	}
	return each(rows, scan)
}

// Exists tells whether a query that counts finds anything.
func (db *DB) Exists(ctx context.Context, query string, args ...any) (bool, error) {
	var n int
	err := db.Row(ctx, query, args, &n)
	return n > 0, err
}

// stmt prepares a query once for all readers of SQLite.
func (db *DB) stmt(ctx context.Context, query string) (*prepared, error) {
	if s, ok := db.stmts.Load(query); ok {
		return s.(*prepared), nil //nolint:errcheck // only *prepared is ever put in
	}
	s, err := db.dialect.prepare(context.WithoutCancel(ctx), db.read, query)
	if err != nil {
		return nil, err
	}
	if old, loaded := db.stmts.LoadOrStore(query, s); loaded {
		return old.(*prepared), s.Close() //nolint:errcheck // as above
	}
	return s, nil
}

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
