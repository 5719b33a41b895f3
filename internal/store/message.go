package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
)

// contentColumns hold a message's content. Only this constant, contentValues, contentInto
// and setContent know how content is stored.
const contentColumns = `type, body, extra, media_id`

// readContent are contentColumns with the file itself, as JSON, instead of its id.
const readContent = `type, body, extra, CASE WHEN media_id = '' THEN ''
	ELSE coalesce((SELECT f.object FROM media f WHERE f.id = media_id), '{"status":"expired"}') END`

func contentValues(c postern.Content) []any {
	extra := "" // as in rows from before the column
	if !c.IsPlain() {
		extra = asJSON(storedExtra{c.Truncated, nameOf(c.Media), c.Extra, c.ReceivedOnly})
	}
	id := postern.MediaID("")
	if c.Media != nil {
		id = c.Media.ID
	}
	return []any{string(c.Kind), c.Text, extra, id}
}

func nameOf(m *postern.Media) string {
	if m == nil {
		return ""
	}
	return m.Filename
}

// contentInto returns where readContent is scanned to.
func contentInto(c *postern.Content) []any {
	return []any{(*string)(&c.Kind), &c.Text, extraColumn{c}, mediaColumn{c}}
}

// storedExtra is what the column extra holds, as JSON. The column is empty for content that
// has none of it.
type storedExtra struct {
	Truncated bool   `json:"truncated,omitempty"`
	Filename  string `json:"filename,omitempty"` // of the file in this message
	postern.Extra
	postern.ReceivedOnly
}

type extraColumn struct{ of *postern.Content }

func (c extraColumn) Scan(src any) error {
	var stored storedExtra
	if src != "" {
		if err := (jsonColumn{&stored}).Scan(src); err != nil {
			return err
		}
	}
	c.of.Truncated, c.of.Extra, c.of.ReceivedOnly = stored.Truncated, stored.Extra, stored.ReceivedOnly
	c.of.Media = &postern.Media{Filename: stored.Filename} // for mediaColumn
	return nil
}

// mediaColumn is scanned after extraColumn, which knows the name that the file has in the
// message.
type mediaColumn struct{ of *postern.Content }

func (c mediaColumn) Scan(src any) error {
	name := c.of.Media.Filename
	if c.of.Media = nil; src == "" {
		return nil
	}
	c.of.Media = &postern.Media{}
	err := (jsonColumn{c.of.Media}).Scan(src)
	c.of.Media.Filename = cmp.Or(name, c.of.Media.Filename)
	return err
}

// setContent assigns contentColumns from columns of rows whose names begin with new_.
const (
	setContent    = `type = @new_type, body = @new_body, extra = @new_extra, media_id = @new_media`
	newContentSet = `new_type, new_body, new_extra, new_media`
)

const messageColumns = `id, workspace_id, device_id, direction, chat_id, from_number, from_lid, from_name, ` +
	`to_number, reply_to, status, error_code, error_detail, network_id, source, metadata, created_at, sent_at, ` +
	`delivered_at, read_at, played_at, expires_at, about, state, send_at, ` + readContent

func scanMessage(s db.Scanner) (m postern.Message, err error) {
	var f postern.Failure
	dst := []any{
		&m.ID, &m.WorkspaceID, &m.DeviceID, &m.Direction, &m.ChatID, &m.From, &m.FromLID, &m.FromName, &m.To,
		&m.ReplyTo,
		&m.Status, &f.Code, &f.Detail, &m.NetworkID, &m.Source, jsonColumn{&m.Metadata}, &m.CreatedAt, &m.SentAt,
		&m.DeliveredAt, &m.ReadAt, &m.PlayedAt, &m.ExpiresAt, &m.About, stateColumn{&m.State},
		&m.SendAt,
	}
	err = s.Scan(append(dst, contentInto(&m.Content)...)...)
	if f.Code != "" {
		m.Error = &f
	}
	return m.InOrder(), err
}

const newMessageColumns = `id, workspace_id, device_id, direction, chat_id, from_number, from_lid, from_name, ` +
	`to_number, reply_to, status, network_id, source, metadata, created_at, sent_at, delivered_at, read_at, ` +
	`expires_at, sender, undecryptable, error_code, error_detail, about, send_at, ` + contentColumns

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
		undecryptable, failure.Code, failure.Detail, m.About, m.SendAt,
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

// kept are the statuses of messages that old age does not remove.
const kept = `('queued', 'sending', 'scheduled')`

// MessageMoved is the change of a message to its current status from an earlier one; From
// is "" for a new message. The ledgers of hours and chats are updated from it.
type MessageMoved struct {
	Message *postern.Message
	From    postern.MessageStatus
}

// Get returns a message of the workspace.
func (s Messages) Get(ctx context.Context, ws postern.WorkspaceID, id postern.MessageID) (postern.Message, error) {
	m, err := scanMessage(s.db.One(ctx, `SELECT `+messageColumns+` FROM message WHERE workspace_id = $1
		AND id = $2 AND about = ''`, ws, id))
	return m, notFoundOr(err, s.exists(ctx, `SELECT count(*) FROM message
		WHERE id = $1 AND workspace_id <> $2`, id, ws), "message")
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
// than textBytes: the page ends with it. A caller that cuts the page to the size of a
// response leaves it to the next one.
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
	return db.About{Workspace: string(o.Message.WorkspaceID), Urgency: db.Flood}
}

// WriteAll stores the new messages, and fills in those that could not be decrypted before.
func (RecordInbound) WriteAll(t *db.Tx, list []db.Pending[RecordInbound]) error {
	rows := make([][]any, len(list))
	for i, p := range list {
		rows[i] = newMessage(p.Value.Message, p.Value.Sender, p.Value.Undecryptable)
	}
	fresh, err := t.Inserted(addMessages, rows)
	if err == nil {
		err = addFiles(t, list, fresh)
	}
	if err != nil {
		return err
	}
	events := make([]eventAt, 0, len(list))
	var repeated []RecordInbound
	var acts []act
	for i := range list {
		o := &list[i].Value
		if !fresh[i] {
			repeated = append(repeated, *o)
			continue
		}
		if o.Message.About != "" {
			acts = append(acts, act{o.Message, o.Now, len(events)})
			continue
		}
		t.Note(MessageMoved{&o.Message, ""})
		e, err := o.Message.Event(o.Type)
		if err != nil {
			return err
		}
		events = append(events, eventAt{e, o.Now})
	}
	if events, err = applyActs(t, acts, events); err != nil {
		return err
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
	var files [][]any
	err = t.EachRow(fillDecryptedMessages, rows, func(r *sql.Rows) error {
		var sender string
		m, err := scanMessage(withTail{r, []any{&sender}})
		if err != nil {
			return err
		}
		o := ops[arrival{m.DeviceID, m.NetworkID, sender}]
		m.Content.Media = o.Message.Content.Media // not stored yet
		if o.File != nil {
			o.File.MessageID = m.ID
			files = append(files, o.File.row())
		}
		e, err := m.Event(o.Type)
		events = append(events, eventAt{e, o.Now})
		return err
	})
	if err == nil {
		_, err = t.Each(addMedia, files)
	}
	return events, err
}

// MessageSearch narrows a list of messages. A zero field does not restrict it.
type MessageSearch struct {
	Devices   []postern.DeviceID // nil for all devices of the workspace
	DeviceID  postern.DeviceID
	ChatID    string
	Direction string
	Status    string
	Since     postern.Time // inclusive
	Until     postern.Time // exclusive
	Archived  bool         // messages of earlier numbers of a device, instead of those of the present one
}

// MessagePlace is a place in a list of messages. The zero place is its start.
type MessagePlace struct {
	N  int64
	At postern.Time // 0 unless the list is [MessageSearch.ByTime]
}

// MessagePage is a part of a list, newest first.
type MessagePage struct {
	Messages []postern.Message
	Last     MessagePlace // the messages were read down to this place
	More     bool         // there may be results below Last
	places   []MessagePlace
}

// Cut keeps the first n messages, at least one. The list continues below them.
func (p *MessagePage) Cut(n int) {
	if n < len(p.Messages) {
		p.Messages, p.Last, p.More = p.Messages[:n], p.places[n-1], true
	}
}

// Search lists messages of a workspace, newest first, from below a place. A page may have
// fewer messages than limit even though there are more: the search follows the narrowest
// index, and one page looks at a bounded number of its entries to check the conditions that
// the index does not cover.
func (s Messages) Search(ctx context.Context, ws postern.WorkspaceID, q MessageSearch, below MessagePlace,
	limit int) (p MessagePage, err error) {
	if q.DeviceID == "" && len(q.Devices) == 1 {
		q.DeviceID, q.Devices = q.Devices[0], nil
	}
	w, upper, lower := q.way(ws), q.upper(below), MessagePlace{At: q.Since}
	if p.Last, err = s.lookBack(ctx, w, upper, lower, q.look(limit)); err != nil {
		return p, err
	}
	if p.More = p.Last.N != 0; p.More {
		lower = p.Last
	}
	var last MessagePlace
	var size texts
	err = s.db.Rows(ctx, s.searched(w), s.searchArgs(ws, q, w, upper, lower, limit), func(r *sql.Rows) error {
		if len(p.Messages) == limit {
			p.Last, p.More = last, true
			return nil
		}
		m, err := scanMessage(withTail{r, []any{&last.N}})
		last.At = w.timeOf(m)
		p.Messages, p.places = append(p.Messages, m), append(p.places, last)
		return cmp.Or(err, size.add(m))
	})
	if size > textBytes {
		p.Last, p.More = last, true
	}
	return p, unlessFull(err)
}

// ByTime reports whether the list is in the order of time, and not of acceptance. The two
// differ only for messages that were accepted while the clock was set back.
func (s MessageSearch) ByTime() bool {
	return s.ChatID == "" && !s.rare() && (s.Since != 0 || s.Until != 0)
}

// rare reports whether the status has an index. Of the statuses only failed and expired
// have one, because such messages are rare and may be far back. Messages that wait are
// among the newest, and the other statuses match nearly every message.
func (s MessageSearch) rare() bool {
	return s.Status == string(postern.Failed) || s.Status == string(postern.Expired)
}

// upper returns the place below which the list continues.
func (s MessageSearch) upper(below MessagePlace) MessagePlace {
	if below.N == 0 {
		below = MessagePlace{math.MaxInt64, math.MaxInt64}
	}
	if s.Until != 0 && below.At >= s.Until {
		below.At = s.Until
		if s.ByTime() {
			below.N = 0
		}
	}
	return below
}

// way is an index that finds the candidates for a list in its order.
type way struct {
	where  string // with ? for each of the values
	values []any
	byTime bool
}

// way returns the narrowest index.
func (s MessageSearch) way(ws postern.WorkspaceID) way {
	switch {
	case s.ChatID != "":
		return way{`workspace_id = ? AND chat_id = ?`, []any{ws, s.ChatID}, false}
	case s.rare():
		return way{`workspace_id = ? AND status IN ('failed', 'expired')`, []any{ws}, false}
	case s.ByTime():
		return way{`workspace_id = ?`, []any{ws}, true}
	case s.DeviceID != "":
		return way{`device_id = ?`, []any{s.DeviceID}, false}
	}
	return way{`workspace_id = ?`, []any{ws}, false}
}

// between returns the condition for the candidates between two places, with the lower one.
func (w way) between() string {
	if w.byTime {
		return w.where + ` AND (created_at, n) < (?, ?) AND (created_at, n) >= (?, ?)`
	}
	return w.where + ` AND n < ? AND n >= ?`
}

func (w way) args(upper, lower MessagePlace) []any {
	if w.byTime {
		return append(slices.Clip(w.values), upper.At, upper.N, lower.At, lower.N)
	}
	return append(slices.Clip(w.values), upper.N, lower.N)
}

func (w way) order() string {
	if w.byTime {
		return ` ORDER BY created_at DESC, n DESC`
	}
	return ` ORDER BY n DESC`
}

func (w way) timeOf(m postern.Message) postern.Time {
	if w.byTime {
		return m.CreatedAt
	}
	return 0
}

// look returns how many candidates one page looks at: fewer when the index covers all
// conditions except that of the present number.
func (s MessageSearch) look(limit int) int {
	covered := s.ChatID == "" || s.DeviceID == "" && s.Since == 0 && s.Until == 0
	if s.ByTime() {
		covered = s.DeviceID == ""
	}
	if covered && s.Devices == nil && s.Direction == "" && s.Status == "" && !s.Archived {
		return max(plainScan, limit+1)
	}
	return max(messageScan, limit+1)
}

// lookBack returns the place of the last candidate that one page looks at; the zero place
// when there are fewer.
func (s Messages) lookBack(ctx context.Context, w way, upper, lower MessagePlace,
	look int) (last MessagePlace, err error) {
	err = s.look(ctx, lastOf(w), append(w.args(upper, lower), look-1), &last.N, &last.At)
	return last, err
}

func lastOf(w way) string {
	columns := `n, 0`
	if w.byTime {
		columns = `n, created_at`
	}
	return numberFrom(`SELECT `+columns+` FROM message WHERE `+w.between()+w.order()+` LIMIT 1 OFFSET ? + 0`, 1)
}

// searched returns the query for the results among the candidates. Only the subquery has
// conditions that an index answers: with others beside it, SQLite walks over all messages
// between two numbers, whichever workspace they belong to.
func (s Messages) searched(w way) string {
	return numberFrom(`SELECT `+messageColumns+`, n FROM message
		WHERE n IN (SELECT n FROM message WHERE `+w.between()+w.order()+` LIMIT ? + 0)
		AND about = '' AND (? = '' OR workspace_id = ?) AND (? = '' OR device_id = ?) AND (? = '' OR direction = ?)
		AND (? = '' OR status = ?)
		AND (CAST(? AS BIGINT) = 0 OR created_at >= ?) AND (CAST(? AS BIGINT) = 0 OR created_at < ?)
		AND ($1 = 'null' OR device_id IN `+s.db.InList(1)+`)
		AND (`+current("message")+`) = (CAST(? AS BIGINT) = 0)`+w.order()+` LIMIT ? + 0`, 2)
}

func (s Messages) searchArgs(ws postern.WorkspaceID, q MessageSearch, w way, upper, lower MessagePlace,
	limit int) []any {
	args := append([]any{deviceList(q.Devices)}, w.args(upper, lower)...)
	return append(args, q.look(limit), ws, ws, q.DeviceID, q.DeviceID, q.Direction, q.Direction, q.Status, q.Status,
		q.Since, q.Since, q.Until, q.Until, q.Archived, limit+1)
}

// numberFrom replaces each ? of a query by a numbered parameter, from a number on.
func numberFrom(query string, from int) string {
	parts := strings.Split(query, "?")
	for i := range parts[1:] {
		parts[i] += "$" + strconv.Itoa(from+i)
	}
	return strings.Join(parts, "")
}

// chatKey is a chat of a device.
type chatKey struct {
	workspace postern.WorkspaceID
	device    postern.DeviceID
	chat      string
}

var summarizeChats = db.NewStatement("workspace, device, chat",
	`INSERT INTO chat (device_id, chat_id, newest) SELECT @device, @chat, n FROM message
	WHERE workspace_id = @workspace AND chat_id = @chat AND device_id = @device AND about = '' ORDER BY n DESC LIMIT 1
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
		s[chatKey{c.Message.WorkspaceID, c.Message.DeviceID, c.Message.ChatID}] = struct{}{}
	}
}

// Write writes the newest message of each chat with a new message.
func (s chatSummaries) Write(t *db.Tx) error {
	rows := make([][]any, 0, len(s))
	for k := range s {
		rows = append(rows, []any{k.workspace, k.device, k.chat})
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

const oldMessages = `SELECT id, n, created_at, status IN ` + kept + `
	FROM message WHERE workspace_id = $1 AND n > $2 ORDER BY n LIMIT $3 + 0`

// Remove deletes a chunk of the messages made before a time, from after a place on;
// messages still to be sent are kept. next is the place to continue from; more is false
// when no old messages are left.
func (s Messages) Remove(ctx context.Context, ws postern.WorkspaceID, before postern.Time,
	from int64) (next int64, more bool, err error) {
	list, err := s.oldest(ctx, oldMessages, ws, before, from)
	if err != nil || len(list) == 0 {
		return from, false, err
	}
	next, more = list[len(list)-1].place, len(list) == purgeChunk
	ids := idsOf(free(list))
	if len(ids) == 0 {
		return next, more, nil
	}
	return next, more, s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return errors.Join(t.Exec(`DELETE FROM message WHERE workspace_id = $1
			AND id IN `+t.InList(2)+` AND status NOT IN `+kept, ws, asJSON(ids)), lowerHistory(t))
	}))
}

// lowerHistory must follow every deletion of messages. SQLite gives a new message the
// number after the newest one that is left, and [current] requires that this number is
// beyond the history of the message's device. The numbers of PostgreSQL never go back.
func lowerHistory(t *db.Tx) error {
	if t.Postgres() {
		return nil
	}
	return changeDevice(t, `UPDATE device SET history_from = (SELECT coalesce(max(n), 0) FROM message)
		WHERE history_from > 0 AND history_from > (SELECT coalesce(max(n), 0) FROM message)`)
}
