// Package groups keeps the groups that devices are in.
package groups

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/store"
)

// Table has the groups of all devices.
type Table struct{ db *db.DB }

// Of returns the groups of a store.
func Of(s *store.Store) Table { return Table{s.Engine()} }

// List returns the groups that a device is in, in the order of their ids.
func (t Table) List(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, p store.Page,
) (list []postern.GroupSummary, err error) {
	err = t.db.Rows(ctx, `SELECT summary FROM chat_group WHERE workspace_id = $1 AND device_id = $2 AND left_at = 0
		AND chat_id > $3 ORDER BY chat_id LIMIT $4 + 0`, []any{ws, id, p.After, p.Limit}, func(r *sql.Rows) error {
		var raw string
		var g postern.GroupSummary
		if err := r.Scan(&raw); err != nil {
			return err
		}
		err := json.Unmarshal([]byte(raw), &g)
		g.Kind = cmp.Or(g.Kind, postern.PlainGroup) // from before there were others
		list = append(list, g)
		return err
	})
	return list, err
}

// Subject returns the name of a group; "" if it is not known.
func (t Table) Subject(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, chat string,
) (subject string, err error) {
	err = t.db.One(ctx, `SELECT subject FROM chat_group WHERE workspace_id = $1 AND device_id = $2 AND chat_id = $3`,
		ws, id, chat).Scan(&subject)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return subject, err
}

// Get returns a group that the account of a device is in; the zero value if it is not in it.
func (t Table) Get(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, chat string,
) (g postern.GroupSummary, err error) {
	var raw string
	err = t.db.One(ctx, `SELECT summary FROM chat_group WHERE workspace_id = $1 AND device_id = $2 AND chat_id = $3
		AND left_at = 0`, ws, id, chat).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return g, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(raw), &g)
	}
	return g, err
}

// Picture returns which picture of a group was last read, and its file; "" if none was.
func (t Table) Picture(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, chat string,
) (picture string, file postern.MediaID, err error) {
	err = t.db.One(ctx, `SELECT picture_id, picture_media FROM chat_group WHERE workspace_id = $1 AND device_id = $2
		AND chat_id = $3`, ws, id, chat).Scan(&picture, &file)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", nil
	}
	return picture, file, err
}

// SetPicture notes which picture of a group was read, and its file. It does nothing for a group that is not known.
func (t Table) SetPicture(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID, chat, picture string, file postern.MediaID,
) error {
	return t.db.Do(ctx, db.Func(func(tx *db.Tx) error {
		return tx.Exec(`UPDATE chat_group SET picture_id = $4, picture_media = $5 WHERE workspace_id = $1
			AND device_id = $2 AND chat_id = $3`, ws, id, chat, picture, file)
	}))
}

// Listed reports whether the groups of an account were listed.
func (t Table) Listed(ctx context.Context, id postern.DeviceID, account string) (bool, error) {
	return t.db.Exists(ctx, `SELECT count(*) FROM group_list WHERE device_id = $1 AND account = $2`, id, account)
}

// Unknown returns those of the groups that are not stored.
func (t Table) Unknown(
	ctx context.Context, id postern.DeviceID, list []postern.Group,
) (unknown, known []postern.Group, err error) {
	stored := map[string]bool{}
	err = t.db.Rows(ctx, `SELECT chat_id FROM chat_group WHERE device_id = $1 AND left_at = 0`, []any{id},
		func(r *sql.Rows) error {
			var chat string
			err := r.Scan(&chat)
			stored[chat] = true
			return err
		})
	for _, g := range list {
		if stored[g.ChatID] {
			known = append(known, g)
		} else {
			unknown = append(unknown, g)
		}
	}
	return unknown, known, err
}

// Start stores groups that an account is in, and that they were listed. It makes no events, and leaves groups that are
// stored as they are.
func (t Table) Start(ctx context.Context, d postern.Device, list []postern.Group) error {
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		for _, g := range list {
			if _, s, known, err := read(tx, d.ID, g.ChatID); err != nil || known && s.left == 0 {
				if err != nil {
					return err
				}
				continue
			}
			now := postern.TimeOf(t.db.Now())
			err := errors.Join(
				write(tx, d, g, standing{listed: 1}), setTimer(tx, d.ID, g.ChatID, g.Disappearing, now))
			if err != nil {
				return err
			}
		}
		return tx.Exec(`INSERT INTO group_list (device_id, account) VALUES ($1, $2)
			ON CONFLICT (device_id) DO UPDATE SET account = excluded.account`, d.ID, d.Account)
	})))
}

// standing is what is known of the account in a group.
type standing struct {
	left    postern.Time // 0: it is in the group
	listed  int          // 1: no notice has said that it joined
	noticed postern.Time // when the newest notice was made
}

// reported is what events have reported of the account in the group. A group that is known from a list was not joined as
// far as they tell.
func (s standing) reported(known, joins bool) postern.GroupStanding {
	switch {
	case !known || joins && s.listed == 1:
		return postern.GroupUnknown
	case s.left > 0:
		return postern.OutOfGroup
	}
	return postern.InGroup
}

// SetTimer notes the timer of a group, of which nothing else is recorded. The notices of a group have whole seconds
// of the network's clock; an older one than the newest changes nothing.
func (t Table) SetTimer(ctx context.Context, id postern.DeviceID, chat string, seconds int, at postern.Time) error {
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		var last postern.Time
		err := tx.Row(`SELECT coalesce(max(set_at), 0) FROM chat_timer WHERE device_id = $1 AND chat_id = $2`,
			[]any{id, chat}, &last)
		if err != nil || at/second < last/second {
			return err
		}
		return setTimer(tx, id, chat, seconds, at)
	})))
}

const second postern.Time = 1000

// setTimer makes the messages to a group carry its timer.
func setTimer(tx *db.Tx, id postern.DeviceID, chat string, seconds int, at postern.Time) error {
	n, err := tx.Changed(`UPDATE chat_timer SET seconds = $3, set_at = $4 WHERE device_id = $1 AND chat_id = $2
		AND seconds <> $3`, id, chat, seconds, at)
	if err == nil && n == 0 && seconds > 0 {
		n, err = tx.Changed(`INSERT INTO chat_timer (device_id, chat_id, seconds, set_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (device_id, chat_id) DO NOTHING`, id, chat, seconds, at)
	}
	if n > 0 {
		tx.Wake(store.DeviceChanged, string(id))
	}
	return err
}

func write(tx *db.Tx, d postern.Device, g postern.Group, s standing) error {
	summary, err := json.Marshal(g.GroupSummary)
	if err != nil {
		return fmt.Errorf("encode a group: %w", err)
	}
	people, err := json.Marshal(g.Participants)
	if err != nil {
		return fmt.Errorf("encode the members of a group: %w", err)
	}
	return tx.Exec(`INSERT INTO chat_group (device_id, chat_id, workspace_id, subject, summary, participants, left_at,
		listed, noticed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (device_id, chat_id)
		DO UPDATE SET subject = excluded.subject,
		summary = excluded.summary, participants = excluded.participants, left_at = excluded.left_at,
		listed = excluded.listed, noticed_at = excluded.noticed_at`,
		d.ID, g.ChatID, d.WorkspaceID, g.Subject, string(summary), string(people), s.left, s.listed, s.noticed)
}

// read returns a group as it is stored; ok is false if it is not.
func read(tx *db.Tx, id postern.DeviceID, chat string) (g postern.Group, s standing, ok bool, err error) {
	var summary, people string
	err = tx.Row(`SELECT summary, participants, left_at, listed, noticed_at FROM chat_group WHERE device_id = $1
		AND chat_id = $2`, []any{id, chat}, &summary, &people, &s.left, &s.listed, &s.noticed)
	if errors.Is(err, sql.ErrNoRows) {
		return g, s, false, nil
	}
	if err == nil {
		err = errors.Join(
			json.Unmarshal([]byte(summary), &g.GroupSummary), json.Unmarshal([]byte(people), &g.Participants))
		g.Kind = cmp.Or(g.Kind, postern.PlainGroup)
	}
	return g, s, true, err
}

// Change is what became known about a group of a device.
type Change struct {
	Device postern.Device
	ChatID string
	At     postern.Time
	// Noticed is when the network made the notice of the change; 0 if it is no notice. Older notices than the newest one
	// are ignored: the network repeats them after a connection was lost.
	Noticed postern.Time
	Joins   bool // the network says that the account has just joined
	Timer   *int // the timer of the group, in seconds; nil if nothing was said of it
	// Apply returns the group after the change, whether the account is in it then, and the events about it. before is
	// the zero Group if the group is not known, and is what events have reported.
	Apply func(before postern.Group, is postern.GroupStanding) (after postern.Group, stays bool, events []postern.Event,
		err error)
}

// Change stores a change with its events. If it changes nothing, no event is made: the network may report a change
// more than once.
func (t Table) Change(ctx context.Context, c Change) error {
	return t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
		before, s, known, err := read(tx, c.Device.ID, c.ChatID)
		if err != nil {
			return err
		}
		if c.Noticed > 0 && c.Noticed < s.noticed {
			return nil
		}
		s.noticed = max(s.noticed, c.Noticed)
		after, stays, events, err := c.Apply(before, s.reported(known, c.Joins))
		if err == nil && stays && c.Timer != nil {
			err = setTimer(tx, c.Device.ID, c.ChatID, *c.Timer, cmp.Or(c.Noticed, c.At))
		}
		same := stays == (known && s.left == 0) && !c.Joins && reflect.DeepEqual(before, after)
		if err != nil || same {
			return err
		}
		if !known && !c.Joins {
			s.listed = 1
		}
		switch {
		case stays:
			s.left = 0
		case s.left == 0:
			s.left = c.At
		}
		if c.Joins {
			s.listed = 0
		}
		if err := write(tx, c.Device, after, s); err != nil {
			return err
		}
		for _, e := range events {
			if err := store.RecordEvent(tx, e, c.At); err != nil {
				return err
			}
		}
		return nil
	})))
}
