package alerts

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// Way is how somebody is told.
type Way string

// The ways.
const (
	URL  Way = "url"  // a POST to an address
	Mail Way = "mail" // by email
)

// Recipient is who is told, and how. Without a workspace it is the operator of the server, who is told of all
// workspaces.
type Recipient struct {
	WorkspaceID postern.WorkspaceID
	Way         Way
}

// Known returns what was noted for each recipient before.
func (t Table) Known(ctx context.Context) (map[Recipient][]Alert, error) {
	known := map[Recipient][]Alert{}
	err := t.db.Rows(ctx, `SELECT a.recipient, a.way, a.kind, a.subject, a.workspace_id, coalesce(w.name, ''), a.name,
		a.detail, a.since, a.told_at FROM alert_told a LEFT JOIN workspace w ON w.id = a.workspace_id
		ORDER BY a.since, a.subject`,
		nil, func(r *sql.Rows) error {
			var to Recipient
			var a Alert
			err := r.Scan(&to.WorkspaceID, &to.Way, &a.Kind, &a.Subject, &a.WorkspaceID, &a.Workspace, &a.Name, &a.Detail,
				&a.Since, &a.ToldAt)
			known[to] = append(known[to], a)
			return err
		})
	return known, err
}

// Note stores alerts for a recipient, in place of what was noted of them before.
func (t Table) Note(ctx context.Context, to Recipient, list []Alert) error {
	return t.each(ctx, list, func(tx *db.Tx, a Alert) error {
		return tx.Exec(`INSERT INTO alert_told (recipient, way, kind, subject, workspace_id, name, detail, since, told_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (recipient, way, kind, subject) DO UPDATE
			SET name = excluded.name, detail = excluded.detail, told_at = excluded.told_at`,
			to.WorkspaceID, string(to.Way), string(a.Kind), a.Subject, a.WorkspaceID, a.Name, a.Detail, a.Since, a.ToldAt)
	})
}

// Forget removes what was noted of alerts for a recipient.
func (t Table) Forget(ctx context.Context, to Recipient, list []Alert) error {
	return t.each(ctx, list, func(tx *db.Tx, a Alert) error {
		return tx.Exec(`DELETE FROM alert_told WHERE recipient = $1 AND way = $2 AND kind = $3 AND subject = $4`,
			to.WorkspaceID, string(to.Way), string(a.Kind), a.Subject)
	})
}

func (t Table) each(ctx context.Context, list []Alert, do func(*db.Tx, Alert) error) error {
	if len(list) == 0 {
		return nil
	}
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) (err error) {
		for _, a := range list {
			err = errors.Join(err, do(tx, a))
		}
		return err
	}))
}
