package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
)

// contentColumns hold a message's content. Only this constant, contentValues, contentInto
// and setContent know how content is stored.
const contentColumns = `type, body, extra`

func contentValues(c postern.Content) []any {
	extra := "" // as in rows from before the column
	if c.Truncated || c.Extra != (postern.Extra{}) {
		extra = asJSON(storedExtra{c.Truncated, c.Extra})
	}
	return []any{string(c.Kind), c.Text, extra}
}

// contentInto returns where contentColumns are scanned to.
func contentInto(c *postern.Content) []any {
	return []any{(*string)(&c.Kind), &c.Text, extraColumn{c}}
}

// storedExtra is what the column extra holds, as JSON. The column is empty for content that
// has none of it.
type storedExtra struct {
	Truncated bool `json:"truncated,omitempty"`
	postern.Extra
}

type extraColumn struct{ of *postern.Content }

func (c extraColumn) Scan(src any) error {
	var stored storedExtra
	if src != "" {
		if err := (jsonColumn{&stored}).Scan(src); err != nil {
			return err
		}
	}
	c.of.Truncated, c.of.Extra = stored.Truncated, stored.Extra
	return nil
}

// setContent assigns contentColumns from columns of rows whose names begin with new_.
const (
	setContent    = `type = @new_type, body = @new_body, extra = @new_extra`
	newContentSet = `new_type, new_body, new_extra`
)

const messageColumns = `id, workspace_id, device_id, direction, chat_id, from_number, from_lid, from_name, ` +
	`to_number, reply_to, status, error_code, error_detail, network_id, source, metadata, created_at, sent_at, ` +
	`delivered_at, read_at, expires_at, ` + contentColumns

func scanMessage(s db.Scanner) (m postern.Message, err error) {
	var f postern.Failure
	dst := []any{
		&m.ID, &m.WorkspaceID, &m.DeviceID, &m.Direction, &m.ChatID, &m.From, &m.FromLID, &m.FromName, &m.To,
		&m.ReplyTo,
		&m.Status, &f.Code, &f.Detail, &m.NetworkID, &m.Source, jsonColumn{&m.Metadata}, &m.CreatedAt, &m.SentAt,
		&m.DeliveredAt, &m.ReadAt, &m.ExpiresAt,
	}
	err = s.Scan(append(dst, contentInto(&m.Content)...)...)
	if f.Code != "" {
		m.Error = &f
	}
	return m.InOrder(), err
}

const newMessageColumns = `id, workspace_id, device_id, direction, chat_id, from_number, from_lid, from_name, ` +
	`to_number, reply_to, status, network_id, source, metadata, created_at, sent_at, delivered_at, read_at, ` +
	`expires_at, sender, undecryptable, error_code, error_detail, ` + contentColumns

// newMessage returns the row of a new message.
func newMessage(m postern.Message, sender string, undecryptable bool) []any {
	var failure postern.Failure
	if m.Error != nil {
		failure = *m.Error
	}
	return append([]any{
		m.ID, m.WorkspaceID, m.DeviceID, m.Direction, m.ChatID, m.From, m.FromLID, m.FromName, m.To, m.ReplyTo,
		m.Status,
		m.NetworkID, m.Source, asJSON(m.Metadata), m.CreatedAt, m.SentAt, m.DeliveredAt, m.ReadAt, m.ExpiresAt, sender,
		undecryptable, failure.Code, failure.Detail,
	}, contentValues(m.Content)...)
}

// addMessages adds the messages that are new: a device has at most one message with the same
// network id and sender. It numbers messages with n in the order of their rows, which is
// their order within a chat.
//
// Single writer: order.
var addMessages = db.NewStatement(newMessageColumns,
	`INSERT INTO message (`+newMessageColumns+`, frame_left)
	@values (@`+strings.ReplaceAll(newMessageColumns, ", ", ", @")+`, 0)
	ON CONFLICT (device_id, network_id, sender) DO NOTHING`)

// unsent are the statuses of a message that still has to be sent.
const unsent = `('queued', 'sending')`

// MessageMoved is the change of a message to its current status from an earlier one; From
// is "" for a new message. The ledgers of hours and chats are updated from it.
type MessageMoved struct {
	Message *postern.Message
	From    postern.MessageStatus
}

// Get returns a message of the workspace.
func (s Messages) Get(ctx context.Context, ws postern.WorkspaceID, id postern.MessageID) (postern.Message, error) {
	m, err := scanMessage(s.db.One(ctx, `SELECT `+messageColumns+` FROM message WHERE workspace_id = $1
		AND id = $2`, ws, id))
	return m, notFoundOr(err, s.exists(ctx, `SELECT count(*) FROM message
		WHERE id = $1 AND workspace_id <> $2`, id, ws), "message")
}

// MessageFilter narrows a list of messages. A zero field does not restrict the list.
type MessageFilter struct {
	Devices   []postern.DeviceID // nil for all
	ChatID    string
	Direction string
	Status    string
	Since     postern.Time // inclusive
	Until     postern.Time // exclusive
	Archived  bool         // messages of earlier numbers of a device, instead of those of the present one
}

// current returns the condition that a message, under its name in the statement, belongs to
// the present number of its device. It compares the message's n, which is sufficient
// because the queue of a device is empty while its number changes; see [lowerHistory].
func current(message string) string {
	return message + `.n > (SELECT d.history_from FROM device d WHERE d.id = ` + message + `.device_id)`
}

// texts counts the bytes of the texts on a page of messages.
type texts int

// add counts a message. It returns errPageFull for the first one that makes a page larger
// than textBytes: the page ends with it, and whoever cuts the page to the bytes that a
// response may have leaves it to the next one.
func (t *texts) add(m postern.Message) error {
	if *t += texts(len(m.Content.Text)); *t > textBytes {
		return errPageFull
	}
	return nil
}

// unlessFull returns nil for the error of a page that is full.
func unlessFull(err error) error {
	if errors.Is(err, errPageFull) {
		return nil
	}
	return err
}

// List returns a workspace's messages, newest first. p.After is the id of the last message
// of the previous page. It ends with the message that makes it larger than textBytes.
func (s Messages) List(ctx context.Context, ws postern.WorkspaceID, f MessageFilter,
	p Page) (list []postern.Message, err error) {
	var size texts
	err = s.db.Rows(ctx, `SELECT `+messageColumns+` FROM message WHERE workspace_id = $1
		AND ($2 = '' OR n < (SELECT n FROM message WHERE workspace_id = $1 AND id = $2))
		AND ($3 = 'null' OR device_id IN `+s.db.InList(3)+`) AND ($4 = '' OR chat_id = $4) AND ($5 = '' OR direction = $5)
			AND ($6 = '' OR status = $6)
		AND (CAST($7 AS BIGINT) = 0 OR created_at >= $7) AND (CAST($8 AS BIGINT) = 0 OR created_at < $8)
		AND (`+current("message")+`) = (CAST($10 AS BIGINT) = 0) ORDER BY n DESC LIMIT $9 + 0`,
		[]any{ws, p.After, asJSON(f.Devices), f.ChatID, f.Direction, f.Status, f.Since, f.Until, p.Limit, f.Archived},
		func(r *sql.Rows) error {
			m, err := scanMessage(r)
			list = append(list, m)
			return cmp.Or(err, size.add(m))
		})
	return list, unlessFull(err)
}

// RecordInbound stores a message that arrived. When the network delivers the message again,
// nothing changes and no second event is recorded.
type RecordInbound struct {
	Message       postern.Message
	Sender        string // together with the network id, identifies the message
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
	return db.About{Workspace: string(o.Message.WorkspaceID), Urgency: db.Flood}
}

// WriteAll stores the new messages, and fills in those that could not be decrypted before.
func (RecordInbound) WriteAll(t *db.Tx, list []db.Pending[RecordInbound]) error {
	rows := make([][]any, len(list))
	for i, p := range list {
		rows[i] = newMessage(p.Value.Message, p.Value.Sender, p.Value.Undecryptable)
	}
	fresh, err := t.Inserted(addMessages, rows)
	if err != nil {
		return err
	}
	events := make([]eventAt, 0, len(list))
	var repeated []RecordInbound
	for i := range list {
		o := &list[i].Value
		if !fresh[i] {
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

var fillDecryptedMessages = db.NewStatement("device, network, author, "+newContentSet,
	`UPDATE message SET `+setContent+`, undecryptable = 0, error_code = '', error_detail = '' [FROM @rows]
	WHERE device_id = @device AND network_id = @network AND sender = @author AND undecryptable = 1
	RETURNING `+messageColumns+`, sender`)

// fillDecrypted fills in messages that could not be decrypted before, and returns their
// events. Other messages are repetitions and change nothing.
func fillDecrypted(t *db.Tx, repeated []RecordInbound) (events []eventAt, err error) {
	rows, ops := [][]any(nil), make(map[arrival]RecordInbound, len(repeated))
	for _, o := range repeated {
		key := arrival{o.Message.DeviceID, db.Clean(o.Message.NetworkID), db.Clean(o.Sender)}
		if _, twice := ops[key]; twice || o.Undecryptable {
			continue
		}
		ops[key] = o
		row := []any{o.Message.DeviceID, o.Message.NetworkID, o.Sender}
		rows = append(rows, append(row, contentValues(o.Message.Content)...))
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

// MessageSearch narrows a search. A zero field does not restrict it.
type MessageSearch struct {
	Devices   []postern.DeviceID // nil for all devices of the workspace
	DeviceID  postern.DeviceID
	ChatID    string
	Direction string
	Status    string
}

// MessagePage is a part of the results of a search, newest first.
type MessagePage struct {
	Messages []postern.Message
	Last     int64 // the messages were read down to this place
	More     bool  // there may be results below Last
}

// Search searches the messages of a workspace's present numbers, newest first, from below a
// place; 0 starts at the newest. A page may have fewer messages than limit even though
// there are more: the search follows the narrowest index, and one page reads a bounded
// number of its entries to check the conditions that the index does not cover.
func (s Messages) Search(ctx context.Context, ws postern.WorkspaceID, q MessageSearch, before int64,
	limit int) (p MessagePage, err error) {
	way, first, second := q.way(ws)
	look := q.look(limit)
	var newest, n int
	if err := s.db.Row(ctx, lookBack(way), []any{cmp.Or(before, math.MaxInt64), look, first, second}, &p.Last, &newest,
		&n); err != nil || n == 0 {
		return p, err
	}
	p.More = n == look
	var places []int64
	var size texts
	err = s.db.Rows(ctx, s.searched(way), []any{newest + 1, look, first, second, ws, q.DeviceID, q.Direction, q.Status,
		asJSON(q.Devices), limit + 1}, func(r *sql.Rows) error {
		var place int64
		m, err := scanMessage(withTail{r, []any{&place}})
		p.Messages, places = append(p.Messages, m), append(places, place)
		return cmp.Or(err, size.add(m))
	})
	if n := min(len(places), limit); n < len(places) || size > textBytes {
		p.Messages, p.Last, p.More = p.Messages[:n], places[n-1], true
	}
	return p, unlessFull(err)
}

// way returns the condition of the narrowest index, and its two parameters, $3 and $4. Of
// the statuses only failed and expired have an index, because such messages are rare and
// may be far back. Messages that wait are among the newest, and the other statuses match
// nearly every message.
func (s MessageSearch) way(ws postern.WorkspaceID) (where string, first, second any) {
	switch {
	case s.ChatID != "" && s.DeviceID != "":
		return `device_id = $3 AND chat_id = $4`, s.DeviceID, s.ChatID
	case s.ChatID != "":
		return `device_id IN (SELECT id FROM device WHERE workspace_id = $3) AND chat_id = $4`, ws, s.ChatID
	case s.Status == string(postern.Failed) || s.Status == string(postern.Expired):
		return `workspace_id = $3 AND status IN ('failed', 'expired') AND $4 = ''`, ws, ""
	case s.DeviceID != "":
		return `device_id = $3 AND $4 = ''`, s.DeviceID, ""
	}
	return `workspace_id = $3 AND $4 = ''`, ws, ""
}

// look returns how many messages one page reads: fewer when the index covers all conditions
// except that of the present number.
func (s MessageSearch) look(limit int) int {
	if s.Devices == nil && s.Direction == "" && s.Status == "" {
		return max(plainScan, limit+1)
	}
	return max(messageScan, limit+1)
}

// part returns the condition for the places that one page reads.
func part(way string) string {
	return `SELECT n FROM message WHERE ` + way + ` AND n < $1 ORDER BY n DESC LIMIT $2 + 0`
}

// lookBack returns the query for the bounds of the places that one page reads, and for the
// number of messages between them.
func lookBack(way string) string {
	return `SELECT coalesce(min(n), 0), coalesce(max(n), 0), count(*) FROM (` + part(way) + `) looked`
}

// searched returns the query for the results within such a part.
func (s Messages) searched(way string) string {
	return `SELECT ` + messageColumns + `, n FROM message WHERE n IN (` + part(way) + `) AND workspace_id = $5
		AND ($6 = '' OR device_id = $6) AND ($7 = '' OR direction = $7) AND ($8 = '' OR status = $8)
		AND ($9 = 'null' OR device_id IN ` + s.db.InList(9) + `)
		AND ` + current("message") + ` ORDER BY n DESC LIMIT $10 + 0`
}

// chatKey is a chat of a device.
type chatKey struct {
	device postern.DeviceID
	chat   string
}

var summarizeChats = db.NewStatement("device, chat",
	`INSERT INTO chat (device_id, chat_id, newest) SELECT @device, @chat, n FROM message
	WHERE device_id = @device AND chat_id = @chat ORDER BY n DESC LIMIT 1
	ON CONFLICT (device_id, chat_id) DO UPDATE SET newest = excluded.newest`)

// chatSummaries maintain the newest message of each chat, with one write for all new
// messages of a chat in a group. With PostgreSQL a statement trigger does this.
//
// Single writer: ledger.
type chatSummaries map[chatKey]struct{}

func newChatSummaries() chatSummaries { return chatSummaries{} }

// Note adds a new message.
func (s chatSummaries) Note(change any) {
	if c, is := change.(MessageMoved); is && c.From == "" {
		s[chatKey{c.Message.DeviceID, c.Message.ChatID}] = struct{}{}
	}
}

// Write writes the newest message of each chat with a new message.
func (s chatSummaries) Write(t *db.Tx) error {
	rows := make([][]any, 0, len(s))
	for k := range s {
		rows = append(rows, []any{k.device, k.chat})
	}
	clear(s)
	if t.Postgres() {
		return nil
	}
	_, err := t.Each(summarizeChats, rows)
	return err
}

// Discard forgets the messages.
func (s chatSummaries) Discard() { clear(s) }

// Chat is the conversation of a device with a person or a group.
type Chat struct {
	Name   string // of the last sender, on the network; "" before the first inbound message
	Newest postern.Message
	Place  int64 // in the list
}

// chatsOf selects the chats of a device through their newest messages. Chats whose newest
// message belongs to an earlier number of the device are not among them.
const chatsOf = `SELECT ` + messageColumns + `, n, coalesce((SELECT i.from_name FROM message i
		WHERE i.device_id = m.device_id AND i.chat_id = m.chat_id AND i.direction = 'inbound' ORDER BY i.created_at DESC
		LIMIT 1), '')
	FROM message m WHERE n IN (SELECT c.newest FROM chat c WHERE c.device_id = $2 AND c.newest < $3
		AND c.newest > (SELECT d.history_from FROM device d WHERE d.id = $2 AND d.workspace_id = $1) ORDER BY c.newest DESC
		LIMIT $4 + 0)
	ORDER BY n DESC`

// List returns up to limit chats of a device from below a place, ordered by their newest
// messages, newest first; 0 starts at the beginning.
func (s Chats) List(ctx context.Context, ws postern.WorkspaceID, device postern.DeviceID, before int64,
	limit int) (list []Chat, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	var size texts
	err = s.db.Rows(ctx, chatsOf, []any{ws, device, before, limit}, func(r *sql.Rows) error {
		var c Chat
		m, err := scanMessage(withTail{r, []any{&c.Place, &c.Name}})
		c.Newest = m
		list = append(list, c)
		return cmp.Or(err, size.add(m))
	})
	return list, unlessFull(err)
}
