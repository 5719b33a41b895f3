package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
)

// upkeep is work on the database that is due after many writes, and that is done beside the writer so that no
// caller waits for it: checkpoints with SQLite, and the planner's statistics with PostgreSQL.
type upkeep struct {
	weigh func(writes int, several bool) int // of a group; several: more than one workspace writes
	limit int                                // the weight after which the work is due
	sum   int                                // since the last request; used by the writer's goroutine alone
	conn  *sql.Conn                          // that the work keeps for itself; nil if it does not
	fails func(error)                        // is told of a failure once while it lasts, such as of a full disk
	due   chan struct{}
	stop  context.CancelFunc
	ended chan struct{}
}

// start does the work whenever it is due, until close. ctx is for the start alone.
func (u *upkeep) start(ctx context.Context, work func(context.Context) error) {
	u.due, u.ended = make(chan struct{}, 1), make(chan struct{})
	ctx, u.stop = context.WithCancel(context.WithoutCancel(ctx))
	go u.run(ctx, work)
}

// written counts a committed group.
func (u *upkeep) written(writes int, several bool) {
	if u.sum += u.weigh(writes, several); u.sum < u.limit {
		return
	}
	u.sum = 0
	select {
	case u.due <- struct{}{}:
	default:
	}
}

// run works until ctx ends.
func (u *upkeep) run(ctx context.Context, work func(context.Context) error) {
	defer close(u.ended)
	for failing := false; ; {
		select {
		case <-u.due:
		case <-ctx.Done():
			return
		}
		err := work(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			u.fails(err)
		}
		failing = err != nil
	}
}

// close ends run and returns the connection.
func (u *upkeep) close() error {
	u.stop()
	<-u.ended
	if u.conn == nil {
		return nil
	}
	return u.conn.Close()
}

// startCheckpoints moves committed pages from SQLite's journal into the database file. Without this, SQLite
// would make some commits do it, and their callers would wait for two more fsyncs and a thousand pages. Once
// everything is moved, the writer starts the journal over by itself. Under a load that never pauses it makes its
// own checkpoint of the rest, at journalPages (sqlite.org/wal, 3.2). While a checkpoint fails, the journal keeps
// what is committed.
func (db *DB) startCheckpoints(ctx context.Context, log *slog.Logger) error {
	conn, err := db.read.Conn(ctx)
	if err != nil {
		return fmt.Errorf("open the database for checkpoints: %w", err)
	}
	db.upkeep = newCheckpoints()
	db.upkeep.conn = conn
	db.upkeep.fails = func(err error) { log.Error("a checkpoint failed; it will be tried again", "error", err) }
	db.upkeep.start(ctx, func(ctx context.Context) error {
		_, err := conn.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
		return err
	})
	return nil
}

// newCheckpoints counts groups. While several workspaces write, checkpoints are small, so that none of them
// meets a long fsync. For a single workspace they are rare, since each page is then written less often.
func newCheckpoints() *upkeep {
	return &upkeep{limit: checkpointGroups, weigh: func(_ int, several bool) int {
		if several {
			return checkpointGroups / checkpointOften
		}
		return 1
	}}
}

// startStatistics keeps PostgreSQL's statistics of tables that grow. PostgreSQL does so itself once a minute.
// Until then it executes statements as it planned them for empty tables, and reads all of a table that has
// thousands of rows by now (docs/decisions/0058).
func (db *DB) startStatistics(ctx context.Context, log *slog.Logger) {
	db.upkeep = &upkeep{limit: statisticsWrites, weigh: func(writes int, _ bool) int { return writes }}
	db.upkeep.fails = func(err error) { log.Warn("the statistics of the database are old", "error", err) }
	db.upkeep.start(ctx, func(ctx context.Context) error { return refreshStatistics(ctx, db.read) })
}

// grown lists tables of which half, and 500 rows more, have changed since their statistics were made.
const grown = `SELECT format('%I.%I', schemaname, relname) FROM pg_stat_user_tables
	WHERE schemaname = current_schema() AND n_mod_since_analyze > 500 + n_live_tup / 2`

func refreshStatistics(ctx context.Context, pool *sql.DB) error {
	tables, err := grownTables(ctx, pool)
	for _, table := range tables {
		err = errors.Join(err, analyze(ctx, pool, table))
	}
	return err
}

func grownTables(ctx context.Context, pool *sql.DB) (tables []string, err error) {
	rows, err := pool.QueryContext(ctx, grown)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			return nil, err
		}
		tables = append(tables, table)
	}
	return tables, rows.Err()
}

// analyze makes the statistics of a table, unless another server does so, or it would take longer than a
// connection may be silent.
func analyze(ctx context.Context, pool *sql.DB, table string) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = '20s'"); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "ANALYZE (SKIP_LOCKED) "+table); err != nil {
		return err
	}
	return tx.Commit()
}
