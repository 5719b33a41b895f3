// Package bare implements the limits with which the benchmarks are compared: the same
// bytes, the same fsync and the same number of connections, and nothing else.
package bare

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver named "sqlite"
)

// Handler answers every request with the same bytes.
func Handler(body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body) //nolint:errcheck,gosec // the caller is gone
	})
}

// Commits is a table with one writer, which commits all waiting rows with one fsync.
type Commits struct {
	db   *sql.DB
	conn *sql.Conn
	in   chan commit
	done chan struct{}
}

type commit struct {
	body string
	done chan error
}

const group = 256 // rows that share one fsync, as in the store

// OpenCommits creates the table in dir and starts the writer.
func OpenCommits(ctx context.Context, dir string) (*Commits, error) {
	q := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "bare.db")+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, `CREATE TABLE row (n INTEGER PRIMARY KEY, body TEXT NOT NULL)`); err != nil {
		return nil, err
	}
	insert, err := conn.PrepareContext(ctx, `INSERT INTO row (body) VALUES ($1)`)
	if err != nil {
		return nil, err
	}
	c := &Commits{db: db, conn: conn, in: make(chan commit, 4096), done: make(chan struct{})}
	go c.run(insert)
	return c, nil
}

// Write waits until the row is on disk.
func (c *Commits) Write(body string) error {
	w := commit{body, make(chan error, 1)}
	c.in <- w
	return <-w.done
}

// Close ends the writer.
func (c *Commits) Close() error {
	close(c.in)
	<-c.done
	if err := c.conn.Close(); err != nil {
		return err
	}
	return c.db.Close()
}

func (c *Commits) run(insert *sql.Stmt) {
	defer close(c.done)
	for first := range c.in {
		batch := []commit{first}
	gather:
		for len(batch) < group {
			select {
			case w, ok := <-c.in:
				if !ok {
					break gather
				}
				batch = append(batch, w)
			default:
				break gather
			}
		}
		err := c.commit(insert, batch)
		for _, w := range batch {
			w.done <- err
		}
	}
}

func (c *Commits) commit(insert *sql.Stmt, batch []commit) error {
	ctx := context.Background()
	if _, err := c.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for _, w := range batch {
		if _, err := insert.ExecContext(ctx, w.body); err != nil {
			return fmt.Errorf("insert: %w", err)
		}
	}
	_, err := c.conn.ExecContext(ctx, "COMMIT")
	return err
}
