package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/postern"
)

const messageColumns = `id, workspace_id, device_id, direction, chat_id, from_number, from_lid, from_name, to_number, reply_to, status, error_code, error_detail, network_id, source, metadata, created_at, sent_at, delivered_at, read_at, expires_at, ` + contentColumns

func scanMessage(s scanner) (m postern.Message, err error) {
	var f postern.Failure
	dst := []any{
		&m.ID, &m.WorkspaceID, &m.DeviceID, &m.Direction, &m.ChatID, &m.From, &m.FromLID, &m.FromName, &m.To, &m.ReplyTo, &m.Status,
		&f.Code, &f.Detail, &m.NetworkID, &m.Source, jsonColumn{&m.Metadata}, &m.CreatedAt, &m.SentAt, &m.DeliveredAt, &m.ReadAt, &m.ExpiresAt,
	}
	err = s.Scan(append(dst, contentInto(&m.Content)...)...)
	if f.Code != "" {
		m.Error = &f
	}
	return m, err
}

// insertMessage adds a row; ok is false when the device already has a message
// of this network id from this sender.
func (t *tx) insertMessage(m postern.Message, sender string, undecryptable bool) (ok bool, err error) {
	n, err := t.changed(`INSERT INTO message (`+newMessageColumns+`, error_code, error_detail, frame_left)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, '', '', 0)
		ON CONFLICT (device_id, network_id, sender) DO NOTHING`, newMessageValues(m, sender, undecryptable)...)
	t.chats[chatKey{m.DeviceID, m.ChatID}] = struct{}{}
	return n == 1, err
}

const newMessageColumns = `id, workspace_id, device_id, direction, chat_id, from_number, from_lid, from_name, to_number, reply_to, status, network_id, source, metadata, created_at, sent_at, delivered_at, read_at, expires_at, sender, undecryptable, ` + contentColumns

func newMessageValues(m postern.Message, sender string, undecryptable bool) []any {
	return append([]any{
		m.ID, m.WorkspaceID, m.DeviceID, m.Direction, m.ChatID, m.From, m.FromLID, m.FromName, m.To, m.ReplyTo, m.Status,
		m.NetworkID, m.Source, asJSON(m.Metadata), m.CreatedAt, m.SentAt, m.DeliveredAt, m.ReadAt, m.ExpiresAt, sender, undecryptable,
	}, contentValues(m.Content)...)
}

// insertMessages adds many rows, and says which were new.
func (t *tx) insertMessages(values [][]any) (fresh map[postern.MessageID]bool, err error) {
	from, args := table(newMessageColumns, values)
	fresh = make(map[postern.MessageID]bool, len(values))
	err = t.rows(`INSERT INTO message (`+newMessageColumns+`, error_code, error_detail, frame_left)
		SELECT `+newMessageColumns+`, '', '', 0 FROM `+from+` ORDER BY ord ON CONFLICT (device_id, network_id, sender) DO NOTHING RETURNING id`, args, func(r *sql.Rows) error {
		var id postern.MessageID
		err := r.Scan(&id)
		fresh[id] = true
		return err
	})
	return fresh, err
}

// QueueMessage accepts an outbound message: it spends a unit of the month's
// quota, writes the row and wakes the device's sender, all or nothing.
type QueueMessage struct {
	Message          postern.Message
	Month            string // such as 2026-11
	Quota            int
	WhenDisconnected string // "fail" or "queue"
	Once             *Once
	Acts             []Act
}

func (o QueueMessage) apply(t *tx) error {
	if err := o.Once.claim(t); err != nil {
		return err
	}
	if err := o.checkDevice(t); err != nil {
		return err
	}
	if err := spend(t, o.Message.WorkspaceID, o.Month, o.Quota); err != nil {
		return err
	}
	if err := countUnit(t, o.Message, o.Month, 1); err != nil {
		return err
	}
	ok, err := t.insertMessage(o.Message, "", false)
	if err == nil && !ok {
		err = errors.New("a network id was chosen twice")
	}
	t.moved(o.Message, "")
	t.wake(OutboundQueued, string(o.Message.DeviceID))
	return errors.Join(err, t.recordActs(o.Acts))
}

func (o QueueMessage) checkDevice(t *tx) error {
	var status postern.Status
	err := t.row(`SELECT status FROM device WHERE workspace_id = $1 AND id = $2 AND deleted_at = 0`, []any{o.Message.WorkspaceID, o.Message.DeviceID}, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return postern.Errorf(postern.NotFound, "there is no such device")
	}
	if err != nil || status == postern.Connected {
		return err
	}
	if o.WhenDisconnected == "queue" && status.HoldsSlot() && status != postern.Linking {
		return nil
	}
	return postern.Errorf(postern.DeviceNotConnected, "the device is %s; wait until it is connected, or send with whenDisconnected set to queue", status)
}

// spend takes one unit of the month's quota, or refuses. The condition is part
// of the statement: two sends can never both see the last unit free.
func spend(t *tx, ws postern.WorkspaceID, month string, quota int) error {
	n, err := t.changed(`INSERT INTO usage (workspace_id, month, messages) SELECT $1, $2, 1 WHERE CAST($3 AS BIGINT) > 0
		ON CONFLICT (workspace_id, month) DO UPDATE SET messages = usage.messages + 1 WHERE usage.messages < $3`, ws, month, quota)
	if err == nil && n == 0 {
		return postern.Errorf(postern.QuotaExhausted, "the plan's %d messages of this month are used up; the month ends at %s", quota, MonthEnd(month))
	}
	return err
}

// refund gives one unit back to the month in which a message was accepted.
func refund(t *tx, m postern.Message) error {
	month := MonthOf(m.CreatedAt)
	err := t.exec(`UPDATE usage SET messages = messages - 1 WHERE workspace_id = $1 AND month = $2 AND messages > 0`, m.WorkspaceID, month)
	if err != nil {
		return err
	}
	return countUnit(t, m, month, -1)
}

// countUnit counts a unit, or takes it off, for the message's device.
func countUnit(t *tx, m postern.Message, month string, n int) error {
	return t.exec(`INSERT INTO device_usage (workspace_id, month, device_id, messages) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, month, device_id) DO UPDATE SET messages = device_usage.messages + excluded.messages`, m.WorkspaceID, month, m.DeviceID, n)
}

// applyAll accepts messages of connected devices within their quotas. Those
// that will be refused, or that may be queued for later, are left over.
func (QueueMessage) applyAll(t *tx, list []pending) (rest []pending, err error) {
	list, rest, err = acceptable(t, list)
	if err != nil || len(list) == 0 {
		return rest, err
	}
	if list, err = claimAll(t, list); err != nil || len(list) == 0 {
		return rest, err
	}
	if err := spendAll(t, list); err != nil {
		return nil, err
	}
	values := make([][]any, len(list))
	for i, p := range list {
		m := queueOf(p).Message
		if err := t.recordActs(queueOf(p).Acts); err != nil {
			return nil, err
		}
		values[i] = newMessageValues(m, "", false)
		t.moved(m, "")
		t.wake(OutboundQueued, string(m.DeviceID))
	}
	fresh, err := t.insertMessages(values)
	if err == nil && len(fresh) != len(list) {
		err = errors.New("a network id was chosen twice")
	}
	return rest, err
}

func queueOf(p pending) QueueMessage { return p.op.(QueueMessage) } //nolint:errcheck,forcetypeassert // a list of one kind

// account is what a month's quota is counted in.
type account struct {
	ws    postern.WorkspaceID
	month string
}

// acceptable sorts out what the state of the device or the quota may refuse.
// Nobody else writes meanwhile.
func acceptable(t *tx, list []pending) (good, rest []pending, err error) {
	connected, err := connectedDevices(t, list)
	if err != nil {
		return nil, nil, err
	}
	used, err := spent(t, list)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range list {
		o := queueOf(p)
		a := account{o.Message.WorkspaceID, o.Month}
		if !connected[o.Message.DeviceID] || used[a] >= o.Quota {
			rest = append(rest, p)
			continue
		}
		used[a]++
		good = append(good, p)
	}
	return good, rest, nil
}

func connectedDevices(t *tx, list []pending) (map[postern.DeviceID]bool, error) {
	values := make([][]any, len(list))
	for i, p := range list {
		values[i] = []any{queueOf(p).Message.WorkspaceID, queueOf(p).Message.DeviceID}
	}
	from, args := table("workspace_id, id", values)
	connected := map[postern.DeviceID]bool{}
	err := t.rows(`SELECT d.id FROM device d JOIN (SELECT DISTINCT workspace_id, id FROM `+from+`) AS asked USING (workspace_id, id) WHERE d.deleted_at = 0 AND d.status = 'connected'`, args, func(r *sql.Rows) error {
		var id postern.DeviceID
		err := r.Scan(&id)
		connected[id] = true
		return err
	})
	return connected, err
}

func spent(t *tx, list []pending) (map[account]int, error) {
	used := map[account]int{}
	var values [][]any
	for _, p := range list {
		a := account{queueOf(p).Message.WorkspaceID, queueOf(p).Month}
		if _, known := used[a]; !known {
			used[a] = 0
			values = append(values, []any{a.ws, a.month})
		}
	}
	from, args := table("workspace_id, month", values)
	err := t.rows(`SELECT workspace_id, month, messages FROM usage JOIN `+from+` USING (workspace_id, month)`, args, func(r *sql.Rows) error {
		var a account
		var n int
		err := r.Scan(&a.ws, &a.month, &n)
		used[a] = n
		return err
	})
	return used, err
}

func spendAll(t *tx, list []pending) error {
	units := map[account]int{}
	for _, p := range list {
		units[account{queueOf(p).Message.WorkspaceID, queueOf(p).Month}]++
	}
	values := make([][]any, 0, len(units))
	for a, n := range units {
		values = append(values, []any{a.ws, a.month, n})
	}
	from, args := table("workspace_id, month, messages", values)
	err := t.exec(`INSERT INTO usage AS have (workspace_id, month, messages) SELECT workspace_id, month, messages FROM `+from+` ORDER BY workspace_id, month
		ON CONFLICT (workspace_id, month) DO UPDATE SET messages = have.messages + excluded.messages`, args...)
	if err != nil {
		return err
	}
	return countUnits(t, list)
}

// countUnits is countUnit for accepted messages.
func countUnits(t *tx, list []pending) error {
	type counter struct {
		account

		device postern.DeviceID
	}
	units := map[counter]int{}
	for _, p := range list {
		o := queueOf(p)
		units[counter{account{o.Message.WorkspaceID, o.Month}, o.Message.DeviceID}]++
	}
	values := make([][]any, 0, len(units))
	for c, n := range units {
		values = append(values, []any{c.ws, c.month, c.device, n})
	}
	const columns = `workspace_id, month, device_id, messages`
	from, args := table(columns, values)
	return t.exec(`INSERT INTO device_usage AS have (`+columns+`) SELECT `+columns+` FROM `+from+` ORDER BY workspace_id, month, device_id
		ON CONFLICT (workspace_id, month, device_id) DO UPDATE SET messages = have.messages + excluded.messages`, args...)
}

// Queue accepts an outbound message.
func (s Messages) Queue(ctx context.Context, o QueueMessage) error { return s.db.do(ctx, o) }

// Get finds a message of the workspace.
func (s Messages) Get(ctx context.Context, ws postern.WorkspaceID, id postern.MessageID) (postern.Message, error) {
	m, err := scanMessage(s.db.one(ctx, `SELECT `+messageColumns+` FROM message WHERE workspace_id = $1 AND id = $2`, ws, id))
	return m, notFoundOr(err, s.db.exists(ctx, `SELECT count(*) FROM message WHERE id = $1 AND workspace_id <> $2`, id, ws), "message")
}

// MessageFilter narrows a list of messages; zero members ask for nothing.
type MessageFilter struct {
	Devices   []postern.DeviceID // nil: all
	ChatID    string
	Direction string
	Status    string
	Since     postern.Time // inclusive
	Until     postern.Time // exclusive
	Archived  bool         // those of numbers that a device had before, instead of the others
}

// current is true of a message, under its name in the statement, that belongs
// to the number which the device has now. A message's n tells: nothing is in the
// queue of a device while its number changes.
func current(message string) string {
	return message + `.n > (SELECT d.history_from FROM device d WHERE d.id = ` + message + `.device_id)`
}

// List lists a workspace's messages, newest first. The page's After is the
// id of the last message seen.
func (s Messages) List(ctx context.Context, ws postern.WorkspaceID, f MessageFilter, p Page) (list []postern.Message, err error) {
	err = s.db.rows(ctx, `SELECT `+messageColumns+` FROM message WHERE workspace_id = $1
		AND ($2 = '' OR n < (SELECT n FROM message WHERE workspace_id = $1 AND id = $2))
		AND ($3 = 'null' OR device_id IN `+s.db.dialect.inList(3)+`) AND ($4 = '' OR chat_id = $4) AND ($5 = '' OR direction = $5) AND ($6 = '' OR status = $6)
		AND (CAST($7 AS BIGINT) = 0 OR created_at >= $7) AND (CAST($8 AS BIGINT) = 0 OR created_at < $8) AND (`+current("message")+`) = (CAST($10 AS BIGINT) = 0) ORDER BY n DESC LIMIT $9 + 0`,
		[]any{ws, p.After, asJSON(f.Devices), f.ChatID, f.Direction, f.Status, f.Since, f.Until, p.Limit, f.Archived}, func(r *sql.Rows) error {
			m, err := scanMessage(r)
			list = append(list, m)
			return err
		})
	return list, err
}
