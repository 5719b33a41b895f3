package db

import (
	"context"
	"database/sql"
)

// A read ignores the end of its context: it takes microseconds, and a context that can
// end costs a goroutine in database/sql and one in the driver for each read.

// Row reads one row into dst. The error is sql.ErrNoRows when there is none.
func (db *DB) Row(ctx context.Context, query string, args []any, dst ...any) error {
	return db.One(ctx, query, args...).Scan(dst...)
}

// One is the row that a query finds. Its Scan returns what went wrong.
func (db *DB) One(ctx context.Context, query string, args ...any) Scanner {
	db.trace(query)
	if db.dialect.remote {
		return remoteRow(func(dst []any) error { return db.remoteRow(ctx, query, args, dst) })
	}
	s, err := db.stmt(ctx, query)
	if err != nil {
		return failedRow{db.report(unavailable(err))}
	}
	return localRow{db, s.QueryRowContext(context.WithoutCancel(ctx), plain(args)...)}
}

// Rows calls scan for each row that a query finds.
func (db *DB) Rows(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	db.trace(query)
	if db.dialect.remote {
		return db.remoteRows(ctx, query, args, scan)
	}
	s, err := db.stmt(ctx, query)
	if err != nil {
		return db.report(unavailable(err))
	}
	rows, err := s.QueryContext(context.WithoutCancel(ctx), plain(args)...)
	if err == nil {
		err = each(rows, scan)
	}
	return db.report(unavailable(err))
}

// Exists tells whether a query that counts finds anything.
func (db *DB) Exists(ctx context.Context, query string, args ...any) (bool, error) {
	var n int
	err := db.Row(ctx, query, args, &n)
	return n > 0, err
}

// stmt prepares a query once for all readers of SQLite.
func (db *DB) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := db.stmts.Load(query); ok {
		return s.(*sql.Stmt), nil //nolint:errcheck // only *sql.Stmt is ever put in
	}
	s, err := db.read.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if old, loaded := db.stmts.LoadOrStore(query, s); loaded {
		return old.(*sql.Stmt), s.Close() //nolint:errcheck // as above
	}
	return s, nil
}
