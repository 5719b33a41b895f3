package db

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Statement is one text for both engines that writes or reads something for each
// of many rows.
//
//	var finish = db.NewStatement("id, status",
//		`UPDATE message AS m SET status = @status [FROM @rows] WHERE m.id = @id`)
//
// A name after @ is the row's value in that column. @values stands for the rows in an
// INSERT: all columns, or the expressions in parentheses after it. @rows is the table of
// rows in a FROM, USING or JOIN. What is in square brackets is for PostgreSQL only, which
// gets all rows as arrays in one execution; there the columns' names must not be those of
// the statement's tables. SQLite executes the statement once for each row.
//
// The rows take the numbers $1 to $n; further parameters of [Tx.Each] follow them.
type Statement struct {
	columns []string
	text    string

	once  sync.Once
	local string // for SQLite

	mu     sync.Mutex
	remote map[string]string // for PostgreSQL, by the columns' types
}

// NewStatement makes a Statement. Columns are separated by a comma and a space.
func NewStatement(columns, text string) *Statement {
	return &Statement{columns: strings.Split(columns, ", "), text: text, remote: map[string]string{}}
}

// forRow is the text for one row.
func (s *Statement) forRow() string {
	s.once.Do(func() {
		text := replaceValues(outside(s.text), s.list(), func(list string) string { return "VALUES (" + list + ")" })
		s.local = s.replaceNames(text, func(i int) string { return fmt.Sprintf("$%d", i+1) })
	})
	return s.local
}

// forRows is the text for all rows, as arrays of the given types.
func (s *Statement) forRows(types []string) string {
	key := strings.Join(types, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.remote[key]
	if !ok {
		text = s.withArrays(types)
		s.remote[key] = text
	}
	return text
}

func (s *Statement) withArrays(types []string) string {
	arrays := make([]string, len(types))
	for i, kind := range types {
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, kind)
	}
	rows := "unnest(" + strings.Join(arrays, ", ") + ") WITH ORDINALITY AS u(" + strings.Join(s.columns,
		", ") + ", ord)"
	text := strings.NewReplacer("[", "", "]", "").Replace(s.text)
	text = replaceValues(text, s.list(), func(list string) string { return "SELECT " + list + " FROM @rows ORDER BY ord" })
	text = strings.ReplaceAll(text, "@rows", rows)
	return s.replaceNames(text, func(i int) string { return "u." + s.columns[i] })
}

// list is the list of all columns' values.
func (s *Statement) list() string { return "@" + strings.Join(s.columns, ", @") }

// positional replaces the parameters $1 to $n of a query by ?, and returns the number of the argument of each.
// SQLite's driver looks for the argument of a named parameter by comparing its name with the number of every
// argument, which is most of the work for a message with its 31 columns. order is nil if the arguments can
// stay as they are.
func positional(query string) (text string, order []int) {
	var b strings.Builder
	sorted := true
	for {
		before, rest, found := strings.Cut(query, "$")
		b.WriteString(before)
		if !found {
			break
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if query = rest[digits:]; err != nil {
			b.WriteString("$")
			continue
		}
		b.WriteString("?")
		order = append(order, n)
		sorted = sorted && n == len(order)
	}
	if sorted {
		order = nil
	}
	return b.String(), order
}

// ordered returns the arguments of a statement in the order of its parameters.
func ordered(args []any, order []int) []any {
	if order == nil {
		return args
	}
	list := make([]any, len(order))
	for i, n := range order {
		list[i] = args[n-1]
	}
	return list
}

// replaceValues replaces @values and the expressions after it, or all if there are none.
func replaceValues(text, all string, with func(list string) string) string {
	before, after, found := strings.Cut(text, "@values")
	if !found {
		return text
	}
	if !strings.HasPrefix(after, " (") {
		return before + with(all) + after
	}
	end := closing(after[1:]) + 1
	return before + with(after[2:end]) + after[end+1:]
}

// closing is the place of the parenthesis that closes the one with which a text begins.
func closing(text string) int {
	depth := 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text) - 1
}

// replaceNames replaces each @name of a column.
func (s *Statement) replaceNames(text string, with func(i int) string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "@")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name := rest[:wordLength(rest)]
		text = rest[len(name):]
		if i := s.index(name); i >= 0 {
			b.WriteString(with(i))
		} else {
			b.WriteString("@" + name)
		}
	}
}

func (s *Statement) index(name string) int {
	for i, c := range s.columns {
		if c == name {
			return i
		}
	}
	return -1
}

func wordLength(s string) int {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return i
		}
	}
	return len(s)
}

// outside is a text without what is in square brackets.
func outside(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(rest, "]")
	}
}

// arrays turns rows into one array for each column, with the columns' types. All rows
// have values of the same types.
func (s *Statement) arrays(rows [][]any) (types []string, args []any) {
	types, args = make([]string, len(s.columns)), make([]any, len(s.columns))
	for i := range s.columns {
		args[i], types[i] = column(rows, i)
	}
	return types, args
}

func column(rows [][]any, i int) (values any, kind string) {
	switch plain(rows[0][i : i+1])[0].(type) {
	case int64:
		return gather[int64](rows, i), "bigint"
	case []byte:
		return gather[[]byte](rows, i), "bytea"
	}
	return gather[string](rows, i), "text"
}

func gather[V any](rows [][]any, i int) []V {
	list := make([]V, len(rows))
	for n, row := range rows {
		list[n] = plain(row[i : i+1])[0].(V) //nolint:errcheck,forcetypeassert // a programmer's mistake; run recovers
	}
	return list
}
