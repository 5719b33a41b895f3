package chats

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
)

// labelChunk is how many rows are written in one transaction.
const labelChunk = 1000

var (
	saveLabels = db.NewStatement("device, label, called, shade, more",
		`INSERT INTO label (device_id, label_id, name, color, rest) @values ON CONFLICT (device_id, label_id) DO UPDATE
		SET name = excluded.name, color = excluded.color, rest = excluded.rest`)
	removeLabels = db.NewStatement("device, tag",
		`DELETE FROM label [USING @rows] WHERE device_id = @device AND label_id = @tag`)
	removeFromAll = db.NewStatement("device, tag",
		`DELETE FROM chat_label [USING @rows] WHERE device_id = @device AND label_id = @tag`)
	putChatLabels = db.NewStatement("device, chat, tag", `INSERT INTO chat_label (device_id, chat_id, label_id) @values
		ON CONFLICT (device_id, chat_id, label_id) DO NOTHING`)
	removeChatLabels = db.NewStatement("device, chat, tag", `DELETE FROM chat_label [USING @rows]
		WHERE device_id = @device AND chat_id = @chat AND label_id = @tag`)
)

// Labels returns the labels of a device, by name.
func (t Table) Labels(
	ctx context.Context, ws postern.WorkspaceID, id postern.DeviceID,
) (list []postern.LabelEdit, err error) {
	err = t.db.Rows(ctx, `SELECT l.label_id, l.name, l.color, l.rest FROM label l JOIN device d ON d.id = l.device_id
		WHERE d.workspace_id = $1 AND l.device_id = $2 ORDER BY l.name, l.label_id`, []any{ws, id}, scanLabels(&list))
	return list, err
}

func scanLabels(list *[]postern.LabelEdit) func(*sql.Rows) error {
	return func(r *sql.Rows) error {
		var l postern.LabelEdit
		err := r.Scan(&l.ID, &l.Name, &l.Color, &l.Rest)
		*list = append(*list, l)
		return err
	}
}

// addLabels adds their labels to the chats of a page, by the places of their newest messages: a newer one may have
// arrived meanwhile.
func (t Table) addLabels(ctx context.Context, ws postern.WorkspaceID, p *Page) error {
	at, known := make(map[int64]int, len(p.Places)), map[postern.DeviceID]map[string]postern.Label{}
	for i, place := range p.Places {
		at[place], p.Chats[i].Labels = i, []postern.Label{}
	}
	if len(p.Places) == 0 {
		return nil
	}
	places, err := json.Marshal(p.Places)
	if err != nil {
		return err
	}
	return t.db.Rows(ctx, `WITH page (id) AS `+t.db.InList(2)+` SELECT m.n, m.device_id, l.label_id, l.name, l.color
		FROM message m JOIN chat_label k ON k.device_id = m.device_id AND k.chat_id = m.chat_id
		JOIN label l ON l.device_id = k.device_id AND l.label_id = k.label_id
		WHERE m.workspace_id || '' = $1 AND m.n IN (SELECT CAST(id AS BIGINT) FROM page) ORDER BY l.name, l.label_id`,
		[]any{ws, string(places)}, func(r *sql.Rows) error {
			var place int64
			var device postern.DeviceID
			var l postern.Label
			err := r.Scan(&place, &device, &l.ID, &l.Name, &l.Color)
			if i, listed := at[place]; listed {
				p.Chats[i].Labels = append(p.Chats[i].Labels, shared(known, device, l))
			}
			return err
		})
}

// shared returns the label that was seen before, so that a name that many chats have is in memory once.
func shared(known map[postern.DeviceID]map[string]postern.Label, device postern.DeviceID, l postern.Label) postern.Label {
	if before, ok := known[device][l.ID]; ok {
		return before
	}
	if known[device] == nil {
		known[device] = map[string]postern.Label{}
	}
	known[device][l.ID] = l
	return l
}

// labelsOf returns the labels of a chat.
func (t Table) labelsOf(ctx context.Context, id postern.DeviceID, chat string) ([]postern.Label, error) {
	list := []postern.Label{}
	err := t.db.Rows(ctx, `SELECT l.label_id, l.name, l.color FROM chat_label k
		JOIN label l ON l.device_id = k.device_id AND l.label_id = k.label_id
		WHERE k.device_id = $1 AND k.chat_id = $2 ORDER BY l.name, l.label_id`, []any{id, chat}, func(r *sql.Rows) error {
		var l postern.Label
		err := r.Scan(&l.ID, &l.Name, &l.Color)
		list = append(list, l)
		return err
	})
	return list, err
}

// SetLabels stores what is known of the labels of a device's account. Those beyond [postern.MaxKeptLabels] and
// [postern.MaxChatLabels] are left out. It can be repeated after it has failed.
func (t Table) SetLabels(ctx context.Context, id postern.DeviceID, c postern.LabelChanges) error {
	var known []postern.LabelEdit
	err := t.db.Rows(ctx, `SELECT label_id, name, color, rest FROM label WHERE device_id = $1`, []any{id}, scanLabels(&known))
	if err != nil {
		return err
	}
	saved, gone := changedLabels(id, c, known)
	if len(saved)+len(gone) > 0 {
		err := t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
			for _, s := range []*db.Statement{removeLabels, removeFromAll} {
				if err := tx.Each(s, gone); err != nil {
					return err
				}
			}
			return tx.Each(saveLabels, saved)
		})))
		if err != nil {
			return err
		}
	}
	return t.setChatLabels(ctx, id, c)
}

// changedLabels returns the rows to save and to remove.
func changedLabels(id postern.DeviceID, c postern.LabelChanges, known []postern.LabelEdit) (saved, gone [][]any) {
	before, named := map[string]postern.LabelEdit{}, map[string]bool{}
	for _, l := range known {
		before[l.ID] = l
	}
	for _, l := range c.Labels {
		if named[l.ID] = true; l.Deleted {
			delete(before, l.ID)
			gone = append(gone, []any{id, l.ID})
		}
	}
	for was := range before {
		if c.Whole && !named[was] {
			delete(before, was)
			gone = append(gone, []any{id, was})
		}
	}
	for _, l := range c.Labels {
		was, has := before[l.ID]
		if !l.Deleted && was != l && (has || len(before) < postern.MaxKeptLabels) {
			before[l.ID] = l
			saved = append(saved, []any{id, l.ID, l.Name, l.Color, l.Rest})
		}
	}
	return saved, gone
}

// setChatLabels stores which chats have labels.
func (t Table) setChatLabels(ctx context.Context, id postern.DeviceID, c postern.LabelChanges) error {
	known, n, err := t.knownChatLabels(ctx, id, c)
	if err != nil {
		return err
	}
	last := map[postern.ChatLabel]bool{} // the last change of a label on a chat counts
	for _, l := range c.Chats {
		last[postern.ChatLabel{ChatID: l.ChatID, LabelID: l.LabelID}] = l.On
	}
	if c.Whole { // what is not named goes
		n = 0
		for l := range known {
			n += bit(last[l])
		}
	}
	var put, gone [][]any
	for l, on := range last {
		switch {
		case !on:
			gone = append(gone, []any{id, l.ChatID, l.LabelID})
		case !known[l] && n < postern.MaxChatLabels:
			put, n = append(put, []any{id, l.ChatID, l.LabelID}), n+1
		}
	}
	for l := range known {
		if _, named := last[l]; c.Whole && !named {
			gone = append(gone, []any{id, l.ChatID, l.LabelID})
		}
	}
	if err := t.writeChatLabels(ctx, removeChatLabels, id, gone); err != nil {
		return err
	}
	return t.writeChatLabels(ctx, putChatLabels, id, put)
}

// knownChatLabels returns which labels chats have, if that decides what is to be stored, and how many these are.
func (t Table) knownChatLabels(
	ctx context.Context, id postern.DeviceID, c postern.LabelChanges,
) (known map[postern.ChatLabel]bool, n int, err error) {
	if len(c.Chats) == 0 && !c.Whole {
		return nil, 0, nil
	}
	err = t.db.Row(ctx, `SELECT count(*) FROM chat_label WHERE device_id = $1`, []any{id}, &n)
	if err != nil || !c.Whole && n+len(c.Chats) <= postern.MaxChatLabels {
		return nil, n, err
	}
	known = make(map[postern.ChatLabel]bool, n)
	err = t.db.Rows(ctx, `SELECT chat_id, label_id FROM chat_label WHERE device_id = $1`, []any{id}, func(r *sql.Rows) error {
		var l postern.ChatLabel
		err := r.Scan(&l.ChatID, &l.LabelID)
		known[l] = true
		return err
	})
	return known, n, err
}

// writeChatLabels writes rows for chats as they are called now.
func (t Table) writeChatLabels(ctx context.Context, s *db.Statement, id postern.DeviceID, rows [][]any) error {
	for some := range slices.Chunk(rows, labelChunk) {
		err := t.db.Do(ctx, db.Fenced(db.Func(func(tx *db.Tx) error {
			for _, row := range some {
				if chat, _ := row[1].(string); strings.HasPrefix(chat, "lid:") {
					ours, err := current(tx, id, chat)
					if err != nil {
						return err
					}
					row[1] = ours
				}
			}
			return tx.Each(s, some)
		})))
		if err != nil {
			return err
		}
	}
	return nil
}
