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
	"sync"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// DB is the gateway's database. Its methods may be called from many goroutines.
type DB struct {
	dialect     dialect
	lock        *dirLock
	writeDB     *sql.DB
	writer      *writer
	read        *sql.DB
	stmts       sync.Map // query → *sql.Stmt of the read pool
	hub         *hub
	kept        keptDevices
	checkpoints *checkpointer // nil with PostgreSQL
	clock       clock
	close       func() error // once

	connect func(context.Context) (*sql.Conn, error) // the writer's connection
	first   *sql.Conn                                // made at the start, until the writer has it
}

// Options configure Open.
type Options struct {
	Dir string       // data directory; made when missing
	URL string       // of a PostgreSQL database; "": SQLite in the data directory
	Log *slog.Logger // nil discards

	patience func() time.Duration // nil is answerLimit; shorter in tests
}

// ErrNewer means that a newer release wrote the database.
var ErrNewer = errors.New("the database was written by a newer release")

// openDB takes the data directory for this process, brings the database up to
// date and starts the writer. A directory that another process holds gives a
// [*LockedError], a PostgreSQL database that another server works on an
// [*InUseError].
func openDB(ctx context.Context, opts Options) (*DB, error) {
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
	if err := db.open(ctx, opts); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (db *DB) open(ctx context.Context, opts Options) (err error) {
	if opts.URL != "" {
		err = db.openPostgres(ctx, opts)
	} else {
		err = db.openSQLite(ctx, opts)
	}
	if err != nil {
		return err
	}
	db.writer = newWriter(db.dialect, db.connect, db.clock.look, db.first, db.published, opts.Log)
	db.first = nil
	if db.checkpoints != nil {
		db.writer.written = db.checkpoints.written
	}
	go db.writer.run() //nolint:contextcheck // it lives longer than the call
	return nil
}

// migrate applies what is missing, and says so of a database that has something:
// it may take minutes. It refuses one that knows more than this program.
func (d dialect) migrate(ctx context.Context, conn *sql.DB, log *slog.Logger) error {
	dir, err := fs.Sub(migrations, d.migrations)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(d.goose, conn, dir, d.migrateOptions()...)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the database's version: %w", err)
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	if have > newest {
		return fmt.Errorf("%w: it is at version %d, this program knows %d; start a newer postern", ErrNewer, have, newest)
	}
	if have == newest {
		return nil
	}
	if have > 0 {
		log.InfoContext(ctx, "the database is brought up to date; wait for it", "from", have, "to", newest)
	}
	began := time.Now()
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	log.InfoContext(ctx, "the database is up to date", "version", newest, "took", time.Since(began).Round(time.Millisecond).String())
	return nil
}

// migrateOptions keep two programs from migrating one server's database at once.
func (d dialect) migrateOptions() []goose.ProviderOption {
	if !d.remote {
		return nil
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		panic(err) // its settings are constant
	}
	return []goose.ProviderOption{goose.WithSessionLocker(locker)}
}

// Version is the number of the newest migration that was applied.
func (db *DB) Version(ctx context.Context) (v int64, err error) {
	err = db.row(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`, nil, &v)
	return v, err
}

// Taken is closed when another server has taken the PostgreSQL database while
// this one was cut off from it: this one can write no more and should end.
func (db *DB) Taken() <-chan struct{} { return db.writer.taken }

// Close writes what waits, closes the database and lets go of the directory.
// Closing twice is no error.
func (db *DB) Close() error { return db.close() }

func (db *DB) shut() error {
	var errs []error
	if db.writer != nil {
		db.writer.close()
	}
	if db.checkpoints != nil {
		errs = append(errs, db.checkpoints.close())
	}
	if db.first != nil {
		discard(db.first)
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
	return db.one(ctx, query, args...).Scan(dst...)
}

// one is the row that a query finds; its Scan says what went wrong.
func (db *DB) one(ctx context.Context, query string, args ...any) scanner {
	if !db.dialect.remote {
		s, err := db.stmt(ctx, query)
		if err != nil {
			return failedRow{unavailable(err)}
		}
		return checkedRow{s.QueryRowContext(unending(ctx), plain(args)...)}
	}
	return remoteRow(func(dst []any) error { return db.remoteRow(ctx, query, args, dst) })
}

func (db *DB) rows(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	if !db.dialect.remote {
		s, err := db.stmt(ctx, query)
		if err != nil {
			return unavailable(err)
		}
		rows, err := s.QueryContext(unending(ctx), plain(args)...)
		if err != nil {
			return unavailable(err)
		}
		return unavailable(each(rows, scan))
	}
	return db.remoteRows(ctx, query, args, scan)
}
