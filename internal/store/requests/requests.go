// Package requests hands requests of callers to the live session of a device, which may be on another server, and the
// outcomes back. A request is a row until its caller has read the outcome; that of a request with an idempotency key
// stays for as long as the key.
package requests

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/seal"
	"postern/internal/store"
)

// The topics of requests.
const (
	Queued   store.Topic = "request"  // a request waits for the session [device]
	Answered store.Topic = "answered" // a request has its outcome [request]
)

// Timeout is how long a caller waits for the session and the network.
const Timeout = 20 * time.Second

// Request is an operation that the live session of a device is to carry out.
type Request struct {
	ID          string
	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID
	Kind        string
	Input       json.RawMessage
	ExpiresAt   postern.Time
}

// Outcome is the answer to a request, or why it was refused.
type Outcome struct {
	Output json.RawMessage `json:"output,omitempty"`
	Reason postern.Reason  `json:"reason,omitempty"`
	Detail string          `json:"detail,omitempty"`

	Fields     []postern.Field `json:"fields,omitempty"`
	RetryAfter time.Duration   `json:"retryAfter,omitempty"`
}

// Err returns why the request was refused.
func (o Outcome) Err() error {
	if o.Reason == "" {
		return nil
	}
	return &postern.Error{Reason: o.Reason, Detail: o.Detail, Fields: o.Fields, RetryAfter: o.RetryAfter}
}

// Table has the requests. What they contain is encrypted.
type Table struct {
	db  *db.DB
	box *seal.Box
}

// Of returns the requests of a store.
func Of(s *store.Store, box *seal.Box) Table { return Table{s.Engine(), box} }

// Watch reports requests that wait, by device, until the listener is closed.
func (t Table) Watch() *store.Listener { return t.db.Listen(Queued, "") }

// Put adds a request. once may be nil; if it was used before, the error is [store.ErrAlreadyDone].
func (t Table) Put(ctx context.Context, r Request, once *store.Once) error {
	var method, path, key string
	if once != nil {
		method, path, key = once.Method, once.Path, once.Key
	}
	return t.db.Do(ctx, db.FuncOf(string(r.WorkspaceID), func(tx *db.Tx) error {
		if err := store.ClaimOnce(tx, once); err != nil {
			return err
		}
		tx.Wake(Queued, string(r.DeviceID))
		return tx.Exec(`INSERT INTO session_request (id, workspace_id, device_id, kind, input, outcome, expires_at,
			taken_at, method, path, key) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, $10)`,
			r.ID, r.WorkspaceID, r.DeviceID, r.Kind, t.box.Seal(r.Input, postern.RequestPlace(r.ID)), []byte{},
			r.ExpiresAt, method, path, key)
	}))
}

// Wait waits for the outcome of a request until the request expires; ok is false if it expires without one.
func (t Table) Wait(ctx context.Context, ws postern.WorkspaceID, id string) (o Outcome, ok bool, err error) {
	changes := t.db.Listen(Answered, id)
	defer changes.Close()
	store.EndTurn(ctx) // the workspace's other lists do not wait for the network
	for {
		o, expires, ok, err := t.read(ctx, ws, id)
		left := expires.Std().Sub(t.db.Now())
		if ok || err != nil || left <= 0 {
			return o, ok, err
		}
		timer := time.NewTimer(left)
		select {
		case <-changes.C():
			changes.Take()
		case <-timer.C:
		case <-ctx.Done():
			return o, false, ctx.Err()
		}
		timer.Stop()
	}
}

func (t Table) read(
	ctx context.Context, ws postern.WorkspaceID, id string,
) (o Outcome, expires postern.Time, ok bool, err error) {
	var raw []byte
	err = t.db.One(ctx, `SELECT outcome, expires_at FROM session_request WHERE workspace_id = $1 AND id = $2`, ws, id).
		Scan(&raw, &expires)
	if errors.Is(err, sql.ErrNoRows) || err != nil || len(raw) == 0 {
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return o, expires, false, err
	}
	if raw, err = t.box.Open(raw, postern.RequestPlace(id)); err != nil {
		return o, expires, false, err
	}
	return o, expires, true, json.Unmarshal(raw, &o)
}

// freeKey deletes the idempotency key of a request. It has to be closed, after more conditions on the request.
const freeKey = `DELETE FROM idempotency WHERE workspace_id = $1 AND (method, path, key) IN (SELECT method, path, key
	FROM session_request WHERE workspace_id = $1 AND id = $2 AND key <> ''`

// Withdraw removes a request that no session has taken, with its idempotency key; ok is false if one has.
func (t Table) Withdraw(ctx context.Context, ws postern.WorkspaceID, id string) (ok bool, err error) {
	err = t.db.Do(ctx, db.FuncOf(string(ws), func(tx *db.Tx) error {
		if err := tx.Exec(freeKey+` AND taken_at = 0)`, ws, id); err != nil {
			return err
		}
		n, err := tx.Changed(`DELETE FROM session_request WHERE workspace_id = $1 AND id = $2 AND taken_at = 0`, ws, id)
		ok = n > 0
		return err
	}))
	return ok, err
}

// Forget removes a request whose caller has the outcome, unless it has an idempotency key.
func (t Table) Forget(ws postern.WorkspaceID, id string) {
	t.db.Later(db.Func(func(tx *db.Tx) error {
		return tx.Exec(`DELETE FROM session_request WHERE workspace_id = $1 AND id = $2 AND key = ''`, ws, id)
	}))
}

// Take returns the requests of a device that wait, and marks them, so that each is carried out at most once.
func (t Table) Take(ctx context.Context, id postern.DeviceID, most int) (list []Request, err error) {
	err = t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		list = nil
		now := postern.TimeOf(t.db.Now())
		return tx.Rows(`UPDATE session_request SET taken_at = $2 WHERE id IN (SELECT id FROM session_request
			WHERE device_id = $1 AND taken_at = 0 AND expires_at > $2 ORDER BY expires_at, id LIMIT $3 + 0)
			RETURNING id, workspace_id, device_id, kind, input, expires_at`, []any{id, now, most},
			func(r *sql.Rows) error {
				var q Request
				var input []byte
				err := r.Scan(&q.ID, &q.WorkspaceID, &q.DeviceID, &q.Kind, &input, &q.ExpiresAt)
				q.Input = input
				list = append(list, q)
				return err
			})
	})))
	for i := range list {
		opened, bad := t.box.Open(list[i].Input, postern.RequestPlace(list[i].ID))
		list[i].Input, err = opened, errors.Join(err, bad)
	}
	return list, err
}

// Waiting reports whether requests of a device wait.
func (t Table) Waiting(ctx context.Context, id postern.DeviceID) (bool, error) {
	return t.db.Exists(ctx, `SELECT count(*) FROM (SELECT 1 FROM session_request WHERE device_id = $1 AND taken_at = 0
		AND expires_at > $2 LIMIT 1) AS waiting`, id, postern.TimeOf(t.db.Now()))
}

// Answer records the outcome of a request. A refusal frees its idempotency key, and an unknown outcome does not.
func (t Table) Answer(ctx context.Context, r Request, o Outcome) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode an outcome: %w", err)
	}
	return t.db.Do(ctx, db.FuncOf(string(r.WorkspaceID), func(tx *db.Tx) error {
		tx.Wake(Answered, r.ID)
		err := tx.Exec(`UPDATE session_request SET outcome = $2 WHERE id = $1`, r.ID,
			t.box.Seal(raw, postern.RequestPlace(r.ID)))
		if err != nil || o.Reason == "" || o.Reason == postern.NetworkTimeout {
			return err
		}
		return tx.Exec(freeKey+`)`, r.WorkspaceID, r.ID)
	}))
}

// Remove deletes a chunk of requests that ended before a time, and reports whether there may be more.
func (t Table) Remove(ctx context.Context, now postern.Time) (more bool, err error) {
	const chunk = 500
	err = t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		n, err := tx.Changed(`DELETE FROM session_request WHERE id IN (SELECT id FROM session_request
			WHERE expires_at < $1 AND (key = '' OR expires_at < $2) LIMIT $3 + 0)`,
			now.Add(-10*Timeout), now.Add(-store.IdempotencyKept), chunk)
		more = n == chunk
		return err
	}))
	return more, err
}
