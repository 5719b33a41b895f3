package alerts

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"postern/internal/postern"
)

// MostStates is how many devices and how many endpoints a board has.
const MostStates = 24

// MostWaiting is how far the messages of a device, and the deliveries to an endpoint, that wait are counted on a board.
const MostWaiting = 100

// DeviceState is a device in a few figures.
type DeviceState struct {
	ID              postern.DeviceID
	Name, Number    string // of the account; no number before it is linked
	Status          postern.Status
	Reason          string       // of the status
	Since           postern.Time // of the status; 0 if it is not known
	LastIn, LastOut postern.Time // when the last ones among the newest messages were received and sent; 0: none of them
	Queue                        // Waiting is at most [MostWaiting]
}

// Devices returns the state of a workspace's devices, at most [MostStates]: first those that are not connected and
// should be, then by name. The last message in each direction is looked for among the newest 50. Such numbers are parts of
// the statement, because PostgreSQL plans to read everything if it does not know how little is wanted. With an equation in
// place of the range, it would look for the messages of a quiet device among all others.
func (t Table) Devices(ctx context.Context, ws postern.WorkspaceID) (list []DeviceState, err error) {
	const last = `coalesce((SELECT max(created_at) FROM (SELECT m.created_at, m.direction, m.status FROM message m
		WHERE (m.device_id, m.n) >= (d.id, 0) AND (m.device_id, m.n) <= (d.id, 9223372036854775807)
		ORDER BY m.device_id DESC, m.n DESC LIMIT 50) AS newest WHERE `
	err = t.db.Rows(ctx, `SELECT d.id, d.name, d.phone_number, d.status, d.status_reason,
		CASE WHEN d.status = 'connected' THEN d.connected_at ELSE d.down_at END,
		`+last+`direction = 'inbound'), 0),
		`+last+`direction = 'outbound' AND status IN ('sent', 'delivered', 'read', 'played')), 0),
		(SELECT count(*) FROM (SELECT 1 AS one FROM message m WHERE `+waits+` LIMIT 100) AS counted),
		coalesce(`+oldestOf+`, 0)
		FROM device d WHERE d.workspace_id = $1 AND d.deleted_at = 0
		ORDER BY CASE WHEN d.status IN `+down+` THEN 0 ELSE 1 END, d.name, d.id LIMIT $2 + 0`,
		[]any{ws, MostStates}, func(r *sql.Rows) error {
			var s DeviceState
			err := r.Scan(&s.ID, &s.Name, &s.Number, &s.Status, &s.Reason, &s.Since, &s.LastIn, &s.LastOut, &s.Waiting,
				&s.Queue.Since)
			list = append(list, s)
			return err
		})
	return list, err
}

// EndpointState is a webhook endpoint in a few figures.
type EndpointState struct {
	ID                       postern.EndpointID
	URL, Description         string
	Status                   postern.EndpointStatus
	FailingSince             postern.Time
	Succeeded, Failed        int64        // attempts since a time
	LastSuccess, LastFailure postern.Time // the start of the minute; 0 if there was none in the last day
	Waiting                  int          // deliveries, at most [MostWaiting]
}

// LastAttempts returns the minutes in which an endpoint's last attempts since a time succeeded and failed; 0 if none
// did.
func (t Table) LastAttempts(
	ctx context.Context, ws postern.WorkspaceID, id postern.EndpointID, since postern.Time,
) (success, failure postern.Time, err error) {
	const last = `coalesce((SELECT m.minute FROM endpoint_minute m WHERE m.endpoint_id = e.id AND m.minute >= $3 AND m.`
	err = t.db.Row(ctx, `SELECT `+last+`succeeded > 0 ORDER BY m.minute DESC LIMIT 1), 0),
		`+last+`failed > 0 ORDER BY m.minute DESC LIMIT 1), 0) FROM endpoint e WHERE e.workspace_id = $1 AND e.id = $2`,
		[]any{ws, id, since}, &success, &failure)
	if errors.Is(err, sql.ErrNoRows) { // the endpoint was deleted
		return 0, 0, nil
	}
	return success, failure, err
}

// Endpoints returns the state of a workspace's endpoints, at most [MostStates], with their attempts since a time, and
// the last ones in the day before it: first those that fail, then by age. They are chosen before anything is counted,
// and the waiting deliveries are counted in an order, because PostgreSQL would otherwise read all deliveries for each
// endpoint of the workspace.
func (t Table) Endpoints(ctx context.Context, ws postern.WorkspaceID, since postern.Time) (list []EndpointState,
	err error,
) {
	const (
		sum  = `coalesce((SELECT CAST(sum(m.`
		of   = `) AS BIGINT) FROM endpoint_minute m WHERE m.endpoint_id = e.id AND m.minute >= $2), 0)`
		last = `coalesce((SELECT m.minute FROM endpoint_minute m WHERE m.endpoint_id = e.id AND m.`
		one  = ` > 0 AND m.minute >= $5 ORDER BY m.minute DESC LIMIT 1), 0)`
	)
	err = t.db.Rows(ctx, `SELECT e.id, e.url, e.description, e.status, e.failing_since,
		`+sum+`succeeded`+of+`, `+sum+`failed`+of+`, `+last+`succeeded`+one+`, `+last+`failed`+one+`,
		(SELECT count(*) FROM (SELECT 1 AS one FROM delivery d WHERE d.endpoint_id = e.id AND d.status = 'pending'
			ORDER BY d.due_at, d.n LIMIT $3 + 0) AS counted)
		FROM (SELECT *, CASE WHEN status IN ('disabled', 'failed') OR failing_since > 0 THEN 0 ELSE 1 END AS place
			FROM endpoint WHERE workspace_id = $1 ORDER BY place, created_at, id LIMIT $4 + 0) e
		ORDER BY e.place, e.created_at, e.id`,
		[]any{ws, since, MostWaiting, MostStates, since.Add(-24 * time.Hour)}, func(r *sql.Rows) error {
			var s EndpointState
			err := r.Scan(&s.ID, &s.URL, &s.Description, &s.Status, &s.FailingSince, &s.Succeeded, &s.Failed,
				&s.LastSuccess, &s.LastFailure, &s.Waiting)
			list = append(list, s)
			return err
		})
	return list, err
}
