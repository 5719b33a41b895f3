package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver named "sqlite"
)

// FileName is the name of SQLite's database in the data directory.
const FileName = "postern.db"

func sqliteDialect() dialect {
	return dialect{
		goose: goose.DialectSQLite3, dir: "sqlite", begin: "BEGIN IMMEDIATE",
		size: `SELECT 'SQLite ' || sqlite_version(), page_count * page_size FROM pragma_page_count(), pragma_page_size()`,
		list: "(SELECT value FROM json_each($%[1]d))", readers: sqliteReaders,
		sharing: sharing{
			share: 2, length: 8,
			rest: 12,
		},
	}
}

// openSQLite opens the database file of a data directory.
func (db *DB) openSQLite(ctx context.Context, opts Options) (err error) {
	db.dialect = sqliteDialect()
	path := filepath.Join(opts.Dir, FileName)
	db.logFile = path + "-wal"
	if db.writeDB, err = openFile(ctx, path, "immediate", 1); err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	if err := db.dialect.migrate(ctx, db.writeDB, opts); err != nil {
		return err
	}
	if db.read, err = openFile(ctx, path, "deferred", db.dialect.readers+1, readCache); err != nil {
		return fmt.Errorf("open the database for reading: %w", err)
	}
	db.connect = func(ctx context.Context) (*sql.Conn, error) { return db.writeDB.Conn(ctx) }
	if db.first, err = db.connect(ctx); err != nil {
		return fmt.Errorf("open the database for writing: %w", err)
	}
	return db.startCheckpoints(ctx, opts.Log)
}

// readCache keeps 256 KiB of pages for each connection that reads, where SQLite keeps 2 MiB. It forgets them whenever
// another connection has written, and the kernel has them too: https://www.sqlite.org/pragma.html#pragma_cache_size
const readCache = "cache_size(-256)"

// openFile opens a SQLite file with the settings that all our files have: WAL, an fsync
// at every commit, and a journal that is truncated after a burst; and with the pragmas given.
func openFile(ctx context.Context, path, txlock string, conns int, pragmas ...string) (*sql.DB, error) {
	q := url.Values{"_txlock": {txlock}, "_pragma": append([]string{
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		"journal_size_limit(67108864)",
		fmt.Sprintf("wal_autocheckpoint(%d)",
			journalPages),
	}, pragmas...)}
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
