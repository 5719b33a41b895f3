package chaos

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
)

// Group is a group that a device is in.
type Group struct {
	Device, Chat, Subject string

	Members []string // their numbers, in order
}

// Chat is a chat of a device, with what is set for it.
type Chat struct {
	Device, ID      string
	Archived, Muted bool
	Unread          int
}

// Entered names somebody in the address book of a device's phone.
type Entered struct{ Device, Number string }

// SaidOfGroup is the part of an event about a group that the judge compares with the ledgers.
type SaidOfGroup struct {
	ChatID       string   `json:"chatId"`
	Subject      string   `json:"subject"`
	Changed      []string `json:"changed"`
	Action       string   `json:"action"`
	Participants []Member `json:"participants"`
}

// Member is somebody in a group.
type Member struct {
	PhoneNumber string `json:"phoneNumber"`
	LID         string `json:"lid"`
}

// name is the member's number, or if that is not known the other name.
func (m Member) name() string { return cmp.Or(m.PhoneNumber, m.LID) }

// readGroups reads the groups, the chats and the address books of the devices that ReadState has read.
func (s *State) readGroups(ctx context.Context, db *sql.DB, where string) error {
	s.Book = map[Entered]string{}
	return errors.Join(
		each(ctx, db, `SELECT device_id, chat_id, subject, participants, left_at FROM chat_group`+where, s.scanGroup),
		each(ctx, db, `SELECT k.device_id, k.chat_id, coalesce(s.archived, 0), coalesce(s.muted_until, 0),
			coalesce(c.unread, 0) FROM (SELECT device_id, chat_id FROM chat UNION SELECT device_id, chat_id FROM chat_setting) k
			LEFT JOIN chat c ON c.device_id = k.device_id AND c.chat_id = k.chat_id
			LEFT JOIN chat_setting s ON s.device_id = k.device_id AND s.chat_id = k.chat_id
			WHERE k.device_id IN (SELECT id FROM device`+where+`)`, s.scanChat),
		each(ctx, db, `SELECT device_id, entry, name FROM address_book`, func(r *sql.Rows) error {
			var e Entered
			var name string
			err := r.Scan(&e.Device, &e.Number, &name)
			s.Book[e] = name
			return err
		}),
	)
}

func (s *State) scanGroup(r *sql.Rows) error {
	var g Group
	var members string
	var left int64
	if err := r.Scan(&g.Device, &g.Chat, &g.Subject, &members, &left); err != nil || left != 0 {
		return err
	}
	var list []Member
	err := json.Unmarshal([]byte(members), &list)
	for _, m := range list {
		g.Members = append(g.Members, m.name())
	}
	slices.Sort(g.Members)
	s.Groups = append(s.Groups, g)
	return err
}

func (s *State) scanChat(r *sql.Rows) error {
	var c Chat
	var archived int
	var muted int64
	err := r.Scan(&c.Device, &c.ID, &archived, &muted, &c.Unread)
	c.Archived, c.Muted = archived == 1, muted != 0
	s.Chats = append(s.Chats, c)
	return err
}

// ReadSettings reads what a running gateway has of groups, chats and address books, and of its devices.
func ReadSettings(ctx context.Context, dir, url, workspace string) (s State, err error) {
	db, err := open(dir, url)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	where := whereWorkspace(workspace)
	s.Devices = map[string]string{}
	return s, errors.Join(
		each(ctx, db, `SELECT id, phone_number FROM device`+where, func(r *sql.Rows) error {
			var id, number string
			err := r.Scan(&id, &number)
			s.Devices[id] = number
			return err
		}),
		s.readGroups(ctx, db, where))
}
