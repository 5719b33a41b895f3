package alerts

import (
	"context"
	"database/sql"

	"postern/internal/postern"
)

// MostStates is how many devices and how many endpoints a board has.
const MostStates = 24

// MostWaiting is how far the deliveries that wait for an endpoint are counted on a board.
const MostWaiting = 100

// DeviceState is a device in a few figures.
type DeviceState struct {
	ID              postern.DeviceID
	Name            string
	Status          postern.Status
	Reason          string       // of the status
	Since           postern.Time // of the status; 0 if it is not known
	LastIn, LastOut postern.Time // of the newest messages; 0 if there are none in this direction
	Queue
}

// Devices returns the state of a workspace's devices, at most [MostStates]: first those that are not connected and
// should be, then by name. The last message in each direction is looked for among the newest 50. This number is a part of
// the statement, because PostgreSQL plans to read everything if it does not know how little is wanted.
func (t Table) Devices(ctx context.Context, ws postern.WorkspaceID) (list []DeviceState, err error) {
	const last = `coalesce((SELECT max(created_at) FROM (SELECT m.created_at, m.direction FROM message m
		WHERE m.device_id = d.id ORDER BY m.n DESC LIMIT 50) AS newest WHERE direction = `
	queues, err := t.Queues(ctx, ws)
	if err != nil {
		return nil, err
	}
	err = t.db.Rows(ctx, `SELECT d.id, d.name, d.status, d.status_reason,
		CASE WHEN d.status = 'connected' THEN d.connected_at ELSE d.down_at END,
		`+last+`'inbound'), 0), `+last+`'outbound'), 0)
		FROM device d WHERE d.workspace_id = $1 AND d.deleted_at = 0
		ORDER BY CASE WHEN d.status IN `+down+` THEN 0 ELSE 1 END, d.name, d.id LIMIT $2 + 0`,
		[]any{ws, MostStates}, func(r *sql.Rows) error {
			var s DeviceState
			err := r.Scan(&s.ID, &s.Name, &s.Status, &s.Reason, &s.Since, &s.LastIn, &s.LastOut)
			s.Queue = queues[s.ID]
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

// Endpoints returns the state of a workspace's endpoints, at most [MostStates], with their attempts since a time:
// first those that fail, then by age.
func (t Table) Endpoints(ctx context.Context, ws postern.WorkspaceID, since postern.Time) (list []EndpointState,
	err error,
) {
	const (
		sum  = `coalesce((SELECT CAST(sum(m.`
		of   = `) AS BIGINT) FROM endpoint_minute m WHERE m.endpoint_id = e.id AND m.minute >= $2), 0)`
		last = `coalesce((SELECT m.minute FROM endpoint_minute m WHERE m.endpoint_id = e.id AND m.`
		one  = ` > 0 ORDER BY m.minute DESC LIMIT 1), 0)`
	)
	err = t.db.Rows(ctx, `SELECT e.id, e.url, e.description, e.status, e.failing_since,
		`+sum+`succeeded`+of+`, `+sum+`failed`+of+`, `+last+`succeeded`+one+`, `+last+`failed`+one+`,
		(SELECT count(*) FROM (SELECT 1 AS one FROM delivery d WHERE d.endpoint_id = e.id AND d.status = 'pending'
			LIMIT $3 + 0) AS counted)
		FROM endpoint e WHERE e.workspace_id = $1
		ORDER BY CASE WHEN e.status = 'disabled' OR e.failing_since > 0 THEN 0 ELSE 1 END, e.created_at, e.id
		LIMIT $4 + 0`,
		[]any{ws, since, MostWaiting, MostStates}, func(r *sql.Rows) error {
			var s EndpointState
			err := r.Scan(&s.ID, &s.URL, &s.Description, &s.Status, &s.FailingSince, &s.Succeeded, &s.Failed,
				&s.LastSuccess, &s.LastFailure, &s.Waiting)
			list = append(list, s)
			return err
		})
	return list, err
}
