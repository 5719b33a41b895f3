package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"postern/internal/db"
	"postern/internal/postern"
)

// Receipt is the network's report of how far an outbound message got.
type Receipt struct {
	WorkspaceID postern.WorkspaceID // of the device
	DeviceID    postern.DeviceID
	NetworkID   string
	Chats       []string              // the chats that the receipt may be for
	Member      string                // who confirms in a group: "lid:" and digits, or a number; "" in a direct chat
	Number      string                // of the member; "" while the network hides it
	Status      postern.MessageStatus // Delivered, Read or Played
	At          postern.Time          // the network's time
	Now         postern.Time
}

// RecordReceipts advances outbound messages to the statuses that receipts report. Receipts
// for unknown messages, and from anyone but the recipient, are ignored.
func (s Messages) RecordReceipts(ctx context.Context, list []Receipt) error {
	return write(ctx, s.core, receipts(list))
}

// receipts are the receipts of one report of the network to a device.
type receipts []Receipt

// About lets workspaces take turns, because many devices may get receipts at once.
func (list receipts) About() db.About {
	if len(list) == 0 {
		return db.About{Fenced: true}
	}
	return db.About{Workspace: string(list[0].WorkspaceID), Urgency: db.Fair, Fenced: true}
}

// WriteAll advances messages in the order of the receipts.
//
// Single writer: change. saveMoved does not check the status that readSent has read.
func (receipts) WriteAll(t *db.Tx, list []db.Pending[receipts]) error {
	var all receipts
	for _, p := range list {
		all = append(all, p.Value...)
	}
	messages, err := all.messages(t)
	if err != nil {
		return err
	}
	before := make(map[*postern.Message]postern.MessageStatus, len(messages))
	left := countdown{t, map[postern.MessageID]int{}}
	var events []eventAt
	for _, o := range all {
		m := messages[sentAs{o.DeviceID, db.Clean(o.NetworkID)}]
		if m == nil {
			continue // not sent by Postern
		}
		if its, err := o.isFor(t, m); err != nil {
			return err
		} else if !its {
			continue // sent to somebody else
		}
		was := m.Status
		steps, err := o.apply(left, m)
		if err != nil {
			return err
		}
		if _, known := before[m]; !known && len(steps) > 0 {
			before[m] = was
		}
		events = append(events, steps...)
	}
	if err := errors.Join(left.save(), saveMoved(t, before)); err != nil {
		return err
	}
	return recordEvents(t, events)
}

// isFor reports whether the receipt is for the chat of a message, or for the chat of which that is about to become a part.
func (o Receipt) isFor(t *db.Tx, m *postern.Message) (bool, error) {
	if slices.Contains(o.Chats, m.ChatID) {
		return true, nil
	}
	var to string
	err := t.Row(`SELECT to_chat FROM chat_join WHERE device_id = $1 AND from_chat = $2`, []any{m.DeviceID, m.ChatID}, &to)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return slices.Contains(o.Chats, to), err
}

// countdown knows how many recipients of messages to groups have not confirmed the next status. So the receipts of a
// message are counted once for each status, and not at each of them.
type countdown struct {
	t    *db.Tx
	left map[postern.MessageID]int
}

const readLeft = `SELECT coalesce((SELECT receipts FROM receipt_left WHERE message_id = $1), 0)`

// isDue takes a recipient into account who has confirmed the next status, and reports whether all are to be counted.
func (c countdown) isDue(id postern.MessageID) (bool, error) {
	left, known := c.left[id]
	if !known {
		if err := c.t.Row(readLeft, []any{id}, &left); err != nil {
			return false, err
		}
	}
	c.left[id] = left - 1
	return left <= 1, nil
}

const writeLeft = `INSERT INTO receipt_left (message_id, receipts) VALUES ($1, $2)
	ON CONFLICT (message_id) DO UPDATE SET receipts = excluded.receipts`

func (c countdown) save() error {
	for id, left := range c.left {
		if err := c.t.Exec(writeLeft, id, max(left, 0)); err != nil {
			return err
		}
	}
	return nil
}

var saveReceipts = db.NewStatement("message, reached, sent, delivered, read, played",
	`UPDATE message SET status = @reached, error_code = '', error_detail = '', sent_at = @sent, delivered_at = @delivered,
		read_at = @read, played_at = @played
	[FROM @rows] WHERE id = @message`)

// saveMoved writes messages whose status changed; the map holds the previous status.
func saveMoved(t *db.Tx, moved map[*postern.Message]postern.MessageStatus) error {
	rows := make([][]any, 0, len(moved))
	for m, from := range moved {
		t.Note(MessageMoved{m, from, 0})
		rows = append(rows, []any{m.ID, m.Status, m.SentAt, m.DeliveredAt, m.ReadAt, m.PlayedAt})
	}
	return t.Each(saveReceipts, rows)
}

// sentAs identifies a message of a device by its network id.
type sentAs struct {
	device    postern.DeviceID
	networkID string
}

var readSent = db.NewStatement("device, network",
	`SELECT `+messageColumns+` FROM message [, @rows] WHERE device_id = @device AND network_id = @network AND sender = ''
		AND about = '' AND `+current("message"))

func (list receipts) messages(t *db.Tx) (map[sentAs]*postern.Message, error) {
	rows := make([][]any, len(list))
	for i, o := range list {
		rows[i] = []any{o.DeviceID, o.NetworkID}
	}
	found, err := scanMessages(t, readSent, rows)
	messages := make(map[sentAs]*postern.Message, len(found))
	for i, m := range found {
		key := sentAs{m.DeviceID, m.NetworkID}
		if messages[key] == nil {
			messages[key] = &found[i]
		}
	}
	return messages, err
}

// apply records the receipt. In a group, a message has the status that all recipients have confirmed.
func (o Receipt) apply(c countdown, m *postern.Message) (events []eventAt, err error) {
	if o.Member == "" {
		return o.move(m)
	}
	isNews, err := o.isNews(c.t, m)
	if err != nil {
		return nil, err
	}
	err = c.t.Exec(recordReceipt, m.ID, o.Member, o.Number, o.At, o.has(postern.Read), o.has(postern.Played))
	if err != nil || !isNews {
		return nil, err
	}
	if due, err := c.isDue(m.ID); !due {
		return nil, err
	}
	o.Status, c.left[m.ID], err = confirmedByAll(c.t, m.ID)
	if err != nil || o.Status == "" {
		return nil, err
	}
	return o.move(m)
}

// isNews reports whether it is the first receipt by which a member confirms the next status of a message.
func (o Receipt) isNews(t *db.Tx, m *postern.Message) (bool, error) {
	var read, played postern.Time
	err := t.Row(`SELECT read_at, played_at FROM receipt WHERE message_id = $1 AND member = $2`, []any{m.ID, o.Member},
		&read, &played)
	known := !errors.Is(err, sql.ErrNoRows)
	if err != nil && known {
		return false, err
	}
	switch {
	case m.Status.Rank() < postern.Delivered.Rank():
		return !known, nil
	case m.Status == postern.Delivered:
		return o.has(postern.Read) != 0 && read == 0, nil
	}
	return o.has(postern.Played) != 0 && played == 0, nil
}

// has returns the time of a status if the receipt includes it, and 0 otherwise.
func (o Receipt) has(s postern.MessageStatus) postern.Time {
	if o.Status.Rank() < s.Rank() {
		return 0
	}
	return o.At
}

// recordReceipt keeps the first time of each status.
const recordReceipt = `INSERT INTO receipt (message_id, member, number, delivered_at, read_at, played_at)
	VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (message_id, member) DO UPDATE SET
	number = CASE WHEN excluded.number = '' THEN receipt.number ELSE excluded.number END,
	read_at = CASE WHEN receipt.read_at = 0 THEN excluded.read_at ELSE receipt.read_at END,
	played_at = CASE WHEN receipt.played_at = 0 THEN excluded.played_at ELSE receipt.played_at END`

// confirmedByAll returns the furthest status that all recipients of a message to a group have confirmed; "" for none,
// and before it is known who they are. left is how many have not confirmed the status after it.
func confirmedByAll(t *db.Tx, id postern.MessageID) (s postern.MessageStatus, left int, err error) {
	var all, delivered, read, played int
	err = t.Row(`SELECT (SELECT recipients FROM message WHERE id = $1), count(*),
		coalesce(sum(CASE WHEN read_at > 0 THEN 1 ELSE 0 END), 0),
		coalesce(sum(CASE WHEN played_at > 0 THEN 1 ELSE 0 END), 0)
		FROM receipt WHERE message_id = $1`, []any{id}, &all, &delivered, &read, &played)
	switch {
	case err != nil || all == 0:
		return "", 0, err
	case delivered < all:
		return "", all - delivered, nil
	case played >= all:
		return postern.Played, all, nil
	case read >= all:
		return postern.Read, all - played, nil
	}
	return postern.Delivered, all - read, nil
}

// advanceInGroup gives a message to a group the status that all recipients have confirmed.
func advanceInGroup(t *db.Tx, m *postern.Message, at postern.Time) error {
	status, left, err := confirmedByAll(t, m.ID)
	if err == nil {
		err = countdown{t, map[postern.MessageID]int{m.ID: left}}.save()
	}
	if err != nil || status == "" {
		return err
	}
	was := m.Status
	events, err := Receipt{Status: status, At: at, Now: at}.move(m)
	if err != nil || len(events) == 0 {
		return err
	}
	return errors.Join(saveMoved(t, map[*postern.Message]postern.MessageStatus{m: was}), recordEvents(t, events))
}

// move advances the message one status at a time, so that each status has its event even
// when the network skipped one.
func (o Receipt) move(m *postern.Message) (events []eventAt, err error) {
	if !movable(*m) {
		return nil, nil
	}
	steps := []postern.MessageStatus{postern.Sent, postern.Delivered, postern.Read, postern.Played}
	for _, s := range steps[:slices.Index(steps, o.Status)+1] {
		if m.Status.Rank() >= s.Rank() {
			continue
		}
		*m = o.step(*m, s)
		e, err := statusEvent(*m, o.Now)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// movable reports whether a receipt may still change the message. Of the messages that have
// ended, only one that failed as unconfirmed can change.
func movable(m postern.Message) bool {
	if m.Source != postern.FromAPI {
		return false
	}
	return m.Status.Rank() > 0 || m.Status == postern.Failed && m.Error != nil && m.Error.Code == postern.Unconfirmed
}

// step returns the message with its next status, and with the times of statuses that the
// network skipped.
func (o Receipt) step(m postern.Message, s postern.MessageStatus) postern.Message {
	m.Status, m.Error = s, nil
	m.SentAt = cmp.Or(m.SentAt, o.At)
	if s.Rank() >= postern.Delivered.Rank() {
		m.DeliveredAt = cmp.Or(m.DeliveredAt, o.At)
	}
	if s.Rank() >= postern.Read.Rank() {
		m.ReadAt = cmp.Or(m.ReadAt, o.At)
	}
	if s == postern.Played {
		m.PlayedAt = cmp.Or(m.PlayedAt, o.At)
	}
	return m
}
