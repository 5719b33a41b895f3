package store

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
)

// checkpointer moves what was committed from SQLite's journal into the database
// file, beside the writer. SQLite would have a commit do it now and then, whose
// callers then wait for two more fsyncs and a thousand pages. Once all of it is
// moved, the writer begins the journal anew by itself; under a load that never
// pauses it makes a checkpoint of its own, of what is left, at journalPages
// (sqlite.org/wal, 3.2).
type checkpointer struct {
	conn   *sql.Conn
	groups int // since the last one was asked for; the writer's
	dirty  chan struct{}
	stop   context.CancelFunc
	ended  chan struct{}
}

// newCheckpointer takes a connection of the pool, and works until close; ctx is
// for the start alone.
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

// written says that the writer has committed a group. While several workspaces
// write, checkpoints are small, so that none of them meets a long fsync; for one
// alone they are few, since each page is then written less often.
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

// run makes checkpoints until ctx ends. A disk that is full is told once, and the
// journal keeps what is committed meanwhile.
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
			log.ErrorContext(ctx, "the journal cannot be moved into the database; it is tried again", "error", err)
		}
		failing = err != nil
	}
}

// close ends run and gives the connection back.
func (c *checkpointer) close() error {
	c.stop()
	<-c.ended
	return c.conn.Close()
}
