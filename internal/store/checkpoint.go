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
	quit   chan struct{}
	ended  chan struct{} // nil until it runs
}

// newCheckpointer takes a connection of the pool for good.
func newCheckpointer(ctx context.Context, pool *sql.DB) (*checkpointer, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the database for checkpoints: %w", err)
	}
	return &checkpointer{conn: conn, dirty: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{})}, nil
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

func (c *checkpointer) run(log *slog.Logger) {
	defer close(c.ended)
	for {
		select {
		case <-c.dirty:
		case <-c.quit:
			return
		}
		if _, err := c.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
			log.Error("the journal could not be moved into the database", "error", err)
		}
	}
}

// close ends run and gives the connection back.
func (c *checkpointer) close() error {
	close(c.quit)
	<-c.ended
	return c.conn.Close()
}
