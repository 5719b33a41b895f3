package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver named "sqlite"
)

// OpenKeys opens the database file that the network driver keeps its session
// keys in. It is a file of its own so that a burst of prekeys at linking does
// not stall the gateway's writer. One connection: the driver's transactions are
// short, and a second one would only wait for the lock.
func OpenKeys(ctx context.Context, path string) (*sql.DB, error) {
	db, err := openFile(ctx, path, "immediate", 1)
	if err != nil {
		return nil, fmt.Errorf("open session keys: %w", err)
	}
	return db, nil
}

// openFile opens a SQLite file with the settings every file of ours has: WAL,
// an fsync at every commit, and a journal that is cut after a burst.
func openFile(ctx context.Context, path, txlock string, conns int) (*sql.DB, error) {
	q := url.Values{"_txlock": {txlock}, "_pragma": {
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "journal_size_limit(67108864)",
	}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
