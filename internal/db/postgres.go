package db

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

func postgresDialect() dialect {
	return dialect{
		goose: goose.DialectPostgres, dir: "postgres", begin: "BEGIN ISOLATION LEVEL READ COMMITTED",
		size:    `SELECT 'PostgreSQL ' || current_setting('server_version'), pg_database_size(current_database())`,
		list:    "(SELECT json_array_elements_text(CASE WHEN $%[1]d = 'null' THEN '[]' ELSE $%[1]d END::json))",
		readers: postgresReaders, remote: true, sharing: sharing{share: 16, length: groupSize},
		// a group costs much the same, whatever is in it
	}
}

// openPostgres opens the database of a URL. The writer's connection holds the server's
// lock, so it comes first: no server that is alone on its database migrates at the same time.
func (db *DB) openPostgres(ctx context.Context, opts Options) error {
	db.dialect = postgresDialect()
	config, err := parseURL(opts.URL)
	if err != nil {
		return err
	}
	if opts.AnswerLimit == nil {
		opts.AnswerLimit = func() time.Duration { return answerLimit }
	}
	config.DialFunc = limitedDial(opts.AnswerLimit)
	name, take := serverName(), takeServerLock
	if opts.Nodes {
		db.dialect.turn, take = turnOf(writersTurn), shareServerLock(opts.turnLimit)
	}
	db.writeDB, db.read = openPool(config, name, 1), openPool(config, "postern", db.dialect.readers)
	db.clock.query = serverClock
	db.connect = func(ctx context.Context) (*sql.Conn, error) {
		return connectLocked(ctx, db.writeDB, name, take, db.clock.look)
	}
	if err := checkServer(ctx, db.read, opts.Log); err != nil {
		return err
	}
	if db.first, err = waitForLock(ctx, db.connect); err != nil {
		return err
	}
	config.DialFunc = plainDial // a migration may take long
	if err := db.migrateRemote(ctx, config, opts); err != nil {
		return err
	}
	db.startStatistics(ctx, opts.Log)
	if opts.Nodes {
		db.courier = startCourier(config, name, db.hub, opts.Log) //nolint:contextcheck // it lives until Close
	}
	return nil
}

// migrateRemote migrates the database, and makes its statistics if they are old: its data may have just been
// restored.
func (db *DB) migrateRemote(ctx context.Context, config *pgx.ConnConfig, opts Options) (err error) {
	pool := openPool(config, "postern migrate", 1)
	defer func() { err = errors.Join(err, pool.Close()) }()
	if err := db.dialect.migrate(ctx, pool, opts); err != nil {
		return err
	}
	if err := refreshStatistics(ctx, pool); err != nil {
		opts.Log.WarnContext(ctx, "the statistics of the database are old", "error", err)
	}
	return nil
}

// parseURL reads a database URL. Its error reveals nothing of what is in it.
func parseURL(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil || !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return nil, errors.New("the database URL cannot be read; it has the form postgres://user:password@host:5432/database?sslmode=verify-full")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectLimit
	}
	config.RuntimeParams["client_encoding"] = "UTF8"
	config.BuildContextWatcherHandler = cancelAtServer
	return config, nil
}

// cancelAtServer ends a statement whose caller has left by a request to the server. The
// connection stays: a new one costs as much as many reads, because the server starts a
// process for it and checks the password. A statement that ends soon by itself is left alone.
func cancelAtServer(conn *pgconn.PgConn) ctxwatch.Handler {
	return &pgconn.CancelRequestContextWatcherHandler{
		Conn: conn, CancelRequestDelay: cancelDelay, DeadlineDelay: cancelLimit,
	}
}

func openPool(config *pgx.ConnConfig, name string, conns int) *sql.DB {
	own := config.Copy()
	own.RuntimeParams["application_name"] = name
	db := stdlib.OpenDB(*own, stdlib.OptionAfterConnect(prepareConnection))
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db
}

// prepareConnection sets what must hold on each of our connections: a commit is on disk
// when it succeeds, and the server notices within half a minute when this machine is
// gone, so that the lock does not outlive it for hours.
func prepareConnection(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false),
		set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)`)
	return err
}

// checkServer refuses a server that cannot do what we need.
func checkServer(ctx context.Context, db *sql.DB, log *slog.Logger) error {
	var version int
	var encoding, fsync string
	var standby bool
	err := db.QueryRowContext(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), current_setting('fsync'), pg_is_in_recovery()`).Scan(&version, &encoding, &fsync, &standby)
	switch {
	case err != nil:
		return fmt.Errorf("open the database: %w", unavailable(err))
	case version < 150000:
		return fmt.Errorf("the database is PostgreSQL %d; version 15 or later is needed", version/10000)
	case encoding != "UTF8":
		return fmt.Errorf("the database stores text as %s; create one with ENCODING 'UTF8'", encoding)
	case standby:
		return errors.New("the database is a read-only standby; use the primary in the database URL")
	case fsync != "on":
		log.WarnContext(ctx, "the database runs with fsync=off: accepted messages can be lost when its machine loses power")
	}
	return nil
}

// serverName identifies the lock's holder in pg_stat_activity, which shows 63 bytes. It
// ends in random digits, new at each start.
func serverName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var nonce [4]byte
	rand.Read(nonce[:]) // never fails (Go 1.24)
	return fmt.Sprintf("postern, process %d on %s, %s", os.Getpid(), host[:min(len(host), 20)],
		hex.EncodeToString(nonce[:]))
}

func plainDial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 10 * time.Second,
		Interval: 5 * time.Second, Count: 3,
	}}
	return d.DialContext(ctx, network, addr)
}

func limitedDial(limit func() time.Duration) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := plainDial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return limitedConn{conn, limit}, nil
	}
}

// limitedConn fails when no response to what was written arrives in time. Without it a
// server that is cut off would block the writer for a quarter of an hour.
type limitedConn struct {
	net.Conn

	limit func() time.Duration
}

func (c limitedConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.limit())); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
