package alerts

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/postern"
)

// MostFailed is how far a [Backlog] counts events that are no longer attempted.
const MostFailed = 1000

// Backlog is what an endpoint has not received although it was attempted.
type Backlog struct {
	FailingSince postern.Time // from when on every attempt has failed; 0: the last one succeeded
	Waiting      int          // deliveries that wait for another attempt, at most [Counted]
	Older        int          // of these, that were created before a time
	WaitingSince postern.Time // when the oldest of them was created; 0 if nothing waits
	Failed       int          // events that are no longer attempted, at most [MostFailed], the newest first
	FailedSince  postern.Time // when the oldest of these was recorded; 0 if nothing failed
}

var errEnough = errors.New("enough")

// Backlog returns what an endpoint has not received. Of the events that are no longer attempted, it counts those that
// were recorded at or after since, are still in the log, and that the endpoint still wants. A replay of failed events
// sends exactly these.
func (t Table) Backlog(ctx context.Context, e postern.Endpoint, since, before postern.Time) (b Backlog, err error) {
	if err := t.db.Row(ctx, `SELECT coalesce(max(failing_since), 0) FROM endpoint WHERE workspace_id = $1 AND id = $2`,
		[]any{e.WorkspaceID, e.ID}, &b.FailingSince); err != nil {
		return b, err
	}
	if err := t.db.Row(ctx, `SELECT count(*), coalesce(sum(CASE WHEN created_at < $4 THEN 1 ELSE 0 END), 0),
		coalesce(min(created_at), 0) FROM (SELECT created_at FROM delivery
		WHERE workspace_id = $1 AND endpoint_id = $2 AND status = 'pending' AND (attempts > 0 OR replay_id <> '')
		AND first_attempt_at > 0 ORDER BY n LIMIT $3 + 0) AS counted`, []any{e.WorkspaceID, e.ID, Counted, before},
		&b.Waiting, &b.Older, &b.WaitingSince); err != nil {
		return b, err
	}
	err = t.db.Rows(ctx, `SELECT e.created_at, e.type, e.device_id FROM delivery d
		JOIN event e ON e.workspace_id = d.workspace_id AND e.position = d.position
		WHERE d.workspace_id = $1 AND d.endpoint_id = $2 AND d.status = 'exhausted' AND length(e.body) > 0
		ORDER BY d.position DESC LIMIT $3 + 0`, []any{e.WorkspaceID, e.ID, MostFailed}, func(r *sql.Rows) error {
		var at postern.Time
		var kind postern.EventType
		var device postern.DeviceID
		err := r.Scan(&at, &kind, &device)
		switch {
		case err != nil:
			return err
		case at < since:
			return errEnough
		case e.Wants(kind, device):
			b.Failed, b.FailedSince = b.Failed+1, at
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return b, err
}
