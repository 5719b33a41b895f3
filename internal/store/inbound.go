package store

import (
	"context"
	"database/sql"
	"errors"

	"postern/internal/postern"
)

// RecordInbound keeps a message that arrived, once: what the network gives
// again changes nothing and makes no second event.
type RecordInbound struct {
	Message       postern.Message
	Sender        string // with the network id, what identifies the message
	Type          postern.EventType
	Undecryptable bool
	Now           postern.Time
}

func (o RecordInbound) apply(t *tx) error {
	fresh, err := t.insertMessage(o.Message, o.Sender, o.Undecryptable)
	if err != nil {
		return err
	}
	m := o.Message
	if !fresh {
		if m, err = o.decrypted(t); errors.Is(err, sql.ErrNoRows) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if fresh {
		t.moved(m, "")
	}
	e, err := m.Event(o.Type)
	if err != nil {
		return err
	}
	return t.record(e, o.Now)
}

// applyAll keeps messages that are new, and leaves over what was seen before.
func (RecordInbound) applyAll(t *tx, list []pending) (rest []pending, err error) {
	values := make([][]any, len(list))
	for i, p := range list {
		o := p.op.(RecordInbound) //nolint:errcheck,forcetypeassert // a list of one kind
		values[i] = newMessageValues(o.Message, o.Sender, o.Undecryptable)
	}
	fresh, err := t.insertMessages(values)
	if err != nil {
		return nil, err
	}
	var events []happening
	for _, p := range list {
		o := p.op.(RecordInbound) //nolint:errcheck,forcetypeassert // as above
		if !fresh[o.Message.ID] {
			rest = append(rest, p)
			continue
		}
		t.moved(o.Message, "")
		e, err := o.Message.Event(o.Type)
		if err != nil {
			return nil, err
		}
		events = append(events, happening{e, o.Now})
	}
	return rest, t.recordAll(events)
}

// decrypted fills in a message that could not be read before. It finds no row
// when the message is a plain repetition.
func (o RecordInbound) decrypted(t *tx) (postern.Message, error) {
	if o.Undecryptable {
		return o.Message, sql.ErrNoRows
	}
	args := append([]any{o.Message.DeviceID, o.Message.NetworkID, o.Sender}, contentValues(o.Message.Content)...)
	return t.updateMessage(`UPDATE message SET `+setContent(4)+`, undecryptable = 0 WHERE device_id = $1 AND network_id = $2 AND sender = $3 AND undecryptable = 1 RETURNING `+messageColumns, args...)
}

// RecordInbound keeps a message that arrived, with its event and one delivery
// for each endpoint that wants it.
func (s Messages) RecordInbound(ctx context.Context, o RecordInbound) error { return s.db.do(ctx, o) }
