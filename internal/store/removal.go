package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store/contactid"
)

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
		lost, err := chatsOfNewest(t, ws, free)
		err = errors.Join(err, expireFilesOf(t, ws, free), EmptyEvents(t, free), t.Exec(`DELETE FROM message
			WHERE `+ofWorkspace+` AND id IN `+t.InList(2), ws, asJSON(free)), lowerHistory(t))
		for _, c := range lost {
			err = errors.Join(err, contactid.Restore(t, c.device, c.chat, c.readTo))
		}
		return err
	}))
	return waits, err
}

// readChat is a chat, and up to where it was read.
type readChat struct {
	chatKey

	readTo int64
}

// chatsOfNewest returns the chats whose newest message is one of some. With that message, their summaries go.
func chatsOfNewest(t *db.Tx, ws postern.WorkspaceID, ids []string) (list []readChat, err error) {
	err = t.Rows(`SELECT c.device_id, c.chat_id, c.read_to FROM message m JOIN chat c ON c.device_id = m.device_id
		AND c.chat_id = m.chat_id AND c.newest = m.n WHERE m.workspace_id || '' = $1 AND m.id IN `+t.InList(2),
		[]any{ws, asJSON(ids)}, func(r *sql.Rows) error {
			var c readChat
			err := r.Scan(&c.device, &c.chat, &c.readTo)
			list = append(list, c)
			return err
		})
	return list, err
}

// bit is a condition as a parameter.
func bit(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// expireFilesOf removes the files that came with messages, and those that were sent with no other message.
func expireFilesOf(t *db.Tx, ws postern.WorkspaceID, ids []string) error {
	var list []MediaRow
	err := t.Rows(`SELECT `+mediaColumns+` FROM media WHERE `+ofWorkspace+` AND status <> 'expired'
		AND id IN (SELECT media_id FROM message WHERE `+ofWorkspace+` AND id IN `+t.InList(2)+`)
		AND (message_id <> '' OR NOT EXISTS (SELECT 1 FROM message m WHERE m.media_id = media.id AND m.media_id <> ''
		AND m.id NOT IN `+t.InList(2)+`))`, []any{ws, asJSON(ids)},
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

// Purged is how far the purge of a deleted device has come.
type Purged int

// The results of [Devices.Purge].
const (
	PurgeMore  Purged = iota // a chunk was deleted; call again
	PurgeWaits               // the rest waits for deliveries, or for the unlink at the network
	PurgeDone                // everything is deleted, including the device's row
)

// Purge deletes a chunk of a deleted device's data: first messages, then the content of its
// events, of which only the ids remain. Messages still to be sent fail before that. It
// leaves events that an active endpoint still waits for to a later purge, and keeps the row
// of the device until the network has answered its unlink. The calls of a purge share a place, so that none looks again
// at what those before it have removed.
func (s Devices) Purge(ctx context.Context, id postern.DeviceID, at *PurgePlace) (purged Purged, err error) {
	if !at.failed { // nothing is accepted for a deleted device
		if err := s.failAll(ctx, id, postern.TimeOf(s.db.Now())); err != nil {
			return PurgeMore, err
		}
		at.failed = true
	}
	var next PurgePlace
	err = s.db.Do(ctx, db.Func(func(t *db.Tx) (err error) {
		next, purged, err = at.purge(t, id)
		return err
	}))
	if err == nil {
		*at = next
	}
	return purged, err
}

// purge deletes the chunk at a place. It may run again after a rollback, from the same place.
func (p PurgePlace) purge(t *db.Tx, id postern.DeviceID) (next PurgePlace, purged Purged, err error) {
	n, err := t.Changed(`DELETE FROM message WHERE id IN (SELECT id FROM message WHERE device_id = $1
		LIMIT $2 + 0)`, id, purgeChunk)
	if err != nil || n > 0 {
		return p, PurgeMore, errors.Join(err, lowerHistory(t))
	}
	if found, err := purgeFiles(t, id); err != nil || found {
		return p, PurgeMore, err
	}
	for _, table := range []string{"chat_timer", "chat_setting", "address_book", "label", "chat_label", "chat_note"} {
		if err := t.Exec(`DELETE FROM `+table+` WHERE device_id = $1`, id); err != nil {
			return p, PurgeMore, err
		}
	}
	more := false
	if p.contact, more, err = purgeContacts(t, id, p.contact); err != nil || more {
		return p, PurgeMore, err
	}
	if p, more, err = p.emptyEvents(t, id); err != nil || more {
		return p, PurgeMore, err
	}
	purged, err = p.purgeRow(t, id)
	return p, purged, err
}

// fewScheduled selects a chunk of the scheduled messages of a device, by the index of all that are scheduled.
const fewScheduled = `SELECT id FROM message WHERE status = 'scheduled' AND send_at > 0 AND device_id || '' = $1 LIMIT $2 + 0`

// failAll fails the messages of a deleted device that are still to be sent, also those that are scheduled. Those of a
// device that merely has no link wait, because it may be linked again before their time comes.
func (s Devices) failAll(ctx context.Context, id postern.DeviceID, at postern.Time) error {
	ctx = context.WithoutCancel(ctx) // the state has changed already
	for {
		waits, err := s.exists(ctx, `SELECT count(*) FROM (`+fewScheduled+`) AS found`, id, 1)()
		if err != nil {
			return err
		}
		if !waits {
			return s.failQueued(ctx, id, at)
		}
		err = s.db.Do(ctx, db.Func(func(t *db.Tx) error {
			return t.Exec(`UPDATE message SET status = 'queued', queued_at = $3 WHERE id IN (`+fewScheduled+`)`,
				id, purgeChunk, at)
		}))
		if err != nil {
			return err
		}
	}
}

// behindContacts is behind the id of every contact.
const behindContacts postern.ContactID = "zz"

// purgeContacts removes a chunk of the contacts behind one that no other device knows.
func purgeContacts(
	t *db.Tx, id postern.DeviceID, after postern.ContactID,
) (last postern.ContactID, more bool, err error) {
	var ids []postern.ContactID
	last = after
	err = t.Rows(`SELECT c.contact_id FROM contact_device c WHERE c.device_id = $1 AND c.contact_id > $3 AND NOT EXISTS
		(SELECT 1 FROM contact_device o WHERE o.contact_id = c.contact_id AND o.device_id <> $1)
		ORDER BY c.contact_id LIMIT $2 + 0`, []any{id, purgeChunk, after},
		func(r *sql.Rows) error {
			err := r.Scan(&last)
			ids = append(ids, last)
			return err
		})
	if err != nil || len(ids) == 0 {
		return behindContacts, false, err
	}
	list := asJSON(ids)
	return last, true, errors.Join(
		t.Exec(`DELETE FROM contact_key WHERE contact_id IN `+t.InList(1), list),
		t.Exec(`DELETE FROM contact_device WHERE contact_id IN `+t.InList(1), list),
		t.Exec(`DELETE FROM contact WHERE merged_into <> '' AND merged_into IN `+t.InList(1), list),
		t.Exec(`DELETE FROM contact WHERE id IN `+t.InList(1), list))
}

// PurgePlace is how far a purge has come through the contacts and the events of a device. The zero value is before the
// first of them.
type PurgePlace struct {
	failed   bool // what was still to be sent has failed
	contact  postern.ContactID
	position int64
	waits    bool // an event before the position is still awaited
}

const eventsFrom = `SELECT id, position, length(body) > 0, EXISTS (SELECT 1 FROM delivery d WHERE d.event_id = e.id
	AND ` + awaited + `) FROM event e WHERE device_id = $1 AND position > $2 ORDER BY position LIMIT $3 + 0`

// emptyEvents removes the content of the next chunk of a device's events, and their pending deliveries, which have
// nothing left to post.
func (p PurgePlace) emptyEvents(t *db.Tx, id postern.DeviceID) (next PurgePlace, more bool, err error) {
	next = p
	var ids []postern.EventID
	n := 0
	err = t.Rows(eventsFrom, []any{id, p.position, purgeChunk}, func(r *sql.Rows) error {
		var event postern.EventID
		var full, waits bool
		err := r.Scan(&event, &next.position, &full, &waits)
		if n++; full && !waits {
			ids = append(ids, event)
		}
		next.waits = next.waits || full && waits
		return err
	})
	if err == nil && len(ids) > 0 {
		err = t.Exec(`UPDATE event SET body = $2 WHERE id IN `+t.InList(1), asJSON(ids), []byte{})
	}
	for left := true; left && err == nil && len(ids) > 0; {
		left, err = dropSome(t, `SELECT id FROM delivery WHERE event_id IN `+t.InList(1)+` AND status = 'pending'
			LIMIT $2 + 0`, asJSON(ids), purgeChunk)
	}
	return next, n == purgeChunk, err
}

func (p PurgePlace) purgeRow(t *db.Tx, id postern.DeviceID) (Purged, error) {
	if p.waits {
		return PurgeWaits, nil
	}
	for _, table := range []string{"link", "link_page", "message_minute"} {
		if err := t.Exec(`DELETE FROM `+table+` WHERE device_id = $1`, id); err != nil {
			return PurgeMore, err
		}
	}
	n, err := changeDevices(t, `DELETE FROM device WHERE id = $1 AND desired = 'delete' AND account = ''`, id)
	if n == 0 {
		return PurgeWaits, err
	}
	t.Wake(DeviceChanged, string(id))
	return PurgeDone, err
}
