package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/sqlite/*.sql
var migrations embed.FS

// DB is the gateway's database. Its methods may be called from many goroutines.
type DB struct {
	lock    *lock
	writeDB *sql.DB
	writer  *writer
	read    *sql.DB
	stmts   sync.Map // query → *sql.Stmt of the read pool
	hub     *hub
	close   func() error // once
}

// Options configure Open.
type Options struct {
	Dir string       // data directory; made when missing
	Log *slog.Logger // nil discards
}

// ErrNewer means that a newer release wrote the database.
var ErrNewer = errors.New("the database was written by a newer release")

// Open takes the data directory for this process, brings the database up to
// date and starts the writer. A directory that another process holds gives a
// [*LockedError].
func Open(ctx context.Context, opts Options) (*DB, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	l, err := takeLock(opts.Dir)
	if err != nil {
		return nil, err
	}
	db := &DB{lock: l, hub: newHub()}
	db.close = sync.OnceValue(db.shut)
	if err := db.open(ctx, filepath.Join(opts.Dir, "postern.db"), opts.Log); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (db *DB) open(ctx context.Context, path string, log *slog.Logger) (err error) {
	if db.writeDB, err = openFile(ctx, path, "immediate", 1); err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	if err := migrate(ctx, db.writeDB); err != nil {
		return err
	}
	if db.read, err = openFile(ctx, path, "deferred", readers); err != nil {
		return fmt.Errorf("open the database for reading: %w", err)
	}
	conn, err := db.writeDB.Conn(ctx)
	if err != nil {
		return fmt.Errorf("open the database for writing: %w", err)
	}
	db.writer = newWriter(conn, db.hub.publish, log)
	go db.writer.run()
	return nil
}

// migrate applies what is missing. It refuses a database that knows more than
// this program.
func migrate(ctx context.Context, conn *sql.DB) error {
	dir, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, conn, dir)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the database's version: %w", err)
	}
	sources := p.ListSources()
	if newest := sources[len(sources)-1].Version; have > newest {
		return fmt.Errorf("%w: it is at version %d, this program knows %d; start a newer postern", ErrNewer, have, newest)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

// Version is the number of the newest migration that was applied.
func (db *DB) Version(ctx context.Context) (v int64, err error) {
	err = db.row(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`, nil, &v)
	return v, err
}

// Close writes what waits, closes the database and lets go of the directory.
// Closing twice is no error.
func (db *DB) Close() error { return db.close() }

func (db *DB) shut() error {
	var errs []error
	if db.writer != nil {
		db.writer.close()
		errs = append(errs, db.writer.conn.Close())
	}
	for _, c := range []*sql.DB{db.read, db.writeDB} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(append(errs, db.lock.release())...)
}

// Listen subscribes to a topic; only limits it to one id, "" takes all.
func (db *DB) Listen(topic Topic, only string) *Listener { return db.hub.listen(topic, only) }

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

// unending is for reads: they take microseconds, and a context that can end
// costs a goroutine in database/sql and one in the driver for each.
func unending(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// row reads one row; sql.ErrNoRows when there is none.
func (db *DB) row(ctx context.Context, query string, args []any, dst ...any) error {
	s, err := db.stmt(ctx, query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(unending(ctx), args...).Scan(dst...)
}

func (db *DB) rows(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	s, err := db.stmt(ctx, query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(unending(ctx), args...)
	if err != nil {
		return err
	}
	return each(rows, scan)
}
