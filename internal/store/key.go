package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

const keyColumns = `id, workspace_id, name, environment, hash, last_four, scopes, devices, created_at, last_used_at,
	expires_at, revoked_at, created_by`

func scanKey(s db.Scanner) (k postern.Key, err error) {
	var hash []byte
	err = s.Scan(&k.ID, &k.WorkspaceID, &k.Name, &k.Environment, &hash, &k.LastFour,
		jsonColumn{&k.Scopes}, jsonColumn{&k.Devices}, &k.CreatedAt, &k.LastUsedAt, &k.ExpiresAt, &k.RevokedAt,
		&k.CreatedBy)
	copy(k.Hash[:], hash)
	return k, err
}

// Create adds an API key. Only the hash of its secret is stored. When the plan allows no more
// keys, it returns a ResourceLimit error.
func (s Keys) Create(ctx context.Context, k postern.Key, rule postern.Rule, act Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if err := checkRule(t, k.WorkspaceID, rule, act); err != nil {
			return err
		}
		if err := checkKeys(t, k.WorkspaceID, k.CreatedAt, false); err != nil {
			return err
		}
		return errors.Join(insertKey(t, k), act.record(t))
	}))
}

// checkRule applies a rule to a change that concerns no other member.
func checkRule(t *db.Tx, ws postern.WorkspaceID, rule postern.Rule, act Act) error {
	s, err := memberStanding(t, ws, act.UserID, "")
	if err != nil {
		return err
	}
	return rule(s)
}

func insertKey(t *db.Tx, k postern.Key) error {
	return t.Exec(`INSERT INTO api_key (`+keyColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
		$13)`,
		k.ID, k.WorkspaceID, k.Name, k.Environment, k.Hash[:], k.LastFour, asJSON(k.Scopes), asJSON(k.Devices),
		k.CreatedAt, k.LastUsedAt, k.ExpiresAt, k.RevokedAt, k.CreatedBy)
}

// Get returns an API key of the workspace.
func (s Keys) Get(ctx context.Context, ws postern.WorkspaceID, id postern.KeyID) (postern.Key, error) {
	k, err := scanKey(s.db.One(ctx, `SELECT `+keyColumns+` FROM api_key WHERE workspace_id = $1 AND id = $2`, ws, id))
	if errors.Is(err, sql.ErrNoRows) {
		return k, postern.Errorf(postern.NotFound, "there is no such key")
	}
	return k, err
}

// Rotate adds the successor k of a key and ends the old key at a time, unless it ends
// before. ok is false when the old key has already ended.
func (s Keys) Rotate(ctx context.Context, old postern.KeyID, ends postern.Time, k postern.Key, rule postern.Rule,
	act Act,
) (ok bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if err := checkRule(t, k.WorkspaceID, rule, act); err != nil {
			return err
		}
		if err := checkKeys(t, k.WorkspaceID, k.CreatedAt, true); err != nil {
			return err
		}
		n, err := t.Changed(`UPDATE api_key SET expires_at = CASE WHEN expires_at = 0
			OR expires_at > $3 THEN $3 ELSE expires_at END
			WHERE workspace_id = $1 AND id = $2 AND revoked_at = 0 AND (expires_at = 0 OR expires_at > $4)`, k.WorkspaceID, old,
			ends, k.CreatedAt)
		if ok = n == 1; err != nil || !ok {
			return err
		}
		t.Wake(KeyChanged, string(k.WorkspaceID))
		return errors.Join(insertKey(t, k), act.record(t))
	}))
	return ok, err
}

const keysOfWorkspace = `SELECT ` + keyColumns + ` FROM api_key WHERE workspace_id = $1 AND ($2 = '' OR id < $2)
	ORDER BY id DESC LIMIT $3 + 0`

// List returns a workspace's API keys, newest first.
func (s Keys) List(ctx context.Context, ws postern.WorkspaceID, p Page) (list []postern.Key, err error) {
	err = s.db.Rows(ctx, keysOfWorkspace, []any{ws, p.After, p.Limit}, func(r *sql.Rows) error {
		k, err := scanKey(r)
		list = append(list, k)
		return err
	})
	return list, err
}

// ByHash returns a key, which may be revoked or expired, and its workspace; ok is false
// when there is no such key. It is the only look-up of a key that does not name the
// workspace.
func (s Keys) ByHash(ctx context.Context, hash [32]byte) (k postern.Key, ws postern.Workspace, ok bool, err error) {
	k, err = scanKey(withTail{
		s.db.One(ctx, `SELECT k.id, k.workspace_id, k.name, k.environment, k.hash, k.last_four,
		k.scopes, k.devices, k.created_at, k.last_used_at, k.expires_at, k.revoked_at, k.created_by, `+workspaceColumns+`
		FROM api_key k JOIN workspace w ON w.id = k.workspace_id WHERE k.hash = $1`, hash[:]),
		[]any{
			&ws.ID, &ws.Name, &ws.Plan, &ws.CreatedAt, &ws.Limits.Messages, &ws.Limits.Devices, &ws.Limits.EventDays,
			&ws.Limits.MessageDays, &ws.Limits.StorageMiB,
		},
	})
	if errors.Is(err, sql.ErrNoRows) {
		return k, ws, false, nil
	}
	return k, ws, err == nil, err
}

// Revoke ends a key at once. Revoking a revoked key changes nothing and is not recorded
// again.
func (s Keys) Revoke(ctx context.Context, ws postern.WorkspaceID, id postern.KeyID, rule postern.Rule, act Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if err := checkRule(t, ws, rule, act); err != nil {
			return err
		}
		var revoked postern.Time
		err := t.Row(`SELECT revoked_at FROM api_key WHERE workspace_id = $1 AND id = $2`, []any{ws, id}, &revoked)
		if errors.Is(err, sql.ErrNoRows) {
			return postern.Errorf(postern.NotFound, "there is no such key")
		}
		if err != nil || revoked != 0 {
			return err
		}
		t.Wake(KeyChanged, string(ws))
		return errors.Join(t.Exec(`UPDATE api_key SET revoked_at = $3 WHERE workspace_id = $1 AND id = $2`, ws, id,
			act.At),
			act.record(t))
	}))
}

// worksAt is the condition for keys that work at the time $2.
const worksAt = `workspace_id = $1 AND revoked_at = 0 AND (expires_at = 0 OR expires_at > $2)`

// CreatedBy counts the keys of a workspace that work at a time, by the member who created
// them.
func (s Keys) CreatedBy(ctx context.Context, ws postern.WorkspaceID,
	now postern.Time,
) (keys map[postern.UserID]int, err error) {
	keys = map[postern.UserID]int{}
	err = s.db.Rows(ctx, `SELECT created_by, count(*) FROM api_key WHERE `+worksAt+` AND created_by <> ''
		GROUP BY created_by`, []any{ws, now}, func(r *sql.Rows) error {
		var id postern.UserID
		n := 0
		err := r.Scan(&id, &n)
		keys[id] = n
		return err
	})
	return keys, err
}

// revokeKeysBy revokes the keys that a member created, each with an entry in the audit log.
func revokeKeysBy(t *db.Tx, ws postern.WorkspaceID, id postern.UserID, act Act) error {
	var keys []string
	err := t.Rows(`SELECT id FROM api_key WHERE `+worksAt+` AND created_by = $3`, []any{ws, act.At, id},
		func(r *sql.Rows) error {
			var key string
			err := r.Scan(&key)
			keys = append(keys, key)
			return err
		})
	for _, key := range keys {
		act.Act, act.Subject = "key.revoked", key
		err = errors.Join(err, act.record(t),
			t.Exec(`UPDATE api_key SET revoked_at = $3 WHERE workspace_id = $1 AND id = $2`, ws, key, act.At))
	}
	if len(keys) > 0 {
		t.Wake(KeyChanged, string(ws))
	}
	return err
}

// MarkUsed records when a key was last used. It does not wait for the write.
func (s Keys) MarkUsed(id postern.KeyID, at postern.Time) {
	s.db.Later(db.Func(func(t *db.Tx) error {
		return t.Exec(`UPDATE api_key SET last_used_at = $2 WHERE id = $1 AND last_used_at < $2`, id, at)
	}))
}
