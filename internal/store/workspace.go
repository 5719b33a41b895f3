package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"strconv"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
)

// Create adds a workspace. acts are recorded as acts of an operator.
func (s Workspaces) Create(ctx context.Context, ws postern.Workspace, acts ...Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if err := RecordOperatorActs(t, acts); err != nil {
			return err
		}
		return InsertWorkspace(t, ws)
	}))
}

// Describe changes the name and the time zone of a workspace, which act names. It returns an error if rule does not
// permit the member to do so.
func (s Workspaces) Describe(ctx context.Context, name, zone string, rule postern.Rule, act Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if err := CheckRule(t, act.WorkspaceID, rule, act); err != nil {
			return err
		}
		t.Wake(KeyChanged, string(act.WorkspaceID))
		err := t.Exec(`UPDATE workspace SET name = $2, time_zone = $3 WHERE id = $1`, act.WorkspaceID, name, zone)
		return errors.Join(err, RecordActs(t, []Act{act}))
	}))
}

// InsertWorkspace adds a workspace.
func InsertWorkspace(t *db.Tx, ws postern.Workspace) error {
	return t.Exec(`INSERT INTO workspace (id, name, plan, created_at) VALUES ($1, $2, $3, $4)`, ws.ID, ws.Name, ws.Plan,
		ws.CreatedAt)
}

const workspaceColumns = `w.id, w.name, w.plan, w.created_at, w.message_limit, w.device_limit, w.event_days,
	w.message_days, w.storage_mib`

func scanWorkspace(s db.Scanner) (ws postern.Workspace, err error) {
	err = s.Scan(&ws.ID, &ws.Name, &ws.Plan, &ws.CreatedAt, &ws.Limits.Messages, &ws.Limits.Devices,
		&ws.Limits.EventDays, &ws.Limits.MessageDays, &ws.Limits.StorageMiB)
	return ws, err
}

// List returns all workspaces, oldest first. It is for the operator only.
func (s Workspaces) List(ctx context.Context) (list []postern.Workspace, err error) {
	err = s.db.Rows(ctx, `SELECT `+workspaceColumns+` FROM workspace w ORDER BY id`, nil, func(r *sql.Rows) error {
		ws, err := scanWorkspace(r)
		list = append(list, ws)
		return err
	})
	return list, err
}

// Get returns a workspace.
func (s Workspaces) Get(ctx context.Context, id postern.WorkspaceID) (ws postern.Workspace, err error) {
	ws, err = scanWorkspace(s.db.One(ctx, `SELECT `+workspaceColumns+` FROM workspace w WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return ws, postern.Errorf(postern.NotFound, "there is no such workspace")
	}
	return ws, err
}

// SetPlan changes the plan of a workspace. A plan without the API pauses its endpoints; a
// plan with the API starts the handshake of the endpoints paused that way, which then catch
// up from the pause. Devices beyond the plan's number are paused, and resumed when the
// number covers them again. acts are recorded as acts of an operator.
func (s Workspaces) SetPlan(ctx context.Context, id postern.WorkspaceID, plan postern.Plan, at postern.Time,
	acts ...Act,
) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		ws, err := ReadWorkspace(t, id)
		if err != nil {
			return err
		}
		if err := RecordOperatorActs(t, acts); err != nil {
			return err
		}
		ws.Plan = plan.Name
		if err := t.Exec(`UPDATE workspace SET plan = $2 WHERE id = $1`, id, plan.Name); err != nil {
			return err
		}
		t.Wake(KeyChanged, string(id))
		if err := switchEndpoints(t, id, plan.API, at); err != nil {
			return err
		}
		return enforceDeviceLimit(t, ws, at)
	}))
}

// ChangeLimits changes the limits that a workspace has instead of those of its plan, and
// returns the workspace. A nil limit stays as it is; a negative one returns to the plan's.
// Devices are paused and resumed, and acts recorded, as by SetPlan.
func (s Workspaces) ChangeLimits(ctx context.Context, id postern.WorkspaceID, change postern.Limits, at postern.Time,
	acts ...Act,
) (ws postern.Workspace, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if ws, err = ReadWorkspace(t, id); err != nil {
			return err
		}
		if err := RecordOperatorActs(t, acts); err != nil {
			return err
		}
		ws.Limits = ws.Limits.With(change)
		t.Wake(KeyChanged, string(id))
		err := t.Exec(`UPDATE workspace SET message_limit = $2, device_limit = $3, event_days = $4, message_days = $5,
			storage_mib = $6 WHERE id = $1`,
			id, ws.Limits.Messages, ws.Limits.Devices, ws.Limits.EventDays, ws.Limits.MessageDays, ws.Limits.StorageMiB)
		if err != nil {
			return err
		}
		return enforceDeviceLimit(t, ws, at)
	}))
	return ws, err
}

// ReadWorkspace returns a workspace.
func ReadWorkspace(t *db.Tx, id postern.WorkspaceID) (postern.Workspace, error) {
	ws, err := scanWorkspace(t.One(`SELECT `+workspaceColumns+` FROM workspace w WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return ws, postern.Errorf(postern.NotFound, "there is no such workspace")
	}
	return ws, err
}

// switchEndpoints pauses or resumes the endpoints of a workspace.
//
// Single writer: order.
func switchEndpoints(t *db.Tx, id postern.WorkspaceID, on bool, at postern.Time) error {
	query := `UPDATE endpoint SET status = 'paused', status_reason = 'plan', due_at = 0,
		since = CASE WHEN status = 'active' THEN (SELECT coalesce(max(position), 0) FROM event) ELSE since END
		WHERE workspace_id = $1 AND status IN ('active', 'pending') AND CAST($2 AS BIGINT) >= 0 RETURNING id`
	if on {
		query = `UPDATE endpoint SET status = 'pending', status_reason = '', attempts = 0, due_at = $2 WHERE workspace_id = $1
			AND status = 'paused' AND status_reason = 'plan' RETURNING id`
	}
	return t.Rows(query, []any{id, at}, func(r *sql.Rows) error {
		var endpoint string
		err := r.Scan(&endpoint)
		t.Wake(EndpointChanged, endpoint)
		return err
	})
}

// Get returns the value of a setting, or "" when it was never set.
func (s Settings) Get(ctx context.Context, name string) (value string, err error) {
	err = s.db.Row(ctx, `SELECT value FROM setting WHERE name = $1`, []any{name}, &value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}

// SetOnce stores the value of a setting that has none, and returns the value that it has then.
func (s Settings) SetOnce(ctx context.Context, name, value string) (string, error) {
	err := s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, name, value)
	}))
	if err != nil {
		return "", err
	}
	return s.Get(ctx, name)
}

// StorageSetting is the setting with the mark of the media storage that the servers of a database share.
const StorageSetting = "media_storage"

// Set stores the value of a setting; "" removes it.
func (s Settings) Set(ctx context.Context, name, value string) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if value == "" {
			return t.Exec(`DELETE FROM setting WHERE name = $1`, name)
		}
		return PutSetting(t, name, value)
	}))
}

// PutSetting stores the value of a setting.
func PutSetting(t *db.Tx, name, value string) error {
	return t.Exec(`INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE
		SET value = excluded.value`, name, value)
}

// SandboxNumbers returns the workspaces of the numbers that sandboxes linked while all
// workspaces shared one number space.
func (s Workspaces) SandboxNumbers(ctx context.Context) (map[string]string, error) {
	owners := map[string]string{}
	err := s.db.Rows(ctx, `SELECT number, workspace_id FROM sandbox_number`, nil, func(r *sql.Rows) error {
		var number, owner string
		err := r.Scan(&number, &owner)
		owners[number] = owner
		return err
	})
	return owners, err
}

// Act is an entry of the audit log: one privileged act.
type Act struct {
	N           int64 // its place in the log; set when it is read
	At          postern.Time
	WorkspaceID postern.WorkspaceID // "" when the act belongs to no workspace
	UserID      postern.UserID      // "" for an API key and for the operator at the server
	KeyID       postern.KeyID       // of the API key that did it; "" for people
	Act         string              // such as key.created
	Subject     string              // the id of the object that was changed
	Name        string              // of the subject; "" to look the name up when the log is read
	Address     string              // IP address of the browser

	Email   string // of the user; set when it is read
	KeyName string // of the API key; set when it is read
}

// Record adds the act to the audit log, in the transaction of what was done.
func (a Act) Record(t *db.Tx) error {
	kind, _, _ := strings.Cut(a.Act, ".")
	return t.Exec(`INSERT INTO audit (at, workspace_id, user_id, key_id, act, subject, address, name, kind)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		a.At, a.WorkspaceID, a.UserID, a.KeyID, a.Act, a.Subject, a.Address, a.Name, kind)
}

// RecordActs records the acts of a change. Most changes made with an API key have none.
func RecordActs(t *db.Tx, acts []Act) (err error) {
	for _, a := range acts {
		err = errors.Join(err, a.Record(t))
	}
	return err
}

func isOperator(t *db.Tx, id postern.UserID) (is bool, err error) {
	err = t.Row(`SELECT count(*) > 0 FROM users WHERE id = $1 AND operator = 1`, []any{id}, &is)
	return is, err
}

// RecordOperatorActs records the acts of an operator, in the transaction of the change. It
// returns an error when the user is no longer an operator. A caller on the server's socket
// has no user id and always is an operator.
func RecordOperatorActs(t *db.Tx, acts []Act) error {
	for _, a := range acts {
		if a.UserID == "" {
			continue
		}
		if is, err := isOperator(t, a.UserID); err != nil || !is {
			return errors.Join(err, postern.Errorf(postern.NotFound, "there is no such page"))
		}
	}
	return RecordActs(t, acts)
}

// CheckRule applies a rule to a change that concerns no other member.
func CheckRule(t *db.Tx, ws postern.WorkspaceID, rule postern.Rule, act Act) error {
	s, err := ReadStanding(t, ws, act.UserID, "")
	if err != nil {
		return err
	}
	return rule(s)
}

// ReadStanding reads what a Rule decides by.
//
// Single writer: count. The owners of a workspace stay as they were counted.
func ReadStanding(t *db.Tx, ws postern.WorkspaceID, by, of postern.UserID) (s postern.Standing, err error) {
	if s.By, err = ReadRole(t, ws, by); err != nil {
		return s, err
	}
	if s.Of, err = ReadRole(t, ws, of); err != nil {
		return s, err
	}
	if s.Operator, err = isOperator(t, by); err != nil {
		return s, err
	}
	err = t.Row(`SELECT count(*) FROM member WHERE workspace_id = $1 AND role = $2`, []any{ws, postern.Owner},
		&s.Owners)
	return s, err
}

// ReadRole returns the role of a user in a workspace; "" for a user who is no member.
func ReadRole(t *db.Tx, ws postern.WorkspaceID, id postern.UserID) (role postern.Role, err error) {
	err = t.Row(`SELECT role FROM member WHERE user_id = $1 AND workspace_id = $2`, []any{id, ws}, &role)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return role, err
}

// Record adds an act to the audit log.
func (s Audit) Record(ctx context.Context, a Act) error { return s.db.Do(ctx, db.Func(a.Record)) }

// RecordLater adds an act to the audit log without waiting for the write.
func (s Audit) RecordLater(a Act) { s.db.Later(db.Func(a.Record)) }

// ActFilter narrows the audit log. An empty field does not restrict it.
type ActFilter struct {
	Email  string         // of the user who did it
	User   postern.UserID // who did it; not together with Email
	Kind   string         // the part before the dot, such as device or key
	Before int64          // a place in the log; 0 starts at the end
	Limit  int
}

// where returns the condition and the order of a page, and its arguments.
//
// PostgreSQL does not know how much one person did, and would read the log from its end until the page
// is full. So its filter bounds the rows of an index, and is not equal to the columns: no other index
// has that order then. SQLite always takes the index, but compares no lists that end in a row's key.
func (f ActFilter) where(ws postern.WorkspaceID, postgres bool) (condition string, args []any) {
	args = []any{ws}
	add := func(arg any) string { args = append(args, arg); return "$" + strconv.Itoa(len(args)) }
	var columns, values, order, equal string
	and := func(column, value string) {
		columns, values, order = columns+column+", ", values+value+", ", order+column+" DESC, "
		equal += ` AND ` + column + ` = ` + value
	}
	if f.Email != "" {
		and("a.user_id", `(SELECT id FROM users WHERE email = `+add(f.Email)+`)`)
	}
	if f.User != "" {
		and("a.user_id", add(f.User))
	}
	if f.Kind != "" {
		and("a.kind", add(f.Kind))
	}
	below := add(cmp.Or(f.Before, math.MaxInt64))
	where := `a.workspace_id = $1`
	if postgres {
		where += ` AND (` + columns + `a.n) < (` + values + below + `) AND (` + columns + `a.n) > (` + values + `0)
			ORDER BY ` + order
	} else {
		where += equal + ` AND a.n < ` + below + ` ORDER BY `
	}
	return where + `a.n DESC LIMIT ` + add(f.Limit) + ` + 0`, args
}

// actsWhere returns the query for entries of the audit log that meet a condition.
func actsWhere(condition string) string {
	return `SELECT a.n, a.at, a.workspace_id, a.user_id, a.key_id, coalesce(b.name, ''), a.act, a.subject,
	a.address, coalesce(u.email, ''),
	coalesce(CASE WHEN a.kind IN ('message', 'chat') THEN NULL ELSE nullif(a.name, '') END, s.email, i.email || ' as ' || i.role, k.name, (SELECT m.to_number FROM message m
		WHERE m.id = a.subject AND m.workspace_id = a.workspace_id AND NOT ` + erased("m") + `), '')
	FROM audit a LEFT JOIN users u ON u.id = a.user_id LEFT JOIN users s ON s.id = a.subject LEFT JOIN invitation i
	ON i.id = a.subject LEFT JOIN api_key k ON k.id = a.subject LEFT JOIN api_key b ON b.id = a.key_id WHERE ` + condition
}

// List returns the acts in a workspace, newest first.
func (s Audit) List(ctx context.Context, ws postern.WorkspaceID, f ActFilter) (list []Act, err error) {
	condition, args := f.where(ws, s.db.Postgres())
	err = s.db.Rows(ctx, actsWhere(condition), args,
		func(r *sql.Rows) error {
			var a Act
			err := r.Scan(&a.N, &a.At, &a.WorkspaceID, &a.UserID, &a.KeyID, &a.KeyName, &a.Act, &a.Subject, &a.Address,
				&a.Email, &a.Name)
			list = append(list, a)
			return err
		})
	return list, err
}

// Remove deletes a chunk of the acts done before a time, of all workspaces; more reports
// that there may be others. The log is in the order of time, apart from steps of the clock,
// so Remove looks at its first acts only.
func (s Audit) Remove(ctx context.Context, before postern.Time) (more bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`DELETE FROM audit
			WHERE n IN (SELECT n FROM (SELECT n, at FROM audit ORDER BY n LIMIT $2 + 0) AS first WHERE at < $1)`, before,
			purgeChunk)
		more = n == purgeChunk
		return err
	}))
	return more, err
}

const keyColumns = `id, workspace_id, name, environment, hash, last_four, scopes, devices, created_at, last_used_at,
	expires_at, revoked_at, created_by, CASE WHEN chosen_expires_at < 0 THEN expires_at ELSE chosen_expires_at END`

func scanKey(s db.Scanner) (k postern.Key, err error) {
	var hash []byte
	err = s.Scan(&k.ID, &k.WorkspaceID, &k.Name, &k.Environment, &hash, &k.LastFour,
		jsonColumn{&k.Scopes}, jsonColumn{&k.Devices}, &k.CreatedAt, &k.LastUsedAt, &k.ExpiresAt, &k.RevokedAt,
		&k.CreatedBy, &k.ChosenExpiresAt)
	copy(k.Hash[:], hash)
	return k, err
}

// Create adds an API key. Only the hash of its secret is stored. When the plan allows no more
// keys, it returns a ResourceLimit error.
func (s Keys) Create(ctx context.Context, k postern.Key, rule postern.Rule, act Act) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if err := CheckRule(t, k.WorkspaceID, rule, act); err != nil {
			return err
		}
		if err := checkKeys(t, k.WorkspaceID, k.CreatedAt, false); err != nil {
			return err
		}
		return errors.Join(insertKey(t, k), act.Record(t))
	}))
}

func insertKey(t *db.Tx, k postern.Key) error {
	return t.Exec(`INSERT INTO api_key (id, workspace_id, name, environment, hash, last_four, scopes, devices,
		created_at, last_used_at, expires_at, revoked_at, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
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
		if err := CheckRule(t, k.WorkspaceID, rule, act); err != nil {
			return err
		}
		if err := checkKeys(t, k.WorkspaceID, k.CreatedAt, true); err != nil {
			return err
		}
		n, err := t.Changed(`UPDATE api_key SET
			chosen_expires_at = CASE WHEN chosen_expires_at < 0 THEN expires_at ELSE chosen_expires_at END,
			expires_at = CASE WHEN expires_at = 0 OR expires_at > $3 THEN $3 ELSE expires_at END
			WHERE workspace_id = $1 AND id = $2 AND revoked_at = 0 AND (expires_at = 0 OR expires_at > $4)`, k.WorkspaceID, old,
			ends, k.CreatedAt)
		if ok = n == 1; err != nil || !ok {
			return err
		}
		t.Wake(KeyChanged, string(k.WorkspaceID))
		return errors.Join(insertKey(t, k), act.Record(t))
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
		k.scopes, k.devices, k.created_at, k.last_used_at, k.expires_at, k.revoked_at, k.created_by,
		CASE WHEN k.chosen_expires_at < 0 THEN k.expires_at ELSE k.chosen_expires_at END, `+workspaceColumns+`
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
		if err := CheckRule(t, ws, rule, act); err != nil {
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
			act.Record(t))
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

// RevokeKeysBy revokes the keys that a member created, each with an entry in the audit log.
func RevokeKeysBy(t *db.Tx, ws postern.WorkspaceID, id postern.UserID, act Act) error {
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
		err = errors.Join(err, act.Record(t),
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
