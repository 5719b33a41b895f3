package alerts

import (
	"context"

	"postern/internal/postern"
)

// Backlog is what an endpoint has not received although it was attempted.
type Backlog struct {
	FailingSince postern.Time // from when on every attempt has failed; 0: the last one succeeded
	Waiting      int          // deliveries that wait for another attempt, at most [Counted]
	WaitingSince postern.Time // when the oldest of them was created; 0 if there are none
	Failed       int          // events that are no longer attempted, at most [Counted]
	FailedSince  postern.Time // when the oldest of them was recorded; 0 if there are none
}

// Backlog returns what an endpoint has not received. Of the events that are no longer attempted, it counts those that
// were recorded at or after since and are still in the log: a replay of failed events sends these.
func (t Table) Backlog(
	ctx context.Context, ws postern.WorkspaceID, id postern.EndpointID, since postern.Time,
) (b Backlog, err error) {
	if err := t.db.Row(ctx, `SELECT coalesce(max(failing_since), 0) FROM endpoint WHERE workspace_id = $1 AND id = $2`,
		[]any{ws, id}, &b.FailingSince); err != nil {
		return b, err
	}
	if err := t.db.Row(ctx, `SELECT count(*), coalesce(min(created_at), 0) FROM (SELECT created_at FROM delivery
		WHERE workspace_id = $1 AND endpoint_id = $2 AND status = 'pending' AND (attempts > 0 OR replay_id <> '')
		AND attempts > earlier ORDER BY n LIMIT $3 + 0) AS counted`, []any{ws, id, Counted},
		&b.Waiting, &b.WaitingSince); err != nil {
		return b, err
	}
	err = t.db.Row(ctx, `SELECT count(*), coalesce(min(created_at), 0) FROM (SELECT e.created_at FROM delivery d
		JOIN event e ON e.workspace_id = d.workspace_id AND e.position = d.position
		WHERE d.workspace_id = $1 AND d.endpoint_id = $2 AND d.status = 'exhausted' AND e.created_at >= $4
		AND length(e.body) > 0 ORDER BY d.position DESC LIMIT $3 + 0) AS counted`, []any{ws, id, Counted, since},
		&b.Failed, &b.FailedSince)
	return b, err
}
