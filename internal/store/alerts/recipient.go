package alerts

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// Address is where the alerts of a workspace are posted to. The zero Address is none.
type Address struct {
	URL      []byte // encrypted for [postern.WorkspaceID.AlertPlace]
	Host     string
	FailedAt postern.Time // since when alerts cannot be posted; 0 once one could
	Reason   string       // why they cannot
}

// Address returns where the alerts of a workspace are posted to.
func (t Table) Address(ctx context.Context, ws postern.WorkspaceID) (a Address, err error) {
	err = t.db.One(ctx, `SELECT url, host, failed_at, reason FROM alert_url WHERE workspace_id = $1`, ws).
		Scan(&a.URL, &a.Host, &a.FailedAt, &a.Reason)
	if errors.Is(err, sql.ErrNoRows) {
		return Address{}, nil
	}
	return a, err
}

// Addresses returns the addresses of all workspaces that have one.
func (t Table) Addresses(ctx context.Context) (map[postern.WorkspaceID]Address, error) {
	all := map[postern.WorkspaceID]Address{}
	err := t.db.Rows(ctx, `SELECT workspace_id, url, host, failed_at, reason FROM alert_url`, nil,
		func(r *sql.Rows) error {
			var ws postern.WorkspaceID
			var a Address
			err := r.Scan(&ws, &a.URL, &a.Host, &a.FailedAt, &a.Reason)
			all[ws] = a
			return err
		})
	return all, err
}

// SetAddress changes where the alerts of a workspace are posted to; the zero Address removes it.
func (t Table) SetAddress(ctx context.Context, a Address, rule postern.Rule, act store.Act) error {
	return t.change(ctx, rule, act, func(tx *db.Tx) error {
		if a.URL == nil {
			return tx.Exec(`DELETE FROM alert_url WHERE workspace_id = $1`, act.WorkspaceID)
		}
		return tx.Exec(`INSERT INTO alert_url (workspace_id, url, host, failed_at, reason) VALUES ($1, $2, $3, 0, '')
			ON CONFLICT (workspace_id) DO UPDATE SET url = excluded.url, host = excluded.host, failed_at = 0, reason = ''`,
			act.WorkspaceID, a.URL, a.Host)
	})
}

// Posted notes whether an alert could be posted to the address of a workspace: reason is why not, "" if it could. If
// the address was changed meanwhile, it changes nothing.
func (t Table) Posted(ctx context.Context, ws postern.WorkspaceID, url []byte, at postern.Time, reason string) error {
	if reason == "" {
		at = 0
	}
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		return tx.Exec(`UPDATE alert_url SET
			failed_at = CASE WHEN $4 <> '' AND failed_at > 0 THEN failed_at ELSE CAST($3 AS BIGINT) END,
			reason = $4 WHERE workspace_id = $1 AND url = $2 AND reason <> $4`, ws, url, at, reason)
	}))
}

// Members returns the members of a workspace who get its alerts by mail.
func (t Table) Members(ctx context.Context, ws postern.WorkspaceID) (list []postern.UserID, err error) {
	err = t.db.Rows(ctx, `SELECT user_id FROM alert_member WHERE workspace_id = $1 ORDER BY user_id`, []any{ws},
		func(r *sql.Rows) error {
			var id postern.UserID
			err := r.Scan(&id)
			list = append(list, id)
			return err
		})
	return list, err
}

// Mails returns the addresses of the members who get alerts by mail, for all workspaces that have some.
func (t Table) Mails(ctx context.Context) (map[postern.WorkspaceID][]string, error) {
	all := map[postern.WorkspaceID][]string{}
	err := t.db.Rows(ctx, `SELECT a.workspace_id, u.email FROM alert_member a JOIN users u ON u.id = a.user_id
		ORDER BY a.workspace_id, u.email`, nil, func(r *sql.Rows) error {
		var ws postern.WorkspaceID
		var mail string
		err := r.Scan(&ws, &mail)
		all[ws] = append(all[ws], mail)
		return err
	})
	return all, err
}

// SetMembers changes which members of a workspace get its alerts by mail. Those who are no members are left out.
func (t Table) SetMembers(ctx context.Context, list []postern.UserID, rule postern.Rule, act store.Act) error {
	return t.change(ctx, rule, act, func(tx *db.Tx) error {
		err := tx.Exec(`DELETE FROM alert_member WHERE workspace_id = $1`, act.WorkspaceID)
		for _, id := range list {
			err = errors.Join(err, tx.Exec(`INSERT INTO alert_member (workspace_id, user_id) SELECT workspace_id, user_id
				FROM member WHERE workspace_id = $1 AND user_id = $2`, act.WorkspaceID, id))
		}
		return err
	})
}

func (t Table) change(ctx context.Context, rule postern.Rule, act store.Act, do func(*db.Tx) error) error {
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		if err := store.CheckRule(tx, act.WorkspaceID, rule, act); err != nil {
			return err
		}
		return errors.Join(do(tx), store.RecordActs(tx, []store.Act{act}))
	}))
}
