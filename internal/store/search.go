package store

import (
	"cmp"
	"context"
	"database/sql"
	"math"

	"postern/internal/postern"
)

// MessageSearch narrows what is looked for; zero members ask for nothing.
type MessageSearch struct {
	Devices   []postern.DeviceID // nil: all that the workspace has
	DeviceID  postern.DeviceID
	ChatID    string
	Direction string
	Status    string
}

// MessagePage is a part of what was looked for, newest first.
type MessagePage struct {
	Messages []postern.Message
	Last     int64 // everything was looked at down to this place
	More     bool  // there may be more below Last
}

// Search looks through the messages of a workspace's present numbers, from
// below a place back; 0 is the newest. A page may have fewer messages than the
// limit, and still more behind it: the narrowest index leads the way, and of what
// lies there a page looks at a bounded part for what no index tells.
func (s Messages) Search(ctx context.Context, ws postern.WorkspaceID, q MessageSearch, before int64, limit int) (p MessagePage, err error) {
	way, first, second := q.way(ws)
	look := q.look(limit)
	var newest, n int
	if err := s.db.Row(ctx, lookBack(way), []any{cmp.Or(before, math.MaxInt64), look, first, second}, &p.Last, &newest, &n); err != nil || n == 0 {
		return p, err
	}
	p.More = n == look
	var places []int64
	err = s.db.Rows(ctx, s.searched(way), []any{newest + 1, look, first, second, ws, q.DeviceID, q.Direction, q.Status, asJSON(q.Devices), limit + 1}, func(r *sql.Rows) error {
		var place int64
		m, err := scanMessage(withTail{r, []any{&place}})
		p.Messages, places = append(p.Messages, m), append(places, place)
		return err
	})
	if len(p.Messages) > limit {
		p.Messages, p.Last, p.More = p.Messages[:limit], places[limit-1], true
	}
	return p, err
}

// way is the condition of the narrowest index, and its two parameters, $3 and $4.
// A state has an index when it is rare and may lie far back: what failed. What
// waits is among the newest, and all other states are those of nearly everything.
func (s MessageSearch) way(ws postern.WorkspaceID) (where string, first, second any) {
	switch {
	case s.ChatID != "" && s.DeviceID != "":
		return `device_id = $3 AND chat_id = $4`, s.DeviceID, s.ChatID
	case s.ChatID != "":
		return `device_id IN (SELECT id FROM device WHERE workspace_id = $3) AND chat_id = $4`, ws, s.ChatID
	case s.Status == string(postern.Failed) || s.Status == string(postern.Expired):
		return `workspace_id = $3 AND status IN ('failed', 'expired') AND $4 = ''`, ws, ""
	case s.DeviceID != "":
		return `device_id = $3 AND $4 = ''`, s.DeviceID, ""
	}
	return `workspace_id = $3 AND $4 = ''`, ws, ""
}

// look is how many messages one page looks at: few when the way leads to nothing but
// what is wanted, and messages of earlier numbers.
func (s MessageSearch) look(limit int) int {
	if s.Devices == nil && s.Direction == "" && s.Status == "" {
		return max(plainScan, limit+1)
	}
	return max(messageScan, limit+1)
}

// part are the places that one page looks at.
func part(way string) string {
	return `SELECT n FROM message WHERE ` + way + ` AND n < $1 ORDER BY n DESC LIMIT $2 + 0`
}

// lookBack says from where to where one page reaches, and how many messages lie there.
func lookBack(way string) string {
	return `SELECT coalesce(min(n), 0), coalesce(max(n), 0), count(*) FROM (` + part(way) + `) looked`
}

// searched reads what is wanted of such a part.
func (s Messages) searched(way string) string {
	return `SELECT ` + messageColumns + `, n FROM message WHERE n IN (` + part(way) + `) AND workspace_id = $5
		AND ($6 = '' OR device_id = $6) AND ($7 = '' OR direction = $7) AND ($8 = '' OR status = $8) AND ($9 = 'null' OR device_id IN ` + s.db.InList(9) + `)
		AND ` + current("message") + ` ORDER BY n DESC LIMIT $10 + 0`
}
