package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store/contactid"
)

// RecordInbound stores a message that arrived. When the network delivers the message again,
// nothing changes and no second event is recorded.
type RecordInbound struct {
	Message       postern.Message
	File          *MediaRow // of a message that carries one
	Sender        string    // together with the network id, identifies the message
	Type          postern.EventType
	Undecryptable bool
	Now           postern.Time
}

// RecordInbound stores a message that arrived, with its event and one delivery for each
// endpoint that wants the event.
func (s Messages) RecordInbound(ctx context.Context, o RecordInbound) error {
	return write(ctx, s.core, o)
}

// About lets workspaces take turns, because the network does not slow down by itself.
func (o RecordInbound) About() db.About {
	return db.About{Workspace: string(o.Message.WorkspaceID), Urgency: db.Flood, Fenced: true}
}

// WriteAll stores the new messages, and fills in those that could not be decrypted before.
func (RecordInbound) WriteAll(t *db.Tx, list []db.Pending[RecordInbound]) error {
	identified, err := meet(t, len(list), func(i int) (*postern.Message, postern.Time) {
		return &list[i].Value.Message, list[i].Value.Now
	})
	if err != nil {
		return err
	}
	rows := make([][]any, len(list))
	for i, p := range list {
		rows[i] = newMessage(p.Value.Message, postern.NormalLane, p.Value.Sender, p.Value.Undecryptable)
	}
	numbers, err := t.Inserted(addMessages, "n", rows)
	if err == nil {
		err = errors.Join(addFiles(t, list, numbers), noteLate(t, list))
	}
	if err != nil {
		return err
	}
	events := make([]eventAt, 0, len(list))
	var repeated []RecordInbound
	var acts []act
	for i := range list {
		o := &list[i].Value
		if numbers[i] == 0 {
			repeated = append(repeated, *o)
			continue
		}
		if o.Message.About != "" {
			acts = append(acts, act{o.Message, o.Now, len(events)})
			continue
		}
		t.Note(MessageMoved{&o.Message, "", numbers[i]})
		e, err := o.Message.Event(o.Type)
		if err != nil {
			return err
		}
		events = append(events, eventAt{e, o.Now})
	}
	if events, err = applyActs(t, acts, events); err != nil {
		return err
	}
	decrypted, acts, err := fillDecrypted(t, repeated)
	if err == nil {
		decrypted, err = applyActs(t, acts, decrypted)
	}
	if err != nil {
		return err
	}
	return recordEvents(t, slices.Concat(identified, events, decrypted))
}

// meet finds or adds the contacts of messages, gives the messages their ids, and returns the events about contacts that
// became known better. at returns the i-th of n messages, and when it was recorded.
func meet(t *db.Tx, n int, at func(i int) (*postern.Message, postern.Time)) ([]eventAt, error) {
	people := make([]contactid.Sighting, n)
	for i := range people {
		m, now := at(i)
		people[i] = contactid.Sighting{
			WorkspaceID: m.WorkspaceID, DeviceID: m.DeviceID, Who: m.Person(), At: now, Past: m.History,
		}
	}
	found, news, err := contactid.Resolve(t, people)
	if err != nil {
		return nil, err
	}
	for i, c := range found {
		m, _ := at(i)
		belong(m, c)
	}
	return identifiedEvents(news, people[0].At)
}

// belong gives a message its contact. If another device knows the number behind the LID of a chat, the message belongs
// to the chat with the number.
func belong(m *postern.Message, c contactid.Found) {
	m.ContactID = c.ID
	if c.Number == "" || !strings.HasPrefix(m.ChatID, "lid:") {
		return
	}
	m.ChatID = c.Chat()
	if m.Direction == postern.Outbound {
		m.To = postern.Maybe(c.Number)
	} else {
		m.From = postern.Maybe(c.Number)
	}
}

// RecordIdentified records what devices are told of contacts that became known better.
func RecordIdentified(t *db.Tx, news []contactid.Identified, now postern.Time) error {
	events, err := identifiedEvents(news, now)
	if err != nil {
		return err
	}
	return recordEvents(t, events)
}

func identifiedEvents(news []contactid.Identified, now postern.Time) ([]eventAt, error) {
	events := make([]eventAt, len(news))
	for i, n := range news {
		e, err := n.Contact.Event(n.WorkspaceID, n.DeviceID)
		if err != nil {
			return nil, err
		}
		events[i] = eventAt{e, now}
	}
	return events, nil
}

// RecordHistory stores messages that the phone of a device had before, oldest first, without events. Those that are known
// stay as they are, whoever is named as their sender.
type RecordHistory struct {
	WorkspaceID postern.WorkspaceID
	DeviceID    postern.DeviceID
	List        []RecordInbound
}

// RecordHistory stores messages of a phone's history.
func (s Messages) RecordHistory(ctx context.Context, o RecordHistory) error {
	return write(ctx, s.core, o)
}

// About lets workspaces take turns.
func (o RecordHistory) About() db.About {
	return db.About{Workspace: string(o.WorkspaceID), Urgency: db.Flood, Fenced: true}
}

// WriteAll stores the messages that are new.
func (RecordHistory) WriteAll(t *db.Tx, list []db.Pending[RecordHistory]) error {
	for i := range list {
		if err := list[i].Value.write(t); err != nil {
			return err
		}
	}
	return nil
}

func (o RecordHistory) write(t *db.Tx) error {
	ids := make([]string, len(o.List))
	for i, m := range o.List {
		ids[i] = db.Clean(m.Message.NetworkID)
	}
	known := map[string]bool{}
	err := t.Rows(`SELECT network_id FROM message WHERE device_id = $1 AND network_id IN `+t.InList(2),
		[]any{o.DeviceID, asJSON(ids)}, func(r *sql.Rows) error {
			var id string
			err := r.Scan(&id)
			known[id] = true
			return err
		})
	if err != nil {
		return err
	}
	var fresh []db.Pending[RecordInbound]
	for i, m := range o.List {
		if !known[ids[i]] {
			known[ids[i]] = true
			fresh = append(fresh, db.Pending[RecordInbound]{Value: m})
		}
	}
	return addPast(t, fresh)
}

// addPast stores messages of a history and their contacts. Their only events are about contacts that became known better.
func addPast(t *db.Tx, list []db.Pending[RecordInbound]) error {
	if len(list) == 0 {
		return nil
	}
	events, err := meet(t, len(list), func(i int) (*postern.Message, postern.Time) {
		return &list[i].Value.Message, list[i].Value.Now
	})
	if err != nil {
		return err
	}
	rows := make([][]any, len(list))
	for i := range list {
		rows[i] = newMessage(list[i].Value.Message, postern.NormalLane, list[i].Value.Sender, false)
	}
	numbers, err := t.Inserted(addMessages, "n", rows)
	if err == nil {
		err = addFiles(t, list, numbers)
	}
	for i := range numbers {
		if numbers[i] != 0 {
			t.Note(pastAdded{&list[i].Value.Message, numbers[i]})
		}
	}
	return errors.Join(err, recordEvents(t, events))
}

// pastAdded is the change of a message of the history that was added.
type pastAdded struct {
	message *postern.Message
	n       int64
}

// arrival identifies a message that arrived.
type arrival struct {
	device            postern.DeviceID
	networkID, sender string
}

var fillDecryptedMessages = db.NewStatement("device, network, author, answered, own_name, subject, "+newContentSet,
	`UPDATE message SET `+setContent+`, reply_to = @answered, about = @subject,
	from_name = CASE WHEN @own_name = '' THEN from_name ELSE @own_name END,
	undecryptable = 0, error_code = '', error_detail = '' [FROM @rows]
	WHERE device_id = @device AND network_id = @network AND sender = @author AND undecryptable = 1
	RETURNING `+messageColumns+`, sender`)

// fillDecrypted fills in messages that could not be decrypted before, and returns their events, and those that turned
// out to be actions. Other messages are repetitions and change nothing.
func fillDecrypted(t *db.Tx, repeated []RecordInbound) (events []eventAt, acts []act, err error) {
	rows, ops := [][]any(nil), make(map[arrival]RecordInbound, len(repeated))
	for _, o := range repeated {
		key := arrival{o.Message.DeviceID, db.Clean(o.Message.NetworkID), db.Clean(o.Sender)}
		if _, twice := ops[key]; twice || o.Undecryptable {
			continue
		}
		ops[key] = o
		m := o.Message
		row := []any{m.DeviceID, m.NetworkID, o.Sender, m.ReplyTo, m.FromName, m.About}
		rows = append(rows, append(row, contentValues(m.Content)...))
	}
	var files [][]any
	err = t.EachRow(fillDecryptedMessages, rows, func(r *sql.Rows) error {
		var sender string
		m, err := scanMessage(withTail{r, []any{&sender}})
		if err != nil {
			return err
		}
		o := ops[arrival{m.DeviceID, m.NetworkID, sender}]
		if m.About != "" {
			acts = append(acts, act{m, o.Now, len(events)})
			return nil
		}
		m.Content.Media = o.Message.Content.Media // not stored yet
		if o.File != nil {
			o.File.MessageID = m.ID
			t.Wake(MediaWanted, string(m.DeviceID))
			files = append(files, o.File.row())
		}
		e, err := m.Event(o.Type)
		events = append(events, eventAt{e, o.Now})
		return err
	})
	if err == nil {
		err = t.Each(addMedia, files)
	}
	for _, a := range acts { // their chats no longer have them as messages
		err = errors.Join(err, contactid.Recount(t, a.DeviceID, a.ChatID))
	}
	return events, acts, err
}

// late is how long after it was sent a message arrives at least, by the network's whole seconds, to be looked at by
// [noteLate]: others cannot have been read elsewhere before they arrived.
const late = 2 * time.Second

// readBefore finds until when chats were read elsewhere, if something that arrives now was sent before that.
var readBefore = db.NewStatement("device, chat, sent", `SELECT s.device_id, s.chat_id, s.read_until
	FROM [@rows CROSS JOIN] chat_setting s WHERE s.device_id = @device AND s.chat_id = @chat AND s.read_until >= @sent`)

// noteLate notes chats with messages that the account has read elsewhere before they arrived here.
func noteLate(t *db.Tx, list []db.Pending[RecordInbound]) error {
	var rows [][]any
	for i := range list {
		m := &list[i].Value.Message
		if countsAsUnread(m) && list[i].Value.Now >= m.SentAt.Add(late) {
			rows = append(rows, []any{m.DeviceID, m.ChatID, m.SentAt})
		}
	}
	return t.EachRow(readBefore, rows, func(r *sql.Rows) error {
		var c readLate
		err := r.Scan(&c.device, &c.chat, &c.until)
		t.Note(c)
		return err
	})
}

// readLate is the change of a chat to which messages were added that the account had read elsewhere.
type readLate struct {
	chatKey

	until postern.Time
}
