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

// Receipt is the network's word on how far an outbound message got.
type Receipt struct {
	DeviceID  postern.DeviceID
	NetworkID string
	Status    postern.MessageStatus // Delivered or Read
	At        postern.Time          // the network's time
	Now       postern.Time
}

// RecordReceipts moves outbound messages forward.
func (s Messages) RecordReceipts(ctx context.Context, list []Receipt) error {
	return write(ctx, s.core, receipts(list))
}

// receipts are those of one report of the network.
type receipts []Receipt

// About keeps receipts in their place.
func (receipts) About() db.About { return db.About{} }

// WriteAll moves messages forward, in the order of the receipts.
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
	var events []eventAt
	for _, o := range all {
		m := messages[sentAs{o.DeviceID, db.Clean(o.NetworkID)}]
		if m == nil {
			continue // not one of ours
		}
		was := m.Status
		steps, err := o.move(m)
		if err != nil {
			return err
		}
		if _, known := before[m]; !known && len(steps) > 0 {
			before[m] = was
		}
		events = append(events, steps...)
	}
	if err := saveMoved(t, before); err != nil {
		return err
	}
	return recordEvents(t, events)
}

var saveReceipts = db.NewStatement("message, reached, sent, delivered, read",
	`UPDATE message SET status = @reached, error_code = '', error_detail = '', sent_at = @sent, delivered_at = @delivered, read_at = @read
	[FROM @rows] WHERE id = @message`)

// saveMoved writes messages that have moved on from a status.
func saveMoved(t *db.Tx, moved map[*postern.Message]postern.MessageStatus) error {
	rows := make([][]any, 0, len(moved))
	for m, from := range moved {
		t.Note(MessageMoved{m, from})
		rows = append(rows, []any{m.ID, m.Status, m.SentAt, m.DeliveredAt, m.ReadAt})
	}
	_, err := t.Each(saveReceipts, rows)
	return err
}

// sentAs is the network's name for a message of a device.
type sentAs struct {
	device    postern.DeviceID
	networkID string
}

var readSent = db.NewStatement("device, network",
	`SELECT `+messageColumns+` FROM message [, @rows] WHERE device_id = @device AND network_id = @network AND sender = '' AND `+current("message"))

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

// move takes the message forward step by step, so that each state it passes has its event
// even when the network skipped one.
func (o Receipt) move(m *postern.Message) (events []eventAt, err error) {
	if !movable(*m) {
		return nil, nil
	}
	steps := []postern.MessageStatus{postern.Sent, postern.Delivered, postern.Read}
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

// movable tells whether a receipt may still change the message. One that
// failed for want of a confirmation is the one ended message that can.
func movable(m postern.Message) bool {
	if m.Source != postern.FromAPI {
		return false
	}
	return m.Status.Rank() > 0 || m.Status == postern.Failed && m.Error != nil && m.Error.Code == postern.Unconfirmed
}

// step gives the message its next state, and the times that the network passed
// over.
func (o Receipt) step(m postern.Message, s postern.MessageStatus) postern.Message {
	m.Status, m.Error = s, nil
	m.SentAt = cmp.Or(m.SentAt, o.At)
	if s == postern.Delivered || s == postern.Read {
		m.DeliveredAt = cmp.Or(m.DeliveredAt, o.At)
	}
	if s == postern.Read {
		m.ReadAt = cmp.Or(m.ReadAt, o.At)
	}
	return m
}

// ByNetworkID finds a message that the device sent under its present
// number; ok is false when there is none.
func (s Messages) ByNetworkID(ctx context.Context, device postern.DeviceID, networkID string) (m postern.Message, ok bool, err error) {
	m, err = scanMessage(s.db.One(ctx, `SELECT `+messageColumns+` FROM message WHERE device_id = $1 AND network_id = $2 AND sender = '' AND direction = 'outbound' AND `+current("message"), device, networkID))
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	return m, err == nil, err
}
