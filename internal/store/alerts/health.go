package alerts

import (
	"context"
	"database/sql"

	"postern/internal/postern"
)

// Counted is how far messages and deliveries that wait are counted.
const Counted = 10_000

// Health is the state of a workspace in figures.
type Health struct {
	Up, Down, Idle int          // devices that are connected, that are not but should be, and the others
	Waiting        int          // messages still to be sent, at most [Counted] of each device
	WaitingSince   postern.Time // when the oldest of them was accepted; 0 if there are none
	Endpoints      int          // that are active
	Failing        int          // of these
	Disabled       int          // that failed for too long, or did not answer the challenge
}

// Health returns the state of a workspace with these queues.
func (t Table) Health(ctx context.Context, ws postern.WorkspaceID, queues map[postern.DeviceID]Queue) (h Health, err error) {
	if err := t.db.Row(ctx, `SELECT coalesce(sum(CASE WHEN status = 'connected' THEN 1 ELSE 0 END), 0),
		coalesce(sum(CASE WHEN status IN `+down+` THEN 1 ELSE 0 END), 0), count(*)
		FROM device WHERE workspace_id = $1 AND deleted_at = 0`, []any{ws}, &h.Up, &h.Down, &h.Idle); err != nil {
		return h, err
	}
	h.Idle -= h.Up + h.Down
	if err := t.db.Row(ctx, `SELECT coalesce(sum(CASE WHEN status = 'active' THEN 1 ELSE 0 END), 0),
		coalesce(sum(CASE WHEN status = 'active' AND failing_since > 0 THEN 1 ELSE 0 END), 0),
		coalesce(sum(CASE WHEN `+disabled+` THEN 1 ELSE 0 END), 0) FROM endpoint e WHERE workspace_id = $1`,
		[]any{ws}, &h.Endpoints, &h.Failing, &h.Disabled); err != nil {
		return h, err
	}
	for _, q := range queues {
		h.Waiting += q.Waiting
		if h.WaitingSince == 0 || q.Since < h.WaitingSince {
			h.WaitingSince = q.Since
		}
	}
	return h, err
}

// Queue is what a device still has to send.
type Queue struct {
	Waiting int          // at most [Counted]
	Since   postern.Time // since when the oldest of the next twenty messages of each priority waits
}

// Queues returns the queues that are not empty, by device.
func (t Table) Queues(ctx context.Context, ws postern.WorkspaceID) (map[postern.DeviceID]Queue, error) {
	queues := map[postern.DeviceID]Queue{}
	err := t.db.Rows(ctx, `SELECT id, waiting, since FROM (SELECT d.id,
		(SELECT count(*) FROM (SELECT 1 AS one FROM message m WHERE `+waits+` LIMIT $2 + 0) AS counted) AS waiting,
		`+oldestOf+` AS since
		FROM device d WHERE d.workspace_id = $1 AND d.deleted_at = 0) AS queue WHERE waiting > 0`,
		[]any{ws, Counted}, func(r *sql.Rows) error {
			var id postern.DeviceID
			var q Queue
			err := r.Scan(&id, &q.Waiting, &q.Since)
			queues[id] = q
			return err
		})
	return queues, err
}

// Retriable counts the deliveries of an endpoint that wait for another attempt, which can be made at once; at most
// [Counted].
func (t Table) Retriable(
	ctx context.Context, ws postern.WorkspaceID, id postern.EndpointID, now postern.Time,
) (n int, err error) {
	err = t.db.Row(ctx, `SELECT count(*) FROM (SELECT 1 AS one FROM delivery d WHERE d.workspace_id = $1
		AND d.endpoint_id = $2 AND d.status = 'pending' AND (d.attempts > 0 OR d.replay_id <> '')
		AND d.attempts > d.earlier AND d.due_at > $4 LIMIT $3 + 0) AS counted`, []any{ws, id, Counted, now}, &n)
	return n, err
}

// Undelivered counts the deliveries that an endpoint still has to get, at most [Counted].
func (t Table) Undelivered(ctx context.Context, ws postern.WorkspaceID, id postern.EndpointID) (n int, err error) {
	err = t.db.Row(ctx, `SELECT count(*) FROM (SELECT 1 AS one FROM delivery d WHERE d.endpoint_id = $2
		AND d.status = 'pending' AND EXISTS (SELECT 1 FROM endpoint e WHERE e.id = $2 AND e.workspace_id = $1)
		LIMIT $3 + 0) AS counted`, []any{ws, id, Counted}, &n)
	return n, err
}
