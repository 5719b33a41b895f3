package store

import (
	"context"
	"database/sql"

	"postern/internal/db"
	"postern/internal/postern"
)

// QueuedMessage is a message to send and whether an earlier attempt may have
// reached the network.
type QueuedMessage struct {
	postern.Message
	FrameLeft bool
}

// Next gives the oldest messages that a device still has to send.
func (s Outbox) Next(ctx context.Context, device postern.DeviceID, limit int) ([]QueuedMessage, error) {
	return s.queued(ctx, ``, device, limit)
}

// queued reads those for which more holds; the parameters are the
// device, the limit, and what more says.
func (s Outbox) queued(ctx context.Context, more string, args ...any) (list []QueuedMessage, err error) {
	err = s.db.Rows(ctx, `SELECT `+messageColumns+`, frame_left FROM message m WHERE device_id = $1 AND status IN ('queued', 'sending')`+more+` ORDER BY n LIMIT $2 + 0`, args, func(r *sql.Rows) error {
		var q QueuedMessage
		m, err := scanMessage(withTail{r, []any{&q.FrameLeft}})
		q.Message = m
		list = append(list, q)
		return err
	})
	return list, err
}

// ChatKind is what is known of a queued message and the chat that it goes to.
type ChatKind string

// The kinds: the message itself may have left before; of the others, those to a
// chat from which an inbound message came lately, in which there is some message,
// and in which there is none that reached or may have reached the network.
const (
	Repeating ChatKind = "repeating"
	Answering ChatKind = "answering"
	Known     ChatKind = "known"
	Fresh     ChatKind = "fresh"
)

func wroteLately() string {
	return `EXISTS (SELECT 1 FROM message i WHERE i.device_id = m.device_id AND i.chat_id = m.chat_id AND i.direction = 'inbound' AND i.created_at > $3 AND ` + current("i") + `)`
}

func hasMessages() string {
	return `EXISTS (SELECT 1 FROM message o WHERE o.device_id = m.device_id AND o.chat_id = m.chat_id AND (o.frame_left = 1 OR o.status IN ('received', 'sent', 'delivered', 'read')) AND ` + current("o") + `)`
}

// NextOf gives the oldest messages of a kind that a device still has to
// send; since says what is lately.
func (s Outbox) NextOf(ctx context.Context, device postern.DeviceID, kind ChatKind, since postern.Time, limit int) ([]QueuedMessage, error) {
	if kind == Repeating {
		return s.queued(ctx, ` AND m.frame_left = 1`, device, limit)
	}
	where := map[ChatKind]string{
		Answering: wroteLately(),
		Known:     `NOT ` + wroteLately() + ` AND ` + hasMessages(),
		Fresh:     `NOT ` + wroteLately() + ` AND NOT ` + hasMessages(),
	}[kind]
	return s.queued(ctx, ` AND m.frame_left = 0 AND `+where, device, limit, since)
}

// MarkSending notes, before the first frame leaves, that a message may from now on have
// reached the network. ok is false when it is no longer queued.
func (s Outbox) MarkSending(ctx context.Context, id postern.MessageID) (ok bool, err error) {
	o := &markSending{id: id}
	err = write(ctx, s.core, o)
	return o.ok, err
}

type markSending struct {
	id postern.MessageID
	ok bool
}

// About keeps the mark in its place.
func (*markSending) About() db.About { return db.About{} }

var markMessages = db.NewStatement("message",
	`UPDATE message SET status = 'sending', frame_left = 1 [FROM @rows] WHERE id = @message AND status IN ('queued', 'sending')`)

// WriteAll marks messages.
func (*markSending) WriteAll(t *db.Tx, list []db.Pending[*markSending]) error {
	rows, places := make([][]any, 0, len(list)), make(map[postern.MessageID]int, len(list))
	for _, p := range list {
		if _, twice := places[p.Value.id]; !twice {
			places[p.Value.id] = len(rows)
			rows = append(rows, []any{p.Value.id})
		}
	}
	changed, err := t.Which(markMessages, rows)
	for _, p := range list {
		p.Value.ok = changed[places[p.Value.id]]
	}
	return err
}

// NoFrameLeft takes MarkSending's note back when the first attempt provably sent nothing.
func (s Outbox) NoFrameLeft(id postern.MessageID) {
	s.db.Later(db.Func(func(t *db.Tx) error {
		return t.Exec(`UPDATE message SET frame_left = 0 WHERE id = $1 AND status = 'sending'`, id)
	}))
}
