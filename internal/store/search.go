package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"postern/internal/db"
	"postern/internal/postern"
	"postern/internal/words"
)

// texts counts the bytes of the texts on a page of messages.
type texts int

// add counts a message. It returns errPageFull for the first one that makes a page larger
// than textBytes: the page ends with it. A caller that cuts the page to the size of a
// response leaves it to the next one.
func (t *texts) add(m postern.Message) error {
	if *t += texts(len(m.Content.Text)); *t > textBytes {
		return errPageFull
	}
	return nil
}

// unlessFull returns nil for the error of a page that is full.
func unlessFull(err error) error {
	if errors.Is(err, errPageFull) {
		return nil
	}
	return err
}

// MessageSearch narrows a list of messages. A zero field does not restrict it.
type MessageSearch struct {
	Devices   []postern.DeviceID // nil for all devices of the workspace
	DeviceID  postern.DeviceID
	ChatID    string
	Direction string
	Kind      postern.Kind
	Statuses  []string     // any of these
	Text      string       // all of its words are in the message, the last one at least as a beginning
	Since     postern.Time // inclusive
	Until     postern.Time // exclusive
	Archived  bool         // messages of earlier numbers of a device, instead of those of the present one
}

// MessagePlace is a place in a list of messages. The zero place is its start.
type MessagePlace struct {
	N  int64
	At postern.Time // 0 unless the list is [MessageSearch.ByTime]
}

// MessagePage is a part of a list, newest first.
type MessagePage struct {
	Messages []postern.Message
	Last     MessagePlace // the messages were read down to this place
	More     bool         // there may be results below Last
	places   []MessagePlace
}

// Cut keeps the first n messages, at least one. The list continues below them.
func (p *MessagePage) Cut(n int) {
	if n < len(p.Messages) {
		p.Messages, p.Last, p.More = p.Messages[:n], p.places[n-1], true
	}
}

// Search lists messages of a workspace, newest first, from below a place. A page may have
// fewer messages than limit even though there are more: the search follows the narrowest
// index, and one page looks at a bounded number of its entries to check the conditions that
// the index does not cover.
func (s Messages) Search(ctx context.Context, ws postern.WorkspaceID, q MessageSearch, below MessagePlace,
	limit int,
) (p MessagePage, err error) {
	if q.DeviceID == "" && len(q.Devices) == 1 {
		q.DeviceID, q.Devices = q.Devices[0], nil
	}
	upper := q.upper(below)
	list, open := words.Query(q.Text)
	switch {
	case len(list) == 0 && strings.TrimSpace(q.Text) != "": // no text is found by such characters
		return p, nil
	case len(list) == 0:
		return s.page(ctx, ws, q, q.way(ws), upper, limit)
	case s.db.Postgres():
		w, err := s.vectorWay(ctx, ws, q, vectorQuery(list, open), upper, limit)
		if err != nil {
			return p, err
		}
		return s.page(ctx, ws, q, w, upper, limit)
	case open:
		if p, full, err := s.newest(ctx, ws, q, upper, limit); err != nil || full {
			return p, err
		}
	}
	return s.page(ctx, ws, q, tableWay(ws, list, open), upper, limit)
}

// Around returns the place from which the list of a message's chat begins with up to newer messages
// that came after it, followed by the message; the zero place is the start of the list.
func (s Messages) Around(ctx context.Context, m postern.Message, newer int) (p MessagePlace, err error) {
	err = s.look(ctx, newerThan, []any{m.WorkspaceID, m.ChatID, m.ID, newer}, &p.N)
	return p, err
}

const newerThan = `SELECT n FROM message WHERE workspace_id = $1 AND chat_id = $2
	AND n > (SELECT n FROM message WHERE workspace_id = $1 AND id = $3) ORDER BY n LIMIT 1 OFFSET $4 + 0`

// page lists messages among the candidates of a way.
func (s Messages) page(ctx context.Context, ws postern.WorkspaceID, q MessageSearch, w way, upper MessagePlace,
	limit int,
) (p MessagePage, err error) {
	lower := MessagePlace{At: q.Since}
	if p.Last, err = s.lookBack(ctx, w, upper, lower, q.look(limit)); err != nil {
		return p, err
	}
	if p.More = p.Last.N != 0; p.More {
		lower = p.Last
	}
	var last MessagePlace
	var size texts
	err = s.db.Rows(ctx, s.searched(w), s.searchArgs(ws, q, w, upper, lower, limit), func(r *sql.Rows) error {
		if len(p.Messages) == limit {
			p.Last, p.More = last, true
			return nil
		}
		m, err := scanMessage(withTail{r, []any{&last.N}})
		last.At = w.timeOf(m)
		p.Messages, p.places = append(p.Messages, m), append(p.places, last)
		return cmp.Or(err, size.add(m))
	})
	if size > textBytes {
		p.Last, p.More = last, true
	}
	return p, unlessFull(err)
}

// ByTime reports whether the list is in the order of time, and not of acceptance. The two
// differ only for messages that were accepted while the clock was set back.
func (s MessageSearch) ByTime() bool {
	return s.Text == "" && s.ChatID == "" && !s.rare() && (s.Since != 0 || s.Until != 0)
}

// rare reports whether the status has an index. Of the statuses only failed and expired
// have one, because such messages are rare and may be far back. Messages that wait are
// among the newest, and the other statuses match nearly every message.
func (s MessageSearch) rare() bool {
	return len(s.Statuses) > 0 && !slices.ContainsFunc(s.Statuses, func(status string) bool {
		return status != string(postern.Failed) && status != string(postern.Expired)
	})
}

// upper returns the place below which the list continues.
func (s MessageSearch) upper(below MessagePlace) MessagePlace {
	if below.N == 0 {
		below = MessagePlace{math.MaxInt64, math.MaxInt64}
	}
	if s.Until != 0 && below.At >= s.Until {
		below.At = s.Until
		if s.ByTime() {
			below.N = 0
		}
	}
	return below
}

// way is an index that finds the candidates for a list in its order.
type way struct {
	from   string // the table, with a column n
	where  string // with ? for each of the values
	values []any
	byTime bool
	last   MessagePlace // of the candidates that one page looks at; zero if it is not known yet
}

// way returns the narrowest index.
func (s MessageSearch) way(ws postern.WorkspaceID) way {
	switch {
	case s.ChatID != "":
		return way{`message`, `workspace_id = ? AND chat_id = ?`, []any{ws, s.ChatID}, false, MessagePlace{}}
	case s.rare():
		return way{`message`, `workspace_id = ? AND status IN ('failed', 'expired')`, []any{ws}, false, MessagePlace{}}
	case s.ByTime():
		return way{`message`, `workspace_id = ?`, []any{ws}, true, MessagePlace{}}
	case s.DeviceID != "":
		return way{`message`, `device_id = ?`, []any{s.DeviceID}, false, MessagePlace{}}
	}
	return way{`message`, `workspace_id = ?`, []any{ws}, false, MessagePlace{}}
}

// between returns the condition for the candidates between two places, with the lower one.
func (w way) between() string {
	if w.byTime {
		return w.where + ` AND (created_at, n) < (?, ?) AND (created_at, n) >= (?, ?)`
	}
	return w.where + ` AND n < ? AND n >= ?`
}

func (w way) args(upper, lower MessagePlace) []any {
	if w.byTime {
		return append(slices.Clip(w.values), upper.At, upper.N, lower.At, lower.N)
	}
	return append(slices.Clip(w.values), upper.N, lower.N)
}

func (w way) order() string {
	if w.byTime {
		return ` ORDER BY created_at DESC, n DESC`
	}
	return ` ORDER BY n DESC`
}

func (w way) timeOf(m postern.Message) postern.Time {
	if w.byTime {
		return m.CreatedAt
	}
	return 0
}

// look returns how many candidates one page looks at: fewer when the index covers all
// conditions except that of the present number.
func (s MessageSearch) look(limit int) int {
	covered := s.ChatID == "" || s.DeviceID == "" && s.Since == 0 && s.Until == 0
	if s.ByTime() {
		covered = s.DeviceID == ""
	}
	if s.Text != "" {
		covered = s.ChatID == "" && s.DeviceID == "" && s.Since == 0 && s.Until == 0
	}
	switch {
	case !covered || s.Devices != nil || s.Direction != "" || s.Kind != "" || s.Statuses != nil || s.Archived:
		return max(messageScan, limit+1)
	case s.Text != "":
		return 2 * limit
	}
	return max(plainScan, limit+1)
}

// lookBack returns the place of the last candidate that one page looks at; the zero place
// when there are fewer.
func (s Messages) lookBack(ctx context.Context, w way, upper, lower MessagePlace,
	look int,
) (last MessagePlace, err error) {
	if w.last.N != 0 {
		return w.last, nil
	}
	err = s.look(ctx, lastOf(w), append(w.args(upper, lower), look-1), &last.N, &last.At)
	return last, err
}

func lastOf(w way) string {
	columns := `n, 0`
	if w.byTime {
		columns = `n, created_at`
	}
	return numberFrom(`SELECT `+columns+` FROM `+w.from+` WHERE `+w.between()+w.order()+` LIMIT 1 OFFSET ? + 0`, 1)
}

// searched returns the query for the results among the candidates. Only the subquery has
// conditions that an index answers: with others beside it, SQLite walks over all messages
// between two numbers, whichever workspace they belong to.
func (s Messages) searched(w way) string {
	return numberFrom(`SELECT `+messageColumns+`, n FROM message
		WHERE n IN (SELECT n FROM `+w.from+` WHERE `+w.between()+w.order()+` LIMIT ? + 0)
		AND about = '' AND (? = '' OR workspace_id = ?) AND (? = '' OR device_id = ?) AND (? = '' OR direction = ?)
		AND (? = '' OR type = ?)
		AND ($2 = 'null' OR status IN `+s.db.InList(2)+`)
		AND (CAST(? AS BIGINT) = 0 OR created_at >= ?) AND (CAST(? AS BIGINT) = 0 OR created_at < ?)
		AND ($1 = 'null' OR device_id IN `+s.db.InList(1)+`)
		AND NOT `+erased("message")+`
		AND (`+current("message")+`) = (CAST(? AS BIGINT) = 0)`+w.order()+` LIMIT ? + 0`, 3)
}

func (s Messages) searchArgs(ws postern.WorkspaceID, q MessageSearch, w way, upper, lower MessagePlace,
	limit int,
) []any {
	args := append([]any{textList(q.Devices), textList(q.Statuses)}, w.args(upper, lower)...)
	return append(args, q.look(limit), ws, ws, q.DeviceID, q.DeviceID, q.Direction, q.Direction, q.Kind, q.Kind,
		q.Since, q.Since, q.Until, q.Until, q.Archived, limit+1)
}

// numberFrom replaces each ? of a query by a numbered parameter, from a number on.
func numberFrom(query string, from int) string {
	parts := strings.Split(query, "?")
	for i := range parts[1:] {
		parts[i] += "$" + strconv.Itoa(from+i)
	}
	return strings.Join(parts, "")
}

// tableWay is the index of SQLite for a search by words.
func tableWay(ws postern.WorkspaceID, list []string, open bool) way {
	from := `(SELECT rowid AS n FROM message_word WHERE message_word MATCH ?) AS found`
	return way{from: from, where: `? <> ''`, values: []any{tableQuery(ws, list, open), "x"}}
}

// vectorWay chooses the index of PostgreSQL for a search by words. Words that fill a page from
// the newest messages are looked for in their order. Others are looked for through the index of
// words, which has no order, and few entries for them.
func (s Messages) vectorWay(ctx context.Context, ws postern.WorkspaceID, q MessageSearch, query string,
	upper MessagePlace, limit int,
) (way, error) {
	var found int
	var last int64
	err := s.look(ctx, `SELECT count(*), coalesce(min(n), 0) FROM newest_words($1, $2, CAST($3 AS tsquery), $4, $5) AS n`,
		[]any{ws, upper.N, query, q.look(limit), wordScan}, &found, &last)
	if found > limit {
		where := `workspace_id = ? AND coalesce(words @@ CAST(? AS tsquery), false)`
		return way{`message_word`, where, []any{ws, query}, false, MessagePlace{N: last}}, err
	}
	// Without statistics, the planner would prefer the index of the workspace, and read all of it.
	from := `(SELECT n FROM message_word WHERE coalesce(workspace_id, '') = ? AND words @@ CAST(? AS tsquery)
		OFFSET 0) AS found`
	return way{from: from, where: `? <> ''`, values: []any{ws, query, "x"}}, err
}

// newest looks for words in the newest messages themselves. It is not full if they are too rare
// for that. SQLite's index lists the messages that have a word in their order, but it collects
// all messages for the beginning of a word first.
func (s Messages) newest(ctx context.Context, ws postern.WorkspaceID, q MessageSearch, upper MessagePlace,
	limit int,
) (p MessagePage, full bool, err error) {
	list, open := words.Query(q.Text)
	w := q.way(ws)
	q.Text = ""
	for scanned := 0; scanned < messageScan; scanned += plainScan {
		some, err := s.page(ctx, ws, q, w, upper, plainScan-1)
		if err != nil {
			return p, false, err
		}
		for i, m := range some.Messages {
			if words.Match(words.Of(m.Texts()...), list, open) {
				p.Messages, p.places = append(p.Messages, m), append(p.places, some.places[i])
			}
		}
		p.Last, p.More = some.Last, some.More
		if len(p.Messages) > limit {
			p.Cut(limit)
			return p, true, nil
		}
		if !p.More || len(p.Messages) < commonWord {
			return p, !p.More, nil
		}
		upper.N = p.Last.N
	}
	return p, true, nil
}

// vectorQuery returns the query for words in a tsvector of PostgreSQL.
func vectorQuery(list []string, open bool) string {
	terms := make([]string, len(list))
	for i, word := range list {
		terms[i] = "'" + word + "'" // a word contains letters and digits only
	}
	if open {
		terms[len(terms)-1] += ":*"
	}
	return strings.Join(terms, " & ")
}

// tableQuery returns the query for words in the full-text table of SQLite.
func tableQuery(ws postern.WorkspaceID, list []string, open bool) string {
	query := `words : "` + strings.Join(list, `" AND words : "`) + `"`
	if open {
		query += `*`
	}
	return query + ` AND tenant : "` + tenantWord(ws) + `"`
}

// tenantWord names a workspace by one word.
func tenantWord(ws postern.WorkspaceID) string { return strings.ReplaceAll(string(ws), "_", "") }

// IndexWords writes the words of a chunk of messages that are new or whose text has changed, for
// searches. more reports that there may be others.
//
// Single writer: order. A message with a smaller number never commits later.
func (s Messages) IndexWords(ctx context.Context) (more bool, err error) {
	var place int64
	if err := s.db.Row(ctx, `SELECT max(n) FROM word_place`, nil, &place); err != nil {
		return false, err
	}
	fresh, moreFresh, err := s.readWords(ctx, `n > $1 ORDER BY n LIMIT $2 + 0`, place)
	if err != nil {
		return false, err
	}
	changed, moreChanged, err := s.readWords(ctx,
		`n IN (SELECT n FROM word_change WHERE n <= $1 ORDER BY n LIMIT $2 + 0)`, place)
	if err != nil || len(fresh)+len(changed) == 0 {
		return false, err
	}
	return moreFresh || moreChanged, s.saveWords(ctx, fresh, changed)
}

// worded is a message with its words.
type worded struct {
	n         int64
	workspace postern.WorkspaceID
	kind      postern.Kind
	text      string
	words     []string
}

// readWords returns messages for which a condition holds, with their words: at most wordChunk,
// and no more after wordBytes of their texts. The texts are split here and not in the writer, for
// which other workspaces wait.
func (s Messages) readWords(ctx context.Context, where string, place int64) (list []worded, more bool, err error) {
	size := 0
	err = s.db.Rows(ctx, `SELECT `+messageColumns+`, n FROM message WHERE `+where, []any{place, wordChunk},
		func(r *sql.Rows) error {
			if size >= wordBytes {
				return errPageFull
			}
			w := worded{}
			m, err := scanMessage(withTail{r, []any{&w.n}})
			w.workspace, w.kind, w.text = m.WorkspaceID, m.Content.Kind, m.Content.Text
			if m.About == "" {
				texts := m.Texts()
				w.words = words.Of(texts...)
				size += len(strings.Join(texts, ""))
			}
			list = append(list, w)
			return err
		})
	return list, len(list) == wordChunk || errors.Is(err, errPageFull), unlessFull(err)
}

var (
	dropText    = db.NewStatement("place", `DELETE FROM message_word WHERE rowid = @place`)
	dropVectors = db.NewStatement("place, workspace", `DELETE FROM message_word [USING @rows]
		WHERE workspace_id = @workspace AND n = CAST(@place AS BIGINT)`)
	addText = db.NewStatement("place, tenant, split", `INSERT INTO message_word (rowid, tenant, words)
		SELECT @place, @tenant, @split WHERE EXISTS (SELECT 1 FROM message WHERE n = @place)`)
	addVectors = db.NewStatement("place, workspace, vector", `INSERT INTO message_word (n, workspace_id, words)
		SELECT CAST(@place AS BIGINT), @workspace, CAST(@vector AS tsvector) [FROM @rows]
		WHERE EXISTS (SELECT 1 FROM message WHERE n = CAST(@place AS BIGINT))`)
	forgetChange = db.NewStatement("place, kind, content", `DELETE FROM word_change [USING @rows]
		WHERE n = CAST(@place AS BIGINT) AND NOT EXISTS (SELECT 1 FROM message m
			WHERE m.n = CAST(@place AS BIGINT) AND (m.type <> @kind OR m.body <> @content))`)
)

// saveWords replaces the words of messages. Meanwhile a message may have been deleted, which
// leaves nothing to find, or changed, which is noted in word_change: so only the changes whose
// words these are may be forgotten.
func (s Messages) saveWords(ctx context.Context, fresh, changed []worded) error {
	return s.db.Do(ctx, db.Func(func(t *db.Tx) error {
		save := saveText
		if t.Postgres() {
			save = saveVectors
		}
		if err := save(t, slices.Concat(changed, fresh)); err != nil {
			return err
		}
		var rows [][]any
		for _, w := range changed {
			rows = append(rows, []any{w.n, w.kind, w.text})
		}
		if err := t.Each(forgetChange, rows); err != nil || len(fresh) == 0 {
			return err
		}
		return t.Exec(`UPDATE word_place SET n = $1`, fresh[len(fresh)-1].n)
	}))
}

// saveText replaces words in the full-text table of SQLite.
func saveText(t *db.Tx, list []worded) error {
	var gone, rows [][]any
	for _, w := range list {
		gone = append(gone, []any{w.n})
		if len(w.words) > 0 {
			rows = append(rows, []any{w.n, tenantWord(w.workspace), strings.Join(w.words, " ")})
		}
	}
	if err := t.Each(dropText, gone); err != nil {
		return err
	}
	return t.Each(addText, rows)
}

// saveVectors replaces words in the table of PostgreSQL.
func saveVectors(t *db.Tx, list []worded) error {
	var gone, rows [][]any
	for _, w := range list {
		gone = append(gone, []any{w.n, w.workspace})
		if len(w.words) > 0 {
			rows = append(rows, []any{w.n, w.workspace, "'" + strings.Join(w.words, "' '") + "'"})
		}
	}
	if err := t.Each(dropVectors, gone); err != nil {
		return err
	}
	return t.Each(addVectors, rows)
}
