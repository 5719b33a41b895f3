package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
)

// Act is one privileged act.
type Act struct {
	N           int64 // its place in the log, when it was read
	At          postern.Time
	WorkspaceID postern.WorkspaceID // "" for what belongs to none
	UserID      postern.UserID      // "" for the operator
	Act         string              // such as key.created
	Subject     string              // the id of what it was done to
	Name        string              // of the subject; "" leaves it to what has the id when the log is read
	Address     string              // the browser's

	Email string // of the user, when it was read
}

func (a Act) record(t *db.Tx) error {
	kind, _, _ := strings.Cut(a.Act, ".")
	return t.Exec(`INSERT INTO audit (at, workspace_id, user_id, act, subject, address, name, kind) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		a.At, a.WorkspaceID, a.UserID, a.Act, a.Subject, a.Address, a.Name, kind)
}

// recordActs writes the acts that go with a change; a change by a key has none.
func recordActs(t *db.Tx, acts []Act) (err error) {
	for _, a := range acts {
		err = errors.Join(err, a.record(t))
	}
	return err
}

// Record writes an act into the audit log.
func (s Audit) Record(ctx context.Context, a Act) error { return s.db.Do(ctx, db.Func(a.record)) }

// ActFilter narrows the audit log; empty members ask for nothing.
type ActFilter struct {
	Email  string // of who did it
	Kind   string // what comes before the point: device, key
	Before int64  // a place in the log
	Limit  int
}

// where is the condition of a filter, with its arguments. Each has an index, and
// is left out when nothing is asked for, so that the index is used.
func (f ActFilter) where(ws postern.WorkspaceID) (condition string, args []any) {
	condition, args = `a.workspace_id = $1`, []any{ws}
	and := func(text string, arg any) {
		args = append(args, arg)
		condition += ` AND ` + strings.ReplaceAll(text, "?", "$"+strconv.Itoa(len(args)))
	}
	if f.Email != "" {
		and(`a.user_id = (SELECT id FROM users WHERE email = ?)`, f.Email)
	}
	if f.Kind != "" {
		and(`a.kind = ?`, f.Kind)
	}
	if f.Before != 0 {
		and(`a.n < ?`, f.Before)
	}
	return condition, append(args, f.Limit)
}

const actsWhere = `SELECT a.n, a.at, a.workspace_id, a.user_id, a.act, a.subject, a.address, coalesce(u.email, ''), coalesce(nullif(a.name, ''), s.email, i.email || ' as ' || i.role, k.name, '')
	FROM audit a LEFT JOIN users u ON u.id = a.user_id LEFT JOIN users s ON s.id = a.subject LEFT JOIN invitation i ON i.id = a.subject LEFT JOIN api_key k ON k.id = a.subject WHERE `

// List lists the acts in a workspace, the newest first.
func (s Audit) List(ctx context.Context, ws postern.WorkspaceID, f ActFilter) (list []Act, err error) {
	condition, args := f.where(ws)
	err = s.db.Rows(ctx, actsWhere+condition+` ORDER BY a.n DESC LIMIT $`+strconv.Itoa(len(args))+` + 0`, args, func(r *sql.Rows) error {
		var a Act
		err := r.Scan(&a.N, &a.At, &a.WorkspaceID, &a.UserID, &a.Act, &a.Subject, &a.Address, &a.Email, &a.Name)
		list = append(list, a)
		return err
	})
	return list, err
}

// Remove removes a chunk of the acts done before a time, of all workspaces;
// more says that there may be others. The log is in the order of time, but for
// steps of the clock: only its first acts are looked at.
func (s Audit) Remove(ctx context.Context, before postern.Time) (more bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		n, err := t.Changed(`DELETE FROM audit WHERE n IN (SELECT n FROM (SELECT n, at FROM audit ORDER BY n LIMIT $2 + 0) AS first WHERE at < $1)`, before, purgeChunk)
		more = n == purgeChunk
		return err
	}))
	return more, err
}
