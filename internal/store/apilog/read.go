package apilog

import (
	"context"
	"database/sql"
	"math"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// perPage is how many blocks a page reads at most.
const perPage = 50

// Filter narrows a list of requests. A zero field does not.
type Filter struct {
	From, Below int           // statuses: 400 and 500 for requests that were refused
	Key         postern.KeyID // that they came with
	Text        string        // a part of the path, the id or the reason, in any case
}

func (f Filter) takes(r Request) bool {
	text := strings.ToLower(f.Text)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return r.Status >= f.From && (f.Below == 0 || r.Status < f.Below) && (f.Key == "" || r.Key == f.Key) &&
		(has(r.Path) || has(r.ID) || has(r.Reason) || has(r.Method+" "+r.Path))
}

// Place is where a page begins: with the newest request before one in a block. The zero value is the end of the log.
type Place struct {
	Block int64
	Index int // in the block
}

// Page is a part of the log, newest first.
type Page struct {
	List []Request
	Next Place // where the next one begins
	More bool  // there may be a next one
}

// Table is the log of all workspaces, to be read.
type Table struct{ db *db.DB }

// Of returns the log of a store.
func Of(s *store.Store) Table { return Table{s.Engine()} }

// List returns up to limit requests of a workspace, newest first, from before a place. A page may have fewer of them
// although there are more.
func (t Table) List(ctx context.Context, ws postern.WorkspaceID, f Filter, from Place, limit int) (p Page, err error) {
	if from.Block == 0 {
		from = Place{math.MaxInt64, 0}
	}
	blocks := 0
	err = t.db.Rows(ctx, `SELECT n, body FROM request_log WHERE workspace_id = $1 AND n <= $2 ORDER BY n DESC
		LIMIT $3 + 0`, []any{ws, from.Block, perPage}, func(r *sql.Rows) error {
		var n int64
		var body []byte
		if err := r.Scan(&n, &body); err != nil {
			return err
		}
		blocks++
		if len(p.List) == limit {
			p.More = true
			return nil
		}
		list, err := unpack(body)
		if n == from.Block {
			list = list[:min(from.Index, len(list))]
		}
		p.take(n, list, f, limit)
		return err
	})
	p.More = p.More || blocks == perPage
	return p, err
}

// take adds the requests of a block, from its end.
func (p *Page) take(n int64, list []Request, f Filter, limit int) {
	for i := len(list) - 1; i >= 0; i-- {
		if len(p.List) == limit {
			p.More = true
			return
		}
		p.Next = Place{n, i}
		if f.takes(list[i]) {
			p.List = append(p.List, list[i])
		}
	}
}

// Remove deletes a chunk of the blocks that ended before a time, and reports whether there may be others.
func (t Table) Remove(ctx context.Context, before postern.Time) (more bool, err error) {
	const chunk = 100
	var n int64
	err = t.db.Do(ctx, db.Func(func(tx *db.Tx) (err error) {
		n, err = tx.Changed(`DELETE FROM request_log WHERE n IN (SELECT n FROM request_log WHERE ended_at < $1
			ORDER BY ended_at LIMIT $2 + 0)`, before, chunk)
		return err
	}))
	return n == chunk, err
}
