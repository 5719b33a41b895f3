package db

import (
	"fmt"
	"testing"
)

func TestStatementTexts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ columns, text, row, rows string }{
		"insert": {
			"id, value", `INSERT INTO t (id, value) @values ON CONFLICT DO NOTHING`,
			`INSERT INTO t (id, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
			`INSERT INTO t (id, value) SELECT u.id, u.value FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS u(id, value, ord) ORDER BY ord ON CONFLICT DO NOTHING`,
		},
		"insert with expressions": {
			"id, value", `INSERT INTO t (id, a, b, c) @values (@id, 'x', abs(@value), @id) RETURNING id`,
			`INSERT INTO t (id, a, b, c) VALUES ($1, 'x', abs($2), $1) RETURNING id`,
			`INSERT INTO t (id, a, b, c) SELECT u.id, 'x', abs(u.value), u.id FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS u(id, value, ord) ORDER BY ord RETURNING id`,
		},
		"update": {
			"row, row_value", `UPDATE t SET value = @row_value [FROM @rows] WHERE id = @row AND at < $3`,
			`UPDATE t SET value = $2  WHERE id = $1 AND at < $3`,
			`UPDATE t SET value = u.row_value FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS u(row, row_value, ord) WHERE id = u.row AND at < $3`,
		},
	} {
		s := NewStatement(tt.columns, tt.text)
		if got := s.forRow(); got != tt.row {
			t.Errorf("%s, a row:\n got %s\nwant %s", name, got, tt.row)
		}
		if got := s.forRows([]string{"text", "bigint"}); got != tt.rows {
			t.Errorf("%s, all rows:\n got %s\nwant %s", name, got, tt.rows)
		}
	}
}

func TestPositionalParameters(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"SELECT 1":                      "SELECT 1 []",
		"a = $1 AND b = $2":             "a = ? AND b = ? []",
		"a = $2 AND (b = $1 OR c = $2)": "a = ? AND (b = ? OR c = ?) [2 1 2]",
		"a = $1 AND b = $12":            "a = ? AND b = ? [1 12]",
		"a = '$' AND b = $2":            "a = '$' AND b = ? [2]",
	} {
		text, order := positional(query)
		if got := fmt.Sprint(text, " ", order); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}
