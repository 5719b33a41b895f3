package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// ErrNewer means that a newer release wrote the database.
var ErrNewer = errors.New("the database was written by a newer release")

// migrate applies the missing migrations. For a database that has data it logs that,
// since it may take minutes. It refuses a database that is newer than this program.
func (d dialect) migrate(ctx context.Context, conn *sql.DB, opts Options) error {
	p, err := d.migrations(conn, opts.Migrations)
	if err != nil {
		return err
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the database's version: %w", err)
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	switch {
	case have > newest:
		return fmt.Errorf("%w: it is at version %d, this program knows %d; start a newer postern", ErrNewer, have,
			newest)
	case have == newest:
		return nil
	case have > 0:
		opts.Log.InfoContext(ctx, "upgrading the database; please wait", "from", have, "to", newest)
	}
	began := time.Now()
	if err := up(ctx, p, opts.Log); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	took := time.Since(began).Round(time.Millisecond).String()
	opts.Log.InfoContext(ctx, "the database is up to date", "version", newest, "took", took)
	return nil
}

const (
	// migrationWait is how long a migration waits for a lock on a table. While it waits, so does all that other servers do
	// with the table, and after a few seconds they would lose their leases.
	migrationWait = `SET LOCAL lock_timeout = '1s'; `
	// migrationAgain is how long others get their turn before the migration is tried again.
	migrationAgain = 2 * time.Second
)

// up applies the missing migrations, each as soon as nobody else, such as a backup, holds a lock on its table.
func up(ctx context.Context, p *goose.Provider, log *slog.Logger) error {
	for {
		_, err := p.Up(ctx)
		if pe, ok := errors.AsType[*pgconn.PgError](err); !ok || pe.Code != lockNotAvailable {
			return err
		}
		log.WarnContext(ctx, "the upgrade waits for a table that is in use, by a backup for example")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(migrationAgain):
		}
	}
}

// migrations are those of the engine. A lock keeps two programs from migrating one
// server's database at once.
func (d dialect) migrations(conn *sql.DB, all fs.FS) (*goose.Provider, error) {
	list, err := d.steps(all)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	options := []goose.ProviderOption{goose.WithGoMigrations(list...), goose.WithDisableGlobalRegistry(true)}
	if d.remote {
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	return goose.NewProvider(d.goose, conn, nil, options...)
}

// steps reads the migrations. Each is a file of statements that are executed as one: goose's
// own parser would take most of the time of a start, and 4 MB for each file.
func (d dialect) steps(all fs.FS) (list []*goose.Migration, err error) {
	names, err := fs.Glob(all, d.dir+"/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		list = append(list, goose.NewGoMigration(version, &goose.GoFunc{RunTx: d.step(all, name)}, nil))
	}
	return list, nil
}

// step executes the statements of a file.
func (d dialect) step(all fs.FS, name string) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		text, err := fs.ReadFile(all, name)
		if err != nil {
			return err
		}
		if d.remote { // in the simple protocol, because the others take one statement
			_, err = tx.ExecContext(ctx, migrationWait+string(text), pgx.QueryExecModeSimpleProtocol)
			return err
		}
		_, err = tx.ExecContext(ctx, string(text))
		return err
	}
}

// Version is the number of the newest migration that was applied.
func (db *DB) Version(ctx context.Context) (v int64, err error) {
	err = db.Row(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`, nil, &v)
	return v, err
}

// OpenAt opens a database without a lock or a writer, migrated to an earlier version. It is
// for tests of migrations.
func OpenAt(ctx context.Context, opts Options, version int64) (*sql.DB, error) {
	d, conn, err := openPlain(ctx, opts)
	if err != nil {
		return nil, err
	}
	p, err := d.migrations(conn, opts.Migrations)
	if err == nil {
		_, err = p.UpTo(ctx, version)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func openPlain(ctx context.Context, opts Options) (dialect, *sql.DB, error) {
	if opts.URL == "" {
		conn, err := openFile(ctx, filepath.Join(opts.Dir, FileName), "immediate", 1)
		return sqliteDialect(), conn, err
	}
	config, err := parseURL(opts.URL)
	if err != nil {
		return dialect{}, nil, err
	}
	return postgresDialect(), openPool(config, "postern migrate", 1), nil
}
