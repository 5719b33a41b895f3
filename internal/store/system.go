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
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error { return setSetting(t, "probe", now) }))
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

// within returns the LIKE pattern that matches values containing text. Only ASCII letters
// are folded to lower case, as lower does in both engines for columns with the collation C.
func within(text string) string {
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

// searchFrom returns the part of a table that one page searches, after a place.
func (c *core) searchFrom(ctx context.Context, query, after string) (last string, more bool, err error) {
	var n int
	err = c.look(ctx, query, []any{after, textScan}, &last, &n)
	return last, n == textScan, err
}

// upTo limits a page to its first rows.
func (f Found[T]) upTo(limit int, place func(T) string) Found[T] {
	if len(f.List) > limit {
		f.List, f.More = f.List[:limit], true
		f.Last = place(f.List[limit-1])
	}
	return f
}

// WithUsage returns the workspaces with text in their name or as their id, all for "",
// oldest first, with their usage in a month.
func (s Workspaces) WithUsage(ctx context.Context, month, text string, p Page) (f Found[WorkspaceUse], err error) {
	if f.Last, f.More, err = s.searchFrom(ctx, workspacesFrom, p.After); err != nil {
		return f, err
	}
	args := []any{month, p.After, text, within(text), p.Limit + 1, f.Last}
	err = s.db.Rows(ctx, workspacesUsed, args, func(r *sql.Rows) error {
		u, err := scanUse(r)
		f.List = append(f.List, u)
		return err
	})
	return f.upTo(p.Limit, func(u WorkspaceUse) string { return string(u.ID) }), err
}

// GetWithUsage returns one workspace with its usage in a month.
func (s Workspaces) GetWithUsage(ctx context.Context, id postern.WorkspaceID, month string) (WorkspaceUse, error) {
	u, err := scanUse(s.db.One(ctx, workspaceUsed, month, id))
	return u, notFoundOr(err, func() (bool, error) { return false, nil }, "workspace")
}

// Person is a user with what an operator sees of the account.
type Person struct {
	postern.User

	Chosen     bool // has chosen a password
	Second     bool // has a second step
	SignedIn   postern.Time
	Workspaces int
	Names      []string // of the first workspaces, by name
}

const (
	persons = `SELECT u.id, u.email, u.epoch, u.created_at, u.operator, u.password_hash <> '',
		EXISTS (SELECT 1 FROM totp WHERE user_id = u.id AND confirmed_at > 0) OR EXISTS (SELECT 1 FROM passkey
		WHERE user_id = u.id),
		coalesce((SELECT a.at FROM audit a WHERE a.workspace_id = '' AND a.user_id = u.id AND a.act = 'user.signed-in'
		ORDER BY a.n DESC LIMIT 1), 0),
		(SELECT count(*) FROM member WHERE user_id = u.id)
		FROM users u WHERE u.email > $1 AND u.email <= $5 AND ($2 = '' OR u.email LIKE $3 ESCAPE '\')
		ORDER BY u.email LIMIT $4 + 0`
	personsFrom = `SELECT coalesce(max(email), ''), count(*)
		FROM (SELECT email FROM users WHERE email > $1 ORDER BY email LIMIT $2 + 0) looked`
	// namesOf selects the first names of the workspaces of each of some users.
	namesOf = `SELECT user_id, name FROM (SELECT m.user_id, w.name, row_number() OVER (PARTITION BY m.user_id
		ORDER BY w.name, w.id) AS place
		FROM member m JOIN workspace w ON w.id = m.workspace_id WHERE m.user_id IN %s) named WHERE place <= $2
		ORDER BY user_id, place`
)

// List returns the users with text in their address, all for "", ordered by address, with
// the names of up to names of their workspaces, in the order of the names.
func (s Users) List(ctx context.Context, text string, names int, p Page) (f Found[Person], err error) {
	if f.Last, f.More, err = s.searchFrom(ctx, personsFrom, p.After); err != nil {
		return f, err
	}
	args := []any{p.After, text, within(text), p.Limit + 1, f.Last}
	err = s.db.Rows(ctx, persons, args, func(r *sql.Rows) error {
		var u Person
		err := r.Scan(&u.ID, &u.Email, &u.Epoch, &u.CreatedAt, &u.Operator, &u.Chosen, &u.Second, &u.SignedIn,
			&u.Workspaces)
		f.List = append(f.List, u)
		return err
	})
	f = f.upTo(p.Limit, func(u Person) string { return u.Email })
	if err != nil || len(f.List) == 0 {
		return f, err
	}
	return f, s.nameWorkspaces(ctx, f.List, names)
}

func (s Users) nameWorkspaces(ctx context.Context, list []Person, names int) error {
	at, ids := map[postern.UserID]int{}, make([]postern.UserID, len(list))
	for i, u := range list {
		at[u.ID], ids[i] = i, u.ID
	}
	return s.db.Rows(ctx, strings.Replace(namesOf, "%s", s.db.InList(1), 1), []any{asJSON(ids), names},
		func(r *sql.Rows) error {
			var id postern.UserID
			var name string
			err := r.Scan(&id, &name)
			list[at[id]].Names = append(list[at[id]].Names, name)
			return err
		})
}

// SetOperator makes the user with an address an operator, or withdraws that right. A user
// who already is in that state is left as is, and no act is recorded. Withdrawing the right
// also revokes what only an operator could make: invitations to workspaces of others, and
// links for the passwords of others.
func (s Users) SetOperator(ctx context.Context, email string, on bool, act Act) (u postern.User, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		var ok bool
		if u, _, ok, err = userByEmail(t, email); err != nil {
			return err
		}
		if !ok {
			return postern.Errorf(postern.NotFound, "no user has this e-mail address")
		}
		if u.Operator == on {
			return nil
		}
		u.Operator, act.Subject = on, string(u.ID)
		err := errors.Join(t.Exec(`UPDATE users SET operator = $2 WHERE id = $1`, u.ID, on), act.record(t))
		if !on {
			err = errors.Join(err, revokeForeign(t, u.ID, act.At),
				t.Exec(`DELETE FROM password_link WHERE made_by = $1`,
					u.ID))
		}
		return err
	}))
	return u, err
}

// revokeForeign revokes the open invitations by a user who is no longer an operator, except
// those to workspaces that the user owns.
func revokeForeign(t *db.Tx, id postern.UserID, at postern.Time) error {
	return t.Exec(`UPDATE invitation SET revoked_at = $2 WHERE invited_by = $1 AND used_at = 0 AND revoked_at = 0
		AND workspace_id NOT IN (SELECT workspace_id FROM member WHERE user_id = $1 AND role = $3)`, id, at, postern.Owner)
}

func isOperator(t *db.Tx, id postern.UserID) (is bool, err error) {
	err = t.Row(`SELECT count(*) > 0 FROM users WHERE id = $1 AND operator = 1`, []any{id}, &is)
	return is, err
}

// recordOperatorActs records the acts of an operator, in the transaction of the change. It
// returns an error when the user is no longer an operator. A caller on the server's socket
// has no user id and always is an operator.
func recordOperatorActs(t *db.Tx, acts []Act) error {
	for _, a := range acts {
		if a.UserID == "" {
			continue
		}
		if is, err := isOperator(t, a.UserID); err != nil || !is {
			return errors.Join(err, postern.Errorf(postern.NotFound, "there is no such page"))
		}
	}
	return recordActs(t, acts)
}
