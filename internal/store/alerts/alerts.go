// Package alerts finds what is wrong with devices and webhook endpoints, and keeps who is told of it, and what each of
// them was told.
package alerts

import (
	"context"
	"database/sql"
	"strconv"

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
	EndpointDisabled Kind = "endpoint-disabled" // it failed for too long, responded with 410, or was not verified
	MessagesWaiting  Kind = "messages-waiting"  // of a device that is connected
)

// The details of a disabled endpoint that has to answer a challenge.
const (
	Verifying  = "verifying"  // it has not answered yet
	Unverified = "unverified" // it did not answer; ", " and a reason follow
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
	ToldAt      postern.Time // when a recipient was told; 0: not yet
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
		AND d.limited_at > 0 AND d.status IN ` + linked + `
	UNION ALL SELECT 'phone-unseen', d.id, d.workspace_id, w.name, d.name, '', d.phone_seen_at` + device + `
		AND d.phone_unseen_at > 0 AND d.status = 'connected'
	UNION ALL SELECT 'endpoint-failing', e.id, e.workspace_id, w.name, e.description, '', e.failing_since` + endpoint + `
		WHERE e.failing_since > 0 AND (e.status = 'active' OR e.status = 'pending' AND e.failures > 0
		AND e.failures < ` + disableFailures + `)
	UNION ALL SELECT 'endpoint-disabled', e.id, e.workspace_id, w.name, e.description,
		CASE e.status WHEN 'pending' THEN '` + Verifying + `' WHEN 'failed' THEN '` + Unverified + `, ' || e.status_reason
		ELSE e.status_reason END, e.failing_since` + endpoint + `
		WHERE ` + disabled + `
	UNION ALL SELECT 'messages-waiting', id, workspace_id, called, name, '', waits FROM (
		SELECT d.id, d.workspace_id, w.name AS called, d.name, ` + oldestOf + ` AS waits` + device + `
		AND d.status = 'connected') AS queue WHERE waits < $1
	LIMIT $2 + 0`
}

var (
	disableFailures = strconv.Itoa(store.DisableFailures)
	// disabled is the condition that an endpoint e gets nothing because it was disabled, or did not answer the challenge
	// after it had been told to. While it is verified again, only its failures tell that from one that was failing: it
	// had none, or enough to be disabled.
	disabled = `(e.status = 'disabled' OR e.failing_since > 0 AND (e.status = 'failed' OR e.status = 'pending'
		AND (e.failures = 0 OR e.failures >= ` + disableFailures + `)))`
)

const (
	linked = `('connected', 'connecting', 'disconnected', 'restricted', 'conflict')`
	down   = `('connecting', 'disconnected', 'restricted', 'conflict', 'logged_out', 'banned')`
	unsent = `('queued', 'sending')`
	// waits is the condition that a message m waits to be sent by a device d. Actions on messages do not count.
	waits = `m.device_id = d.id AND m.status IN ` + unsent + ` AND m.about = ''`
	// queuedSince is since when a message m waits to be sent: one that was scheduled waits since its time came.
	queuedSince = `CASE WHEN m.queued_at > 0 THEN m.queued_at ELSE m.created_at END`
)

// oldestOf selects since when a device d has had a message to send: the oldest of the first twenty of each priority,
// because a message that was accepted long ago for a later time stands before others that have waited longer.
var oldestOf = `(SELECT min(since) FROM (` + firstsOf(0) + ` UNION ALL ` + firstsOf(1) + `
	UNION ALL ` + firstsOf(2) + `) AS firsts)`

func firstsOf(lane int) string {
	return `SELECT since FROM (SELECT ` + queuedSince + ` AS since FROM message m WHERE ` + waits + `
		AND m.lane = ` + strconv.Itoa(lane) + ` ORDER BY m.lane, m.n LIMIT 20) AS lane` + strconv.Itoa(lane)
}

// most is how many alerts there may be at a time.
const most = 10_000

// Wrong returns what is wrong now. Messages count as waiting if they were accepted before a time.
func (t Table) Wrong(ctx context.Context, queuedBefore postern.Time) ([]Alert, error) {
	return t.wrong(ctx, wrong(""), queuedBefore, most)
}

// WrongWhereTold is Wrong for the workspaces whose people are told.
func (t Table) WrongWhereTold(ctx context.Context, queuedBefore postern.Time) ([]Alert, error) {
	return t.wrong(ctx, wrong(` AND (w.id IN (SELECT workspace_id FROM alert_url)
		OR w.id IN (SELECT workspace_id FROM alert_member))`), queuedBefore, most)
}

// WrongIn is Wrong for one workspace.
func (t Table) WrongIn(ctx context.Context, ws postern.WorkspaceID, queuedBefore postern.Time) ([]Alert, error) {
	return t.wrong(ctx, wrong(` AND w.id = $3`), queuedBefore, most, ws)
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
