package contactid

import (
	"database/sql"
	"errors"

	"postern/internal/db"
	"postern/internal/postern"
)

// JoinChunk is how many messages move to another chat in one transaction.
const JoinChunk = 200

// joined moves the chats with the LID of a contact to the chat with its number, and returns what the devices that know
// the contact are told.
func joined(
	t *db.Tx, s Sighting, c row, merged postern.ContactID, identified bool,
) (news []Identified, err error) {
	known, err := devicesOf(t, c.id)
	if err != nil {
		return nil, err
	}
	for _, d := range known {
		if err := Join(t, d.id, s.Who.LID, c.chat()); err != nil {
			return nil, err
		}
		if identified {
			news = append(news, Identified{s.WorkspaceID, d.id, postern.IdentifiedContact{
				KnownContact: c.known(d), MergedIDs: listOf(merged), PreviousChatID: s.Who.LID,
			}})
		}
	}
	return news, nil
}

func listOf(id postern.ContactID) []postern.ContactID {
	if id == "" {
		return nil
	}
	return []postern.ContactID{id}
}

// device is a device that knows a contact.
type device struct {
	id   postern.DeviceID
	book string // name in its account's address book
}

// bookName is the name of a contact in the address book of a device's account, in a query with contact_device as d. An
// entry of the person comes before one that only says that it is about the person, too.
const bookName = `coalesce(
	(SELECT b.name FROM contact_key k JOIN address_book b ON b.entry = k.name
		WHERE k.contact_id = d.contact_id AND b.device_id = d.device_id ORDER BY b.entry LIMIT 1),
	(SELECT b.name FROM contact_key k CROSS JOIN address_book b
		WHERE k.contact_id = d.contact_id AND b.device_id = d.device_id AND b.other = k.name AND b.other <> ''
		ORDER BY b.entry LIMIT 1), '')`

func devicesOf(t *db.Tx, id postern.ContactID) (list []device, err error) {
	const known = `SELECT d.device_id, ` + bookName + ` FROM contact_device d WHERE d.contact_id = $1 ORDER BY d.device_id`
	err = t.Rows(known, []any{id},
		func(r *sql.Rows) error {
			var d device
			err := r.Scan(&d.id, &d.book)
			list = append(list, d)
			return err
		})
	return list, err
}

// known returns a contact as a device knows it.
func (r row) known(d device) postern.KnownContact {
	names := postern.ContactNames{
		AddressBook: postern.Maybe(d.book), Business: postern.Maybe(r.business), Own: postern.Maybe(r.push),
	}
	return postern.KnownContact{
		ID: r.id, Names: names, PhoneNumber: postern.Maybe(r.number), LID: postern.Maybe(r.lid),
		DeviceIDs: []postern.DeviceID{d.id}, CreatedAt: r.createdAt,
	}.Complete()
}

// Join begins to move the messages of a chat to another one with the same person. What is set for a chat without
// messages moves, too.
func Join(t *db.Tx, id postern.DeviceID, from, to string) error {
	if from == to {
		return nil
	}
	has, err := hasMessages(t, id, from)
	if err != nil {
		return err
	}
	if !has {
		return moveTimer(t, id, from, to)
	}
	err = t.Exec(`INSERT INTO chat_join (device_id, from_chat, to_chat) VALUES ($1, $2, $3)
		ON CONFLICT (device_id, from_chat) DO UPDATE SET to_chat = excluded.to_chat`, id, from, to)
	if err != nil {
		return err
	}
	_, err = Move(t, id, from, to)
	return err
}

func hasMessages(t *db.Tx, id postern.DeviceID, chat string) (bool, error) {
	var n int
	err := t.Row(`SELECT count(*) FROM (SELECT 1 FROM message WHERE device_id = $1 AND chat_id = $2 LIMIT 1) AS one`,
		[]any{id, chat}, &n)
	return n > 0, err
}

// ofChat selects the messages of the chat $2 of the device $1 by the index of a workspace's chats, which has their
// order.
// SQLite, which has no statistics, would otherwise look for them among all messages of the device.
const ofChat = `workspace_id = (SELECT w.workspace_id FROM device w WHERE w.id = $1)
	AND device_id || '' = $1 AND chat_id = $2`

// unsent are messages that move later: their device's queue knows them by their chat.
const unsent = `('queued', 'sending', 'scheduled')`

// Move moves a chunk of the messages of a chat to another one, and reports whether it has moved any. Once none are left,
// it forgets that they had to move.
func Move(t *db.Tx, id postern.DeviceID, from, to string) (moved bool, err error) {
	number := postern.NumberOfChat(to)
	n, err := t.Changed(`UPDATE message SET chat_id = $3,
		from_number = CASE WHEN direction = 'inbound' THEN $4 ELSE from_number END,
		to_number = CASE WHEN direction = 'outbound' THEN $4 ELSE to_number END
		WHERE n IN (SELECT n FROM message WHERE `+ofChat+` AND status NOT IN `+unsent+` ORDER BY n DESC LIMIT $5 + 0)`,
		id, from, to, number, JoinChunk)
	if err != nil {
		return false, err
	}
	if err := errors.Join(newest(t, id, to), moveRead(t, id, from, to), newest(t, id, from), moveTimer(t, id, from, to)); err != nil {
		return n > 0, err
	}
	left, err := hasMessages(t, id, from)
	if err == nil && !left {
		err = t.Exec(`DELETE FROM chat_join WHERE device_id = $1 AND from_chat = $2`, id, from)
	}
	return n > 0, err
}

// Recount finds the newest message of a chat again, and how many are unread.
func Recount(t *db.Tx, id postern.DeviceID, chat string) error {
	return errors.Join(newest(t, id, chat), moveRead(t, id, chat, chat))
}

// Restore is Recount for a chat whose summary went with its newest message. readTo is up to where the chat was read.
func Restore(t *db.Tx, id postern.DeviceID, chat string, readTo int64) error {
	return errors.Join(newest(t, id, chat), t.Exec(`UPDATE chat SET read_to = $3 WHERE device_id = $1 AND chat_id = $2`,
		id, chat, readTo), moveRead(t, id, chat, chat))
}

// newest finds the newest message of a chat again. Messages of the history may have higher numbers than newer ones.
func newest(t *db.Tx, id postern.DeviceID, chat string) error {
	const its = `coalesce((SELECT max(n) FROM message WHERE ` + ofChat + ` AND about = '' AND history = 0),
		(SELECT n FROM message WHERE ` + ofChat + ` AND about = '' ORDER BY created_at + 0 DESC, n DESC LIMIT 1))`
	err := t.Exec(`DELETE FROM chat WHERE device_id = $1 AND chat_id = $2 AND `+its+` IS NULL`, id, chat)
	if err != nil {
		return err
	}
	return t.Exec(`INSERT INTO chat (device_id, chat_id, workspace_id, newest)
		SELECT d.id, $2, d.workspace_id, found.n FROM device d, (SELECT `+its+` AS n) AS found
		WHERE d.id = $1 AND found.n IS NOT NULL
		ON CONFLICT (device_id, chat_id) DO UPDATE SET newest = excluded.newest`, id, chat)
}

// moveRead counts the messages of a chat again that are unread, after those of another one have come to it. What was
// read in one of them was read.
func moveRead(t *db.Tx, id postern.DeviceID, from, to string) error {
	err := t.Exec(`UPDATE chat SET read_to = (SELECT max(c.read_to) FROM chat c WHERE c.device_id = $1
		AND c.chat_id IN ($2, $3)) WHERE device_id = $1 AND chat_id = $3`, id, from, to)
	return errors.Join(err, t.Exec(`UPDATE chat SET unread = (SELECT count(*) FROM message m
		WHERE m.workspace_id = chat.workspace_id AND m.device_id || '' = $1 AND m.chat_id = $2 AND m.n > chat.read_to
		AND m.direction = 'inbound' AND m.source = 'contact' AND m.about = '' AND m.type <> 'call' AND m.history = 0
		AND m.chat_id <> 'status')
		WHERE device_id = $1 AND chat_id = $2`, id, to))
}

// deviceChanged is store.DeviceChanged. Package store imports this one.
const deviceChanged db.Topic = "device"

// moveTimer moves the timer of a chat to another one, unless that has a later one, what is set for it, unless something is
// set for that, and its labels.
func moveTimer(t *db.Tx, id postern.DeviceID, from, to string) error {
	n, err := t.Changed(`INSERT INTO chat_timer (device_id, chat_id, seconds, set_at)
		SELECT device_id, $3, seconds, set_at FROM chat_timer WHERE device_id = $1 AND chat_id = $2
		ON CONFLICT (device_id, chat_id) DO UPDATE SET seconds = excluded.seconds, set_at = excluded.set_at
		WHERE chat_timer.set_at < excluded.set_at`, id, from, to)
	if n > 0 {
		t.Wake(deviceChanged, string(id)) // its session remembers the timers
	}
	return errors.Join(err, t.Exec(`DELETE FROM chat_timer WHERE device_id = $1 AND chat_id = $2`, id, from),
		t.Exec(`INSERT INTO chat_setting (device_id, chat_id, archived, muted_until, read_until)
			SELECT device_id, $3, archived, muted_until, read_until FROM chat_setting WHERE device_id = $1 AND chat_id = $2
			ON CONFLICT (device_id, chat_id) DO NOTHING`, id, from, to),
		t.Exec(`DELETE FROM chat_setting WHERE device_id = $1 AND chat_id = $2`, id, from),
		t.Exec(`INSERT INTO chat_label (device_id, chat_id, label_id)
			SELECT device_id, $3, label_id FROM chat_label WHERE device_id = $1 AND chat_id = $2
			ON CONFLICT (device_id, chat_id, label_id) DO NOTHING`, id, from, to),
		t.Exec(`DELETE FROM chat_label WHERE device_id = $1 AND chat_id = $2`, id, from), moveNote(t, id, from, to))
}

// moveNote moves what is noted about a chat to another one. If both have a text, there are both.
func moveNote(t *db.Tx, id postern.DeviceID, from, to string) error {
	err := t.Exec(`INSERT INTO chat_note (workspace_id, device_id, chat_id, assignee, note)
		SELECT workspace_id, device_id, $3, assignee, note FROM chat_note WHERE device_id = $1 AND chat_id = $2
		ON CONFLICT (device_id, chat_id) DO UPDATE SET
		assignee = CASE WHEN chat_note.assignee = '' THEN excluded.assignee ELSE chat_note.assignee END,
		note = CASE WHEN chat_note.note = '' OR excluded.note = '' THEN chat_note.note || excluded.note
		ELSE chat_note.note || CAST($4 AS TEXT) || excluded.note END`, id, from, to, "\n")
	return errors.Join(err, t.Exec(`DELETE FROM chat_note WHERE device_id = $1 AND chat_id = $2`, id, from))
}
