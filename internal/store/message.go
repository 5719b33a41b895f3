package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store/contactid"
)

// contentColumns hold a message's content. Only this constant, contentValues, contentInto
// and setContent know how content is stored.
const contentColumns = `type, body, extra, media_id`

// readContent are contentColumns with the file itself, as JSON, instead of its id.
const readContent = `type, body, extra, CASE WHEN media_id = '' THEN ''
	ELSE coalesce((SELECT f.object FROM media f WHERE f.id = media_id), '{"status":"expired"}') END`

func contentValues(c postern.Content) []any {
	id := postern.MediaID("")
	if c.Media != nil {
		id = c.Media.ID
	}
	return []any{string(c.Kind), c.Text, extraOf(c), id}
}

// extraOf returns the column extra. It is empty for plain content, as in rows from before it.
func extraOf(c postern.Content) string {
	if c.IsPlain() {
		return ""
	}
	return asJSON(storedExtra{c.Truncated, nameOf(c.Media), c.Extra, c.ReceivedOnly})
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
	`delivered_at, read_at, played_at, expires_at, about, state, send_at, priority, trace, history, contact_id, ` + readContent

func scanMessage(s db.Scanner) (m postern.Message, err error) {
	var f postern.Failure
	dst := []any{
		&m.ID, &m.WorkspaceID, &m.DeviceID, &m.Direction, &m.ChatID, &m.From, &m.FromLID, &m.FromName, &m.To,
		&m.ReplyTo,
		&m.Status, &f.Code, &f.Detail, &m.NetworkID, &m.Source,
		jsonColumn{&m.Metadata},
		&m.CreatedAt, &m.SentAt,
		&m.DeliveredAt, &m.ReadAt, &m.PlayedAt, &m.ExpiresAt, &m.About,
		stateColumn{&m.State},
		&m.SendAt, &m.Priority, &m.Trace, &m.History, &m.ContactID,
	}
	err = s.Scan(append(dst, contentInto(&m.Content)...)...)
	if f.Code != "" {
		m.Error = &f
	}
	return m.InOrder(), err
}

const newMessageColumns = `id, workspace_id, device_id, direction, chat_id, from_number, from_lid, from_name, ` +
	`to_number, reply_to, status, network_id, source, metadata, created_at, sent_at, delivered_at, read_at, ` +
	`expires_at, sender, undecryptable, error_code, error_detail, about, send_at, priority, lane, trace, history, contact_id, ` +
	contentColumns

// newMessage returns the row of a new message. One that is not to be sent has the normal lane.
func newMessage(m postern.Message, lane postern.Lane, sender string, undecryptable bool) []any {
	var failure postern.Failure
	if m.Error != nil {
		failure = *m.Error
	}
	return append([]any{
		m.ID, m.WorkspaceID, m.DeviceID, m.Direction, m.ChatID, m.From, m.FromLID, m.FromName, m.To, m.ReplyTo,
		m.Status,
		m.NetworkID, m.Source, asJSON(m.Metadata), m.CreatedAt, m.SentAt, m.DeliveredAt, m.ReadAt, m.ExpiresAt, sender,
		undecryptable, failure.Code, failure.Detail, m.About, m.SendAt, m.Priority, lane, m.Trace, m.History, m.ContactID,
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

// isUnsent tells that a message, which a statement finds by its id, still has to be sent. See [isPending] for its
// form.
const isUnsent = `status || '' IN ` + unsent

// kept are the statuses of messages that old age does not remove.
const kept = `('queued', 'sending', 'scheduled')`

// MessageMoved is the change of a message to its current status from an earlier one. The
// ledgers of hours and chats are updated from it.
type MessageMoved struct {
	Message *postern.Message
	From    postern.MessageStatus // "" for a new message
	N       int64                 // of a new message: its number in the table
}

// Get returns a message of the workspace.
func (s Messages) Get(ctx context.Context, ws postern.WorkspaceID, id postern.MessageID) (postern.Message, error) {
	m, err := scanMessage(s.db.One(ctx, `SELECT `+messageColumns+` FROM message WHERE workspace_id = $1
		AND id = $2 AND about = '' AND NOT `+erased("message"), ws, id))
	return m, notFoundOr(err, s.exists(ctx, `SELECT count(*) FROM message
		WHERE id = $1 AND workspace_id <> $2`, id, ws), "message")
}

// Preview returns the picture of a message's preview; known is false if the preview was not
// looked up.
func (s Messages) Preview(ctx context.Context, id postern.MessageID) (picture []byte, known bool, err error) {
	err = s.db.Row(ctx, `SELECT preview, preview IS NOT NULL FROM message WHERE id = $1`, []any{id}, &picture, &known)
	return picture, known, err
}

// SetPreview stores what was found for the link of a message; a nil preview if there is nothing.
func (s Messages) SetPreview(
	ctx context.Context, id postern.MessageID, p *postern.LinkPreview, picture []byte,
) error {
	if picture == nil {
		picture = []byte{}
	}
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		m, err := scanMessage(t.One(`SELECT `+messageColumns+` FROM message WHERE id = $1`, id))
		if errors.Is(err, sql.ErrNoRows) { // it was removed
			return nil
		}
		if err != nil {
			return err
		}
		m.Content.LinkPreview = p
		return t.Exec(`UPDATE message SET preview = $2, extra = $3 WHERE id = $1`, id, picture, extraOf(m.Content))
	}))
}

// current returns the condition that a message, under its name in the statement, belongs to
// the present number of its device. It compares the message's n, which is sufficient
// because the queue of a device is empty while its number changes; see [lowerHistory].
//
// The condition must not be usable by an index: without statistics, SQLite takes a range of a device's messages for a
// narrow choice, and would read all of them to find one by its id on the network.
func current(message string) string {
	return message + `.n + 0 > (SELECT d.history_from FROM device d WHERE d.id = ` + message + `.device_id)`
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

// chatKey is a chat of a device.
type chatKey struct {
	device postern.DeviceID
	chat   string
}

// unreadKinds is the condition that a message, with columns under a prefix, counts as unread until it was read. The
// triggers that follow removed messages have it too.
func unreadKinds(m string) string {
	return m + `direction = 'inbound' AND ` + m + `source = 'contact' AND ` + m + `about = '' AND ` + m +
		`type <> 'call' AND ` + m + `history = 0 AND ` + m + `chat_id <> 'status'`
}

func countsAsUnread(m *postern.Message) bool {
	return m.Direction == postern.Inbound && m.Source == postern.FromContact && m.About == "" &&
		m.Content.Kind != postern.KindCall && m.ChatID != postern.StatusChat
}

var summarizeChats = db.NewStatement("device, chat, place, first, fresh",
	`INSERT INTO chat (device_id, chat_id, workspace_id, newest, unread)
	SELECT @device, @chat, workspace_id, n, @fresh FROM message WHERE n = @place AND device_id = @device AND chat_id = @chat
	ON CONFLICT (device_id, chat_id) DO UPDATE SET newest = excluded.newest, unread = unread + CASE WHEN read_to < @first
		THEN excluded.unread ELSE (SELECT count(*) FROM message m WHERE m.device_id = @device AND m.chat_id = @chat
		AND m.n > read_to AND m.n > newest AND m.n <= @place AND `+unreadKinds("m.")+`) END`)

// summary is what a group of writes adds to a chat.
type summary struct {
	newest, first int64 // numbers of messages
	unread        int64 // of the added messages
}

// A message of the history counts as read, and is the newest one of its chat only if it is newer than the one that was.
var summarizePast = db.NewStatement("device, chat, place, made",
	`INSERT INTO chat (device_id, chat_id, workspace_id, newest, unread)
	SELECT @device, @chat, workspace_id, n, 0 FROM message WHERE n = @place AND device_id = @device AND chat_id = @chat
	ON CONFLICT (device_id, chat_id) DO UPDATE SET newest = excluded.newest
	WHERE @made > coalesce((SELECT m.created_at FROM message m WHERE m.n = chat.newest), 0)`)

// chatSummaries maintain the newest message of each chat and how many are unread, with one write for all new
// messages of a chat in a group. With PostgreSQL a statement trigger does this.
//
// Single writer: ledger.
type chatSummaries struct {
	added map[chatKey]summary
	past  map[chatKey]pastAdded
	late  map[chatKey]postern.Time
}

func newChatSummaries() chatSummaries {
	return chatSummaries{map[chatKey]summary{}, map[chatKey]pastAdded{}, map[chatKey]postern.Time{}}
}

// Note adds a new message.
func (s chatSummaries) Note(change any) {
	if p, is := change.(pastAdded); is {
		s.notePast(p)
	}
	if c, is := change.(readLate); is {
		s.late[c.chatKey] = c.until
	}
	c, is := change.(MessageMoved)
	if !is || c.From != "" || c.Message.About != "" {
		return
	}
	key := chatKey{c.Message.DeviceID, c.Message.ChatID}
	one, known := s.added[key]
	if !known {
		one.first = c.N
	}
	if one.newest = c.N; countsAsUnread(c.Message) {
		one.unread++
	}
	s.added[key] = one
}

func (s chatSummaries) notePast(p pastAdded) {
	key := chatKey{p.message.DeviceID, p.message.ChatID}
	if was, known := s.past[key]; !known || was.message.CreatedAt <= p.message.CreatedAt {
		s.past[key] = p
	}
}

// Write writes what was noted of each chat with a new message.
func (s chatSummaries) Write(t *db.Tx) error {
	defer s.Discard()
	if err := s.summarize(t); err != nil {
		return err
	}
	for k, until := range s.late {
		if err := ReadUntil(t, k.device, k.chat, until); err != nil {
			return err
		}
	}
	return nil
}

func (s chatSummaries) summarize(t *db.Tx) error {
	if t.Postgres() {
		return nil
	}
	rows := make([][]any, 0, len(s.added))
	for k, one := range s.added {
		rows = append(rows, []any{k.device, k.chat, one.newest, one.first, one.unread})
	}
	if err := t.Each(summarizeChats, rows); err != nil || len(s.past) == 0 {
		return err
	}
	past := make([][]any, 0, len(s.past))
	for k, c := range s.past {
		past = append(past, []any{k.device, k.chat, c.n, c.message.CreatedAt})
	}
	return t.Each(summarizePast, past)
}

// Discard forgets the messages.
func (s chatSummaries) Discard() {
	clear(s.added)
	clear(s.past)
	clear(s.late)
}

// readUpTo marks the messages of a chat as read up to one of them, by its number. The summary of a chat counts the
// messages up to its newest one: what is added by the same group of writes is counted later.
func readUpTo(t *db.Tx, k chatKey, n int64) error {
	return t.Exec(`UPDATE chat SET unread = CASE WHEN newest <= $3 THEN 0 ELSE unread - (SELECT count(*) FROM message m
		WHERE m.device_id = $1 AND m.chat_id = $2 AND m.n > chat.read_to AND m.n <= $3
		AND `+onNetwork("m")+` AND `+unreadKinds("m.")+`) END,
		read_to = $3 WHERE device_id = $1 AND chat_id = $2 AND read_to < $3`, k.device, k.chat, n)
}

// NewestMessage is the newest message of a chat.
type NewestMessage struct {
	postern.Message

	N    int64  // its number, by which chats are ordered
	Name string // of the last sender, on the network, or of the group; "" if it is not known
}

var newestOf = `SELECT ` + messageColumns + `, n, coalesce(CASE WHEN substr(m.chat_id, 1, 6) = 'group:'
		THEN (SELECT g.subject FROM chat_group g WHERE g.device_id = m.device_id AND g.chat_id = m.chat_id)
		WHEN substr(m.chat_id, 1, 8) = 'channel:'
		THEN (SELECT k.name FROM channel k WHERE k.device_id = m.device_id AND k.chat_id = m.chat_id)
		WHEN m.chat_id = 'status' THEN ''
		ELSE coalesce((SELECT b.name FROM address_book b WHERE b.device_id = m.device_id AND b.entry = m.chat_id),
		(SELECT b.name FROM address_book b WHERE b.device_id = m.device_id AND b.other = m.chat_id AND b.other <> ''
		ORDER BY b.entry LIMIT 1), (SELECT i.from_name FROM message i
		WHERE i.device_id = m.device_id AND i.chat_id = m.chat_id AND i.direction = 'inbound' ORDER BY i.created_at DESC
		LIMIT 1)) END, '')
	FROM message m WHERE workspace_id || '' = $1 AND n IN (SELECT CAST(id AS BIGINT) FROM named)
	AND NOT ` + erased("m") + ` ORDER BY n DESC`

// Newest returns messages by their numbers, the highest first, with the names of their chats. It may leave out the
// last ones, because the texts of a page have a limit.
func (s Chats) Newest(
	ctx context.Context, ws postern.WorkspaceID, numbers []int64,
) (list []NewestMessage, err error) {
	var size texts
	err = s.db.Rows(ctx, `WITH named (id) AS `+s.db.InList(2)+` `+newestOf, []any{ws, asJSON(numbers)},
		func(r *sql.Rows) error {
			var c NewestMessage
			m, err := scanMessage(withTail{r, []any{&c.N, &c.Name}})
			c.Message = m
			list = append(list, c)
			return cmp.Or(err, size.add(m))
		})
	return list, unlessFull(err)
}

// Timer is after how many seconds the messages of a chat disappear, and since when.
type Timer struct {
	Seconds int
	Since   postern.Time
}

// SetTimer stores the timer of a chat, unless a later one is known.
func (s Chats) SetTimer(ctx context.Context, device postern.DeviceID, chat string, timer Timer) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return t.Exec(`INSERT INTO chat_timer (device_id, chat_id, seconds, set_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (device_id, chat_id) DO UPDATE SET seconds = excluded.seconds, set_at = excluded.set_at
			WHERE chat_timer.set_at <= excluded.set_at`, device, chat, timer.Seconds, timer.Since)
	}))
}

// Timers returns the timers of a device's chats, by chat. Chats without one are left out.
func (s Chats) Timers(ctx context.Context, device postern.DeviceID) (map[string]Timer, error) {
	timers := map[string]Timer{}
	err := s.db.Rows(ctx, `SELECT chat_id, seconds, set_at FROM chat_timer WHERE device_id = $1 AND seconds > 0`,
		[]any{device}, func(r *sql.Rows) error {
			var chat string
			var timer Timer
			err := r.Scan(&chat, &timer.Seconds, &timer.Since)
			timers[chat] = timer
			return err
		})
	return timers, err
}

// oldMessages holds messages that are still to be sent, and those that were accepted long ago, but left only lately:
// receipts for them, and requests to encrypt them again, are still to come.
const oldMessages = `SELECT id, n, created_at, status IN ` + kept + `
		OR direction = 'outbound' AND (sent_at >= $4 OR finished_at >= $4)
	FROM message WHERE workspace_id = $1 AND n > $2 ORDER BY n LIMIT $3 + 0`

// ofWorkspace is the condition that rows that are chosen by their ids are of the workspace $1. It must not use an index:
// without statistics, SQLite would read all rows of the workspace.
const ofWorkspace = `workspace_id || '' = $1`

// RemovePast deletes a chunk of the messages of histories that are from before a time, and reports whether there may be
// more. They are stored after younger ones, which is where [Messages.Remove] stops.
func (s Messages) RemovePast(ctx context.Context, ws postern.WorkspaceID, before postern.Time) (more bool, err error) {
	var ids []string
	err = s.db.Rows(ctx, `SELECT id FROM message WHERE workspace_id = $1 AND created_at < $2 AND history = 1
		ORDER BY created_at, n LIMIT $3 + 0`, []any{ws, before, purgeChunk}, addID(&ids))
	if err != nil || len(ids) == 0 {
		return false, err
	}
	return len(ids) == purgeChunk, s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return errors.Join(t.Exec(`DELETE FROM message WHERE `+ofWorkspace+` AND id IN `+t.InList(2), ws, asJSON(ids)),
			lowerHistory(t))
	}))
}

// Remove deletes a chunk of the messages made before a time, from after a place on; messages that are still to be
// sent, or were sent or failed after the time, are kept. next is the place to continue from; more is false when no
// old messages are left.
func (s Messages) Remove(ctx context.Context, ws postern.WorkspaceID, before postern.Time,
	from int64,
) (next int64, more bool, err error) {
	list, err := s.oldest(ctx, oldMessages, ws, before, from, before)
	if err != nil || len(list) == 0 {
		return from, false, err
	}
	next, more = list[len(list)-1].place, len(list) == purgeChunk
	ids := idsOf(free(list))
	if len(ids) == 0 {
		return next, more, nil
	}
	return next, more, s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		return errors.Join(t.Exec(`DELETE FROM message WHERE `+ofWorkspace+`
			AND id IN `+t.InList(2)+` AND status NOT IN `+kept, ws, asJSON(ids)), lowerHistory(t))
	}))
}

// RemoveThese deletes messages with their files, the content of their events and the deliveries of these. It leaves
// messages that are still to be sent, and those that an active endpoint waits for unless it must hurry, and reports
// whether there were any.
func (s Messages) RemoveThese(
	ctx context.Context, ws postern.WorkspaceID, ids []string, hurry bool,
) (waits bool, err error) {
	if len(ids) == 0 {
		return false, nil
	}
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		held := map[string]bool{}
		err := t.Rows(`SELECT id FROM message m WHERE `+ofWorkspace+` AND id IN `+t.InList(2)+` AND (status IN `+kept+`
			OR CAST($3 AS BIGINT) = 0 AND EXISTS (SELECT 1 FROM event e JOIN delivery d ON d.event_id = e.id WHERE e.message_id = m.id
			AND e.message_id <> '' AND `+awaited+`))`, []any{ws, asJSON(ids), bit(hurry)}, func(r *sql.Rows) error {
			var id string
			err := r.Scan(&id)
			held[id] = true
			return err
		})
		if err != nil {
			return err
		}
		waits = len(held) > 0
		free := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return held[id] })
		return errors.Join(expireFilesOf(t, ws, free), EmptyEvents(t, free), t.Exec(`DELETE FROM message
			WHERE `+ofWorkspace+` AND id IN `+t.InList(2), ws, asJSON(free)), lowerHistory(t))
	}))
	return waits, err
}

// bit is a condition as a parameter.
func bit(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// expireFilesOf removes the files that came with messages.
func expireFilesOf(t *db.Tx, ws postern.WorkspaceID, ids []string) error {
	var list []MediaRow
	err := t.Rows(`SELECT `+mediaColumns+` FROM media WHERE `+ofWorkspace+` AND message_id <> '' AND status <> 'expired'
		AND id IN (SELECT media_id FROM message WHERE `+ofWorkspace+` AND id IN `+t.InList(2)+`)`, []any{ws, asJSON(ids)},
		func(r *sql.Rows) error {
			m, err := scanMedia(r)
			list = append(list, m)
			return err
		})
	if err != nil || len(list) == 0 {
		return err
	}
	return expireFiles(t, math.MaxInt64, list)
}

// EmptyEvents removes the content of the events about messages or contacts, and their pending deliveries.
func EmptyEvents(t *db.Tx, subjects []string) error {
	var ids []postern.EventID
	err := t.Rows(`UPDATE event SET body = $2 WHERE message_id IN `+t.InList(1)+` AND message_id <> ''
		AND length(body) > 0 RETURNING id`, []any{asJSON(subjects), []byte{}}, func(r *sql.Rows) error {
		var id postern.EventID
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	})
	for left := true; left && err == nil && len(ids) > 0; {
		left, err = dropSome(t, `SELECT id FROM delivery WHERE event_id IN `+t.InList(1)+` AND status = 'pending'
			LIMIT $2 + 0`, asJSON(ids), purgeChunk)
	}
	return err
}

// erased returns the condition that a message, under its name in the statement, is of a person who was erased.
func erased(message string) string {
	return `EXISTS (SELECT 1 FROM erasure x WHERE x.workspace_id = ` + message + `.workspace_id
		AND x.name IN (` + message + `.chat_id, ` + message + `.sender) AND ` + message + `.n <= x.upto)`
}

// lowerHistory must follow every deletion of messages, and a copy from PostgreSQL. SQLite gives a new message the
// number after the newest one that is left, and [current] requires that this number is
// beyond the history of the message's device. The numbers of PostgreSQL never go back.
func lowerHistory(t *db.Tx) error {
	if t.Postgres() {
		return nil
	}
	err := t.Exec(`UPDATE erasure SET upto = (SELECT coalesce(max(n), 0) FROM message)
		WHERE upto > (SELECT coalesce(max(n), 0) FROM message)`)
	if err != nil {
		return err
	}
	err = t.Exec(`UPDATE word_place SET n = (SELECT coalesce(max(n), 0) FROM message)
		WHERE n > (SELECT coalesce(max(n), 0) FROM message)`)
	if err != nil {
		return err
	}
	return changeDevice(t, `UPDATE device SET history_from = (SELECT coalesce(max(n), 0) FROM message)
		WHERE history_from > 0 AND history_from > (SELECT coalesce(max(n), 0) FROM message)`)
}
