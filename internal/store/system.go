package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
)

// SystemStatus is what the store holds and the length of its queues, over all workspaces.
type SystemStatus struct {
	Engine  string // "SQLite 3.50.4"
	Size    int64  // of the database, in bytes
	Servers int64  // that share the database; 0 if one is alone on it
	Devices map[postern.Status]int

	Queued  int64 // messages that wait to be sent, at most MessagesCounted
	Sending int64 // those of them that may have reached the network, likewise
	// OldestQueued is when the oldest message was accepted that waits and is not scheduled, of the first
	// MessagesCounted; 0 if none waits.
	OldestQueued postern.Time

	Waiting   int64        // pending deliveries, at most DeliveriesCounted
	Due       int64        // those of them that are due to an active endpoint, likewise
	OldestDue postern.Time // when the oldest of these became due; 0 when none is due
}

// messagesLeft names the device and asks for an order, although it counts the messages of all
// devices, so that SQLite uses the index of the messages that have left instead of scanning the
// whole queue.
const (
	devicesByState = `SELECT status, count(*) FROM device WHERE deleted_at = 0 GROUP BY status`
	messagesQueued = `SELECT count(*) FROM (SELECT n FROM message WHERE status IN ` + unsent + `
		LIMIT $1 + 0) counted`
	oldestQueued = `SELECT coalesce(min(since), 0) FROM (
		SELECT CASE WHEN queued_at > 0 THEN queued_at ELSE created_at END AS since FROM message
		WHERE status IN ('queued', 'sending') LIMIT $1 + 0) waiting`
	messagesLeft = `SELECT count(*) FROM (SELECT n FROM message WHERE frame_left = 1 AND device_id > ''
		AND status IN ` + unsent + ` ORDER BY device_id, n LIMIT $1 + 0) counted`
	deliveriesWait = `SELECT count(*) FROM (SELECT d.n FROM endpoint e JOIN delivery d ON d.endpoint_id = e.id
		WHERE d.status = 'pending' LIMIT $1 + 0) counted`
	// With CROSS JOIN, SQLite keeps the order of the tables, so that it does not scan
	// deliveries that are not due.
	deliveriesDue = `SELECT count(*) FROM (SELECT d.n FROM endpoint e CROSS JOIN delivery d WHERE e.status = 'active'
		AND d.endpoint_id = e.id AND d.status = 'pending' AND d.due_at <= $2 LIMIT $1 + 0) counted`
	// The subquery looks up the first delivery of each endpoint, because the queue of an
	// endpoint that is down may be long.
	oldestDue = `SELECT coalesce(min(due_at), 0)
		FROM (SELECT (SELECT min(d.due_at) FROM delivery d WHERE d.endpoint_id = e.id AND d.status = 'pending') AS due_at
		FROM endpoint e WHERE e.status = 'active') firsts WHERE due_at <= $1`
)

// Get returns the figures of the whole server. Queues are counted through indexes that hold
// only their rows.
func (s System) Get(ctx context.Context, now postern.Time) (st SystemStatus, err error) {
	st.Devices = map[postern.Status]int{}
	err = errors.Join(
		s.readSize(ctx, &st),
		s.db.Row(ctx, `SELECT count(*) FROM node WHERE leaving = 0`, nil, &st.Servers),
		s.db.Row(ctx, messagesQueued, []any{MessagesCounted}, &st.Queued),
		s.db.Row(ctx, oldestQueued, []any{MessagesCounted}, &st.OldestQueued),
		s.db.Row(ctx, messagesLeft, []any{MessagesCounted}, &st.Sending),
		s.db.Row(ctx, deliveriesWait, []any{DeliveriesCounted}, &st.Waiting),
		s.db.Row(ctx, deliveriesDue, []any{DeliveriesCounted, now}, &st.Due),
		s.db.Row(ctx, oldestDue, []any{now}, &st.OldestDue),
		s.db.Rows(ctx, devicesByState, nil, func(r *sql.Rows) error {
			var status postern.Status
			var n int
			err := r.Scan(&status, &n)
			st.Devices[status] = n
			return err
		}),
	)
	return st, err
}

// Figures are what operators watch of the store in this process.
type Figures struct {
	db.Figures

	CacheHits, CacheMisses int64 // reads of devices, since the start; 0 with PostgreSQL, which has no cache
}

// Figures returns the figures of now. It reads nothing from the database.
func (s System) Figures() Figures {
	f := Figures{Figures: s.db.Figures()}
	if s.cache != nil {
		f.CacheHits, f.CacheMisses = s.cache.hits.Load(), s.cache.misses.Load()
	}
	return f
}

// Probe makes a small write and waits until it is on disk.
func (s System) Probe(ctx context.Context) error {
	now := s.db.Now().UTC().Format(time.RFC3339)
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error { return PutSetting(t, "probe", now) }))
}

const allMessageHours = `SELECT hour, ` + sumOfMessages + ` FROM message_hour WHERE hour >= $1 GROUP BY hour ORDER BY hour`

var allAttemptHours = `SELECT hour, ` + sumOfAttempts + ` FROM endpoint_hour WHERE hour >= $1 GROUP BY hour ORDER BY hour`

// AllMessages returns the hourly counts of the messages of all workspaces from since on.
func (s Hours) AllMessages(ctx context.Context, since postern.Time) (list []postern.MessageSpan, err error) {
	return s.messageSpans(ctx, allMessageHours, since)
}

// AllAttempts returns the hourly counts of the attempts of all workspaces from since on.
func (s Hours) AllAttempts(ctx context.Context, since postern.Time) (list []postern.EndpointHour, err error) {
	err = s.db.Rows(ctx, allAttemptHours, []any{since}, func(r *sql.Rows) error {
		h, err := scanEndpointHour(r)
		list = append(list, h)
		return err
	})
	return list, err
}

func (s System) readSize(ctx context.Context, st *SystemStatus) (err error) {
	st.Engine, st.Size, err = s.db.Size(ctx)
	return err
}

// WorkspaceUse is a workspace with its usage.
type WorkspaceUse struct {
	postern.Workspace

	Messages int // used of the month's quota
	Devices  int // that hold a slot
	Members  int
	Bytes    int64 // of stored files
}

// Within returns the LIKE pattern that matches values containing text. Only ASCII letters
// are folded to lower case, as lower does in both engines for columns with the collation C.
func Within(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.Map(lowerASCII, text)) + "%"
}

func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

const (
	useColumns = workspaceColumns + `, coalesce((SELECT messages FROM usage WHERE workspace_id = w.id AND month = $1), 0),
		(SELECT count(*) FROM device WHERE workspace_id = w.id AND deleted_at = 0 AND status IN ` + slotStates + `),
		(SELECT count(*) FROM member WHERE workspace_id = w.id),
		coalesce((SELECT bytes FROM storage WHERE workspace_id = w.id), 0)`
	workspacesUsed = `SELECT ` + useColumns + ` FROM workspace w
		WHERE w.id > $2 AND w.id <= $6 AND ($3 = '' OR w.id = $3 OR lower(w.name) LIKE $4 ESCAPE '\')
		ORDER BY w.id LIMIT $5 + 0`
	workspacesFrom = `SELECT coalesce(max(id), ''), count(*)
		FROM (SELECT id FROM workspace WHERE id > $1 ORDER BY id LIMIT $2 + 0) looked`
	workspaceUsed = `SELECT ` + useColumns + ` FROM workspace w WHERE w.id = $2`
)

func scanUse(s db.Scanner) (u WorkspaceUse, err error) {
	u.Workspace, err = scanWorkspace(withTail{s, []any{&u.Messages, &u.Devices, &u.Members, &u.Bytes}})
	return u, err
}

// Found is a part of a list in which a text was searched. It may be shorter than the limit
// although there is more, because one page looks at a bounded part of a table.
type Found[T any] struct {
	List []T
	Last string // the table was searched up to here
	More bool   // there may be results beyond Last
}

// SearchFrom returns the part of a table that one page searches, after a place: the query returns where it ends and how
// many rows it has, of at most $2.
func SearchFrom(ctx context.Context, d *db.DB, query, after string) (last string, more bool, err error) {
	var n int
	err = d.Rows(ctx, query, []any{after, textScan}, func(r *sql.Rows) error { return r.Scan(&last, &n) })
	return last, n == textScan, err
}

// UpTo limits a page to its first rows.
func (f Found[T]) UpTo(limit int, place func(T) string) Found[T] {
	if len(f.List) > limit {
		f.List, f.More = f.List[:limit], true
		f.Last = place(f.List[limit-1])
	}
	return f
}

// WithUsage returns the workspaces with text in their name or as their id, all for "",
// oldest first, with their usage in a month.
func (s Workspaces) WithUsage(ctx context.Context, month, text string, p Page) (f Found[WorkspaceUse], err error) {
	if f.Last, f.More, err = SearchFrom(ctx, s.db, workspacesFrom, p.After); err != nil {
		return f, err
	}
	args := []any{month, p.After, text, Within(text), p.Limit + 1, f.Last}
	err = s.db.Rows(ctx, workspacesUsed, args, func(r *sql.Rows) error {
		u, err := scanUse(r)
		f.List = append(f.List, u)
		return err
	})
	return f.UpTo(p.Limit, func(u WorkspaceUse) string { return string(u.ID) }), err
}

// GetWithUsage returns one workspace with its usage in a month.
func (s Workspaces) GetWithUsage(ctx context.Context, id postern.WorkspaceID, month string) (WorkspaceUse, error) {
	u, err := scanUse(s.db.One(ctx, workspaceUsed, month, id))
	return u, notFoundOr(err, func() (bool, error) { return false, nil }, "workspace")
}
