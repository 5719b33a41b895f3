package db

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
)

// checkpointer moves committed pages from SQLite's journal into the database file,
// beside the writer. Without it, SQLite would make some commits do this, and their
// callers would wait for two more fsyncs and a thousand pages. Once everything is
// moved, the writer starts the journal over by itself. Under a load that never pauses
// it makes its own checkpoint of the rest, at journalPages (sqlite.org/wal, 3.2).
type checkpointer struct {
	conn   *sql.Conn
	groups int // since the last request; used by the writer's goroutine alone
	dirty  chan struct{}
	stop   context.CancelFunc
	ended  chan struct{}
}

// newCheckpointer takes a connection of the pool and works until close. ctx is for the
// start alone.
func newCheckpointer(ctx context.Context, pool *sql.DB, log *slog.Logger) (*checkpointer, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the database for checkpoints: %w", err)
	}
	c := &checkpointer{conn: conn, dirty: make(chan struct{}, 1), ended: make(chan struct{})}
	ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	go c.run(ctx, log)
	return c, nil
}

// written counts a committed group. While several workspaces write, checkpoints are
// small, so that none of them meets a long fsync. For a single workspace they are rare,
// since each page is then written less often.
func (c *checkpointer) written(several bool) {
	if c.groups++; several {
		c.groups += checkpointGroups/checkpointOften - 1
	}
	if c.groups < checkpointGroups {
		return
	}
	c.groups = 0
	select {
	case c.dirty <- struct{}{}:
	default:
	}
}

// run makes checkpoints until ctx ends. A full disk is logged once; meanwhile the
// journal keeps what is committed.
func (c *checkpointer) run(ctx context.Context, log *slog.Logger) {
	defer close(c.ended)
	for failing := false; ; {
		select {
		case <-c.dirty:
		case <-ctx.Done():
			return
		}
		_, err := c.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
		if err != nil && !failing && ctx.Err() == nil {
			log.ErrorContext(ctx, "a checkpoint failed; it will be tried again", "error", err)
		}
		failing = err != nil
	}
}

// close ends run and returns the connection.
func (c *checkpointer) close() error {
	c.stop()
	<-c.ended
	return c.conn.Close()
}
