package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// Once makes an operation happen at most once: its row is written in the transaction of
// the effect. A nil *Once asks for nothing.
type Once struct {
	WorkspaceID postern.WorkspaceID
	Method      string
	Path        string
	Key         string
	RequestHash [32]byte
	Answer      []byte // sealed
	At          postern.Time
}

// ErrAlreadyDone means that another request with the same idempotency key was committed
// first. Its response can be read with [Idempotency.Answered].
var ErrAlreadyDone = errors.New("the idempotency key was used before")

// claim writes the row, replacing one that has expired.
func (o *Once) claim(t *db.Tx) error {
	if o == nil {
		return nil
	}
	return claim(t, []*Once{o})
}

var claimKeys = db.NewStatement("workspace_id, method, path, key, request_hash, answer, created_at",
	`INSERT INTO idempotency (workspace_id, method, path, key, request_hash, answer, created_at) @values
	ON CONFLICT (workspace_id, method, path, key) DO UPDATE
	SET request_hash = excluded.request_hash, answer = excluded.answer, created_at = excluded.created_at
	WHERE idempotency.created_at <= excluded.created_at - CAST($8 AS BIGINT)`)

// claim writes the rows of keys that were not used before. If one of them was, the error is
// [ErrAlreadyDone], and nothing of the list may be committed.
func claim(t *db.Tx, list []*Once) error {
	rows := make([][]any, len(list))
	for i, o := range list {
		rows[i] = []any{o.WorkspaceID, o.Method, o.Path, o.Key, o.RequestHash[:], o.Answer, o.At}
	}
	n, err := t.Each(claimKeys, rows, IdempotencyKept.Milliseconds())
	if err == nil && int(n) < len(list) {
		return ErrAlreadyDone
	}
	return err
}

// place is what identifies a key in the database.
func (o *Once) place() [4]string {
	return [4]string{db.Clean(string(o.WorkspaceID)), db.Clean(o.Method), db.Clean(o.Path), db.Clean(o.Key)}
}

var readUsedKeys = db.NewStatement("of_workspace, with_method, on_path, named, since",
	`SELECT workspace_id, method, path, key FROM idempotency [, @rows]
	WHERE workspace_id = @of_workspace AND method = @with_method AND path = @on_path AND key = @named AND created_at > @since`)

// usedKeys finds those keys that were used before and have not expired.
func usedKeys(t *db.Tx, list []*Once) (used map[[4]string]bool, err error) {
	rows := make([][]any, len(list))
	for i, o := range list {
		rows[i] = []any{o.WorkspaceID, o.Method, o.Path, o.Key, o.At.Add(-IdempotencyKept)}
	}
	used = map[[4]string]bool{}
	err = t.EachRow(readUsedKeys, rows, func(r *sql.Rows) error {
		var k [4]string
		err := r.Scan(&k[0], &k[1], &k[2], &k[3])
		used[k] = true
		return err
	})
	return used, err
}

// Answered finds the answer given to an idempotency key in the last 24 hours.
func (s Idempotency) Answered(ctx context.Context, o Once) (hash [32]byte, answer []byte, ok bool, err error) {
	var h []byte
	err = s.db.Row(ctx, `SELECT request_hash, answer FROM idempotency WHERE workspace_id = $1 AND method = $2 AND path = $3 AND key = $4 AND created_at > $5`,
		[]any{o.WorkspaceID, o.Method, o.Path, o.Key, o.At.Add(-IdempotencyKept)}, &h, &answer)
	if errors.Is(err, sql.ErrNoRows) {
		return hash, nil, false, nil
	}
	copy(hash[:], h)
	return hash, answer, err == nil, err
}

// Remove deletes up to a chunk of expired answers and says how many.
func (s Idempotency) Remove(ctx context.Context, before postern.Time) (n int64, err error) {
	old, err := s.exists(ctx, `SELECT count(*) FROM (SELECT 1 FROM idempotency WHERE created_at <= $1 LIMIT 1) AS old`, before)()
	if err != nil || !old {
		return 0, err // the common case costs no write
	}
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err = t.Changed(`DELETE FROM idempotency WHERE (workspace_id, method, path, key) IN
			(SELECT workspace_id, method, path, key FROM idempotency WHERE created_at <= $1 LIMIT $2 + 0)`, before, purgeChunk)
		return err
	}))
	return n, err
}
