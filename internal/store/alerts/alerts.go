// Package alerts finds what is wrong with devices and webhook endpoints, and keeps what operators were told of it.
package alerts

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// Kind is what is wrong.
type Kind string

// The kinds.
const (
	DeviceDown       Kind = "device-down"       // linked, and not connected; or its link was removed
	DeviceLimited    Kind = "device-limited"    // its account may not start chats
	PhoneUnseen      Kind = "phone-unseen"      // the device is connected, but its account's phone was not seen for long
	EndpointFailing  Kind = "endpoint-failing"  // no delivery has succeeded since a failure
	EndpointDisabled Kind = "endpoint-disabled" // it failed for too long, or responded with 410
	MessagesWaiting  Kind = "messages-waiting"  // of a device that is connected
)

// Alert is something that is wrong.
type Alert struct {
	Kind        Kind
	Subject     string // id of the device or the endpoint
	WorkspaceID postern.WorkspaceID
	Workspace   string // its name
	Name        string // of the device, or the description of the endpoint
	Detail      string // the status of a device, or a reason
	Since       postern.Time
	ToldAt      postern.Time // 0: not yet
}

// Key identifies an alert among those that are there at the same time.
func (a Alert) Key() string { return string(a.Kind) + " " + a.Subject }

// OfEndpoint reports whether the subject is a webhook endpoint.
func (a Alert) OfEndpoint() bool { return a.Kind == EndpointFailing || a.Kind == EndpointDisabled }

// Table has the alerts of all workspaces.
type Table struct{ db *db.DB }

// Of returns the alerts of a store.
func Of(s *store.Store) Table { return Table{s.Engine()} }

// wrong finds what is wrong in all workspaces, or in one if each part has one more condition. Each row is a kind, a
// subject, its workspace, its name, a detail and since when.
func wrong(one string) string {
	device := ` FROM device d JOIN workspace w ON w.id = d.workspace_id` + one + ` WHERE d.deleted_at = 0`
	endpoint := ` FROM endpoint e JOIN workspace w ON w.id = e.workspace_id` + one
	return `SELECT 'device-down', d.id, d.workspace_id, w.name, d.name, CASE WHEN d.status_reason = '' THEN d.status
		ELSE d.status || ', ' || d.status_reason END, d.down_at` + device + ` AND d.status IN ` + down + `
	UNION ALL SELECT 'device-limited', d.id, d.workspace_id, w.name, d.name, '', d.limited_at` + device + `
		AND d.limited_at > 0
	UNION ALL SELECT 'phone-unseen', d.id, d.workspace_id, w.name, d.name, '', d.phone_seen_at` + device + `
		AND d.phone_unseen_at > 0 AND d.status = 'connected'
	UNION ALL SELECT 'endpoint-failing', e.id, e.workspace_id, w.name, e.description, '', e.failing_since` + endpoint + `
		WHERE e.status = 'active' AND e.failing_since > 0
	UNION ALL SELECT 'endpoint-disabled', e.id, e.workspace_id, w.name, e.description, e.status_reason, e.failing_since` +
		endpoint + ` WHERE e.status = 'disabled'
	UNION ALL SELECT 'messages-waiting', id, workspace_id, called, name, '', waits FROM (
		SELECT d.id, d.workspace_id, w.name AS called, d.name, (SELECT m.created_at FROM message m
			WHERE m.device_id = d.id AND m.status IN ` + unsent + ` ORDER BY m.lane, m.n LIMIT 1) AS waits` + device + `
		AND d.status = 'connected') AS queue WHERE waits < $1
	LIMIT $2 + 0`
}

const (
	down   = `('connecting', 'disconnected', 'restricted', 'conflict', 'logged_out', 'banned')`
	unsent = `('queued', 'sending')`
)

// most is how many alerts there may be at a time.
const most = 10_000

// Wrong returns what is wrong now. Messages count as waiting if they were accepted before a time.
func (t Table) Wrong(ctx context.Context, queuedBefore postern.Time) ([]Alert, error) {
	return t.wrong(ctx, wrong(""), queuedBefore, most)
}

// WrongIn is Wrong for one workspace. It returns at most limit alerts.
func (t Table) WrongIn(ctx context.Context, ws postern.WorkspaceID, queuedBefore postern.Time, limit int) ([]Alert,
	error,
) {
	return t.wrong(ctx, wrong(` AND w.id = $3`), queuedBefore, limit, ws)
}

func (t Table) wrong(ctx context.Context, query string, args ...any) (list []Alert, err error) {
	err = t.db.Rows(ctx, query, args, func(r *sql.Rows) error {
		var a Alert
		err := r.Scan(&a.Kind, &a.Subject, &a.WorkspaceID, &a.Workspace, &a.Name, &a.Detail, &a.Since)
		list = append(list, a)
		return err
	})
	return list, err
}

// Known returns what was noted before.
func (t Table) Known(ctx context.Context) (list []Alert, err error) {
	err = t.db.Rows(ctx, `SELECT a.kind, a.subject, a.workspace_id, coalesce(w.name, ''), a.name, a.detail, a.since,
		a.told_at FROM alert a LEFT JOIN workspace w ON w.id = a.workspace_id ORDER BY a.since, a.subject LIMIT $1 + 0`,
		[]any{most}, func(r *sql.Rows) error {
			var a Alert
			err := r.Scan(&a.Kind, &a.Subject, &a.WorkspaceID, &a.Workspace, &a.Name, &a.Detail, &a.Since, &a.ToldAt)
			list = append(list, a)
			return err
		})
	return list, err
}

// Note stores alerts, in place of what was noted of them before.
func (t Table) Note(ctx context.Context, list []Alert) error {
	if len(list) == 0 {
		return nil
	}
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) (err error) {
		for _, a := range list {
			err = errors.Join(err, tx.Exec(`INSERT INTO alert (kind, subject, workspace_id, name, detail, since, told_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (kind, subject) DO UPDATE SET name = excluded.name,
				detail = excluded.detail, told_at = excluded.told_at`,
				string(a.Kind), a.Subject, a.WorkspaceID, a.Name, a.Detail, a.Since, a.ToldAt))
		}
		return err
	}))
}

// Forget removes alerts that have ended.
func (t Table) Forget(ctx context.Context, list []Alert) error {
	if len(list) == 0 {
		return nil
	}
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) (err error) {
		for _, a := range list {
			err = errors.Join(err, tx.Exec(`DELETE FROM alert WHERE kind = $1 AND subject = $2`, string(a.Kind), a.Subject))
		}
		return err
	}))
}
