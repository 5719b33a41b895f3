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

	_ "modernc.org/sqlite" // the driver; that of PostgreSQL comes with internal/db
)

// id matches an id of Postern in a row.
var id = regexp.MustCompile(`\b[a-z]{2,3}_[0-9A-HJKMNP-TV-Z]{26}\b`)

// RowsOf returns, sorted, every row of a database that belongs to a workspace: the rows
// that contain its id, and those without a workspace id that contain an id which occurs in
// such a row. A row is its table and its values as text. The database is the directory of
// an SQLite database or the URL of a PostgreSQL database. The store may be open.
func RowsOf(tb testing.TB, database, workspace string) (list []string) {
	tb.Helper()
	rows, err := everyRow(tb.Context(), database)
	if err != nil {
		tb.Fatal(err)
	}
	things := thingsOf(workspace, rows)
	for _, row := range rows {
		if strings.Contains(row, workspace) || ofNoOther(row, things) {
			list = append(list, row)
		}
	}
	slices.Sort(list)
	return list
}

// thingsOf returns the ids in the rows that contain a workspace's id.
func thingsOf(workspace string, rows []string) map[string]bool {
	things := map[string]bool{}
	for _, row := range rows {
		if !strings.Contains(row, workspace) {
			continue
		}
		for _, thing := range idsIn(row) {
			things[thing] = true
		}
	}
	return things
}

// ofNoOther reports whether a row without a workspace id belongs to a workspace by another
// id that it contains.
func ofNoOther(row string, things map[string]bool) bool {
	if strings.Contains(row, "ws_") {
		return false
	}
	return slices.ContainsFunc(idsIn(row), func(thing string) bool { return things[thing] })
}

// idsIn finds the ids of Postern in a text. It looks around each underscore only, because many rows hold long texts.
func idsIn(text string) (ids []string) {
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], '_')
		if next < 0 {
			return ids
		}
		at += next
		if found := id.FindString(text[max(0, at-4):min(len(text), at+28)]); found != "" { // with what surrounds it
			ids = append(ids, found)
		}
	}
}

func everyRow(ctx context.Context, database string) (list []string, err error) {
	driver, source := "sqlite", "file:"+filepath.Join(database, "postern.db")+"?mode=ro&_pragma=busy_timeout(5000)"
	names := `SELECT name FROM sqlite_master WHERE type = 'table'`
	if strings.HasPrefix(database, "postgres") {
		driver, source = "pgx", database
		names = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	tables, err := textRows(ctx, db, names)
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
			if b, ok := v.([]byte); ok {
				words[i] = string(b)
				continue
			}
			words[i] = fmt.Sprint(v)
		}
		list = append(list, strings.Join(words, "|"))
	}
	return list, rows.Err()
}
