package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/postern"
)

// Once makes an operation happen at most once: its row is written in the
// transaction of the effect. A nil *Once asks for nothing.
type Once struct {
	WorkspaceID postern.WorkspaceID
	Method      string
	Path        string
	Key         string
	RequestHash [32]byte
	Answer      []byte // sealed
	At          postern.Time
}

// ErrAlreadyDone means that another request with the same idempotency key was
// committed first; its answer can be read by [DB.Answered].
var ErrAlreadyDone = errors.New("the idempotency key was used before")

// claim writes the row, replacing one that has expired.
func (o *Once) claim(t *tx) error {
	if o == nil {
		return nil
	}
	n, err := t.changed(`INSERT INTO idempotency (workspace_id, method, path, key, request_hash, answer, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (workspace_id, method, path, key) DO UPDATE SET request_hash = excluded.request_hash, answer = excluded.answer, created_at = excluded.created_at
		WHERE idempotency.created_at <= $8`,
		o.WorkspaceID, o.Method, o.Path, o.Key, o.RequestHash[:], o.Answer, o.At, o.At.Add(-IdempotencyKept))
	if err == nil && n == 0 {
		return ErrAlreadyDone
	}
	return err
}

// claimAll claims for messages, and gives those whose key was not used before.
// A key that comes twice in the list is an error.
func claimAll(t *tx, list []pending) (claimed []pending, err error) {
	var values [][]any
	for _, p := range list {
		if o := queueOf(p).Once; o != nil {
			values = append(values, []any{o.WorkspaceID, o.Method, o.Path, o.Key, o.RequestHash[:], o.Answer, o.At})
		}
	}
	if len(values) == 0 {
		return list, nil
	}
	const columns = `workspace_id, method, path, key, request_hash, answer, created_at`
	from, args := table(columns, values)
	ours := map[[4]string]bool{}
	err = t.rows(`INSERT INTO idempotency (`+columns+`) SELECT `+columns+` FROM `+from+` ORDER BY workspace_id, method, path, key
		ON CONFLICT (workspace_id, method, path, key) DO UPDATE SET request_hash = excluded.request_hash, answer = excluded.answer, created_at = excluded.created_at
		WHERE idempotency.created_at <= excluded.created_at - $8 RETURNING workspace_id, method, path, key`, append(args, IdempotencyKept.Milliseconds()), func(r *sql.Rows) error {
		var k [4]string
		err := r.Scan(&k[0], &k[1], &k[2], &k[3])
		ours[k] = true
		return err
	})
	for _, p := range list {
		if o := queueOf(p).Once; o != nil && !ours[[4]string{clean(string(o.WorkspaceID)), clean(o.Method), clean(o.Path), clean(o.Key)}] {
			*p.outcome = ErrAlreadyDone
			continue
		}
		claimed = append(claimed, p)
	}
	return claimed, err
}

// Answered finds the answer given to an idempotency key in the last 24 hours.
func (s Idempotency) Answered(ctx context.Context, o Once) (hash [32]byte, answer []byte, ok bool, err error) {
	var h []byte
	err = s.db.row(ctx, `SELECT request_hash, answer FROM idempotency WHERE workspace_id = $1 AND method = $2 AND path = $3 AND key = $4 AND created_at > $5`,
		[]any{o.WorkspaceID, o.Method, o.Path, o.Key, o.At.Add(-IdempotencyKept)}, &h, &answer)
	if errors.Is(err, sql.ErrNoRows) {
		return hash, nil, false, nil
	}
	copy(hash[:], h)
	return hash, answer, err == nil, err
}

// Remove deletes up to a chunk of expired answers and says how many.
func (s Idempotency) Remove(ctx context.Context, before postern.Time) (n int64, err error) {
	old, err := s.db.exists(ctx, `SELECT count(*) FROM (SELECT 1 FROM idempotency WHERE created_at <= $1 LIMIT 1) AS old`, before)()
	if err != nil || !old {
		return 0, err // the common case costs no write
	}
	err = s.db.do(ctx, opFunc(func(t *tx) error {
		n, err = t.changed(`DELETE FROM idempotency WHERE (workspace_id, method, path, key) IN
			(SELECT workspace_id, method, path, key FROM idempotency WHERE created_at <= $1 LIMIT $2 + 0)`, before, purgeChunk)
		return err
	}))
	return n, err
}
