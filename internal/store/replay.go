package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

const replayColumns = `id, workspace_id, endpoint_id, status, since, until, types, only_failed, position, last, matched,
	delivered, failed, created_at, ended_at, already_pending`

func scanReplay(s db.Scanner) (r postern.Replay, err error) {
	err = s.Scan(&r.ID, &r.WorkspaceID, &r.EndpointID, &r.Status, &r.Since, &r.Until, jsonColumn{&r.Types},
		&r.OnlyFailed,
		&r.Position, &r.Last, &r.Matched, &r.Delivered, &r.Failed, &r.CreatedAt, &r.EndedAt,
		&r.AlreadyPending)
	return r, err
}

// Create starts a replay for an endpoint of the workspace, which must be active. At most
// MaxReplays run for one endpoint; beyond that Create returns a ReplayLimit error.
func (s Replays) Create(ctx context.Context, r postern.Replay, once *Once, acts ...Act) error {
	check := func(t *db.Tx) error { return checkReplay(t, r) }
	return s.doOnce(ctx, r.WorkspaceID, once, check, func(t *db.Tx) error {
		t.Wake(ReplayChanged, string(r.ID))
		if err := RecordActs(t, acts); err != nil {
			return err
		}
		return t.Exec(`INSERT INTO replay (`+replayColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
			r.ID, r.WorkspaceID, r.EndpointID, r.Status, r.Since, r.Until, asJSON(r.Types), r.OnlyFailed, r.Position,
			r.Last, r.Matched, r.Delivered, r.Failed, r.CreatedAt, r.EndedAt, r.AlreadyPending)
	})
}

// checkReplay returns an error when a replay's endpoint is not active or has enough of them.
//
// Single writer: count.
func checkReplay(t *db.Tx, r postern.Replay) error {
	if err := checkActive(t, r.WorkspaceID, r.EndpointID); err != nil {
		return err
	}
	var running int
	err := t.Row(`SELECT count(*) FROM replay WHERE endpoint_id = $1 AND status = 'running'`, []any{r.EndpointID},
		&running)
	if err == nil && running >= postern.MaxReplays {
		err = postern.Errorf(postern.ReplayLimit,
			"%d replays already run for this endpoint; wait for one to end or stop one", postern.MaxReplays)
	}
	return err
}

// Get returns a replay of the workspace.
func (s Replays) Get(ctx context.Context, ws postern.WorkspaceID, id postern.ReplayID) (postern.Replay, error) {
	r, err := scanReplay(s.db.One(ctx, `SELECT `+replayColumns+` FROM replay WHERE workspace_id = $1 AND id = $2`, ws,
		id))
	return r, notFoundOr(err, s.exists(ctx, `SELECT count(*) FROM replay
		WHERE id = $1 AND workspace_id <> $2`, id, ws), "replay")
}

const replaysOf = `SELECT ` + replayColumns + ` FROM replay WHERE endpoint_id = (SELECT id FROM endpoint
	WHERE workspace_id = $1 AND id = $2) AND ($3 = '' OR id < $3) ORDER BY id DESC LIMIT $4 + 0`

// List returns the replays of an endpoint, newest first.
func (s Replays) List(ctx context.Context, ws postern.WorkspaceID, endpoint postern.EndpointID,
	p Page,
) (list []postern.Replay, err error) {
	err = s.db.Rows(ctx, replaysOf, []any{ws, endpoint, p.After, p.Limit}, func(r *sql.Rows) error {
		one, err := scanReplay(r)
		list = append(list, one)
		return err
	})
	return list, err
}

// Stop ends a running replay, which then queues nothing more. It does nothing when the
// replay has ended.
func (s Replays) Stop(ctx context.Context, ws postern.WorkspaceID, id postern.ReplayID, at postern.Time,
	acts ...Act,
) error {
	return s.db.Do(ctx, db.FuncOf(string(ws), func(t *db.Tx) error {
		n, err := t.Changed(`UPDATE replay SET status = 'stopped', ended_at = $3 WHERE workspace_id = $1 AND id = $2
			AND status = 'running'`, ws, id, at)
		if err == nil && n > 0 {
			err = RecordActs(t, acts)
		}
		return err
	}))
}

// Running lists, over all workspaces, the running replays of an endpoint, or of all
// endpoints when endpoint is "".
func (s Replays) Running(ctx context.Context, endpoint postern.EndpointID) (list []postern.ReplayID, err error) {
	err = s.db.Rows(ctx, `SELECT id FROM replay WHERE status = 'running' AND ($1 = '' OR endpoint_id = $1)
		ORDER BY id`, []any{endpoint}, func(r *sql.Rows) error {
		var id postern.ReplayID
		err := r.Scan(&id)
		list = append(list, id)
		return err
	})
	return list, err
}

// Step queues the next chunk of a replay, unless enough of its deliveries are pending or
// its endpoint is not active. more is false when there is nothing to do until the replay or
// the endpoint changes.
func (s Replays) Step(ctx context.Context, id postern.ReplayID, now postern.Time) (more bool, err error) {
	r, err := scanReplay(s.db.One(ctx, `SELECT `+replayColumns+` FROM replay WHERE id = $1 AND status = 'running'`, id))
	if err != nil {
		return false, ignoreNone(err)
	}
	e, err := scanEndpoint(s.db.One(ctx, `SELECT `+endpointColumns+` FROM endpoint
		WHERE id = $1 AND status = 'active'`, r.EndpointID))
	if err != nil {
		return false, ignoreNone(err)
	}
	var waiting int
	if err := s.db.Row(ctx, `SELECT count(*) FROM delivery WHERE replay_id = $1
		AND replay_id <> '' AND status = 'pending'`, []any{id}, &waiting); err != nil || waiting > replayLow {
		return false, err
	}
	if r.Position >= r.Last {
		return false, s.end(ctx, id, now)
	}
	o := queueReplay{replay: r, now: now}
	if o.list, o.upTo, err = s.replayed(ctx, r, e); err != nil {
		return false, err
	}
	return true, s.db.Do(ctx, db.Func(o.apply))
}

func ignoreNone(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// end completes a replay that has no pending delivery.
func (s Replays) end(ctx context.Context, id postern.ReplayID, now postern.Time) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`UPDATE replay SET status = 'completed', ended_at = $2 WHERE id = $1 AND status = 'running'
			AND NOT EXISTS (SELECT 1 FROM delivery WHERE replay_id = $1 AND replay_id <> ''
			AND status = 'pending')`, id, now)
	}))
}

// replayed returns the next events of a replay and the position up to which the log was
// read for them. One call reads a bounded part of the log: a short one at first, which is enough unless few events are
// wanted.
func (s Replays) replayed(ctx context.Context, r postern.Replay,
	e postern.Endpoint,
) (list []loggedEvent, upTo int64, err error) {
	for _, most := range []int{4 * replayChunk, logScan} {
		upTo, n, err := Events(s).scan(ctx, r.WorkspaceID, r.Position, most)
		if err != nil {
			return nil, 0, err
		}
		end := n < most || upTo > r.Last // of the log or of the replay
		if end {
			upTo = r.Last
		}
		list, err = s.wantedBy(ctx, r, e, upTo)
		switch {
		case err != nil:
			return nil, 0, err
		case len(list) == replayChunk:
			return list, list[replayChunk-1].position, nil
		case end || most == logScan:
			return list, upTo, nil
		}
	}
	return list, upTo, nil
}

// wantedBy returns the first events of a replay up to a position, at most a chunk.
func (s Replays) wantedBy(
	ctx context.Context, r postern.Replay, e postern.Endpoint, upTo int64,
) (list []loggedEvent, err error) {
	err = s.db.Rows(ctx, `SELECT position, id, device_id, type FROM event e WHERE workspace_id = $1 AND position > $2
		AND position <= $3 AND created_at >= $4 AND (CAST($5 AS BIGINT) = 0 OR created_at < $5) AND length(body) > 0
		AND (CAST($6 AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM delivery d WHERE d.endpoint_id = $7 AND d.position = e.position
		AND d.status = 'exhausted')) ORDER BY position`,
		[]any{r.WorkspaceID, r.Position, upTo, r.Since, r.Until, r.OnlyFailed, e.ID}, func(rows *sql.Rows) error {
			l := loggedEvent{Event: postern.Event{WorkspaceID: r.WorkspaceID}}
			if err := rows.Scan(&l.position, &l.ID, &l.DeviceID, &l.Type); err != nil {
				return err
			}
			if e.Wants(l.Type, l.DeviceID) && r.Wants(l.Type) {
				list = append(list, l)
			}
			if len(list) == replayChunk {
				return errPageFull
			}
			return nil
		})
	if errors.Is(err, errPageFull) {
		return list, nil
	}
	return list, err
}

// queueReplay queues a chunk of a replay.
type queueReplay struct {
	replay postern.Replay
	list   []loggedEvent
	upTo   int64
	now    postern.Time
}

// apply does nothing when the replay was stopped or has moved on.
func (o queueReplay) apply(t *db.Tx) error {
	r := o.replay
	n, err := t.Changed(`UPDATE replay SET position = $3 WHERE id = $1 AND status = 'running'
		AND position = $2`, r.ID, r.Position, o.upTo)
	if err != nil || n == 0 {
		return err
	}
	var matched int64
	for i, e := range o.list {
		n, err := o.queue(t, e, o.now-postern.Time(len(o.list)-i)) // due by now, in the order of the log
		if err != nil {
			return err
		}
		matched += n
	}
	if matched > 0 {
		t.Wake(RetryDue, string(r.EndpointID))
	}
	return t.Exec(`UPDATE replay SET matched = matched + $2, already_pending = already_pending + $3 WHERE id = $1`,
		r.ID, matched, int64(len(o.list))-matched)
}

// queue starts a new round of a delivery that has ended, without making later deliveries of
// its chat wait, or creates the delivery when there was none. It leaves a pending delivery
// as it is.
func (o queueReplay) queue(t *db.Tx, e loggedEvent, due postern.Time) (n int64, err error) {
	r := o.replay
	n, err = t.Changed(`UPDATE delivery SET status = 'pending', due_at = $3, earlier = attempts, first_attempt_at = 0,
		completed_at = 0, replay_id = $4, chat = ''
		WHERE endpoint_id = $1 AND position = $2 AND (status = 'exhausted' OR status = 'succeeded'
		AND CAST($5 AS BIGINT) = 0)`, r.EndpointID, e.position, due, r.ID, r.OnlyFailed)
	if err != nil || n > 0 || r.OnlyFailed {
		return n, err
	}
	return t.Changed(`INSERT INTO delivery (id, workspace_id, endpoint_id, event_id, position, device_id, type, status,
		attempts, due_at, created_at, first_attempt_at, last_attempt_at, last_status, last_reason, completed_at, replay_id)
		SELECT $1, workspace_id, $2, id, position, device_id, type, 'pending', 0, $6, $3, 0, 0, 0, '', 0, $4 FROM event
		WHERE position = $5 AND length(body) > 0
		ON CONFLICT (endpoint_id, position) DO NOTHING`, postern.NewDeliveryID(), r.EndpointID, o.now, r.ID, e.position, due)
}

// countReplay counts an ended delivery of a replay. A new round does not belong to the
// replay, for which the delivery has failed.
func (o Attempt) countReplay(t *db.Tx) error {
	if o.Replay == "" || o.Status == postern.DeliveryPending && !o.newRound {
		return nil
	}
	t.Wake(ReplayChanged, string(o.Replay))
	return t.Exec(`UPDATE replay SET delivered = delivered + $2, failed = failed + 1 - $2 WHERE id = $1`, o.Replay,
		o.Status == postern.DeliverySucceeded)
}
