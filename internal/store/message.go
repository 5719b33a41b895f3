package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
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

// InChat returns the message of a chat with a network id, under the present number of the device; ok is false when no
// message has it. Another chat with the same person counts as the chat while messages move from one to the other.
func (s Messages) InChat(ctx context.Context, device postern.DeviceID,
	chat, networkID string,
) (m postern.Message, ok bool, err error) {
	m, err = s.inChat(ctx, device, chat, networkID)
	if errors.Is(err, sql.ErrNoRows) {
		m, err = s.inJoined(ctx, device, chat, networkID)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	return m, err == nil, err
}

func (s Messages) inChat(
	ctx context.Context, device postern.DeviceID, chat, networkID string,
) (postern.Message, error) {
	return scanMessage(s.db.One(ctx, `SELECT `+messageColumns+` FROM message WHERE device_id = $1 AND network_id = $2
		AND chat_id || '' = $3 AND about = '' AND NOT `+erased("message")+` AND `+current("message"), device, networkID, chat))
}

func (s Messages) inJoined(
	ctx context.Context, device postern.DeviceID, chat, networkID string,
) (m postern.Message, err error) {
	var other string
	if err = s.db.Row(ctx, joinedChat, []any{device, chat}, &other); err != nil {
		return m, err
	}
	return s.inChat(ctx, device, other, networkID)
}

// Oldest returns the oldest message of a chat that its phone knows; ok is false if it knows none of them.
func (s Messages) Oldest(
	ctx context.Context, ws postern.WorkspaceID, device postern.DeviceID, chat string,
) (m postern.Message, ok bool, err error) {
	for direction, statuses := range map[string]string{
		postern.Inbound: `('received')`, postern.Outbound: `('sent', 'delivered', 'read', 'played')`,
	} {
		found, err := scanMessage(s.db.One(ctx, `SELECT `+messageColumns+` FROM message WHERE device_id = $1
			AND chat_id = $2 AND direction = $3 AND workspace_id = $4 AND about = '' AND type <> 'call'
			AND status IN `+statuses+` AND `+current("message")+` ORDER BY created_at LIMIT 1`, device, chat, direction, ws))
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return m, false, err
		case !ok || found.CreatedAt < m.CreatedAt:
			m, ok = found, true
		}
	}
	return m, ok, nil
}

// ByNetworkID returns the message that a device sent under its present number with a
// network id; ok is false when no message has it.
func (s Messages) ByNetworkID(ctx context.Context, device postern.DeviceID,
	networkID string,
) (m postern.Message, ok bool, err error) {
	m, err = scanMessage(s.db.One(ctx, `SELECT `+messageColumns+` FROM message WHERE device_id = $1 AND network_id = $2
		AND sender = '' AND direction = 'outbound' AND NOT `+erased("message")+` AND `+current("message"), device, networkID))
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	return m, err == nil, err
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
	err := s.db.Rows(ctx, `SELECT chat_id, seconds, set_at FROM chat_timer WHERE device_id = $1 AND seconds > 0
		UNION ALL SELECT j.from_chat, t.seconds, t.set_at FROM chat_join j JOIN chat_timer t
		ON t.device_id = j.device_id AND t.chat_id = j.to_chat WHERE j.device_id = $1 AND t.seconds > 0`,
		[]any{device}, func(r *sql.Rows) error {
			var chat string
			var timer Timer
			err := r.Scan(&chat, &timer.Seconds, &timer.Since)
			timers[chat] = timer
			return err
		})
	return timers, err
}

// erased returns the condition that a message, under its name in the statement, is of a person who was erased.
func erased(message string) string {
	return `EXISTS (SELECT 1 FROM erasure x WHERE x.workspace_id = ` + message + `.workspace_id
		AND x.name IN (` + message + `.chat_id, ` + message + `.sender) AND ` + message + `.n <= x.upto)`
}
