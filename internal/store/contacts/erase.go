package contacts

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
	"postern/internal/store/contactid"
)

// Erasure asks for the removal of a person from a workspace.
type Erasure struct {
	WorkspaceID postern.WorkspaceID
	ContactID   postern.ContactID
	At          postern.Time
	Acts        []store.Act
}

// Erase hides a contact and its messages at once. [Table.RemoveErased] removes them. A contact that was erased before
// stays so.
//
// Single writer: change.
func (t Table) Erase(ctx context.Context, o Erasure) error {
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		var merged postern.ContactID
		var erasedAt postern.Time
		err := tx.Row(`SELECT merged_into, erased_at FROM contact WHERE workspace_id = $1 AND id = $2`,
			[]any{o.WorkspaceID, o.ContactID}, &merged, &erasedAt)
		if errors.Is(err, sql.ErrNoRows) || err == nil && erasedAt > 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if merged == "" {
			merged = o.ContactID
		}
		return o.erase(tx, merged)
	}))
}

func (o Erasure) erase(tx *db.Tx, id postern.ContactID) error {
	err := tx.Exec(`INSERT INTO erasure (workspace_id, name, upto, at)
		SELECT k.workspace_id, k.name, (SELECT coalesce(max(n), 0) FROM message), CAST($3 AS BIGINT) FROM contact_key k
		WHERE k.workspace_id = $1 AND k.contact_id = $2
		ON CONFLICT (workspace_id, name) DO UPDATE SET upto = excluded.upto, at = excluded.at`, o.WorkspaceID, id, o.At)
	for _, query := range []string{
		`DELETE FROM address_book WHERE device_id IN (SELECT id FROM device WHERE workspace_id = $1)
			AND entry IN (SELECT name FROM contact_key WHERE contact_id = $2)`,
		`DELETE FROM address_book WHERE device_id IN (SELECT id FROM device WHERE workspace_id = $1)
			AND other IN (SELECT name FROM contact_key WHERE contact_id = $2) AND other <> ''`,
		`DELETE FROM number_check WHERE workspace_id = $1 AND number IN (SELECT name FROM contact_key WHERE contact_id = $2)`,
		`DELETE FROM contact_key WHERE workspace_id = $1 AND contact_id = $2`,
		`DELETE FROM contact_device WHERE contact_id = $2 AND $1 <> ''`,
		`DELETE FROM contact_picture WHERE contact_id IN (SELECT id FROM contact WHERE workspace_id = $1
			AND id IN ` + withMerged + `)`,
	} {
		err = errors.Join(err, tx.Exec(query, o.WorkspaceID, id))
	}
	var all []string
	err = errors.Join(err, tx.Rows(`SELECT id FROM contact WHERE workspace_id || '' = $1 AND id IN `+withMerged,
		[]any{o.WorkspaceID, id}, func(r *sql.Rows) error {
			var one string
			err := r.Scan(&one)
			all = append(all, one)
			return err
		}))
	return errors.Join(err, tx.Exec(`UPDATE contact SET number = '', lid = '', push_name = '', business_name = '',
		erased_at = CAST($3 AS BIGINT) WHERE workspace_id || '' = $1 AND id IN `+withMerged, o.WorkspaceID, id, o.At),
		store.EmptyEvents(tx, all), store.RecordActs(tx, o.Acts))
}

// WasErased reports whether a contact of a workspace was erased.
func (t Table) WasErased(ctx context.Context, ws postern.WorkspaceID, id postern.ContactID) (bool, error) {
	return t.db.Exists(ctx, `SELECT count(*) FROM contact WHERE workspace_id = $1 AND id = $2 AND erased_at > 0`, ws, id)
}

// erasing is a name whose messages are being removed.
type erasing struct {
	ws   postern.WorkspaceID
	name string
	upto int64
	at   postern.Time
}

const (
	joins      = 20   // chats that are joined in one pass
	namesSeen  = 1000 // names in one pass
	groupScan  = 2000 // messages of groups that are looked through at a time
	eraseChunk = 200  // messages that are removed at a time
)

// Waiting remembers how far the passes through the erased names have come, and the names whose messages an endpoint still
// waits for, so that all get their turn. The zero value has come nowhere. It is for one goroutine.
type Waiting struct {
	after erasing // the last name that was looked at
	rest  map[erasedName]rest
}

type erasedName struct {
	ws   postern.WorkspaceID
	name string
}

// rest is how long a name is not looked at. It is doubled each time its messages still wait, because to look at a name
// reads all groups of its workspace.
type rest struct {
	until postern.Time
	took  time.Duration
}

const (
	firstRest = 5 * time.Second
	mostRest  = 5 * time.Minute
)

func (w *Waiting) rests(e erasing, now postern.Time) bool {
	return w.rest[erasedName{e.ws, e.name}].until > now
}

// looked takes the result of a look into account.
func (w *Waiting) looked(e erasing, left bool, now postern.Time) {
	name := erasedName{e.ws, e.name}
	if !left {
		delete(w.rest, name)
		return
	}
	if w.rest == nil {
		w.rest = map[erasedName]rest{}
	}
	took := min(max(2*w.rest[name].took, firstRest), mostRest)
	w.rest[name] = rest{now.Add(took), took}
}

// passTime is after how long a pass ends that takes long, so that other maintenance gets its turn.
const passTime = 10 * time.Second

// RemoveErased removes the messages of people who were erased, of some names at a time. What an active endpoint still
// waits for is removed once it was delivered, or after patience.
func (t Table) RemoveErased(
	ctx context.Context, s *store.Store, w *Waiting, clock func() postern.Time, patience time.Duration,
) error {
	began := clock()
	list, err := t.erasing(ctx, `WHERE (at, workspace_id, name) > ($1, $2, $3) ORDER BY at, workspace_id, name LIMIT $4 + 0`,
		w.after.at, w.after.ws, w.after.name, namesSeen)
	if len(list) < namesSeen {
		list = append(list, erasing{}) // after the last one comes the first one
	}
	for _, e := range list {
		now := clock()
		if err != nil || ctx.Err() != nil || now > began.Add(passTime) {
			return err
		}
		if w.after = e; e.name == "" || w.rests(e, now) {
			continue
		}
		var left bool
		if left, err = t.remove(ctx, s, e, e.at < now.Add(-patience)); err == nil {
			w.looked(e, left, clock())
		}
	}
	return err
}

// RemoveChats removes the messages in the direct chats with the people of a workspace who were erased at a time, except
// those that wait. [Table.RemoveErased] does the rest.
func (t Table) RemoveChats(ctx context.Context, s *store.Store, ws postern.WorkspaceID, at postern.Time) error {
	list, err := t.erasing(ctx, `WHERE workspace_id = $1 AND at = $2`, ws, at)
	for _, e := range list {
		_, removeErr := t.removeDirect(ctx, s, e, false)
		err = errors.Join(err, removeErr)
	}
	return err
}

func (t Table) erasing(ctx context.Context, which string, args ...any) (list []erasing, err error) {
	err = t.db.Rows(ctx, `SELECT workspace_id, name, upto, at FROM erasure `+which, args, func(r *sql.Rows) error {
		var e erasing
		err := r.Scan(&e.ws, &e.name, &e.upto, &e.at)
		list = append(list, e)
		return err
	})
	return list, err
}

// remove removes what is left of a name, and forgets it once nothing is; left reports that something waits.
func (t Table) remove(ctx context.Context, s *store.Store, e erasing, hurry bool) (left bool, err error) {
	direct, err := t.removeDirect(ctx, s, e, hurry)
	if err != nil {
		return false, err
	}
	groups, err := t.removeWritten(ctx, s, e, hurry, "group:", "group;")
	if err != nil {
		return false, err
	}
	posts, err := t.removeWritten(ctx, s, e, hurry, postern.StatusChat, postern.StatusChat+";")
	if left = direct || groups || posts; err != nil || left {
		return left, err
	}
	return false, t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		return errors.Join(
			tx.Exec(`DELETE FROM chat_timer WHERE chat_id = $2 AND device_id IN (SELECT id FROM device WHERE workspace_id = $1)`,
				e.ws, e.name),
			tx.Exec(`DELETE FROM chat_setting WHERE chat_id = $2 AND device_id IN (SELECT id FROM device WHERE workspace_id = $1)`,
				e.ws, e.name),
			tx.Exec(`DELETE FROM chat_label WHERE chat_id = $2 AND device_id IN (SELECT id FROM device WHERE workspace_id = $1)`,
				e.ws, e.name),
			tx.Exec(`DELETE FROM chat_note WHERE chat_id = $2 AND device_id IN (SELECT id FROM device WHERE workspace_id = $1)`,
				e.ws, e.name),
			tx.Exec(`DELETE FROM erasure WHERE workspace_id = $1 AND name = $2 AND at = $3`, e.ws, e.name, e.at))
	}))
}

// removeDirect removes the chats with a person, and reports whether messages are left that have to wait.
func (t Table) removeDirect(ctx context.Context, s *store.Store, e erasing, hurry bool) (left bool, err error) {
	for after := int64(0); ; {
		var ids, unsent []string
		err := t.db.Rows(ctx, `SELECT id, n, status, about FROM message WHERE workspace_id = $1 AND chat_id = $2 AND n > $3
			AND n <= $4 ORDER BY n LIMIT $5 + 0`, []any{e.ws, e.name, after, e.upto, eraseChunk}, func(r *sql.Rows) error {
			var id, about string
			var status postern.MessageStatus
			err := r.Scan(&id, &after, &status, &about)
			ids = append(ids, id)
			if about == "" && (status == postern.Queued || status == postern.Scheduled) {
				unsent = append(unsent, id)
			}
			return err
		})
		if err != nil || len(ids) == 0 {
			return left, err
		}
		if err := cancel(ctx, s, e.ws, unsent); err != nil {
			return left, err
		}
		waits, err := s.Messages.RemoveThese(ctx, e.ws, ids, hurry)
		if left = left || waits; err != nil || len(ids) < eraseChunk {
			return left, err
		}
	}
}

// cancel cancels messages that are still to be sent.
func cancel(ctx context.Context, s *store.Store, ws postern.WorkspaceID, ids []string) error {
	for _, id := range ids {
		_, err := s.Outbox.Cancel(ctx, ws, postern.MessageID(id), nil)
		if err != nil && postern.ReasonOf(err) != postern.MessageNotCancelable {
			return err
		}
	}
	return nil
}

// removeWritten removes what a person wrote in the chats whose ids are from one up to another: in groups, or as status
// posts. It also removes what the person confirmed there.
func (t Table) removeWritten(
	ctx context.Context, s *store.Store, e erasing, hurry bool, from, to string,
) (left bool, err error) {
	chat, after := from, int64(0)
	for {
		var its, all []string
		err := t.db.Rows(ctx, `SELECT id, chat_id, n, sender FROM message WHERE workspace_id = $1 AND chat_id >= $2
			AND chat_id < $6 AND (chat_id, n) > ($2, $3) AND n <= $4 ORDER BY chat_id, n LIMIT $5 + 0`,
			[]any{e.ws, chat, after, e.upto, groupScan, to}, func(r *sql.Rows) error {
				var id, sender string
				err := r.Scan(&id, &chat, &after, &sender)
				if all = append(all, id); sender == e.name {
					its = append(its, id)
				}
				return err
			})
		if err != nil || len(all) == 0 {
			return left, err
		}
		if err := t.forgetReceipts(ctx, e.name, all); err != nil {
			return left, err
		}
		for some := range slices.Chunk(its, eraseChunk) {
			waits, err := s.Messages.RemoveThese(ctx, e.ws, some, hurry)
			if left = left || waits; err != nil {
				return left, err
			}
		}
		if len(all) < groupScan {
			return left, nil
		}
	}
}

// forgetReceipts removes what a member confirmed of messages.
func (t Table) forgetReceipts(ctx context.Context, member string, ids []string) error {
	raw, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	some, err := t.db.Exists(ctx, `SELECT count(*) FROM receipt WHERE message_id IN `+t.db.InList(1)+`
		AND (member = $2 OR number = $2)`, string(raw), member)
	if err != nil || !some {
		return err
	}
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		return tx.Exec(`DELETE FROM receipt WHERE message_id IN `+tx.InList(1)+` AND (member = $2 OR number = $2)`,
			string(raw), member)
	}))
}

// joinable are the chats that became a part of another one and have something to move, or nothing at all. Others wait
// for what is still to be sent, perhaps for months.
const joinable = `SELECT device_id, from_chat, to_chat FROM chat_join j
	WHERE EXISTS (SELECT 1 FROM message m WHERE m.device_id = j.device_id AND m.chat_id = j.from_chat
		AND m.status NOT IN ('queued', 'sending', 'scheduled'))
	OR NOT EXISTS (SELECT 1 FROM message m WHERE m.device_id = j.device_id AND m.chat_id = j.from_chat) LIMIT $1 + 0`

// JoinChats moves the messages of some chats that became a part of another one, as far as they were sent.
func (t Table) JoinChats(ctx context.Context) error {
	type join struct {
		device   postern.DeviceID
		from, to string
	}
	var list []join
	err := t.db.Rows(ctx, joinable, []any{joins},
		func(r *sql.Rows) error {
			var j join
			err := r.Scan(&j.device, &j.from, &j.to)
			list = append(list, j)
			return err
		})
	for _, j := range list {
		for moved := true; moved && err == nil && ctx.Err() == nil; {
			err = t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
				var err error
				moved, err = contactid.Move(tx, j.device, j.from, j.to)
				return err
			}))
		}
	}
	return err
}
