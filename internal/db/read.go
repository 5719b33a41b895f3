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
