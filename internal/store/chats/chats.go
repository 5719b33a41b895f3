// Package chats lists the conversations of devices, and keeps what their accounts have set for them.
package chats

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// Table has the chats of all devices.
type Table struct {
	db *db.DB
	of *store.Store
}

// Of returns the chats of a store.
func Of(s *store.Store) Table { return Table{s.Engine(), s} }

// Query narrows a list of chats. A zero field does not narrow it.
type Query struct {
	Devices  []postern.DeviceID // any of these; nil for all of the workspace
	DeviceID postern.DeviceID
	Archived *bool
	Unread   bool   // only chats with unread messages
	Label    string // only chats with this label
	Assignee postern.UserID

	Below int64 // the place at which the page before has ended; 0 starts at the newest
	Limit int
}

// Page is a part of a list, newest activity first.
type Page struct {
	Chats  []postern.Chat
	Places []int64 // of the chats
	Last   int64   // the chats were read down to this place
	More   bool    // there may be others below Last
}

// looked is how many chats one page looks at for those that match the query.
const looked = 1000

// How a page finds the chats that it looks at.
const (
	ofDevice = `WITH page AS (SELECT device_id, chat_id, newest, unread FROM chat WHERE device_id = $2 AND newest < $3
		ORDER BY newest DESC LIMIT $4 + 0)` + described
	ofWorkspace = `WITH page AS (SELECT device_id, chat_id, newest, unread FROM chat WHERE workspace_id = $1 AND $2 = ''
		AND newest < $3 ORDER BY newest DESC LIMIT $4 + 0)` + described
	described = ` SELECT c.device_id, c.chat_id, c.newest, c.unread, coalesce(s.archived, 0), coalesce(s.muted_until, 0),
		CASE WHEN c.newest > d.history_from AND d.deleted_at = 0 AND ($5 = '' OR EXISTS (SELECT 1 FROM chat_label k
		JOIN label l ON l.device_id = k.device_id AND l.label_id = k.label_id
		WHERE k.device_id = c.device_id AND k.chat_id = c.chat_id AND k.label_id = $5)) THEN 1 ELSE 0 END, ` + assigned + `
		FROM page c JOIN device d ON d.id = c.device_id AND d.workspace_id = $1
		LEFT JOIN chat_setting s ON s.device_id = c.device_id AND s.chat_id = c.chat_id
		LEFT JOIN chat_note n ON n.device_id = c.device_id AND n.chat_id = c.chat_id` + assignedBy + ` ORDER BY c.newest DESC`
)

// row is a chat without its message.
type row struct {
	postern.Chat

	place   int64
	muted   postern.Time
	current bool // it is not of an earlier number of the device, and has the label
}

// List lists chats of a workspace. A page looks at a limited number of chats, so it may be short, or empty, although
// there are more.
func (t Table) List(ctx context.Context, ws postern.WorkspaceID, q Query, now postern.Time) (p Page, err error) {
	rows, err := t.find(ctx, ws, q, &p)
	if err != nil || len(rows) == 0 {
		return p, err
	}
	places := make([]int64, len(rows))
	for i, r := range rows {
		places[i] = r.place
	}
	newest, err := t.of.Chats.Newest(ctx, ws, places)
	if len(newest) == 0 {
		return p, err
	}
	if last := newest[len(newest)-1].N; last > places[len(places)-1] { // the page is full
		p.Last, p.More = last, true
	}
	for _, m := range newest {
		if i := slices.Index(places, m.N); i >= 0 {
			c := rows[i].chat(now)
			c.Name, c.LatestMessage = postern.Maybe(m.Name), &m.Message
			p.Chats, p.Places = append(p.Chats, c), append(p.Places, m.N)
		}
	}
	return p, errors.Join(err, t.addLabels(ctx, ws, &p))
}

// find returns the chats that match a query, and notes in p how far it has looked.
func (t Table) find(ctx context.Context, ws postern.WorkspaceID, q Query, p *Page) (list []row, err error) {
	if q.DeviceID == "" && len(q.Devices) == 1 {
		q.DeviceID, q.Devices = q.Devices[0], nil
	}
	text, most, below := ofWorkspace, q.Limit, q.Below
	if q.DeviceID != "" {
		text = ofDevice
	}
	if q.Devices != nil || q.Archived != nil || q.Unread || q.Label != "" || q.Assignee != "" {
		most = looked
	}
	if below == 0 {
		below = math.MaxInt64
	}
	seen := 0
	err = t.db.Rows(ctx, text, []any{ws, q.DeviceID, below, most + 1, q.Label}, func(r *sql.Rows) error {
		if p.More = seen == most || len(list) == q.Limit; p.More {
			return errFull
		}
		one, err := scan(r)
		seen++
		if p.Last = one.place; q.matches(one) {
			list = append(list, one)
		}
		return err
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return list, err
}

// errFull ends a page.
var errFull = errors.New("the page is full")

func scan(r *sql.Rows) (one row, err error) {
	var archived, current int
	err = r.Scan(&one.DeviceID, &one.ChatID, &one.place, &one.UnreadCount, &archived, &one.muted, &current,
		&one.Note.Assignee, &one.Note.Email)
	one.Archived, one.current = archived == 1, current == 1
	return one, err
}

func (q Query) matches(r row) bool {
	return r.current && (q.Devices == nil || slices.Contains(q.Devices, r.DeviceID)) &&
		(q.Archived == nil || *q.Archived == r.Archived) && (!q.Unread || r.UnreadCount > 0) &&
		(q.Assignee == "" || q.Assignee == r.Note.Assignee)
}

// chat returns the chat as it is at a time.
func (r row) chat(now postern.Time) postern.Chat {
	c := r.Chat
	c.Kind = postern.KindOfChat(c.ChatID)
	c.Mute(r.muted, now)
	return c
}

// Cut keeps the first n chats. The list continues below them.
func (p *Page) Cut(n int) {
	if n < len(p.Chats) {
		p.Chats, p.Last, p.More = p.Chats[:n], p.Places[n-1], true
	}
}

const one = `SELECT coalesce(c.newest, 0), coalesce(c.unread, 0), coalesce(s.archived, 0), coalesce(s.muted_until, 0)
	FROM device d LEFT JOIN chat c ON c.device_id = d.id AND c.chat_id = $3 AND c.newest > d.history_from
	LEFT JOIN chat_setting s ON s.device_id = d.id AND s.chat_id = $3
	WHERE d.workspace_id = $1 AND d.id = $2 AND (c.newest IS NOT NULL OR s.chat_id IS NOT NULL
	OR EXISTS (SELECT 1 FROM chat_label k WHERE k.device_id = d.id AND k.chat_id = $3))`

// Get returns a chat of a device. It reports NotFound for a chat without messages, settings and labels.
func (t Table) Get(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, chat string, now postern.Time,
) (c postern.Chat, err error) {
	r := row{Chat: postern.Chat{DeviceID: id, ChatID: chat}}
	var archived int
	err = t.db.Row(ctx, one, []any{ws, id, chat}, &r.place, &r.UnreadCount, &archived, &r.muted)
	if errors.Is(err, sql.ErrNoRows) {
		return c, postern.Errorf(postern.NotFound, "the device has no such chat")
	}
	if err != nil {
		return c, err
	}
	r.Archived = archived == 1
	c = r.chat(now)
	if c.Labels, err = t.labelsOf(ctx, id, chat); err != nil || r.place == 0 {
		return c, err
	}
	newest, err := t.of.Chats.Newest(ctx, ws, []int64{r.place})
	if err == nil && len(newest) == 1 {
		c.Name, c.LatestMessage = postern.Maybe(newest[0].Name), &newest[0].Message
	}
	return c, err
}

// Setting is what an account has set for a chat. Nil is left as it is.
type Setting struct {
	ChatID     string
	Archived   *bool
	MutedUntil *postern.Time // 0: not muted; [postern.MutedForEver]
	ReadUntil  postern.Time  // it has read what was sent until then; 0 if it has not marked the chat as read
}

// Set stores what the account of a device has set.
func (t Table) Set(ctx context.Context, id postern.DeviceID, list []Setting) error {
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		for _, s := range list {
			chat, err := current(tx, id, s.ChatID)
			if err != nil {
				return err
			}
			if err := errors.Join(set(tx, id, chat, s), store.ReadUntil(tx, id, chat, s.ReadUntil)); err != nil {
				return err
			}
		}
		return nil
	})))
}

// set stores whether a chat is archived, until when it is muted, and until when it was read.
func set(tx *db.Tx, id postern.DeviceID, chat string, s Setting) error {
	if s.Archived == nil && s.MutedUntil == nil && s.ReadUntil == 0 {
		return nil
	}
	archived, muted := -1, postern.Time(-2) // neither is a value
	if s.Archived != nil {
		archived = bit(*s.Archived)
	}
	if s.MutedUntil != nil {
		muted = *s.MutedUntil
	}
	return tx.Exec(`INSERT INTO chat_setting (device_id, chat_id, archived, muted_until, read_until)
		VALUES ($1, $2, CASE WHEN CAST($3 AS BIGINT) < 0 THEN 0 ELSE $3 END,
		CASE WHEN CAST($4 AS BIGINT) < -1 THEN 0 ELSE $4 END, $5) ON CONFLICT (device_id, chat_id) DO UPDATE SET
		archived = CASE WHEN CAST($3 AS BIGINT) < 0 THEN chat_setting.archived ELSE $3 END,
		muted_until = CASE WHEN CAST($4 AS BIGINT) < -1 THEN chat_setting.muted_until ELSE $4 END,
		read_until = CASE WHEN chat_setting.read_until < $5 THEN $5 ELSE chat_setting.read_until END`,
		id, chat, archived, muted, s.ReadUntil)
}

// Moves reports whether the messages of a chat of a device are moving to another chat.
func (t Table) Moves(ctx context.Context, id postern.DeviceID, chat string) (bool, error) {
	return t.db.Exists(ctx, `SELECT count(*) FROM chat_join WHERE device_id = $1 AND from_chat = $2`, id, chat)
}

// current returns the chat that there is now with a person whom the network names by a LID: the number may have become
// known since the caller looked.
func current(tx *db.Tx, id postern.DeviceID, chat string) (ours string, err error) {
	err = tx.Row(`SELECT c.number FROM device d JOIN contact_key k ON k.workspace_id = d.workspace_id
		JOIN contact c ON c.id = k.contact_id WHERE d.id = $1 AND k.name = $2 AND c.number <> ''`, []any{id, chat}, &ours)
	if errors.Is(err, sql.ErrNoRows) {
		return chat, nil
	}
	return postern.ChatOfNumber(ours), err
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}
