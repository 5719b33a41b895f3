// Package apilog keeps the API requests of the last day, without their bodies, for people who look for what went wrong.
//
// Requests are packed into blocks, so that the log costs one write every two seconds however many there are. A server
// that is killed loses the last two seconds of it.
package apilog

import (
	"context"
	"log/slog"
	"strings"
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

	perBlock  = 200              // requests
	blockTime = 15 * time.Minute // after which a block is not continued
	gap       = 2 * time.Second  // between two writes
	writeTime = 5 * time.Second  // that a write may take
	mostPath  = 200              // bytes of a path that are kept

	// Requests that wait to be written, of a workspace and of all; more are left out.
	mostEach = 2000
	mostWait = 10_000
)

// Request is an API request that was answered.
type Request struct {
	ID     string        `json:"i"` // as in the header Request-Id
	At     postern.Time  `json:"t"` // when it was answered
	Method string        `json:"m"`
	Path   string        `json:"p"` // without the query, and without what names people
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
	left    int // out, since the last report

	open map[postern.WorkspaceID]*block // used by Write only
}

// block is a row of the log, which may be continued.
type block struct {
	n     int64 // of the row; 0: not written yet
	began postern.Time
	list  []Request
}

// New returns a log that writes to a store.
func New(s *store.Store) *Log {
	return &Log{db: s.Engine(), waiting: map[postern.WorkspaceID][]Request{}, open: map[postern.WorkspaceID]*block{}}
}

// Add records a request. It does not wait, and leaves the request out if too many wait.
func (l *Log) Add(ws postern.WorkspaceID, r Request) {
	r.Path = strings.Clone(r.Path[:min(len(r.Path), mostPath)]) // and not the whole line that it is a part of
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(ws, r)
}

func (l *Log) add(ws postern.WorkspaceID, list ...Request) {
	n := max(0, min(len(list), mostWait-l.count, mostEach-len(l.waiting[ws])))
	l.waiting[ws] = append(l.waiting[ws], list[:n]...)
	l.count, l.left = l.count+n, l.left+len(list)-n
}

// Run writes what was recorded, until ctx ends, and then once more. A failure is logged: nobody waits for this log.
func (l *Log) Run(ctx context.Context, log *slog.Logger) error {
	for again := true; again; {
		again = postern.Sleep(ctx, gap) == nil
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
		err := l.Write(bounded)
		cancel()
		if n := l.leftOut(); err != nil || n > 0 {
			log.WarnContext(ctx, "the log of API requests is behind", "left_out", n, "error", err)
		}
	}
	return nil
}

func (l *Log) leftOut() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.left
	l.left = 0
	return n
}

// take returns what waits.
func (l *Log) take() map[postern.WorkspaceID][]Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 {
		return nil
	}
	taken := l.waiting
	l.waiting, l.count = map[postern.WorkspaceID][]Request{}, 0
	return taken
}

// Write writes the recorded requests in one transaction. If that fails, the next call writes them. If it is not known
// whether the transaction was committed, they may be listed twice. Only one caller may write at a time.
func (l *Log) Write(ctx context.Context) error {
	taken := l.take()
	saves, err := l.saves(taken)
	if err == nil && len(saves) > 0 {
		err = l.db.Do(ctx, db.Func(func(t *db.Tx) error { return saveAll(t, saves) }))
	}
	for _, s := range saves {
		s.block.n = s.n
	}
	if err != nil {
		l.giveBack(taken)
	}
	l.closeOld()
	return err
}

// giveBack lets requests wait again, before those that have come meanwhile. Their blocks are not continued.
func (l *Log) giveBack(taken map[postern.WorkspaceID][]Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ws, list := range taken {
		delete(l.open, ws)
		since := l.waiting[ws]
		l.count -= len(since)
		delete(l.waiting, ws)
		l.add(ws, append(list, since...)...)
	}
}

// saves adds requests to blocks, and returns what is to be written.
func (l *Log) saves(taken map[postern.WorkspaceID][]Request) (saves []*save, err error) {
	for ws, list := range taken {
		for len(list) > 0 {
			b := l.blockFor(ws, list[0].At)
			n := min(len(list), perBlock-len(b.list))
			b.list, list = append(b.list, list[:n]...), list[n:]
			s := &save{ws: ws, block: b, n: b.n, ended: b.list[len(b.list)-1].At}
			if s.body, err = pack(b.list); err != nil {
				return nil, err
			}
			saves = append(saves, s)
		}
	}
	return saves, nil
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

// save is a block to be written.
type save struct {
	ws    postern.WorkspaceID
	block *block
	n     int64 // its row, once it has one
	ended postern.Time
	body  []byte
}

// saveAll writes blocks, and removes blocks of their workspaces that are too many.
func saveAll(t *db.Tx, saves []*save) error {
	for _, s := range saves {
		if s.block.n > 0 {
			if err := t.Exec(`UPDATE request_log SET body = $2, ended_at = $3 WHERE n = $1`, s.n, s.body, s.ended); err != nil {
				return err
			}
			continue
		}
		if err := t.Row(`INSERT INTO request_log (workspace_id, ended_at, body) VALUES ($1, $2, $3) RETURNING n`,
			[]any{s.ws, s.ended, s.body}, &s.n); err != nil {
			return err
		}
		if err := t.Exec(`DELETE FROM request_log WHERE workspace_id = $1 AND n <= (SELECT n FROM request_log
			WHERE workspace_id = $1 ORDER BY n DESC LIMIT 1 OFFSET $2)`, s.ws, MostBlocks); err != nil {
			return err
		}
	}
	return nil
}
