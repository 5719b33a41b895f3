package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"postern/internal/db"
	"postern/internal/postern"
)

const endpointColumns = `id, workspace_id, url, description, events, devices, header_names, status, status_reason,
	secret, secret_last_four, max_in_flight, ordered, created_at, verified_at, attempts, due_at, pending_url, old_secrets,
	signatures, signing_key, public_key, header_values, handshake`

func scanEndpoint(s db.Scanner) (e postern.Endpoint, err error) {
	err = s.Scan(&e.ID, &e.WorkspaceID, &e.URL, &e.Description, jsonColumn{&e.Events}, jsonColumn{&e.DeviceIDs},
		jsonColumn{&e.Headers}, &e.Status, &e.StatusReason, &e.Secret, &e.SecretLastFour, &e.MaxInFlight, &e.Ordered,
		&e.CreatedAt, &e.VerifiedAt, &e.Attempts, &e.DueAt, &e.PendingURL, jsonColumn{&e.OldSecrets},
		jsonColumn{&e.Signatures}, &e.SigningKey, &e.PublicKey, &e.HeaderValues, &e.Handshake)
	return e, err
}

// Create adds an endpoint and queues its handshake. The endpoint receives the events
// recorded from now on. limit is the number of endpoints that the plan allows; at the limit
// Create returns an EndpointLimit error.
//
// Single writer: order.
func (s Endpoints) Create(ctx context.Context, e postern.Endpoint, limit int, once *Once, acts ...Act) error {
	check := func(t *db.Tx) error { return checkRoom(t, e.WorkspaceID, limit) }
	return s.doOnce(ctx, e.WorkspaceID, once, check, func(t *db.Tx) error {
		if err := RecordActs(t, acts); err != nil {
			return err
		}
		t.Wake(EndpointChanged, string(e.ID))
		return t.Exec(`INSERT INTO endpoint (`+endpointColumns+`, since, failing_since, failures, headers)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
			$24, (SELECT coalesce(max(position), 0) FROM event), 0, 0, '{}')`,
			e.ID, e.WorkspaceID, e.URL, e.Description, asJSON(e.Events), asJSON(e.DeviceIDs), namesJSON(e.Headers),
			e.Status, e.StatusReason, e.Secret, e.SecretLastFour, e.MaxInFlight, e.Ordered, e.CreatedAt, e.VerifiedAt, e.Attempts,
			e.DueAt, e.PendingURL, asJSON(e.OldSecrets), asJSON(e.Signatures), e.SigningKey, e.PublicKey,
			bytesOf(e.HeaderValues), cmp.Or(e.Handshake, postern.HandshakeEcho))
	})
}

// namesJSON is asJSON, with an empty list for nil.
func namesJSON(list []string) string { return asJSON(append([]string{}, list...)) }

// bytesOf returns the bytes, never nil.
func bytesOf(b []byte) []byte { return append([]byte{}, b...) }

// checkRoom returns an error when a workspace has as many endpoints as it may have.
//
// Single writer: count.
func checkRoom(t *db.Tx, ws postern.WorkspaceID, limit int) error {
	var have int
	err := t.Row(`SELECT count(*) FROM endpoint WHERE workspace_id = $1`, []any{ws}, &have)
	if err == nil && have >= limit {
		err = postern.Errorf(postern.EndpointLimit,
			"the plan allows %d webhook endpoints, and %d exist; delete one or change the plan", limit, have)
	}
	return err
}

// List returns a workspace's endpoints, newest first.
func (s Endpoints) List(ctx context.Context, ws postern.WorkspaceID, p Page) ([]postern.Endpoint, error) {
	return s.list(ctx, `SELECT `+endpointColumns+` FROM endpoint WHERE workspace_id = $1 AND ($2 = '' OR id < $2)
		ORDER BY id DESC LIMIT $3 + 0`, ws, p.After, p.Limit)
}

func (s Endpoints) list(ctx context.Context, query string, args ...any) (list []postern.Endpoint, err error) {
	err = s.db.Rows(ctx, query, args, func(r *sql.Rows) error {
		e, err := scanEndpoint(r)
		list = append(list, e)
		return err
	})
	return list, err
}

// Get returns an endpoint of the workspace.
func (s Endpoints) Get(ctx context.Context, ws postern.WorkspaceID, id postern.EndpointID) (postern.Endpoint, error) {
	e, err := scanEndpoint(s.db.One(ctx, `SELECT `+endpointColumns+` FROM endpoint WHERE workspace_id = $1
		AND id = $2`, ws, id))
	return e, notFoundOr(err, s.exists(ctx, `SELECT count(*) FROM endpoint
		WHERE id = $1 AND workspace_id <> $2`, id, ws), "webhook endpoint")
}

// Change applies change to an endpoint of the workspace and returns the result. change
// receives the current endpoint within the transaction and may be called more than once. An
// endpoint that stops being active receives the events recorded from then on once it is
// active again. The acts are recorded only when something changes.
func (s Endpoints) Change(ctx context.Context, ws postern.WorkspaceID, id postern.EndpointID, once *Once,
	change func(*postern.Endpoint) error, acts ...Act,
) (e postern.Endpoint, err error) {
	var before postern.Endpoint
	err = s.doOnce(ctx, ws, once, func(t *db.Tx) error {
		before, err = readEndpoint(t, ws, id)
		if e = before; err != nil {
			return err
		}
		return change(&e)
	}, func(t *db.Tx) error {
		if !reflect.DeepEqual(before, e) {
			if err := RecordActs(t, acts); err != nil {
				return err
			}
		}
		t.Wake(EndpointChanged, string(id))
		return saveEndpoint(t, e)
	})
	return e, err
}

// readEndpoint returns an endpoint of the workspace, for a change.
//
// Single writer: change.
func readEndpoint(t *db.Tx, ws postern.WorkspaceID, id postern.EndpointID) (postern.Endpoint, error) {
	e, err := scanEndpoint(t.One(`SELECT `+endpointColumns+` FROM endpoint WHERE workspace_id = $1 AND id = $2`, ws,
		id))
	if errors.Is(err, sql.ErrNoRows) {
		return e, postern.Errorf(postern.NotFound, "there is no such webhook endpoint")
	}
	return e, err
}

// saveEndpoint writes an endpoint. One that stops being active has received all events so
// far.
//
// Single writer: order.
func saveEndpoint(t *db.Tx, e postern.Endpoint) error {
	return t.Exec(`UPDATE endpoint SET url = $3, pending_url = $4, description = $5, events = $6, devices = $7,
		header_names = $8, status_reason = $9,
		max_in_flight = $10, ordered = $11, attempts = $12, due_at = $13, secret = $15, secret_last_four = $16,
		old_secrets = $17, signatures = $18, signing_key = $19, public_key = $20,
		header_values = $21, handshake = $22,
		since = CASE WHEN status = 'active' AND $14 <> 'active' THEN (SELECT coalesce(max(position), 0) FROM event)
			ELSE since END, status = $14
		WHERE workspace_id = $1 AND id = $2`,
		e.WorkspaceID, e.ID, e.URL, e.PendingURL, e.Description, asJSON(e.Events), asJSON(e.DeviceIDs),
		namesJSON(e.Headers),
		e.StatusReason, e.MaxInFlight, e.Ordered, e.Attempts, e.DueAt, e.Status,
		e.Secret, e.SecretLastFour, asJSON(e.OldSecrets), asJSON(e.Signatures), e.SigningKey, e.PublicKey,
		bytesOf(e.HeaderValues), e.Handshake)
}

// SealHeaders seals the headers of endpoints that an earlier release stored in the clear. seal
// sets Headers and HeaderValues of an endpoint.
func (s Endpoints) SealHeaders(ctx context.Context,
	seal func(e *postern.Endpoint, headers map[string]string) error,
) error {
	stored := map[postern.EndpointID]map[string]string{}
	err := s.db.Rows(ctx, `SELECT id, headers FROM endpoint WHERE headers NOT IN ('{}', 'null')`, nil,
		func(r *sql.Rows) error {
			var id postern.EndpointID
			var headers map[string]string
			err := r.Scan(&id, jsonColumn{&headers})
			stored[id] = headers
			return err
		})
	if err != nil || len(stored) == 0 {
		return err
	}
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		for id, headers := range stored {
			e := postern.Endpoint{ID: id}
			err := seal(&e, headers)
			if err == nil {
				// Another node may have sealed them meanwhile, and their owner may have changed them there.
				err = t.Exec(`UPDATE endpoint SET headers = '{}', header_names = $2, header_values = $3
					WHERE id = $1 AND headers NOT IN ('{}', 'null')`, id, namesJSON(e.Headers), bytesOf(e.HeaderValues))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// Delete removes an endpoint with its pending deliveries and its log.
func (s Endpoints) Delete(ctx context.Context, ws postern.WorkspaceID, id postern.EndpointID, acts ...Act) error {
	err := s.db.Do(ctx, db.FuncOf(string(ws), func(t *db.Tx) error {
		t.Wake(EndpointChanged, string(id))
		err := t.Exec(`DELETE FROM replay WHERE workspace_id = $1 AND endpoint_id = $2`, ws, id)
		if err != nil {
			return err
		}
		n, err := t.Changed(`DELETE FROM endpoint WHERE workspace_id = $1 AND id = $2`, ws, id)
		if err != nil || n == 0 {
			return err
		}
		return RecordActs(t, acts)
	}))
	for left := true; left && err == nil; {
		left, err = s.dropDeliveries(ctx, ws, id)
	}
	return err
}

// dropDeliveries deletes a chunk of the log and queue of a deleted endpoint, and with the
// last one the counts of attempts that ended since. Deleting all of it in one operation
// would make every other write wait.
func (s Endpoints) dropDeliveries(ctx context.Context, ws postern.WorkspaceID,
	id postern.EndpointID,
) (left bool, err error) {
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		const chunk = `SELECT id FROM delivery WHERE workspace_id = $1 AND endpoint_id = $2 ORDER BY n LIMIT $3 + 0`
		if err := t.Exec(`DELETE FROM attempt WHERE delivery_id IN (`+chunk+`)`, ws, id, purgeChunk); err != nil {
			return err
		}
		n, err := t.Changed(`DELETE FROM delivery WHERE id IN (`+chunk+`)`, ws, id, purgeChunk)
		if left = n == purgeChunk; err != nil || left {
			return err
		}
		const gone = ` WHERE endpoint_id = $1 AND NOT EXISTS (SELECT 1 FROM endpoint WHERE id = $1)`
		return errors.Join(t.Exec(`DELETE FROM endpoint_hour`+gone, id), t.Exec(`DELETE FROM endpoint_minute`+gone, id))
	}))
	return left, err
}

// ForDelivery returns an endpoint of any workspace by its id. It is for the dispatcher,
// which serves all workspaces.
func (s Endpoints) ForDelivery(ctx context.Context, id postern.EndpointID) (postern.Endpoint, error) {
	e, err := scanEndpoint(s.db.One(ctx, `SELECT `+endpointColumns+` FROM endpoint WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return e, postern.Errorf(postern.NotFound, "there is no such webhook endpoint")
	}
	return e, err
}

// Outage is what is stored about the failures of an endpoint since its last success. Deliveries that
// had failed before that do not count: the endpoint may refuse them and accept others.
type Outage struct {
	Failing   postern.Time // since when attempts have failed; 0 if the last one succeeded, or the URL was verified since
	Since     postern.Time // the first attempt that counts; 0 if none does
	Last      postern.Time // the last one
	NotBefore postern.Time // until when the receiver asked not to be tried (Retry-After)
	Failures  int          // in a row; 0 if none counts
}

// Outage returns the outage of an endpoint; zero if it does not fail. If it was verified since its last failure,
// only the failures are set.
func (s Endpoints) Outage(ctx context.Context, id postern.EndpointID) (o Outage, err error) {
	err = s.db.Row(ctx, `SELECT failing_since, failures FROM endpoint WHERE id = $1`, []any{id},
		&o.Failing, &o.Failures)
	if errors.Is(err, sql.ErrNoRows) {
		return Outage{}, nil
	}
	if err != nil || o.Failing == 0 {
		return o, err
	}
	err = s.db.Row(ctx, `SELECT coalesce(min(first_attempt_at), 0), coalesce(max(last_attempt_at), 0),
		coalesce(max(not_before), 0) FROM delivery d WHERE endpoint_id = $1 AND status = 'pending'`+again+`
		AND first_attempt_at >= $2`, []any{id, o.Failing}, &o.Since, &o.Last, &o.NotBefore)
	if o.Since == 0 {
		o.Failures = 0
	}
	return o, err
}

// PendingHandshakes lists, over all workspaces, the endpoints with an unfinished handshake,
// of their URL or of a new URL, in the order in which they are due.
func (s Endpoints) PendingHandshakes(ctx context.Context) ([]postern.Endpoint, error) {
	return s.list(ctx, `SELECT `+endpointColumns+` FROM endpoint WHERE status = 'pending'
		UNION ALL SELECT `+endpointColumns+` FROM endpoint WHERE status = 'active' AND pending_url <> '' AND due_at > 0
			ORDER BY due_at`)
}

// FinishHandshake is the outcome of an attempt at a handshake that did not succeed: another
// attempt at DueAt, or the end of the handshake when DueAt is zero.
type FinishHandshake struct {
	EndpointID postern.EndpointID
	URL        string // that the handshake was sent to
	Attempts   int    // with this one
	DueAt      postern.Time
	Post       HandshakePost
}

// apply changes only the delivery log when the endpoint has changed since the attempt began.
func (o FinishHandshake) apply(t *db.Tx) error {
	if err := o.Post.log(t, o.EndpointID); err != nil {
		return err
	}
	t.Wake(EndpointChanged, string(o.EndpointID))
	return t.Exec(`UPDATE endpoint SET status = CASE WHEN status = 'pending'
		AND CAST($4 AS BIGINT) = 0 THEN 'failed' ELSE status END, status_reason = $2, attempts = $3, due_at = $4,
		failing_since = CASE WHEN status = 'pending' AND CAST($4 AS BIGINT) = 0 AND failing_since = 0
			THEN CAST($6 AS BIGINT) ELSE failing_since END
		WHERE id = $1 AND attempts = $3 - 1 AND (status = 'pending' AND url = $5 OR status = 'active' AND pending_url = $5)`,
		o.EndpointID, o.Post.Reason, o.Attempts, o.DueAt, o.URL, o.Post.At)
}

// FinishHandshake records a failed attempt at a handshake.
func (s Endpoints) FinishHandshake(ctx context.Context, o FinishHandshake) error {
	return s.db.Do(ctx, db.Func(o.apply))
}

// Verified records a successful handshake: a pending endpoint becomes active, as with
// [Endpoints.Activate], and an active one moves to its new URL. It changes only the delivery
// log when the endpoint no longer has that URL.
func (s Endpoints) Verified(ctx context.Context, id postern.EndpointID, url string, p HandshakePost) error {
	err := s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		if err := p.log(t, id); err != nil {
			return err
		}
		n, err := t.Changed(`UPDATE endpoint SET url = pending_url, pending_url = '', status_reason = '', verified_at = $3,
			attempts = 0, due_at = 0
			WHERE id = $1 AND status = 'active' AND pending_url = $2`, id, url, p.Ended)
		if n > 0 {
			t.Wake(EndpointChanged, string(id))
		}
		return err
	}))
	if err != nil {
		return err
	}
	return s.activate(ctx, id, url, p.Ended)
}

// HandshakePost is one POST of a handshake, as the delivery log shows it. Each has its own
// event, because each has its own challenge.
type HandshakePost struct {
	EventID    postern.EventID
	Body       []byte
	Number     int // of the attempt in its handshake, starting with 1
	At         postern.Time
	Ended      postern.Time
	HTTPStatus int    // 0 when there was no response
	Reason     string // "" for success
	Answer     string // the response's body, at most its first KiB
}

// log adds the POST to the delivery log of the endpoint, unless the endpoint was deleted.
// Like a notice, it has a position below those of the others, and no statistics count it.
//
// Single writer: order.
func (p HandshakePost) log(t *db.Tx, id postern.EndpointID) error {
	status := postern.DeliverySucceeded
	if p.Reason != "" {
		status = postern.DeliveryExhausted
	}
	return t.Exec(`INSERT INTO delivery (id, workspace_id, endpoint_id, event_id, position, device_id, type, status,
		attempts, due_at, created_at, first_attempt_at, last_attempt_at, last_duration, last_status, last_reason,
		last_answer, completed_at, notice)
		SELECT $2, workspace_id, id, $3, (SELECT coalesce(min(position), 0) - 1 FROM delivery WHERE endpoint_id = $1
		AND position < 0), '', $4, $5, $6, 0, $7, $7, $7, $8, $9, $10, $11, $12, $13 FROM endpoint WHERE id = $1`,
		id, postern.NewDeliveryID(), p.EventID, postern.WebhookVerification, status, p.Number, p.At,
		int64(p.Ended-p.At), p.HTTPStatus, p.Reason, p.Answer, p.Ended, p.Body)
}

// Activate makes a pending endpoint active, or pauses it when the plan of its workspace has no
// webhooks. Before that it queues, in order, the events
// that the endpoint wants and that were recorded since its creation or pause, at most 72
// hours back. Each operation queues one chunk, so that other writes do not wait long.
// Events recorded during the catch-up follow in order.
func (s Endpoints) Activate(ctx context.Context, id postern.EndpointID, now postern.Time) error {
	return s.activate(ctx, id, "", now)
}

// activate changes nothing when the endpoint is not pending or its URL differs from url; an
// empty url matches any. The endpoint no longer fails, but the number of its failures is kept until an attempt
// succeeds, which ends the outage: see [Outage].
//
// Single writer: order. No event is recorded between the last chunk and the new status.
func (s Endpoints) activate(ctx context.Context, id postern.EndpointID, url string, now postern.Time) error {
	for {
		var more bool
		err := s.db.Do(ctx, db.Func(func(t *db.Tx) (err error) {
			if err := pauseWithoutWebhooks(t, id); err != nil {
				return err
			}
			more, err = catchUp(t, id, url, now)
			if errors.Is(err, sql.ErrNoRows) {
				return nil // deleted or changed by another operation
			}
			if err != nil || more {
				return err
			}
			t.Wake(EndpointChanged, string(id))
			t.Wake(DeliveryDue, string(id))
			return t.Exec(`UPDATE endpoint SET status = 'active', status_reason = '', verified_at = $2, attempts = 0,
				due_at = CASE WHEN pending_url <> '' THEN CAST($2 AS BIGINT) ELSE 0 END, failing_since = 0
				WHERE id = $1 AND status = 'pending'`, id, now)
		}))
		if err != nil || !more {
			return err
		}
	}
}

// pauseWithoutWebhooks pauses a pending endpoint whose workspace has no plan with webhooks:
// the plan may have changed since the handshake began.
func pauseWithoutWebhooks(t *db.Tx, id postern.EndpointID) error {
	var plan string
	err := t.Row(`SELECT w.plan FROM endpoint e JOIN workspace w ON w.id = e.workspace_id
		WHERE e.id = $1 AND e.status = 'pending'`, []any{id}, &plan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // deleted or changed by another operation
	}
	if p, _ := postern.PlanByName(plan); err != nil || p.API {
		return err
	}
	t.Wake(EndpointChanged, string(id))
	return t.Exec(`UPDATE endpoint SET status = 'paused', status_reason = 'plan', due_at = 0 WHERE id = $1`, id)
}

func catchUp(t *db.Tx, id postern.EndpointID, url string, now postern.Time) (more bool, err error) {
	var since int64
	ep := postern.Endpoint{ID: id}
	err = t.Row(`SELECT workspace_id, events, devices, ordered, since FROM endpoint WHERE id = $1 AND status = 'pending'
		AND ($2 = '' OR url = $2)`, []any{id, url}, &ep.WorkspaceID, jsonColumn{&ep.Events}, jsonColumn{&ep.DeviceIDs},
		&ep.Ordered, &since)
	if err != nil {
		return false, err
	}
	missed, last, err := missedEvents(t, ep, since, now.Add(-catchUpWindow))
	if err != nil {
		return false, err
	}
	var rows [][]any
	for _, m := range missed {
		if ep.Wants(m.Type, m.DeviceID) {
			rows = append(rows, newDelivery(ep, m.Event, m.position, now))
		}
	}
	if err := queueDeliveries(t, rows); err != nil {
		return false, err
	}
	return len(missed) == catchUpChunk, t.Exec(`UPDATE endpoint SET since = $2 WHERE id = $1`, id, last)
}

type loggedEvent struct {
	postern.Event
	position int64
}

// missedEvents returns a chunk of the events recorded after since. It reads their bodies only
// for an ordered endpoint, to find their chats.
func missedEvents(t *db.Tx, ep postern.Endpoint, since int64, oldest postern.Time) (list []loggedEvent, last int64,
	err error,
) {
	last = since
	columns := `position, id, device_id, type`
	if ep.Ordered {
		columns += `, body`
	}
	err = t.Rows(`SELECT `+columns+` FROM event WHERE workspace_id = $1 AND position > $2
		AND created_at >= $3 AND length(body) > 0 ORDER BY position LIMIT $4 + 0`,
		[]any{ep.WorkspaceID, since, oldest, catchUpChunk}, func(r *sql.Rows) error {
			e := loggedEvent{Event: postern.Event{WorkspaceID: ep.WorkspaceID}}
			var body []byte
			dst := []any{&e.position, &e.ID, &e.DeviceID, &e.Type}
			if ep.Ordered {
				dst = append(dst, &body)
			}
			err := r.Scan(dst...)
			e.ChatID = chatIn(body)
			list, last = append(list, e), e.position
			return err
		})
	return list, last, err
}

// chatIn returns the id of the chat in an event's body, as in [postern.Event], or "" when it has none.
func chatIn(body []byte) string {
	type inChat struct {
		ChatID string `json:"chatId"`
	}
	var e struct{ Message, Call, Group, Contact inChat }
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	return cmp.Or(e.Message.ChatID, e.Call.ChatID, e.Group.ChatID, e.Contact.ChatID)
}

// QueueNotice queues a notice for an endpoint of the workspace, which must be active. d
// describes the delivery and body is what it posts.
func (s Deliveries) QueueNotice(ctx context.Context, ws postern.WorkspaceID, d postern.Delivery, body []byte,
	once *Once, acts ...Act,
) error {
	check := func(t *db.Tx) error { return checkActive(t, ws, d.EndpointID) }
	return s.doOnce(ctx, ws, once, check, func(t *db.Tx) error {
		return errors.Join(insertNotice(t, ws, d, body), RecordActs(t, acts))
	})
}

// checkActive returns an error when the endpoint does not exist or is not active.
func checkActive(t *db.Tx, ws postern.WorkspaceID, id postern.EndpointID) error {
	var status postern.EndpointStatus
	err := t.Row(`SELECT status FROM endpoint WHERE workspace_id = $1 AND id = $2`, []any{ws, id}, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return postern.Errorf(postern.NotFound, "there is no such webhook endpoint")
	}
	if err == nil && status != postern.EndpointActive {
		return notActive(status)
	}
	return err
}

// insertNotice queues a notice at a position below those of the endpoint's other notices.
//
// Single writer: order.
func insertNotice(t *db.Tx, ws postern.WorkspaceID, d postern.Delivery, body []byte) error {
	t.Wake(DeliveryDue, string(d.EndpointID))
	return t.Exec(`INSERT INTO delivery (id, workspace_id, endpoint_id, event_id, position, device_id, type, status,
		attempts, due_at, created_at, first_attempt_at, last_attempt_at, last_status, last_reason, completed_at, notice)
		SELECT $1, $2, $3, $4, coalesce(min(position), 0) - 1, '', $5, 'pending', 0, $6, $6, 0, 0, 0, '', 0, $7 FROM delivery
		WHERE endpoint_id = $3 AND position < 0`,
		d.ID, ws, d.EndpointID, d.EventID, d.Type, d.CreatedAt, body)
}

// recordDisabled notifies the endpoints that list the event WebhookDisabled by name that
// the endpoint id was disabled. An endpoint that is limited to some devices learns only of
// endpoints limited to the same devices or fewer.
func recordDisabled(t *db.Tx, id postern.EndpointID, at postern.Time) error {
	gone, err := scanEndpoint(t.One(`SELECT `+endpointColumns+` FROM endpoint WHERE id = $1`, id))
	if err != nil {
		return err
	}
	list, err := subscribers(t, gone.WorkspaceID, "webhook.")
	if err != nil {
		return err
	}
	event := postern.NewEventID()
	body := gone.DisabledNotice(event, at)
	for _, e := range list {
		if !slices.Contains(e.Events, string(postern.WebhookDisabled)) || !covers(e.DeviceIDs, gone.DeviceIDs) {
			continue
		}
		d := postern.Delivery{
			ID: postern.NewDeliveryID(), EndpointID: e.ID, EventID: event,
			Type:      postern.WebhookDisabled,
			CreatedAt: at,
		}
		if err := insertNotice(t, gone.WorkspaceID, d, body); err != nil {
			return err
		}
	}
	return nil
}

// covers reports whether list contains all devices of the other list; nil stands for every
// device.
func covers(list, all []postern.DeviceID) bool {
	if list == nil {
		return true
	}
	return all != nil && !slices.ContainsFunc(all, func(id postern.DeviceID) bool { return !slices.Contains(list, id) })
}
