// Package storetest reads what the database holds of a workspace, past the store.
package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver
)

// id matches an id of Postern in a row.
var id = regexp.MustCompile(`\b[a-z]{2,3}_[0-9A-HJKMNP-TV-Z]{26}\b`)

// RowsOf returns, sorted, every row of an SQLite database that belongs to a workspace: the
// rows that contain its id, and those without a workspace id that contain an id which
// occurs in such a row. A row is its table and its values as text. The store may be open.
func RowsOf(tb testing.TB, dir, workspace string) (list []string) {
	tb.Helper()
	rows, err := everyRow(tb.Context(), filepath.Join(dir, "postern.db"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, row := range rows {
		if strings.Contains(row, workspace) || ofNoOther(row, workspace, rows) {
			list = append(list, row)
		}
	}
	slices.Sort(list)
	return list
}

// ofNoOther reports whether a row without a workspace id belongs to the workspace by
// another id that it contains.
func ofNoOther(row, workspace string, rows []string) bool {
	if strings.Contains(row, "ws_") {
		return false
	}
	for _, thing := range id.FindAllString(row, -1) {
		if slices.ContainsFunc(rows, func(r string) bool {
			return strings.Contains(r, workspace) && strings.Contains(r, thing)
		}) {
			return true
		}
	}
	return false
}

func everyRow(ctx context.Context, file string) (list []string, err error) {
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	tables, err := textRows(ctx, db, `SELECT name FROM sqlite_master WHERE type = 'table'`)
	for _, table := range tables {
		rows, rowsErr := textRows(ctx, db, `SELECT * FROM "`+table+`"`)
		err = errors.Join(err, rowsErr)
		for _, row := range rows {
			list = append(list, table+" "+row)
		}
	}
	return list, err
}

// textRows returns each row of a query as one text.
func textRows(ctx context.Context, db *sql.DB, query string) (list []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			return nil, err
		}
		words := make([]string, len(values))
		for i, v := range values {
			words[i] = fmt.Sprint(v)
			if b, ok := v.([]byte); ok {
				words[i] = string(b)
			}
		}
		list = append(list, strings.Join(words, "|"))
	}
	return list, rows.Err()
}
