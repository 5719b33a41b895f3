package store

import (
	"context"
	"database/sql"

	"postern/internal/db"
	"postern/internal/postern"
)

// RecordInbound keeps a message that arrived, once: when the network delivers it again,
// nothing changes and there is no second event.
type RecordInbound struct {
	Message       postern.Message
	Sender        string // with the network id, what identifies the message
	Type          postern.EventType
	Undecryptable bool
	Now           postern.Time
}

// RecordInbound keeps a message that arrived, with its event and one delivery for each
// endpoint that wants it.
func (s Messages) RecordInbound(ctx context.Context, o RecordInbound) error {
	return write(ctx, s.core, o)
}

// About lets workspaces take turns; the network does not slow down by itself.
func (o RecordInbound) About() db.About {
	return db.About{Workspace: string(o.Message.WorkspaceID), Urgency: db.Flood}
}

// WriteAll keeps the messages that are new, and fills in those that could not be decrypted
// before.
func (RecordInbound) WriteAll(t *db.Tx, list []db.Pending[RecordInbound]) error {
	rows := make([][]any, len(list))
	for i, p := range list {
		rows[i] = newMessage(p.Value.Message, p.Value.Sender, p.Value.Undecryptable)
	}
	fresh, err := insertMessages(t, rows)
	if err != nil {
		return err
	}
	events := make([]eventAt, 0, len(list))
	var repeated []RecordInbound
	for i := range list {
		o := &list[i].Value
		if !fresh[o.Message.ID] {
			repeated = append(repeated, *o)
			continue
		}
		t.Note(MessageMoved{&o.Message, ""})
		e, err := o.Message.Event(o.Type)
		if err != nil {
			return err
		}
		events = append(events, eventAt{e, o.Now})
	}
	decrypted, err := fillDecrypted(t, repeated)
	if err != nil {
		return err
	}
	return recordEvents(t, append(events, decrypted...))
}

// arrival identifies a message that arrived.
type arrival struct {
	device            postern.DeviceID
	networkID, sender string
}

var fillDecryptedMessages = db.NewStatement("device, network, author, kind, content",
	`UPDATE message SET type = @kind, body = @content, undecryptable = 0 [FROM @rows]
	WHERE device_id = @device AND network_id = @network AND sender = @author AND undecryptable = 1 RETURNING `+messageColumns+`, sender`)

// fillDecrypted fills in messages that could not be decrypted before, and returns their
// events. The others are plain repetitions.
func fillDecrypted(t *db.Tx, repeated []RecordInbound) (events []eventAt, err error) {
	rows, ops := [][]any(nil), make(map[arrival]RecordInbound, len(repeated))
	for _, o := range repeated {
		key := arrival{o.Message.DeviceID, db.Clean(o.Message.NetworkID), db.Clean(o.Sender)}
		if _, twice := ops[key]; twice || o.Undecryptable {
			continue
		}
		ops[key] = o
		rows = append(rows, []any{o.Message.DeviceID, o.Message.NetworkID, o.Sender, o.Message.Type, o.Message.Body})
	}
	err = t.EachRow(fillDecryptedMessages, rows, func(r *sql.Rows) error {
		var sender string
		m, err := scanMessage(withTail{r, []any{&sender}})
		if err != nil {
			return err
		}
		o := ops[arrival{m.DeviceID, m.NetworkID, sender}]
		e, err := m.Event(o.Type)
		events = append(events, eventAt{e, o.Now})
		return err
	})
	return events, err
}
