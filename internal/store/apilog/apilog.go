// Package apilog keeps the API requests of the last day, without their bodies, for people who look for what went wrong.
//
// Requests are packed into blocks, so that the log costs one write every two seconds however many there are. A server
// that is killed loses the last two seconds of it.
package apilog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// The bounds of the log.
const (
	Kept       = 24 * time.Hour
	MostBlocks = 1000 // of a workspace; the oldest are removed

	perBlock  = 200             // requests
	blockTime = 5 * time.Minute // after which a block is not continued
	gap       = 2 * time.Second // between two writes
	writeTime = 5 * time.Second // that a write may take
	mostWait  = 5000            // requests that wait to be written; more are left out
	mostPath  = 200             // bytes of a path that are kept
)

// Request is an API request that was answered.
type Request struct {
	ID     string        `json:"i"` // as in the header Request-Id
	At     postern.Time  `json:"t"` // when it was answered
	Method string        `json:"m"`
	Path   string        `json:"p"` // without the query
	Status int           `json:"s"`
	Reason string        `json:"r,omitempty"` // why it was refused
	Millis int64         `json:"d"`           // how long it took
	Key    postern.KeyID `json:"k"`
	Client string        `json:"c,omitempty"` // its IP address
}

// Log records requests, and writes them now and then.
type Log struct {
	db *db.DB

	mu      sync.Mutex
	waiting map[postern.WorkspaceID][]Request
	count   int // of those that wait

	open map[postern.WorkspaceID]*block // used by write only
}

// block is a block that may be continued.
type block struct {
	n     int64 // its row; 0: not written yet
	began postern.Time
	list  []Request
}

// New returns a log that writes to a store.
func New(s *store.Store) *Log {
	return &Log{db: s.Engine(), waiting: map[postern.WorkspaceID][]Request{}, open: map[postern.WorkspaceID]*block{}}
}

// Add records a request. It does not wait, and leaves the request out if too many wait.
func (l *Log) Add(ws postern.WorkspaceID, r Request) {
	r.Path = r.Path[:min(len(r.Path), mostPath)]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count < mostWait {
		l.waiting[ws] = append(l.waiting[ws], r)
		l.count++
	}
}

// Run writes what was recorded, until ctx ends, and then once more. A failure is logged: nobody waits for this log.
func (l *Log) Run(ctx context.Context, log *slog.Logger) error {
	for again := true; again; {
		again = postern.Sleep(ctx, gap) == nil
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
		if err := l.Write(bounded); err != nil {
			log.WarnContext(ctx, "requests are missing in the log of API requests", "error", err)
		}
		cancel()
	}
	return nil
}

// take returns what waits.
func (l *Log) take() map[postern.WorkspaceID][]Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.waiting
	if l.count > 0 {
		l.waiting, l.count = map[postern.WorkspaceID][]Request{}, 0
	}
	return list
}

// Write writes what was recorded. Only one caller may write at a time.
func (l *Log) Write(ctx context.Context) error {
	for ws, list := range l.take() {
		for len(list) > 0 {
			b := l.blockFor(ws, list[0].At)
			n := min(len(list), perBlock-len(b.list))
			b.list, list = append(b.list, list[:n]...), list[n:]
			if err := l.save(ctx, ws, b); err != nil {
				return err
			}
		}
	}
	l.closeOld()
	return nil
}

// blockFor returns the block that a request at a time belongs to.
func (l *Log) blockFor(ws postern.WorkspaceID, at postern.Time) *block {
	if b := l.open[ws]; b != nil && len(b.list) < perBlock && at < b.began.Add(blockTime) {
		return b
	}
	l.open[ws] = &block{began: at}
	return l.open[ws]
}

// closeOld forgets the blocks that are not continued any more.
func (l *Log) closeOld() {
	now := postern.TimeOf(time.Now())
	for ws, b := range l.open {
		if len(b.list) == perBlock || now >= b.began.Add(blockTime) {
			delete(l.open, ws)
		}
	}
}

// save writes a block, and removes blocks of the workspace that are too many.
func (l *Log) save(ctx context.Context, ws postern.WorkspaceID, b *block) error {
	body, err := pack(b.list)
	if err != nil {
		return err
	}
	n, ended := b.n, b.list[len(b.list)-1].At
	err = l.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if b.n > 0 {
			return t.Exec(`UPDATE request_log SET body = $2, ended_at = $3 WHERE n = $1`, b.n, body, ended)
		}
		if err := t.Row(`INSERT INTO request_log (workspace_id, ended_at, body) VALUES ($1, $2, $3) RETURNING n`,
			[]any{ws, ended, body}, &n); err != nil {
			return err
		}
		return t.Exec(`DELETE FROM request_log WHERE workspace_id = $1 AND n <= (SELECT n FROM request_log
			WHERE workspace_id = $1 ORDER BY n DESC LIMIT 1 OFFSET $2)`, ws, MostBlocks)
	}))
	if err == nil {
		b.n = n
	}
	return err
}
